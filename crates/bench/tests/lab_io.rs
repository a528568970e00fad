//! The experiments *pipelining* and *single-connection* in their short form: servers known only by
//! their address are recognised.

mod common;
#[path = "support/lab.rs"]
mod lab;
mod support;

use std::process::Command;
use std::sync::{Arc, Mutex};

use bench::lab::target::{Started, Target};
use bench::lab::{Output, Setup, pipelining, single_connection};
use bench::models::{Flush, Model, Options};
use bench::result::{FindingKind, Results};
use common::undisturbed;
use lab::short;
use support::{Reply, Server};

/// Starts targets. Programs which are not installed are left out.
fn start(texts: &[&str]) -> Vec<Started> {
    let targets = texts.iter().map(|text| Target::parse(text).expect("a target"));
    // The test job installs redis-server. Other machines may lack it.
    let there = targets.filter(Target::is_there);
    there.map(|target| target.start().expect("it starts")).collect()
}

/// The same servers by their addresses alone, and the short form.
fn anonymous(started: &[Started]) -> Setup {
    let address = |one: &Started| one.tcp.expect("it listens on TCP").to_string();
    short(&started.iter().map(address).collect::<Vec<_>>(), None)
}

/// Defects found for the n-th target.
fn defects(output: &Output, setup: &Setup, n: usize) -> Vec<FindingKind> {
    let name = setup.targets[n].name();
    let of_it = output.findings.iter().filter(|one| one.target == name);
    assert!(of_it.clone().all(|one| !one.evidence.is_empty()), "every finding has evidence");
    lab::defects(output, name)
}

#[test]
fn pipelining_finds_when_anonymous_servers_send_their_replies() {
    undisturbed(try_pipelining_finds_when_anonymous_servers_send_their_replies);
}

fn try_pipelining_finds_when_anonymous_servers_send_their_replies() {
    use FindingKind::{FlushPerReply, NagleStall, StrandedReply};
    let started = start(&[
        "model:event-loop,flush=idle",
        "model:event-loop,flush=reply",
        "model:thread-per-connection,flush=reply,nodelay=no",
        "model:thread-per-connection,flush=strand",
        "redis-server",
    ]);
    let mut setup = anonymous(&started);
    // If server and client share a process, less can be observed, and it must suffice.
    let inside =
        common::start(Model::EventLoop, &Options { flush: Flush::Reply, ..Options::default() });
    setup.targets.insert(4, Target::parse(&inside.address.to_string()).expect("HOST:PORT"));
    let output =
        pipelining::run(&setup, &pipelining::Options::default(), &mut |_| {}).expect("it runs");
    let expected: [&[FindingKind]; 6] = [
        &[],
        &[FlushPerReply],
        &[NagleStall, FlushPerReply],
        &[StrandedReply],
        &[FlushPerReply],
        &[],
    ];
    for (n, expected) in expected.iter().enumerate().take(setup.targets.len()) {
        assert_eq!(defects(&output, &setup, n), *expected, "{n}: {:?}", output.findings);
    }
    assert!(output.measurements.len() >= 5, "each but the stranded one, and the stall's cure");
    let [section] = &output.sections[..] else { panic!("one section") };
    assert_eq!((section.plots.len(), section.tables.len()), (2, 3));
    let fast = section.answer().iter().filter(|text| text.contains(" in batches of ")).count();
    assert!(fast >= setup.targets.len() - 1, "each but the stranded one: {:?}", section.answer());
    assert_eq!(section.findings, output.findings);
}

/// Regression: the threads per connection of a server have ended when the load is over. A sample
/// taken only then showed no work of the server, and the client as the limit.
#[test]
fn threads_which_end_with_their_connection_are_counted() {
    undisturbed(try_threads_which_end_with_their_connection_are_counted);
}

fn try_threads_which_end_with_their_connection_are_counted() {
    let started = start(&["model:thread-per-connection"]);
    let setup = Setup { seconds: Some(0.5), ..anonymous(&started) };
    let options = pipelining::Options { connections: 1, ..Default::default() };
    let output = pipelining::run(&setup, &options, &mut |_| {}).expect("it runs");
    let [load] = &output.measurements[..] else { panic!("one load: {:?}", output.findings) };
    let server = load.server.expect("it is a process of its own").cpu_s / load.seconds;
    let table = &output.sections[0].tables[0];
    let column = table.columns.iter().position(|name| name == "busiest server thread");
    let busiest = &table.rows[0][column.expect("a column")];
    let busiest: f64 = busiest.trim_end_matches(" %").parse().expect("a share");
    // One connection is served by one thread, which does all the server's work.
    assert!(busiest / 100.0 >= 0.6 * server && busiest > 0.0, "{busiest} % of {server} CPUs");
}

#[test]
fn single_connection_finds_what_anonymous_servers_wait_for() {
    undisturbed(try_single_connection_finds_what_anonymous_servers_wait_for);
}

