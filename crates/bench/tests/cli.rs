//! The program as a user starts it: output, exit status, and one clear line on failure.

mod support;

use std::process::{Command, Output};

use bench::result::{Measurement, Results};
use support::{Reply, Server, ok};

fn bench(args: &str) -> Output {
    let words = args.split_whitespace();
    Command::new(env!("CARGO_BIN_EXE_sheafdb-bench")).args(words).output().expect("it starts")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn at(server: &Server) -> String {
    format!("load -p {} -c 2 -n 1000 -t set", server.address.port())
}

#[test]
fn every_output_format_is_written() {
    let server = Server::start(|_, _| ok());
    let table = bench(&at(&server));
    assert!(table.status.success() && err(&table).is_empty(), "{table:?}");
    let text = out(&table);
    let lines: Vec<&str> = text.lines().collect();
    let answer = format!("set: {} answers ", server.address);
    assert!(lines[0].starts_with(&answer) && lines[0].contains(" requests/s; half "), "{text}");
    assert!(lines[1].starts_with("load ") && lines[2].starts_with("set "), "{text}");
    let text = out(&bench(&format!("{} -q", at(&server))));
    assert!(text.starts_with("SET: ") && text.contains(" requests per second, p50="), "{text}");
    let text = out(&bench(&format!("{} --csv --repeat 2", at(&server))));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    let cells = |line: &str| line.split(',').count();
    assert!(lines[0].starts_with("load,target,") && cells(lines[0]) == cells(lines[1]), "{text}");
    let text = out(&bench(&format!("{} --format json", at(&server))));
    let one: Measurement = serde_json::from_str(&text).expect("a measurement per line");
    assert_eq!((one.requests, &one.load[..]), (1000, "set"));
}

#[test]
fn a_failed_run_exits_with_1_and_its_reason() {
    let server = Server::start(|_, _| Reply::Bytes(b"-ERR on purpose\r\n".to_vec()));
    let failed = bench(&at(&server));
    assert_eq!(failed.status.code(), Some(1));
    let text = "sheafdb-bench: set failed: 1000 error replies (ERR on purpose)\n";
    assert_eq!(err(&failed), text);
    // The rate of error replies is no throughput.
    let text = out(&failed);
    assert!(text.starts_with("set: no request to "), "{text}");
    let row: Vec<&str> = text.lines().nth(2).expect("a row").split_whitespace().collect();
    assert_eq!(row[..6], ["set", "-", "-", "-", "-", "-"], "{text}");
    let text = out(&bench(&format!("{} -q", at(&server))));
    assert_eq!(text, "SET: no request got its right reply\n");
    let text = out(&bench(&format!("{} --csv", at(&server))));
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (names, values) = (lines.next().expect("a header"), lines.next().expect("a row"));
    let rate = names.iter().position(|name| *name == "requests_per_s").expect("a column");
    assert_eq!(values[rate], "", "{text}");
    let text = out(&bench(&format!("{} --format json", at(&server))));
    let one: Measurement = serde_json::from_str(&text).expect("a measurement per line");
    assert!((one.requests, one.throughput) == (0, 0.0) && one.series.is_empty(), "{text}");
}

#[test]
fn a_run_which_cannot_start_prints_one_line() {
    let one_line = |args: &str, code: i32, part: &str| {
        let output = bench(args);
        assert_eq!(output.status.code(), Some(code), "{args}");
        assert!(err(&output).contains(part), "{args}: {}", err(&output));
        if code == 1 {
            assert_eq!(err(&output).lines().count(), 1, "{args}: {}", err(&output));
        }
    };
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = free.local_addr().expect("it is bound").port();
    drop(free);
    one_line(&format!("load -p {port}"), 1, "Connection refused");
    one_line("load -s /nowhere/x.sock", 1, "cannot connect to /nowhere/x.sock");
    one_line("load -h no-such-host.invalid", 1, "cannot find the host no-such-host.invalid");
    one_line("load -t nothing", 1, "no test 'nothing'");
    one_line("load -c 0", 1, "connections: 0");
    one_line("load --ratio x", 2, "1:10");
    one_line("compare /nowhere/a /nowhere/b", 1, "cannot read /nowhere/a");
}

/// Regression: a word which looks like an unknown option was sent to the server as a command, a
/// hundred thousand times.
#[test]
fn an_unknown_option_is_not_taken_for_a_command() {
    let server = Server::start(|_, _| ok());
    for option in ["--cluster", "--tls", "--typo", "-x", "--typo=1", "-n 5 --cluster"] {
        let output = bench(&format!("load -p {} {option}", server.address.port()));
        assert_eq!(output.status.code(), Some(2), "{option}: {output:?}");
        assert!(err(&output).contains("unexpected argument"), "{option}: {}", err(&output));
        assert!(out(&output).is_empty(), "{option}: {}", out(&output));
    }
    // Words after a command belong to it. After -- a command may begin with a hyphen.
    for command in ["ZADD z -1 --a", "-- --cluster", "-n 7 -- -x -n 8"] {
        let args = format!("load -p {} -n 7 -q {command}", server.address.port());
        let output = bench(&args);
        assert!(output.status.success(), "{args}: {output:?}");
    }
}

#[test]
fn h_is_the_host_and_help_is_long() {
    let server = Server::start(|_, _| ok());
    assert!(bench(&format!("{} -h 127.0.0.1 -q", at(&server))).status.success());
    let help = bench("load --help");
    assert!(help.status.success() && out(&help).contains("--distinct-client-seed"), "{help:?}");
}

#[test]
fn result_files_are_compared() {
    let server = Server::start(|_, _| ok());
    let file = |name: &str| std::env::temp_dir().join(format!("{}-{name}", std::process::id()));
    let (a, b) = (file("a.json"), file("b.json"));
    let made = bench(&format!("{} --repeat 3 --json {}", at(&server), a.display()));
    assert!(made.status.success(), "{made:?}");
    let mut results: Results =
        serde_json::from_slice(&std::fs::read(&a).expect("written")).expect("results");
    assert_eq!((results.measurements.len(), results.format), (3, 1));
    assert!(results.machine.cores > 0 && results.command.contains("--repeat 3"));
    for (at, one) in results.measurements.iter_mut().enumerate() {
        one.throughput = 1000.0 + at as f64;
    }
    let write = |to: &std::path::Path, results: &Results| {
        std::fs::write(to, serde_json::to_string(results).expect("it is plain")).expect("written");
    };
    write(&a, &results);
    let compared = bench(&format!("compare {} {}", a.display(), a.display()));
    assert!(compared.status.success(), "{compared:?}");
    let text = out(&compared);
    assert!(
        text.starts_with("Of ") && text.contains(" B is better in 0 and worse in 0;"),
        "{text}"
    );
    assert!(text.contains("may be chance"), "{text}");
    results.measurements.iter_mut().for_each(|one| one.throughput /= 2.0);
    write(&b, &results);
    let worse = bench(&format!("compare {} {}", a.display(), b.display()));
    assert_eq!(worse.status.code(), Some(1), "{worse:?}");
    assert!(out(&worse).contains("0.500") && out(&worse).contains("  worse"), "{}", out(&worse));
    for path in [a, b] {
        std::fs::remove_file(path).expect("it was written");
    }
}
