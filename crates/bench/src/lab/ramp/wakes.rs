//! Which threads of a server a single request wakes. A thread that waits has gone to sleep before,
//! and the kernel counts that: where each request of every connection puts one and the same thread
//! to sleep beside the one that reads the connection, that thread owns the data. Counts, not times:
//! noise does not touch them.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use client::Client;

use crate::analysis::findings::Wakes;
use crate::host;
use crate::lab::subject;
use crate::lab::target::Started;

/// Requests on each of the two connections.
const REQUESTS: u64 = 200;
/// Longest wait for a reply.
const REPLY: Duration = Duration::from_secs(2);

/// Asks on one connection, then on another. `None` if the server's threads cannot be seen from
/// here.
pub fn observe(target: &Started) -> Option<Wakes> {
    let pid = target.pid.or_else(|| host::listening_pid(&subject::address(target)))?;
    let connect = || Client::connect(&target.address(), REPLY).ok();
    let (mut one, mut other) = (connect()?, connect()?);
    let mut wakes = Wakes { requests: REQUESTS, ..Wakes::default() };
    // Both are served before it counts.
    let mut asked = ask(&mut one, 1).and(ask(&mut other, 1));
    for (client, slept) in [(&mut one, &mut wakes.first), (&mut other, &mut wakes.second)] {
        let before = sleeps(pid)?;
        asked = asked.and(ask(client, REQUESTS));
        let after = sleeps(pid)?;
        let since = |(thread, now): (&u32, &u64)| {
            (*thread, now.saturating_sub(before.get(thread).copied().unwrap_or(0)))
        };
        *slept = after.iter().map(since).filter(|(_, slept)| *slept > 0).collect();
    }
    asked.map(|()| wakes)
}

fn ask(client: &mut Client, requests: u64) -> Option<()> {
    for number in 0..requests {
        // Different keys, so that owners of parts of the data are met in turn.
        let key = format!("key:{number:012}");
        client.call(&[b"GET", key.as_bytes()]).ok()?;
    }
    Some(())
}

/// How often each thread of a process has gone to sleep; not the calling thread, which asks.
fn sleeps(pid: u32) -> Option<BTreeMap<u32, u64>> {
    let asking = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let mut all = BTreeMap::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let Some(thread) = task.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // It may have ended meanwhile.
        let Ok(status) = fs::read_to_string(task.path().join("status")) else { continue };
        let count = |line: &str| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse().ok();
        if let Some(count) = status.lines().find_map(count).filter(|_| thread != asking) {
            all.insert(thread, count);
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_of_waiting_threads_are_counted_except_the_callers() {
        crate::undisturbed::undisturbed(
            try_sleeps_of_waiting_threads_are_counted_except_the_callers,
        );
    }

    fn try_sleeps_of_waiting_threads_are_counted_except_the_callers() {
        let pid = std::process::id();
        let before = sleeps(pid).expect("this process lives");
        let (to, from) = std::sync::mpsc::channel::<()>();
        let waits = std::thread::spawn(move || {
            let mine = rustix::thread::gettid().as_raw_nonzero().get() as u32;
            while from.recv().is_ok() {}
            (mine, sleeps(std::process::id()).expect("this process lives"))
        });
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(2));
            to.send(()).expect("it waits");
        }
        std::thread::sleep(Duration::from_millis(2));
        let seen = sleeps(pid).expect("this process lives");
        drop(to);
        let (mine, theirs) = waits.join().expect("it only waits");
        let asking = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert!(seen[&mine] >= 15, "{seen:?}");
        assert!(!before.contains_key(&mine) && !theirs.contains_key(&mine));
        assert!(!before.contains_key(&asking));
        assert!(sleeps(u32::MAX).is_none());
    }
}
