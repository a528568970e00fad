//! Restricted items: the data path may synchronise only through `base::sync`, and below the server
//! only `driver` does I/O and reads the clock. A running server uses files through the driver's
//! operations. Files which use the disk directly are listed and counted, and the count may only
//! fall.

use super::Report;
use super::counts::Found;
use super::list::List;
use super::tree::{Tree, crate_name, production_lines};

const EXCEPTIONS: &str = "xtask/exceptions.txt";

/// The crates on the data path.
const DATA_PATH: &[&str] = &[
    "base", "resp", "driver", "observe", "ingest", "value", "rdb", "journal", "keyspace", "config",
    "command", "server",
];
/// The crates which use neither sockets nor files nor clocks.
const PURE: &[&str] =
    &["base", "resp", "observe", "ingest", "value", "rdb", "journal", "keyspace", "command"];

/// The data path without the driver.
const ABOVE_DRIVER: &[&str] = &[
    "base", "resp", "observe", "ingest", "value", "rdb", "journal", "keyspace", "config",
    "command", "server",
];

/// Items which block on the disk.
const DISK: &[&str] = &["std::fs", "rustix::fs", ".exists()"];

/// A word, the crates where it is forbidden, and what to use instead.
const RESTRICTED: &[(&str, &[&str], &str)] = &[
    ("std::sync", DATA_PATH, "base::sync"),
    ("std::thread", DATA_PATH, "base::sync::thread"),
    ("std::net", PURE, "the driver"),
    ("std::fs", DATA_PATH, "the driver's operations on files"),
    ("rustix::fs", ABOVE_DRIVER, "the driver's operations on files"),
    (".exists()", ABOVE_DRIVER, "the driver's operations on files"),
    ("Instant::now", PURE, "the time handed in"),
    ("SystemTime::now", PURE, "the time handed in"),
];

/// Words that mean unfinished work, in any line. Joined by `concat!` so that this
/// file does not contain them.
const UNFINISHED: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimpl", "emented!("),
    concat!("#[ig", "nore"),
    concat!("FIX", "ME"),
    concat!("db", "g!("),
];

/// Collects the files which use the disk directly, once per item, also those which are listed.
pub fn count(tree: &Tree, found: &mut Found) {
    let places = found.kind("files which use the disk directly");
    for (path, text) in tree.rust() {
        let Some(name) = crate_name(path) else { continue };
        for (word, crates, _) in RESTRICTED.iter().filter(|(word, ..)| DISK.contains(word)) {
            let first = production_lines(path, text).find(|(_, line)| line.contains(word));
            if let Some((at, _)) = first.filter(|_| crates.contains(&name)) {
                places.push(format!("{path}:{at}: {word}"));
            }
        }
    }
}

/// Checks all sources. An entry of the exceptions reads `path word`; a path that ends in `/` stands
/// for all files below it.
pub fn check(tree: &Tree, report: &mut Report) {
    let mut exceptions = List::read(tree, EXCEPTIONS, report);
    for (path, text) in tree.rust() {
        for (at, line) in text.lines().enumerate() {
            for word in UNFINISHED.iter().filter(|word| line.contains(**word)) {
                report.error(format!("{path}:{}: '{word}' is unfinished work", at + 1));
            }
        }
        let Some(name) = crate_name(path) else { continue };
        for (at, line) in production_lines(path, text) {
            for (word, crates, instead) in RESTRICTED {
                if crates.contains(&name)
                    && line.contains(word)
                    && !is_allowed(&mut exceptions, path, word)
                {
                    report.error(format!("{path}:{at}: '{word}' is forbidden here: use {instead}"));
                }
            }
        }
    }
    exceptions.finish(report);
}

/// True if the file or a folder above it is listed with this word.
fn is_allowed(exceptions: &mut List<'_>, path: &str, word: &str) -> bool {
    let folders = path.match_indices('/').map(|(at, _)| &path[..=at]);
    folders.chain([path]).any(|listed| exceptions.allows(&format!("{listed} {word}")))
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
    fn files_are_used_through_the_driver() {
        let source = ("crates/server/src/a.rs", "use std::fs::File;\nfn f() { std::fs::x() }\n");
        let found = errors(&[source]);
        assert_eq!(found.len(), 2);
        assert!(found[0].ends_with("forbidden here: use the driver's operations on files"));
        assert_eq!(errors(&[("crates/config/src/a.rs", "let x = path.exists();\n")]).len(), 1);
        // A listed file is counted, too, so the list cannot grow unnoticed.
        let listed = "crates/server/src/a.rs std::fs # a reason\n";
        let tree = Tree::of(&[source, (EXCEPTIONS, listed)]);
        let (mut report, mut found) = (Report::default(), Found::default());
        check(&tree, &mut report);
        count(&tree, &mut found);
        assert!(report.errors.is_empty());
        assert!(found.places().eq([
            "files which use the disk directly: crates/server/src/a.rs:1: std::fs".to_owned()
        ]));
        // The driver makes system calls on files itself, but not with `std::fs`.
        assert!(errors(&[("crates/driver/src/a.rs", "use rustix::fs::open;\n")]).is_empty());
        assert_eq!(errors(&[("crates/driver/src/a.rs", "use std::fs;\n")]).len(), 1);
    }

    #[test]
    fn the_data_path_synchronises_through_base_sync() {
        let source = ("crates/keyspace/src/lock.rs", "use std::sync::Mutex;\n");
        assert_eq!(
            errors(&[source]),
            ["crates/keyspace/src/lock.rs:1: 'std::sync' is forbidden here: use base::sync"]
        );
        let listed = "crates/keyspace/src/lock.rs std::sync # a reason\n";
        assert!(errors(&[source, (EXCEPTIONS, listed)]).is_empty());
        let folder = "crates/keyspace/src/ std::sync # a reason\n";
        assert!(errors(&[source, (EXCEPTIONS, folder)]).is_empty());
        let part_of_a_name = "crates/keyspace/src/lo std::sync # a reason\n";
        assert_eq!(errors(&[source, (EXCEPTIONS, part_of_a_name)]).len(), 2);
    }

    #[test]
    fn tests_and_tools_are_exempt() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests { use std::thread; }\n";
        assert!(errors(&[("crates/value/src/a.rs", source)]).is_empty());
        assert!(errors(&[("crates/client/src/a.rs", "use std::sync::Arc;\n")]).is_empty());
    }

    #[test]
    fn an_unused_exception_is_refused() {
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
