//! What it costs to wake a sleeping thread on this machine.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::analysis::spread::median;

/// Exchanges, the first ones not counted.
const EXCHANGES: usize = 1000;
const FIRST: usize = 100;

/// Microseconds from a send until a thread that slept on another core has what was sent: half of a
/// median exchange of one byte between two threads, each on a core of its own where there are two.
pub fn wake_us() -> io::Result<f64> {
    let (mut here, mut there) = UnixStream::pair()?;
    let cores = first_cores();
    thread::scope(|scope| {
        scope.spawn(move || {
            pin(cores.1);
            let mut byte = [0];
            while there.read_exact(&mut byte).is_ok() && there.write_all(&byte).is_ok() {}
        });
        // A thread of its own here too: a pin must not outlast this.
        let asks = scope.spawn(move || -> io::Result<f64> {
            pin(cores.0);
            let mut times = Vec::with_capacity(EXCHANGES);
            for _ in 0..EXCHANGES {
                let since = Instant::now();
                here.write_all(&[0])?;
                here.read_exact(&mut [0])?;
                times.push(since.elapsed().as_secs_f64() * 1e6);
            }
            Ok(median(&times[FIRST..]) / 2.0)
        });
        asks.join().expect("it only exchanges bytes")
    })
}

/// The first two cores that this thread may use.
fn first_cores() -> (Option<usize>, Option<usize>) {
    let Ok(allowed) = sched_getaffinity(None) else { return (None, None) };
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    let first = cores.next();
    (first, cores.next().or(first))
}

fn pin(core: Option<usize>) {
    if let Some(core) = core {
        let mut set = CpuSet::new();
        set.set(core);
        // Without it the figure is that of whatever cores the two get.
        let _ = sched_setaffinity(None, &set);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_measured_cost_of_a_wake_is_plausible() {
        let us = super::wake_us().expect("a pair of sockets");
        assert!(us > 0.1 && us < 1e6, "{us}");
    }
}
