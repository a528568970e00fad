//! Golden files on redis-server, which recorded them, and on the server under test. `UPDATE=1`
//! writes the replies of the server under test: `SHEAFDB_SERVER=redis-server UPDATE=1` records
//! anew.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sheafdb_tests::golden::check_file;
use sheafdb_tests::server_process::{Binary, Kind, io_backend};

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("readable").path()).collect();
    let wanted = std::env::var("GOLDEN").unwrap_or_default();
    files.retain(|path| path.to_string_lossy().contains(&wanted));
    files.sort();
    assert!(!files.is_empty(), "no golden file is called '{wanted}'");
    files
}

/// Attempts for a file which depends on time: the machine may be suspended between two lines.
const TRIES: usize = 3;

/// Whether replies of this file depend on when its commands are sent.
fn is_timed(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.contains("@sleep ") || text.contains("<int ")
}

/// Checks all files, two at a time.
fn check(binary: &Binary, update: bool) {
    let (files, next) = (files(), AtomicUsize::new(0));
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let tries = if !update && is_timed(path) { TRIES } else { 1 };
                    let check = |_| check_file(path, binary, update).err();
                    let errors: Vec<String> = (0..tries).map_while(check).collect();
                    if errors.len() == tries {
                        wrong
                            .lock()
                            .expect("no thread panics with it")
                            .extend(errors.last().cloned());
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no thread panicked with it");
    println!("{} files on {}", files.len(), binary.path.display());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn replies_are_those_of_the_files() {
    let binary = Binary::under_test();
    check(&binary, std::env::var("UPDATE").is_ok_and(|value| value == "1"));
    // The I/O back end makes no difference on the reference.
    if binary.kind == Kind::SheafDb && io_backend().is_none_or(|name| name == "epoll") {
        // The files must match the reference.
        check(&Binary::redis(), false);
    }
}
