//! The command line of the laboratory: tables on the standard output, and files where requested.

mod common;

use std::fs;
use std::process::Command;

use bench::result::{FindingKind, Results};
use common::undisturbed;

#[test]
fn an_experiment_writes_a_report_measurements_and_curves() {
    undisturbed(try_an_experiment_writes_a_report_measurements_and_curves);
}

fn try_an_experiment_writes_a_report_measurements_and_curves() {
    let folder = std::env::temp_dir().join(format!("bench-lab-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder of our own");
    let at = |name: &str| folder.join(name).to_str().expect("it is ASCII").to_owned();
    let (report, json, csv) = (at("r.html"), at("r.json"), at("csv"));
    let out = Command::new(env!("CARGO_BIN_EXE_sheafdb-bench"))
        .args(["lab", "concurrency", "--short", "--seconds", "0.03", "--connections", "1,2,4,8"])
        .args(["--no-backlog", "--quiet", "0.3", "--target", "pool=model:pool,size=4"])
        .args(["--report", &report, "--json", &json, "--csv", &csv])
        .output()
        .expect("it starts");
    let (stdout, stderr) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{stderr}");
    assert!(
        stderr.contains("starting pool") && stderr.contains("SET at 8 connections"),
        "{stderr}"
    );
    assert!(stdout.contains("pool: pool_exhausted") && stdout.contains("Requests per second"));
    let results: Results = serde_json::from_str(&fs::read_to_string(&json).expect("it is there"))
        .expect("it reads back");
    assert_eq!(results.format, 1);
    assert_eq!(results.measurements.len(), 4);
    assert_eq!(results.findings[0].kind, FindingKind::PoolExhausted);
    let page = fs::read_to_string(&report).expect("it is there");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Beside the published figures"));
    assert!(page.contains(">pool: The pool is smaller") && page.contains(" throughput is "));
    let curve = fs::read_to_string(folder.join("csv/concurrency-throughput-by-connections.csv"));
    assert!(curve.expect("it is there").starts_with("series,connections,requests/s"));
    fs::remove_dir_all(&folder).expect("a temporary folder");
}

#[test]
fn invalid_arguments_are_refused_with_the_reason() {
    let error = |args: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_sheafdb-bench"))
            .arg("lab")
            .args(args)
            .output()
            .expect("it starts");
        assert!(!out.status.success());
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    assert!(error(&["concurrency", "--target", "nonsense"]).contains("is no server"));
    assert!(error(&["ramp", "--workers", "0"]).contains("workers are"));
    assert!(error(&["ramp", "--seconds", "0"]).contains("seconds per point"));
    assert!(error(&["nothing"]).contains("unrecognized"));
}
