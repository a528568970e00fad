//! Targets are started, reached and stopped.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};

use bench::lab::target::{Started, Target};
use bench::models::{Model, Options};
use client::{Address, Client};
use common::{LONG, eventually, pong, start as start_model};

/// Starts a target.
fn start(text: &str) -> Started {
    let target = Target::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    target.start().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Both addresses of a target answer, and its process ends when it is dropped.
fn is_reached_and_ended(started: Started, ways: usize) {
    let name = started.name.clone();
    let tcp = started.tcp.map(|address| Address::Tcp(address.to_string()));
    let all: Vec<Address> =
        tcp.into_iter().chain(started.unix.clone().map(Address::Unix)).collect();
    assert_eq!(all.len(), ways, "{name}");
    for address in &all {
        let mut client = Client::connect(address, LONG).expect("it listens");
        assert_eq!(client.call(&[b"PING"]).expect("a reply"), pong(), "{name}");
    }
    let pid = started.pid.expect("the process was started here");
    let folder = started.unix.as_deref().and_then(Path::parent).map(Path::to_owned);
    assert!(Path::new(&format!("/proc/{pid}")).exists());
    drop(started);
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{name} is ended");
    assert!(!folder.is_some_and(|folder| folder.exists()), "{name} leaves nothing behind");
}

#[test]
fn models_run_as_processes() {
    for text in [
        "model:sequential",
        "model:thread-per-connection,nodelay=no",
        "model:pool,size=4",
        "model:event-loop,flush=reply",
        "model:event-loops,threads=2,backlog=5,accept-every=1",
        "model:single-writer,front=loops",
    ] {
        is_reached_and_ended(start(text), 2);
    }
}

#[test]
fn models_without_ping_are_awaited_too() {
    for text in ["model:null-reader", "model:echo-ack", "model:event-loop,flush=strand"] {
        let started = start(text);
        assert!(started.log().starts_with("ready tcp=127.0.0.1:"), "{}", started.log());
        std::net::TcpStream::connect(started.tcp.expect("TCP")).expect("it listens");
    }
}

#[test]
fn the_reference_server_is_started_with_its_settings() {
    if !Target::parse("redis-server").expect("known").is_there() {
        // The test job installs redis-server. Other machines may lack it.
        return;
    }
    let started = start("ref=redis-server --maxmemory 123mb");
    assert_eq!(started.name, "ref");
    let mut client = Client::connect(&started.address(), LONG).expect("it listens");
    let answer = client.call(&[b"CONFIG", b"GET", b"maxmemory"]).expect("a reply");
    assert!(format!("{answer:?}").contains("128974848"), "{answer:?}");
    is_reached_and_ended(started, 2);
}

/// Installed servers only: ours is next to this program after a build of the workspace, others are
/// in PATH.
#[test]
fn each_known_server_is_started_with_both_addresses() {
    for name in ["sheafdb", "redis-server", "valkey-server", "pogocache"] {
        if Target::parse(name).expect("known").is_there() {
            is_reached_and_ended(start(name), 2);
        }
    }
}

#[test]
fn a_program_receives_its_listen_address() {
    let bench = env!("CARGO_BIN_EXE_sheafdb-bench");
    is_reached_and_ended(start(&format!("{bench} serve event-loop --port {{port}}")), 1);
    is_reached_and_ended(
        start(&format!("{bench} serve pool --unixsocket '{{dir}}/sock' --port {{port}}")),
        2,
    );
}

#[test]
fn a_failed_start_reports_its_reason() {
    let failure = |text: &str| match Target::parse(text).expect("well formed").start() {
        Ok(started) => panic!("{text} runs: {started:?}"),
        Err(error) => error.to_string(),
    };
    let bench = env!("CARGO_BIN_EXE_sheafdb-bench");
    let text = failure(&format!("{bench} serve nonsense --port {{port}}"));
    assert!(text.contains("did not start") && text.contains("invalid value 'nonsense'"), "{text}");
    assert!(failure("/nowhere {port}").contains("is not there"));
    assert!(!failure("127.0.0.1:1").is_empty());
    assert!(!failure("unix:/nowhere/sock").is_empty());
}

#[test]
fn a_running_server_is_used_unchanged() {
    let running = start_model(Model::Sequential, &Options::default());
    let started = start(&format!("it={}", running.address));
    assert_eq!((started.tcp, started.pid), (Some(running.address), None));
    let mut client = Client::connect(&started.address(), LONG).expect("it listens");
    assert_eq!(client.call(&[b"PING"]).expect("nobody else is connected"), pong());
    drop(started);
    assert_eq!(client.call(&[b"PING"]).expect("the connection is open"), pong());
}

#[test]
fn serve_ends_on_a_signal_and_prints_its_counters() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let child = Command::new(env!("CARGO_BIN_EXE_sheafdb-bench"))
            .args(["serve", "event-loop"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it is built");
        let pid = rustix::process::Pid::from_child(&child);
        // It handles signals from its first step on. Before that, a signal would terminate it.
        assert!(eventually(|| polls(child.id())));
        rustix::process::kill_process(pid, signal).expect("it runs");
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        let mut lines = text.lines();
        let ready = lines.next().expect("a line");
        assert!(ready.starts_with("ready tcp=127.0.0.1:") && ready.contains(" pid="), "{ready}");
        let done = lines.next().expect("another");
        assert!(done.starts_with("done connections=0 requests=0 reads=0"), "{done}");
        assert_eq!(lines.next(), None);
    }
}

/// Whether this process has an event loop already.
fn polls(pid: u32) -> bool {
    let Ok(fds) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    fds.flatten()
        .filter_map(|fd| std::fs::read_link(fd.path()).ok())
        .any(|target| target.to_string_lossy().starts_with("anon_inode:[eventpoll]"))
}
