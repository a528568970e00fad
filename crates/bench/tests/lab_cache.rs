//! The experiment `cache`: recorded traces give known hits, a server without a limit misses each
//! key once, a server with a limit keeps to it and to the number of entries.

#[path = "support/lab.rs"]
mod support;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use bench::lab::cache::trace::Trace;
use bench::lab::cache::{Options, run};
use bench::lab::target::Target;
use bench::result::{FindingKind, Results};
use support::short;

/// A trace of `tests/traces`.
fn recorded(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/traces").join(name);
    path.to_str().expect("it is ASCII").to_owned()
}

fn bench(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sheafdb-bench"));
    command.args(args).output().expect("it starts")
}

/// The figures behind the name of a trace, in the first table that has it.
fn row(stdout: &str, name: &str) -> Vec<String> {
    let line = stdout.lines().find(|line| line.starts_with(&format!("{name} ")));
    let line = line.unwrap_or_else(|| panic!("no row {name} in {stdout}"));
    line.split_whitespace().skip(1).map(str::to_owned).collect()
}

#[test]
fn recorded_traces_give_known_hits() {
    let traces = ["zipf-0.9", "scan", "moving", "loop"];
    let mut args = vec!["cache", "--simulate", "--entries", "200"];
    let paths: Vec<String> = traces.iter().map(|name| recorded(&format!("{name}.txt"))).collect();
    for path in &paths {
        args.extend(["--trace", path]);
    }
    let out = bench(&args);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let stdout = String::from_utf8_lossy(&out.stdout);
    // Belady, exact LRU, exact LFU, random, S3-FIFO, W-TinyLFU.
    let figures = traces.map(|name| row(&stdout, name).join(" "));
    assert_eq!(figures, KNOWN, "{stdout}");
}

/// What the simulators made of the traces when these were recorded.
const KNOWN: [&str; 4] = [
    "68.7 48.5 54.6 43.9 54.9 56.6",
    "56.8 37.4 44.1 33.8 43.7 45.8",
    "55.5 33.9 18.1 30.8 29.1 18.4",
    "91.1 0.0 0.0 82.8 79.4 84.4",
];

#[test]
fn a_recorded_trace_is_the_one_that_was_made() {
    let path = std::env::temp_dir().join(format!("bench-trace-{}.txt", std::process::id()));
    let text = path.to_str().expect("it is ASCII");
    let made = ["--entries", "50", "--keys", "300", "--accesses", "2000", "--seed", "5"];
    for name in ["sizes", "moving"] {
        let args = ["lab", "cache", "--simulate", "--trace", name, "--record", text];
        let out = bench(&[&args[..], &made].concat());
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let file = fs::read_to_string(&path).expect("it was written");
        assert!(file.starts_with(&format!("# {name}, sheafdb-bench cache, seed 5\n")));
        let trace = Trace::parse(name, &file, 1).expect("it reads back");
        assert_eq!((trace.accesses.len(), trace.is_sized), (2_000, name == "sizes"));
        let again = bench(&["cache", "--simulate", "--entries", "50", "--trace", text]);
        let (made, read) = (out.stdout, again.stdout);
        let file_name = path.file_stem().expect("it has one").to_string_lossy().into_owned();
        assert_eq!(
            row(&String::from_utf8_lossy(&made), name),
            row(&String::from_utf8_lossy(&read), &file_name)
        );
    }
    fs::remove_file(&path).expect("a temporary file");
}

#[test]
fn a_server_without_a_limit_misses_each_key_once() {
    let options = Options {
        trace: vec![recorded("zipf-0.9.txt")],
        entries: Some(200),
        unpaced: true,
        connections: 1,
        ..Options::default()
    };
    let setup = short(&["x=model:event-loop"], None);
    let output = run(&setup, &options, &mut |_| {}).expect("it can be played");
    assert_eq!(output.failed, [""; 0]);
    let text = fs::read_to_string(recorded("zipf-0.9.txt")).expect("it is there");
    let trace = Trace::parse("t", &text, 1).expect("it is a trace");
    let (reads, keys) = (trace.accesses.len() as u64, trace.keys.len() as u64);
    // A read each, and a write for each key.
    assert_eq!(output.measurements[0].requests, reads + keys);
    let prose = output.sections[0].prose.join("\n");
    assert!(prose.contains("x: It reports no used_memory"), "{prose}");
    assert!(output.findings.iter().all(|finding| finding.kind == FindingKind::None));
}

#[test]
fn the_reference_server_keeps_to_the_number_of_entries() {
    if !Target::parse("redis-server").expect("known").is_there() {
        // The test job installs redis-server. Other machines may lack it.
        return;
    }
    let json = std::env::temp_dir().join(format!("bench-cache-{}.json", std::process::id()));
    let path = json.to_str().expect("it is ASCII");
    let out = bench(&[
        "cache",
        "--target",
        "r=redis-server",
        "--trace",
        "zipf-0.9",
        "--entries",
        "1000",
        "--accesses",
        "60000",
        "--policy",
        "allkeys-random",
        "--samples",
        "3",
        "--unpaced",
        "--repetitions",
        "1",
        "--connections",
        "2",
        "--json",
        path,
    ]);
    let stdout = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{stdout} {}", String::from_utf8_lossy(&out.stderr));
    let text = fs::read_to_string(&json).expect("it was written");
    fs::remove_file(&json).expect("a temporary file");
    let results: Results = serde_json::from_str(&text).expect("it reads back");
    let [measured] = &results.measurements[..] else { panic!("one run: {text}") };
    let policy = ["allkeys-random", "3"];
    assert_eq!(measured.parameters.iter().map(|p| p.1.as_str()).collect::<Vec<_>>(), policy);
    // An order that no clock blurs: it finds what the simulator of this policy finds.
    let simulated: f64 = row(&stdout, "zipf-0.9")[3].parse().expect("a figure");
    let hits = 100.0 * measured.hit_ratio.expect("a cache was played");
    assert!((hits - simulated).abs() < 5.0, "{hits} and {simulated}: {stdout}");
}

#[test]
fn what_cannot_be_played_is_refused_with_the_reason() {
    let error = |args: &[&str]| {
        let out = bench(&[&["cache"], args].concat());
        assert!(!out.status.success());
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    assert!(error(&["--trace", "nothing.txt"]).contains("is no distribution, and no file"));
    assert!(error(&["--entries", "0"]).contains("entries are"));
    assert!(error(&["--simulate", "--record", "x"]).contains("exactly one --trace"));
    assert!(error(&["--simulate", "--target", "a=localhost:1"]).contains("leave --target out"));
    assert!(error(&["--unpaced", "--seconds", "1"]).contains("exclude each other"));
    let few = ["--target", "model:event-loop", "--unpaced", "--trace", "loop", "--entries", "90"];
    let held = error(&[&few[..], &["--accesses", "80", "--repetitions", "1"]].concat());
    assert!(held.contains("the trace has 80 keys, so a cache for 90 holds all of them"), "{held}");
}
