//! Processor time of a server's workers. It measures the cost of commands independently of other
//! programs on the machine.

use std::time::{Duration, Instant};

use crate::in_time::LIMIT;
use crate::server_process::ServerProcess;

/// Prefix of the names of worker threads, except the first worker: that is the main thread.
const NAME: &str = "worker-";

/// Microseconds of processor time of all workers since the server began, once all of them sleep:
/// the system reports what a running thread has used only when it stops.
///
/// # Panics
/// If the server has ended, or a worker never sleeps.
pub fn microseconds(server: &ServerProcess) -> u64 {
    let began = Instant::now();
    loop {
        let workers = workers(server.pid());
        if workers.iter().all(|one| one.sleeps) {
            return workers.iter().map(|one| one.ns).sum::<u64>() / 1000;
        }
        assert!(began.elapsed() < LIMIT, "a worker never sleeps");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// The same without waiting. The time since a thread's last scheduler tick, a few milliseconds, may
/// be missing.
///
/// # Panics
/// If the server has ended.
pub fn so_far(server: &ServerProcess) -> u64 {
    workers(server.pid()).iter().map(|one| one.ns).sum::<u64>() / 1000
}

struct Worker {
    sleeps: bool,
    ns: u64,
}

fn workers(pid: u32) -> Vec<Worker> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the server runs");
    let of = |task: std::fs::DirEntry| {
        let read = |file: &str| std::fs::read_to_string(task.path().join(file)).ok();
        let is_first = task.file_name().to_str() == Some(&*pid.to_string());
        if !is_first && !read("comm")?.starts_with(NAME) {
            return None;
        }
        // Its state first: if it wakes then, its time of before is still a true one.
        let stat = read("stat")?;
        let sleeps = stat.rsplit_once(')')?.1.trim_start().starts_with('S');
        let ns = read("schedstat")?.split(' ').next()?.parse().ok()?;
        Some(Worker { sleeps, ns })
    };
    tasks.flatten().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server_process::Binary;

    /// The work of a worker is counted; the waiting of a client is not.
    #[test]
    fn processor_time_of_a_worker_is_counted() {
        let server = ServerProcess::start(&Binary::under_test(), &["--threads", "2"]);
        let mut wire = server.connect();
        let text = "x".repeat(3000);
        wire.command(&["MSET", "a", &text, "b", &text]).expect("answered");
        // What the server does by itself counts, too, and now and then takes longer than all that
        // is asked: one quiet trial is enough.
        let is_counted = (0..50).any(|_| {
            let before = microseconds(&server);
            wire.command(&["PING"]).expect("answered");
            let little = microseconds(&server) - before;
            for _ in 0..50 {
                wire.command(&["LCS", "a", "b", "LEN"]).expect("answered");
            }
            let much = microseconds(&server) - before - little;
            println!("{little} us for PING, {much} us for LCS");
            little < much && much > 2_000
        });
        assert!(is_counted);
    }
}
