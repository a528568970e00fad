//! What the system tells of a server's process: memory, and CPU by thread.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use client::{Address, Client};

use crate::host;

/// Longest wait for the server's own figure.
const WAIT: Duration = Duration::from_secs(2);
/// A thread with less than this share of a CPU is not at work.
const ACTIVE_SHARE: f64 = 0.05;

/// A server's memory at one time, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Allocated, by its own account (`used_memory` of INFO memory).
    pub used: Option<u64>,
    /// Resident, where it is a local process.
    pub resident: Option<u64>,
}

/// Looks at the memory of a server.
pub fn memory(address: &Address, pid: Option<u32>) -> Memory {
    let used = Client::connect(address, WAIT).ok().and_then(|mut client| {
        let reply = client.call(&[b"INFO", b"memory"]).ok()?;
        let line = reply.as_str()?.lines().find_map(|line| line.strip_prefix("used_memory:"))?;
        line.trim().parse().ok()
    });
    Memory { used, resident: pid.map(host::resident_bytes).filter(|bytes| *bytes > 0) }
}

impl Memory {
    /// Bytes that came since, per request: the server's own figure if there is one, else resident ones.
    pub fn growth_per_request(&self, before: &Self, requests: u64) -> Option<f64> {
        let between = |now: Option<u64>, then: Option<u64>| Some(now? as f64 - then? as f64);
        let grown = between(self.used, before.used).or(between(self.resident, before.resident))?;
        Some(grown / requests.max(1) as f64)
    }
}

/// CPU of each thread of a process from some time on.
#[derive(Debug)]
pub struct Threads {
    pid: u32,
    since: Instant,
    before: BTreeMap<u32, f64>,
}

impl Threads {
    /// Begins; `None` if the process cannot be looked at.
    pub fn watch(pid: u32) -> Option<Self> {
        let before = cpu_s(pid);
        (!before.is_empty()).then(|| Self { pid, since: Instant::now(), before })
    }

    /// Share of a CPU that the busiest thread used, and how many threads were at work.
    pub fn busiest(&self) -> (f64, usize) {
        let elapsed = self.since.elapsed().as_secs_f64().max(1e-9);
        let now = cpu_s(self.pid);
        let shares: Vec<f64> = now
            .iter()
            .map(|(thread, s)| (s - self.before.get(thread).unwrap_or(&0.0)) / elapsed)
            .collect();
        let busiest = shares.iter().copied().fold(0.0, f64::max);
        (busiest, shares.iter().filter(|share| **share >= ACTIVE_SHARE).count())
    }
}

/// CPU seconds by thread, from the scheduler's own account.
fn cpu_s(pid: u32) -> BTreeMap<u32, f64> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return BTreeMap::new() };
    let one = |entry: fs::DirEntry| {
        let thread = entry.file_name().to_str()?.parse().ok()?;
        let text = fs::read_to_string(entry.path().join("schedstat")).ok()?;
        Some((thread, text.split(' ').next()?.parse::<f64>().ok()? / 1e9))
    };
    tasks.flatten().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_prefers_the_servers_own_figure() {
        let before = Memory { used: Some(1000), resident: Some(5000) };
        let after = Memory { used: Some(3000), resident: Some(9000) };
        assert_eq!(after.growth_per_request(&before, 100), Some(20.0));
        let silent = Memory { used: None, ..before };
        assert_eq!(after.growth_per_request(&silent, 100), Some(40.0));
        assert_eq!(Memory::default().growth_per_request(&before, 1), None);
    }

    #[test]
    fn the_busiest_thread_is_seen() {
        let watch = Threads::watch(std::process::id()).expect("this process");
        let until = Instant::now() + Duration::from_millis(50);
        let mut sum = 0u64;
        while Instant::now() < until {
            sum = sum.wrapping_mul(31).wrapping_add(7);
        }
        let (share, active) = watch.busiest();
        assert!(share > 0.05 && active >= 1, "{share} {active} {sum}");
        assert!(Threads::watch(u32::MAX).is_none());
    }
}
