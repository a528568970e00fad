//! The short form of `concurrency`: every model is recognised anonymously, and a healthy server has
//! none of the defects.

mod common;
#[path = "support/lab.rs"]
mod support;

use std::time::Instant;

use bench::lab::Output;
use bench::lab::concurrency::{NAME, Options, run};
use bench::lab::target::Target;
use bench::models::{self, Model};
use bench::result::FindingKind;
use common::{LONG, start, undisturbed};
use support::{defects, kinds, short};

fn output(targets: &[String], options: &Options) -> Output {
    let since = Instant::now();
    let setup = short(targets, Some(0.05));
    let output = run(&setup, options, &mut |_| {}).expect("it can be measured");
    assert!(since.elapsed() < LONG, "a server that hangs does not hang the experiment");
    output
}

#[test]
fn models_are_recognised_without_their_names() {
    undisturbed(try_models_are_recognised_without_their_names);
}

fn try_models_are_recognised_without_their_names() {
    let with = |threads| models::Options { threads: Some(threads), ..models::Options::default() };
    let running = [
        start(Model::Sequential, &models::Options::default()),
        start(Model::Pool, &with(1)),
        start(Model::Pool, &with(4)),
        start(Model::ThreadPerConnection, &models::Options::default()),
        start(Model::EventLoop, &models::Options::default()),
        start(Model::EventLoops, &with(2)),
    ];
    let names = ["a", "b", "c", "d", "e", "f"];
    let at = names.iter().zip(&running).map(|(name, model)| format!("{name}={}", model.address));
    let options = Options {
        connections: vec![1, 2, 6, 50],
        backlogs: vec![1, 50],
        quiet: Some(0.4),
        ..Options::default()
    };
    let output = output(&at.collect::<Vec<_>>(), &options);
    assert_eq!(kinds(&output, "a"), [FindingKind::Sequential]);
    assert_eq!(kinds(&output, "b"), [FindingKind::Sequential], "a pool of one is that");
    assert_eq!(kinds(&output, "c"), [FindingKind::PoolExhausted]);
    for healthy in ["d", "e", "f"] {
        assert_eq!(defects(&output, healthy), [], "{healthy}");
    }
    // Beyond the served connections there is one invalid point, and no further one.
    let connections = |target: &str| -> Vec<(String, bool)> {
        let of = output.measurements.iter().filter(|m| m.target == target);
        of.map(|m| (m.parameters[0].1.clone(), m.failures.is_empty())).collect()
    };
    let point = |n: &str, valid| (n.to_owned(), valid);
    assert_eq!(connections("a"), [point("1", true), point("2", false)]);
    assert_eq!(connections("c"), [point("1", true), point("2", true), point("6", false)]);
    assert_eq!(connections("e").len(), 4);
    // The queue which was too short for a hundred connections dropped some, a longer one fewer.
    let overflows = |target: &str| {
        let finding = output.findings.iter().find(|f| f.target == target).expect("it overflowed");
        assert_eq!(
            (finding.kind, finding.experiment.as_str()),
            (FindingKind::BacklogOverflow, NAME)
        );
        let line = finding.evidence[0].clone();
        let late = line.split(' ').nth(3).and_then(|n| n.parse::<u32>().ok());
        late.unwrap_or_else(|| panic!("{line}"))
    };
    let (short, longer) = (
        overflows("model:event-loop,backlog=1 (stalled)"),
        overflows("model:event-loop,backlog=50 (stalled)"),
    );
    assert!(short >= 90 && (40..=60).contains(&longer), "{short} and {longer} of 100 were late");
    let section = &output.sections[0];
    assert!(section.prose.iter().any(|text| text.starts_with("Pool or task?")), "{section:?}");
    assert!(
        section.plots.len() >= 2 && section.tables.iter().any(|t| t.title.contains("published"))
    );
}

#[test]
fn a_short_queue_before_a_slow_acceptor_is_recognised_anonymously() {
    undisturbed(try_a_short_queue_before_a_slow_acceptor_is_recognised_anonymously);
}

fn try_a_short_queue_before_a_slow_acceptor_is_recognised_anonymously() {
    let slow = models::Options { backlog: 1, accept_every: 30, ..models::Options::default() };
    let running = start(Model::EventLoop, &slow);
    let options = Options { connections: vec![1, 2], no_backlog: true, ..Options::default() };
    let output = output(&[format!("x={}", running.address)], &options);
    let overflow = |f: &&bench::result::Finding| f.kind == FindingKind::BacklogOverflow;
    let finding = output.findings.iter().find(overflow);
    let line = finding.unwrap_or_else(|| panic!("{:?}", output.findings)).evidence[0].clone();
    // 256 connected at once, and at most 34 were accepted in the first second.
    let late = line.split(' ').nth(3).and_then(|n| n.parse::<u32>().ok());
    assert!(late.is_some_and(|n| n >= 150), "{line}");
}

#[test]
fn the_reference_server_has_none_of_the_defects() {
    undisturbed(try_the_reference_server_has_none_of_the_defects);
}

fn try_the_reference_server_has_none_of_the_defects() {
    if !Target::parse("redis-server").expect("known").is_there() {
        // The test job installs redis-server. Other machines may lack it.
        return;
    }
    let options = Options {
        connections: vec![1, 6, 50, 300],
        no_backlog: true,
        quiet: Some(0.5),
        ..Options::default()
    };
    let output = output(&["r=redis-server".to_owned()], &options);
    assert_eq!(defects(&output, "r"), []);
    assert!(output.measurements.iter().all(|m| m.failures.is_empty()));
}
