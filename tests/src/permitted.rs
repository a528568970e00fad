//! What some tests need of the system, and not every system permits.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::geteuid;

use crate::folder::Folder;
use crate::server_process::{Binary, Kind};

/// Says that a test is skipped, and why.
///
/// # Panics
/// In CI as root, who may do everything: the test would pass there without having tested anything.
pub fn skip(why: &str) {
    let is_ci = std::env::var_os("CI").is_some() && geteuid().is_root();
    assert!(!is_ci, "it cannot be tested: {why}");
    println!("skipped: {why}");
}

/// The server under test behind strace with these arguments, by a script in a folder; `None` if
/// processes may not be traced. The tracer is a child of the server, so that killing the server
/// ends both. (Only calls of the back end epoll are system calls.)
///
/// # Panics
/// If the script cannot be written.
pub fn traced(scripts: &Folder, strace: &str) -> Option<Binary> {
    let mut trial = Command::new("strace");
    trial.args(["-D", "-f", "-o", "/dev/null", "true"]).stdin(Stdio::null());
    match trial.output() {
        Ok(out) if out.status.success() => {
            Some(prepared(scripts, "", &format!("strace -D -f {strace}")))
        }
        other => {
            skip(&format!("no process can be traced: {other:?}"));
            None
        }
    }
}

/// The server under test, started by a script: behind these lines of a shell, and these words.
///
/// # Panics
/// If the script cannot be written.
pub fn prepared(scripts: &Folder, lines: &str, words: &str) -> Binary {
    let (script, server) = (scripts.at("server"), Binary::under_test().path);
    let text = format!("#!/bin/sh\n{lines}\nexec {words} {} \"$@\"\n", server.display());
    fs::write(&script, text).expect("a script");
    let mode = Command::new("chmod").arg("+x").arg(&script).status().expect("it runs");
    assert!(mode.success());
    Binary { path: script, kind: Kind::SheafDb }
}
