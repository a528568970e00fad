//! Temporary files of servers that were killed while they saved: each is as long as the data, so
//! the next start removes them.
//!
//! Only a file is removed that has the name of ours, of a process that is gone or has our number,
//! and that nobody has written to for a minute. A server in another container may use the same folder, where its
//! process cannot be seen from here; while it saves, it writes more often than that.

use rustix::process::{Pid, test_kill_process};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Redis calls its files `temp-<pid>.rdb`; they are not touched.
const PREFIX: &str = "temp-sheafdb-";
const SUFFIX: &str = ".rdb";
/// How long nobody has written to a file that is removed.
const IDLE: Duration = Duration::from_secs(60);

/// The name of the temporary file of a process.
pub(crate) fn name_of(process: u32) -> String {
    format!("{PREFIX}{process}{SUFFIX}")
}

/// Removes what killed servers have left in a folder; returns what was removed. `own` is the number
/// of this process, which has not saved yet.
pub(crate) fn remove(folder: &Path, own: u32) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let is_left = |path: &PathBuf| {
        let process = path.file_name().and_then(|name| process_of(name.to_str()?));
        process.is_some_and(|process| process == own || is_gone(process)) && is_idle(path)
    };
    paths.filter(is_left).filter(|path| std::fs::remove_file(path).is_ok()).collect()
}

/// The process whose temporary file has this name.
fn process_of(name: &str) -> Option<u32> {
    let process = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok()?;
    (name_of(process) == name).then_some(process)
}

fn is_gone(process: u32) -> bool {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    pid.is_none_or(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

fn is_idle(path: &Path) -> bool {
    let written = path.symlink_metadata().and_then(|metadata| metadata.modified());
    let idle = written.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
    idle.is_some_and(|idle| idle >= IDLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_idle_files_of_processes_that_are_gone_are_removed() {
        let folder = std::env::temp_dir().join(format!("leftovers-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        // Above the largest number of a process.
        let (gone, own, parent) = (1 << 23, 1 << 24, std::os::unix::process::parent_id());
        let put = |name: &str, age: u64| {
            let file = std::fs::File::create(folder.join(name)).expect("room");
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).expect("it is ours");
        };
        let kept = [
            name_of(parent),
            format!("temp-{gone}.rdb"),
            format!("temp-sheafdb-0{gone}.rdb"),
            format!("temp-sheafdb-{gone}.rdb2"),
            "temp-sheafdb-.rdb".into(),
            "dump.rdb".into(),
            name_of(gone + 1),
        ];
        kept[..6].iter().for_each(|name| put(name, 3600));
        put(&kept[6], 5);
        put(&name_of(gone), 3600);
        put(&name_of(own), 3600);
        let mut removed = remove(&folder, own);
        removed.sort();
        assert_eq!(removed, [folder.join(name_of(own)), folder.join(name_of(gone))]);
        assert!(kept.iter().all(|name| folder.join(name).exists()));
        std::fs::remove_dir_all(&folder).expect("it is ours");
    }
}
