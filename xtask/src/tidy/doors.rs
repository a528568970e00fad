//! Doors: what only one module may touch. The data path synchronises through `base::sync` alone,
//! and below the server only `driver` does I/O and reads the clock. Files of a running server go
//! through the driver's operations; who uses the disk directly is listed and counted, and the count
//! may only fall.

use super::Report;
use super::counts::Found;
use super::list::List;
use super::tree::{Tree, production_lines, room};

const EXCEPTIONS: &str = "xtask/exceptions.txt";

/// The rooms on the data path.
const DATA_PATH: &[&str] = &[
    "base", "resp", "driver", "observe", "ingest", "value", "rdb", "keyspace", "config", "command",
    "server",
];
/// The rooms that see neither sockets nor files nor clocks.
const PURE: &[&str] = &["base", "resp", "observe", "ingest", "value", "rdb", "keyspace", "command"];

/// The data path above the driver.
const NOT_DRIVER: &[&str] = &[
    "base", "resp", "observe", "ingest", "value", "rdb", "keyspace", "config", "command", "server",
];

/// Words that block on the disk.
const DISK: &[&str] = &["std::fs", "rustix::fs", ".exists()"];

/// A word, the rooms where it is forbidden, and where to turn instead.
const DOORS: &[(&str, &[&str], &str)] = &[
    ("std::sync", DATA_PATH, "base::sync"),
    ("std::thread", DATA_PATH, "base::sync::thread"),
    ("std::net", PURE, "the driver"),
    ("std::fs", DATA_PATH, "the driver's operations on files"),
    ("rustix::fs", NOT_DRIVER, "the driver's operations on files"),
    (".exists()", NOT_DRIVER, "the driver's operations on files"),
    ("Instant::now", PURE, "the time handed in"),
    ("SystemTime::now", PURE, "the time handed in"),
];

/// Words that mean unfinished work, in any line. Put together here so that this file does
/// not hold them.
const UNFINISHED: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimpl", "emented!("),
    concat!("#[ig", "nore"),
    concat!("FIX", "ME"),
    concat!("db", "g!("),
];

/// Collects the files that use the disk directly, each word once, whether or not they are listed.
pub fn count(tree: &Tree, found: &mut Found) {
    let places = found.kind("files that use the disk directly");
    for (path, text) in tree.rust() {
        let Some(room) = room(path) else { continue };
        for (word, rooms, _) in DOORS.iter().filter(|(word, ..)| DISK.contains(word)) {
            let first = production_lines(path, text).find(|(_, line)| line.contains(word));
            if let Some((at, _)) = first.filter(|_| rooms.contains(&room)) {
                places.push(format!("{path}:{at}: {word}"));
            }
        }
    }
}

/// Checks all sources. An entry of the exceptions reads `path word`.
pub fn check(tree: &Tree, report: &mut Report) {
    let mut exceptions = List::read(tree, EXCEPTIONS, report);
    for (path, text) in tree.rust() {
        for (at, line) in text.lines().enumerate() {
            for word in UNFINISHED.iter().filter(|word| line.contains(**word)) {
                report.error(format!("{path}:{}: '{word}' is unfinished work", at + 1));
            }
        }
        let Some(room) = room(path) else { continue };
        for (at, line) in production_lines(path, text) {
            for (word, rooms, instead) in DOORS {
                if rooms.contains(&room)
                    && line.contains(word)
                    && !exceptions.allows(&format!("{path} {word}"))
                {
                    report.error(format!("{path}:{at}: '{word}' here goes through {instead}"));
                }
            }
        }
    }
    exceptions.finish(report);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(files: &[(&str, &str)]) -> Vec<String> {
        let mut report = Report::default();
        check(&Tree::of(files), &mut report);
        report.errors
    }

    #[test]
    fn the_data_path_synchronises_through_one_door() {
        let source = ("crates/keyspace/src/lock.rs", "use std::sync::Mutex;\n");
        assert_eq!(
            errors(&[source]),
            ["crates/keyspace/src/lock.rs:1: 'std::sync' here goes through base::sync"]
        );
        let listed = "crates/keyspace/src/lock.rs std::sync # a reason\n";
        assert!(errors(&[source, (EXCEPTIONS, listed)]).is_empty());
    }

    #[test]
    fn files_go_through_the_driver() {
        let source = ("crates/server/src/a.rs", "use std::fs::File;\nfn f() { std::fs::x() }\n");
        let found = errors(&[source]);
        assert_eq!(found.len(), 2);
        assert!(found[0].ends_with("'std::fs' here goes through the driver's operations on files"));
        assert_eq!(errors(&[("crates/config/src/a.rs", "let x = path.exists();\n")]).len(), 1);
        // A listed file is still counted, so the list cannot grow unnoticed.
        let listed = "crates/server/src/a.rs std::fs # a reason\n";
        let tree = Tree::of(&[source, (EXCEPTIONS, listed)]);
        let (mut report, mut found) = (Report::default(), Found::default());
        check(&tree, &mut report);
        count(&tree, &mut found);
        assert!(report.errors.is_empty());
        assert!(found.places().eq([
            "files that use the disk directly: crates/server/src/a.rs:1: std::fs".to_owned()
        ]));
        // The driver is the door of files, but not of `std::fs`.
        assert!(errors(&[("crates/driver/src/a.rs", "use rustix::fs::open;\n")]).is_empty());
        assert_eq!(errors(&[("crates/driver/src/a.rs", "use std::fs;\n")]).len(), 1);
    }

    #[test]
    fn tests_and_tools_may_do_as_they_like() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests { use std::thread; }\n";
        assert!(errors(&[("crates/value/src/a.rs", source)]).is_empty());
        assert!(errors(&[("crates/client/src/a.rs", "use std::sync::Arc;\n")]).is_empty());
    }

    #[test]
    fn an_exception_that_nothing_needs_is_refused() {
        let found = errors(&[(EXCEPTIONS, "crates/base/src/sync.rs std::sync # the door\n")]);
        assert_eq!(found.len(), 1);
        let found = errors(&[(EXCEPTIONS, "crates/base/src/sync.rs std::sync\n")]);
        assert!(found[0].contains("says no reason"), "{found:?}");
    }

    #[test]
    fn unfinished_work_is_refused() {
        let text = format!("fn a() {{ {}) }}", UNFINISHED[0]);
        assert_eq!(errors(&[("tests/src/a.rs", text.as_str())]).len(), 1);
    }
}
