//! The examples of Socket.IO and of Celery: what they print, on one thread and on two.

use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};
use sheafdb_tests::program::{finish, node, python, run, spawn};
use sheafdb_tests::server_process::ServerProcess;

use super::{assert_no_panic, on_one_and_two, server};

const CHANNELS: &str = "with channels (SUBSCRIBE, PSUBSCRIBE)\n";
const SHARDED: &str = "with sharded channels (SSUBSCRIBE)\n";
/// What is said over both kinds of channels.
const TALK: &str = "  bob hears: one hello 00ff0d0a
  ada hears: two hello yourself
  cyd hears: server one a new record
  in the room: 2 on both servers
  the other server: two
  all hear: server one all are here
  all hear: server one all are here
  all hear: server one all are here
  answers: heard,heard,heard
";
const FROM_OUTSIDE: &str = "  from outside: a job done\n";

const CELERY: &str = "\
one worker answers, and its events arrive
squares: 0 1 4 9 16 25 36 49 64 81 100 121 144 169 196 225 256 289 324 361
of a group: [1, 4, 9, 16, 25]
of a chain: 6561
of a chord: 55
of a sum: 499500
of a broken one: ValueError('no luck')
task-received: 36
task-started: 36
task-succeeded: 35
task-failed: 1
";

#[test]
fn socket_io() {
    let wanted = [CHANNELS, TALK, FROM_OUTSIDE, FROM_OUTSIDE, SHARDED, TALK].concat();
    on_one_and_two(|threads| {
        let server = server(threads);
        let mut command = node();
        command.arg("examples/socketio/chat.js").arg(server.addr.port().to_string());
        assert_eq!(run(&mut command, b""), wanted, "on {threads} threads");
        assert_no_panic(&server);
    });
}

#[test]
fn celery() {
    on_one_and_two(|threads| {
        let server = server(threads);
        let worker = Worker::start(&server);
        let got = run(with_url(python().arg("examples/celery/demo.py"), &server), b"");
        let log = worker.end();
        assert_eq!(got, CELERY, "on {threads} threads; the worker:\n{log}");
        assert!(!log.contains("ResponseError"), "the server refused something:\n{log}");
        assert_no_panic(&server);
    });
}

fn with_url<'a>(command: &'a mut Command, server: &ServerProcess) -> &'a mut Command {
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("REDIS_URL", format!("redis://{}/0", server.addr))
}

/// A worker of Celery.
struct Worker {
    child: Option<Child>,
}

impl Worker {
    fn start(server: &ServerProcess) -> Self {
        let mut command = python();
        command.args(["-m", "celery", "--workdir", "examples/celery", "-A", "tasks", "worker"]);
        command.args(["--pool", "solo", "--task-events", "--loglevel", "WARNING"]);
        Self { child: Some(spawn(with_url(&mut command, server))) }
    }

    /// Asks it to end and returns what it logged.
    fn end(mut self) -> String {
        let child = self.child.take().expect("it ends once");
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::TERM).expect("it is our child");
        let out = finish(child);
        let log = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "the worker ended with {}:\n{log}", out.status);
        log
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Both fail only if it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