fn try_single_connection_finds_what_anonymous_servers_wait_for() {
    let started = start(&[
        "model:event-loop",
        "model:event-loop,events=1",
        "model:event-loop,read=first",
        "model:thread-per-connection",
        "redis-server",
    ]);
    let setup = anonymous(&started);
    let options = single_connection::Options {
        connections: vec![1, 50],
        requests: Some(2000),
        ..Default::default()
    };
    let output = single_connection::run(&setup, &options, &mut |_| {}).expect("it runs");
    for n in 0..setup.targets.len() {
        let expected: &[FindingKind] = if n == 1 { &[FindingKind::PollPerRequest] } else { &[] };
        assert_eq!(defects(&output, &setup, n), expected, "{n}: {:?}", output.findings);
    }
    let [section] = &output.sections[..] else { panic!("one section") };
    let [loads, calls, variants] = &section.tables[..] else { panic!("three tables") };
    assert_eq!(loads.rows.len(), 2 * setup.targets.len());
    // A client which does not sleep, and many clients on one connection.
    assert_eq!(variants.rows.len(), 3 * setup.targets.len());
    let sources: Vec<&str> = calls.rows.iter().map(|row| row[3].as_str()).collect();
    assert_eq!(sources[..8], ["INFO model"; 8]);
    // Each request of a connection which waits for its reply is a separate event.
    for row in calls.rows.iter().filter(|row| row[0] == setup.targets[0].name()) {
        let figure = |n: usize| row[n].parse::<f64>().expect("a figure");
        let events = figure(4) * figure(5);
        assert!((0.9..1.5).contains(&events), "{events} events per request: {row:?}");
    }
    let redis_is_there = setup.targets.len() == 5;
    let untraced = section.prose.iter().any(|line| line.contains("No trace: "));
    assert_eq!(sources.len() > 8, redis_is_there && !untraced, "{sources:?} {:?}", section.prose);
}

#[test]
fn a_supported_setting_is_changed_and_restored() {
    let setting = Arc::new(Mutex::new(vec!["50".to_owned()]));
    let log = Arc::clone(&setting);
    let server = Server::start(move |_, args| {
        let args: Vec<&str> =
            args.iter().map(|arg| std::str::from_utf8(arg).expect("text")).collect();
        let mut log = log.lock().expect("nobody panics");
        match args[..] {
            ["SET", ..] => support::ok(),
            ["CONFIG", "GET", name] => {
                let value = log.last().expect("the first is there");
                let reply =
                    format!("*2\r\n${}\r\n{name}\r\n${}\r\n{value}\r\n", name.len(), value.len());
                Reply::Bytes(reply.into_bytes())
            }
            ["CONFIG", "SET", "busy-poll-us", value] => {
                log.push(value.to_owned());
                support::ok()
            }
            _ => Reply::Bytes(b"-ERR unknown command\r\n".to_vec()),
        }
    });
    let setup = short(&[server.address.to_string()], None);
    let options = single_connection::Options {
        connections: vec![1],
        requests: Some(200),
        ..Default::default()
    };
    let output = single_connection::run(&setup, &options, &mut |_| {}).expect("it runs");
    assert_eq!(*setting.lock().expect("nobody panics"), ["50", "0", "1000000", "50"]);
    assert_eq!(output.measurements.len(), 6, "as it is and five variants");
}

#[test]
fn errors_invalidate_a_point_and_are_reported() {
    let server = Server::start(|_, _| Reply::Bytes(b"-ERR out of order\r\n".to_vec()));
    let setup = short(&[server.address.to_string()], Some(0.1));
    let options = single_connection::Options { connections: vec![1], ..Default::default() };
    let single = single_connection::run(&setup, &options, &mut |_| {}).expect("it runs");
    let batches =
        pipelining::run(&setup, &pipelining::Options::default(), &mut |_| {}).expect("it runs");
    for output in [single, batches] {
        assert!(output.measurements.is_empty(), "nothing counts");
        let prose = output.sections[0].prose.join("\n");
        assert!(prose.contains("ERR out of order"), "{prose}");
    }
}

#[test]
fn the_command_line_prints_findings_and_writes_both_files() {
    let dir = std::env::temp_dir().join(format!("sheafdb-bench-lab-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let (html, json) = (dir.join("report.html"), dir.join("out.json"));
    let output = Command::new(env!("CARGO_BIN_EXE_sheafdb-bench"))
        .args(["lab", "single-connection", "--short", "--connections", "1", "--requests", "300"])
        .args([
            "--no-variants",
            "--no-trace",
            "--target",
            "quick=model:event-loop,events=1",
            "--report",
        ])
        .args([&html, &std::path::PathBuf::from("--json"), &json])
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("quick: ") && text.contains("Findings"), "{text}");
    assert!(text.contains(" requests per second on one connection."), "{text}");
    assert!(std::fs::read_to_string(&html).expect("a report").contains("A single connection"));
    let results = std::fs::read_to_string(&json).expect("a file");
    let results: Results = serde_json::from_str(&results).expect("results");
    // Over TCP and over the unix socket.
    assert_eq!((results.format, results.measurements.len()), (1, 2));
    assert_eq!(results.findings[0].target, "quick");
    std::fs::remove_dir_all(&dir).expect("a temporary folder");
}
