//! Ends what hangs, and shows where. A check which never ends says nothing; one which is killed
//! from outside takes its output with it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::process::{Command, exit};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Time limit of a step. A step which takes longer hangs even on a slow machine.
pub const STEP: Duration = Duration::from_secs(60 * 60);
/// Time limit of the whole check.
pub const WHOLE: Duration = Duration::from_secs(80 * 60);
/// How long work whose processes were killed may take to report that.
const GRACE: Duration = Duration::from_secs(30);

/// Does the work. After the limit, prints all processes which this one has started, directly or
/// not, and kills them: whoever waits for them sees that they have failed. If the work does not end
/// then, this process ends.
pub fn watch<T>(what: &str, limit: Duration, work: impl FnOnce() -> T) -> T {
    let (end, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let is_over =
                |time| !matches!(ended.recv_timeout(time), Err(RecvTimeoutError::Timeout));
            if is_over(limit) {
                return;
            }
            eprintln!(
                "== {what} hangs: not over after {} s; these processes run:",
                limit.as_secs()
            );
            kill_below(std::process::id());
            if !is_over(GRACE) {
                eprintln!("== {what} does not end");
                exit(1);
            }
        });
        let outcome = work();
        drop(end);
        outcome
    })
}

/// Prints and kills all processes below this one.
fn kill_below(root: u32) {
    let found = descendants(root, &parents());
    for pid in &found {
        eprintln!("{}", description(*pid));
    }
    let pids = found.iter().map(u32::to_string);
    match Command::new("kill").arg("-KILL").args(pids).status() {
        Ok(_) => {} // some have ended meanwhile
        Err(e) => eprintln!("cannot start kill: {e}"),
    }
}

/// The parent of each process.
fn parents() -> BTreeMap<u32, u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, parent(&stat)?))
    })
    .collect()
}

/// The parent's number in a line of `/proc/PID/stat`. The second word, the name, may hold anything.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// All processes below this one, parents before children.
fn descendants(root: u32, parents: &BTreeMap<u32, u32>) -> Vec<u32> {
    let mut found = vec![root];
    let mut at = 0;
    while let Some(&above) = found.get(at) {
        found.extend(parents.iter().filter(|(_, parent)| **parent == above).map(|(pid, _)| *pid));
        at += 1;
    }
    found.remove(0);
    found
}

/// The command line of a process, and what each of its threads waits for.
fn description(pid: u32) -> String {
    let read = |path: String| fs::read_to_string(path).unwrap_or_default();
    let mut text = format!("{pid}: {}", read(format!("/proc/{pid}/cmdline")).replace('\0', " "));
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return text };
    for thread in threads.filter_map(Result::ok).map(|entry| entry.path()) {
        let part = |name: &str| read(format!("{}/{name}", thread.display()));
        let stat = part("stat");
        let state = stat.rsplit_once(") ").map_or("?", |(_, behind)| &behind[..1]);
        let (name, waits_at) = (part("comm"), part("wchan"));
        let _ = write!(text, "\n    {} {state} {waits_at}", name.trim());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_through_their_parents() {
        let parents = BTreeMap::from([(1, 0), (2, 1), (3, 2), (4, 3), (5, 1), (6, 3)]);
        assert_eq!(descendants(2, &parents), [3, 4, 6]);
        assert_eq!(descendants(6, &parents), []);
    }

    #[test]
    fn a_parent_is_read_behind_any_name() {
        assert_eq!(parent("7 (a) b) S 12 7 7 0"), Some(12));
        assert_eq!(parent("7 (a"), None);
    }

    /// Below a process of its own: other tests of this process may have started some, too.
    #[test]
    fn what_a_process_has_started_is_killed() {
        let mut parent =
            Command::new("sh").args(["-c", "sleep 1000; true"]).spawn().expect("sh is there");
        while descendants(parent.id(), &parents()).is_empty() {
            thread::sleep(Duration::from_millis(10));
            assert!(parent.try_wait().expect("it is ours").is_none(), "it waits for its child");
        }
        kill_below(parent.id());
        assert!(parent.wait().expect("it is ours").success(), "it was the child that was killed");
    }

    #[test]
    fn work_in_time_has_its_result() {
        assert_eq!(watch("a test", STEP, || 7), 7);
    }
}
