//! System calls on the append-only file which fail, write a part, or take long, in a real process:
//! strace injects errors and delays, and a limit of the file size makes writes short. Nothing
//! acknowledged is lost, and nothing is there twice.

use std::fs;
use std::process::Command;

use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::until;
use sheafdb_tests::permitted::{prepared, traced};
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire};

use super::disk::{fails, is_refused};
use super::order::await_written;

/// Changes which have to be acknowledged behind the last fault.
const BEHIND: usize = 60;

/// A server that is started by a script, in the folder `data` of this one.
struct Rig {
    folder: Folder,
    server: ServerProcess,
}

impl Rig {
    /// `None` if what `binary` needs is not permitted.
    fn new(name: &str, fsync: &str, binary: impl Fn(&Folder) -> Option<Binary>) -> Option<Self> {
        let folder = Folder::new(&format!("faults-{name}"));
        fs::create_dir(folder.at("data")).expect("a folder");
        let server = start(&binary(&folder)?, &folder, fsync);
        Some(Self { folder, server })
    }

    /// Calls of this name fail or wait.
    fn injecting(name: &str, fsync: &str, call: &str, how: &str) -> Option<Self> {
        let strace = format!("-o /dev/null -e trace={call} -e inject={call}:{how}");
        Self::new(name, fsync, |scripts| traced(scripts, &strace))
    }

    /// Killed once everything is written, and started again without faults: it has exactly what was
    /// acknowledged.
    fn check(self, done: &Done, what: &str) {
        await_written(&mut self.server.connect());
        self.server.kill();
        let server = start(&Binary::under_test(), &self.folder, "always");
        let mut wire = server.connect();
        let count = wire.command(&["GET", "counter"]).expect("an answer");
        assert_eq!(count, Value::Bulk(done.count.to_string().into_bytes()), "{what}");
        let list = wire.command(&["LRANGE", "list", "0", "-1"]).expect("an answer");
        let expected = done.list.iter().map(|n| Value::Bulk(n.to_string().into_bytes()));
        assert_eq!(list, Value::Array(expected.collect()), "{what}");
    }
}

fn start(binary: &Binary, folder: &Folder, fsync: &str) -> ServerProcess {
    let data = folder.at("data").to_str().expect("plain").to_owned();
    let words = ["--dir", &data, "--appendonly", "yes", "--appendfsync", fsync];
    // What io_uring does is no system call.
    let more = ["--threads", "2", "--io-backend", "epoll", "--auto-aof-rewrite-percentage", "0"];
    ServerProcess::start(binary, &[&words[..], &more].concat())
}

/// What was acknowledged.
#[derive(Default)]
struct Done {
    count: usize,
    list: Vec<usize>,
    sent: usize,
    refused: usize,
}

impl Done {
    /// Two changes; a refused one is none.
    fn work(&mut self, wire: &mut Wire) {
        self.sent += 1;
        let text = self.sent.to_string();
        let reply = wire.command(&["INCR", "counter"]).expect("an answer");
        if is_refused(&reply) {
            self.refused += 1;
            std::thread::sleep(std::time::Duration::from_millis(5));
        } else {
            self.count += 1;
            assert_eq!(reply, Value::Int(self.count as i64));
        }
        let reply = wire.command(&["RPUSH", "list", &text]).expect("an answer");
        if !is_refused(&reply) {
            self.list.push(self.sent);
            assert_eq!(reply, Value::Int(self.list.len() as i64));
        }
    }

    fn len(&self) -> usize {
        self.count + self.list.len()
    }
}

/// The system calls of the append-only file: `always` writes and syncs in one, the others apart.
#[test]
fn calls_that_fail_lose_nothing_and_repeat_nothing() {
    for (fsync, call, how) in [
        ("always", "pwritev2", "error=EIO:when=30..32"),
        ("always", "pwritev2", "error=ENOSPC:when=30..31"),
        ("everysec", "pwrite64", "error=EIO:when=30..32"),
        ("everysec", "fdatasync", "error=EIO:when=6..7"),
        ("no", "pwrite64", "error=EDQUOT:when=30..31"),
    ] {
        let what = format!("{fsync} {call} {how}");
        let Some(rig) = Rig::injecting("fail", fsync, call, how) else { return };
        let (mut wire, mut done) = (rig.server.connect(), Done::default());
        until("it fails, and works again", || {
            done.work(&mut wire);
            let log = rig.server.log();
            log.contains("The append-only file is written again") && !fails(&rig.server)
        });
        let enough = done.len() + BEHIND;
        while done.len() < enough {
            done.work(&mut wire);
        }
        assert!(fsync == "always" || done.refused > 0, "{what}: nothing was refused");
        rig.check(&done, &what);
    }
}

#[test]
fn syncs_that_take_long_refuse_nothing() {
    for (fsync, call, how, least_us) in [
        ("always", "pwritev2", "delay_enter=150000:when=20+7", 150_000),
        ("everysec", "fdatasync", "delay_enter=1500000:when=6+1", 1_500_000),
    ] {
        let what = format!("{fsync} {call} {how}");
        let Some(rig) = Rig::injecting("slow", fsync, call, how) else { return };
        let (mut wire, mut done) = (rig.server.connect(), Done::default());
        let mut info = rig.server.connect();
        until("a slow sync", || {
            done.work(&mut wire);
            last_sync_us(&mut info) >= least_us
        });
        let enough = done.len() + BEHIND;
        while done.len() < enough {
            done.work(&mut wire);
        }
        assert_eq!(done.refused, 0, "{what}");
        assert!(!rig.server.log().contains("Writes are refused"), "{what}");
        rig.check(&done, &what);
    }
}

fn last_sync_us(wire: &mut Wire) -> u64 {
    let info = wire.command(&["INFO", "persistence"]).expect("an answer");
    let (Value::Bulk(text) | Value::Verbatim(text)) = info else { panic!("{info:?}") };
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("journal_last_sync_usec:"));
    line.expect("the field").parse().expect("a number")
}

/// The system writes up to the limit, which is within a record, and then fails with EFBIG. A higher
/// limit is as a disk with more space.
#[test]
fn a_write_that_is_cut_short_is_continued_where_it_ended() {
    for fsync in ["always", "everysec"] {
        // In blocks. A process that does not ignore the signal would end.
        let lines = "trap '' XFSZ\nulimit -S -f 40";
        let rig = Rig::new("short", fsync, |scripts| Some(prepared(scripts, lines, "")));
        let rig = rig.expect("nothing else is needed");
        let (mut wire, mut done) = (rig.server.connect(), Done::default());
        let (pid, log) = (rig.server.pid().to_string(), rig.server.log_path());
        // With `always` the client waits until the limit is raised.
        let limiter = std::thread::spawn(move || raise_when_refused(&pid, &log));
        until("it fails, and works again", || {
            done.work(&mut wire);
            limiter.is_finished() && !fails(&rig.server)
        });
        limiter.join().expect("no panic");
        let enough = done.len() + BEHIND;
        while done.len() < enough {
            done.work(&mut wire);
        }
        rig.check(&done, fsync);
    }
}

/// Raises the limit once the server has said that writes are refused.
fn raise_when_refused(pid: &str, log: &std::path::Path) {
    until("the limit is reached", || {
        fs::read_to_string(log).unwrap_or_default().contains("Writes are refused")
    });
    let out = Command::new("prlimit").args(["--pid", pid, "--fsize=unlimited"]).output();
    assert!(out.expect("prlimit runs").status.success());
}
