//! The short form of `ramp`: a single writer is recognised anonymously, other models are not taken
//! for one, and each driver gets its verdict. One test at a time: they sample this program's
//! threads.

mod common;
#[path = "support/lab.rs"]
mod support;

use bench::lab::ramp::{Options, run};
use bench::lab::target::Target;
use bench::lab::{Data, Output};
use bench::models::{self, Flush, Front, Model};
use bench::result::FindingKind;
use common::{start, undisturbed};
use support::{defects, kinds, short};

fn output(targets: &[String], options: &Options) -> Output {
    run(&short(targets, Some(0.15)), options, &mut |_| {}).expect("it can be measured")
}

/// Few keys, and only the ramp.
fn bare() -> Options {
    let data = Data { keys: 1000, ..Data::default() };
    Options { data, no_table: true, no_drivers: true, ..Options::default() }
}

#[test]
fn a_single_writer_is_recognised_anonymously() {
    undisturbed(try_a_single_writer_is_recognised_anonymously);
}

fn try_a_single_writer_is_recognised_anonymously() {
    for front in [Front::Threads, Front::Loops] {
        let options = models::Options { front, threads: Some(2), ..models::Options::default() };
        let running = start(Model::SingleWriter, &options);
        // While others use the processors there is no finding: then retry.
        let output = output(&[format!("x={}", running.address)], &bare());
        let found = kinds(&output, "x").contains(&FindingKind::SingleWriterFlat);
        assert!(found, "{front:?}: {:#?}", output.findings);
    }
}

#[test]
fn other_models_are_not_taken_for_a_single_writer() {
    undisturbed(try_other_models_are_not_taken_for_a_single_writer);
}

fn try_other_models_are_not_taken_for_a_single_writer() {
    for model in [Model::ThreadPerConnection, Model::EventLoop, Model::EventLoops] {
        let running = start(model, &models::Options::default());
        let output = output(&[format!("x={}", running.address)], &bare());
        assert_eq!(defects(&output, "x"), [], "{model:?}: {:#?}", output.findings);
    }
}

#[test]
fn the_reference_server_is_healthy_and_its_csv_is_written() {
    undisturbed(try_the_reference_server_is_healthy_and_its_csv_is_written);
}

fn try_the_reference_server_is_healthy_and_its_csv_is_written() {
    if !Target::parse("redis-server").expect("known").is_there() {
        // The test job installs redis-server. Other machines may lack it.
        return;
    }
    let path = std::env::temp_dir().join(format!("bench-ramp-{}.csv", std::process::id()));
    let options = Options { no_table: false, ramp_csv: Some(path.clone()), ..bare() };
    let output = output(&["r=redis-server".to_owned()], &options);
    assert_eq!(defects(&output, "r"), [], "{:#?}", output.findings);
    let text = std::fs::read_to_string(&path).expect("it was written");
    std::fs::remove_file(&path).expect("a temporary file");
    let lines: Vec<&str> = text.lines().collect();
    // Two subjects, two commands, each with a title, a header and three levels.
    assert_eq!(lines.len(), 4 * 5, "{text}");
    assert_eq!(lines[1], "concurrency;total count;op/s;mean;stdev %;la");
    for line in lines.iter().filter(|line| line.starts_with("20;")) {
        let figures: Vec<f64> =
            line.split(';').map(|cell| cell.parse().expect("a figure")).collect();
        assert!(figures.len() == 6 && figures[1] > 0.0 && figures[2] > 0.0 && figures[3] > 0.0);
    }
    assert_eq!(text.matches("\n60;").count(), 4, "{text}");
    assert!(output.files.iter().any(|(name, _)| name == "ramp-in-process-table-get.csv"));
}

#[test]
fn an_unbounded_driver_is_distinguished_from_bounded_ones() {
    undisturbed(try_an_unbounded_driver_is_distinguished_from_bounded_ones);
}

fn try_an_unbounded_driver_is_distinguished_from_bounded_ones() {
    // A send per reply: on no machine can it keep up with an unbounded driver.
    let slow = models::Options { flush: Flush::Reply, ..models::Options::default() };
    let running = start(Model::EventLoop, &slow);
    let options = Options { no_drivers: false, workers: vec![2], ..bare() };
    let output = output(&[format!("x={}", running.address)], &options);
    assert_eq!(
        kinds(&output, "unbounded driver at x"),
        [FindingKind::UnboundedClient],
        "{:#?}",
        output.sections[0].tables
    );
    let answer = output.sections[0].answer().join(" ");
    assert!(answer.contains(" SET per second with 2 workers and "), "{answer}");
    let about_drivers = output.findings.iter().filter(|f| f.target.contains("driver"));
    assert_eq!(about_drivers.count(), 1, "the others hold back: {:#?}", output.findings);
    let table = output.sections[0].tables.iter().find(|t| t.title.starts_with("Back pressure"));
    let rows = &table.expect("there is one").rows;
    let verdicts: Vec<&str> =
        rows.iter().map(|row| row[6].split(':').next().expect("text")).collect();
    assert_eq!(verdicts, ["holds back", "holds back", "holds back", "does not hold back"]);
}
