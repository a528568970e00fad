//! The experiment's part of a report.

use super::options::TEXTS;
use super::simulate::Simulator;
use super::subject::Subject;
use super::tally::Tally;
use super::trace::Trace;
use crate::analysis::figure::{cell, count, percent};
use crate::report::{Kind, Plot, Section, Series, Table};
use crate::result::Finding;

/// What simulators made of a trace.
pub type Simulated = Vec<(Simulator, Tally)>;

/// All that the report is about.
pub struct Outcome<'a> {
    /// The traces.
    pub traces: &'a [Trace],
    /// Of each trace what simulators made of it; empty where the bound is in bytes.
    pub simulated: &'a [Simulated],
    /// The servers.
    pub subjects: &'a [Subject],
    /// Entries that all hold, unless the bound is in bytes.
    pub entries: Option<u64>,
    /// How it was played, a sentence.
    pub manner: String,
}

/// Tells the experiment.
pub fn section(outcome: &Outcome<'_>, findings: Vec<Finding>) -> Section {
    let Outcome { traces, subjects, .. } = outcome;
    let notes = subjects.iter().flat_map(Subject::notes);
    let mut prose = vec![outcome.manner.clone(), TEXTS.sentence("simulators", &[])];
    for note in [TEXTS.sentence("clock", &[])].into_iter().chain(notes) {
        if !prose.contains(&note) {
            prose.push(note);
        }
    }
    let each =
        |plot: fn(&Outcome<'_>, usize) -> Plot| (0..traces.len()).map(move |at| plot(outcome, at));
    let plots = each(over_time).chain(each(memory)).filter(|plot| !plot.series.is_empty());
    Section {
        title: "Cache: how many reads find their key?".to_owned(),
        answers: answers(outcome),
        prose,
        plots: plots.collect(),
        tables: vec![ratios(outcome), servers(subjects)],
        findings,
    }
}

/// For each target its best policy on each trace.
fn answers(outcome: &Outcome<'_>) -> Vec<(String, String)> {
    let mut names: Vec<&str> = Vec::new();
    for subject in outcome.subjects {
        if !names.contains(&subject.target.as_str()) {
            names.push(&subject.target);
        }
    }
    let best = |name: &str, trace: usize| {
        let of = outcome.subjects.iter().filter(|one| one.target == name && one.trace == trace);
        of.max_by(|a, b| a.ratio().total_cmp(&b.ratio()))
    };
    let sentence = |one: &Subject| {
        let policy = match one.policy().as_str() {
            "-" => String::new(),
            policy => format!(" with {policy} and {} samples", one.samples()),
        };
        let values: [(&str, &dyn std::fmt::Display); 3] =
            [("hits", &points(one.ratio())), ("trace", &one.trace_name), ("policy", &policy)];
        TEXTS.sentence("hits", &values)
    };
    let answer = |name: &str| {
        let traces = 0..outcome.traces.len();
        let said: Vec<String> =
            traces.filter_map(|trace| best(name, trace)).map(sentence).collect();
        (name.to_owned(), said.join(" "))
    };
    names.into_iter().map(answer).collect()
}

/// A share in per cent with one decimal, so that points can be compared.
fn points(share: f64) -> String {
    cell(share, |share| format!("{:.1}", share * 100.0))
}

fn over_time(outcome: &Outcome<'_>, trace: usize) -> Plot {
    let title = format!("Hits over time: {}", outcome.traces[trace].name);
    let plot = Plot::new(Kind::Line, &title, "reads", "share of hits, per cent");
    let line = |name: &str, tally: &Tally| {
        let per_cent = |(at, share): (f64, f64)| (at, 100.0 * share);
        Series::new(name, tally.over_time().into_iter().map(per_cent).collect())
    };
    let simulated = outcome.simulated.get(trace).into_iter().flatten();
    let simulated = simulated.map(|(simulator, tally)| line(simulator.name(), tally));
    let servers = outcome.subjects.iter().filter(|one| one.trace == trace);
    let servers =
        servers.filter_map(|one| Some(line(&one.name(), &one.runs.first()?.played.tally)));
    simulated.chain(servers).fold(plot, Plot::with)
}

fn memory(outcome: &Outcome<'_>, trace: usize) -> Plot {
    let title = format!("Memory over time: {}", outcome.traces[trace].name);
    let plot = Plot::new(Kind::Line, &title, "reads", "used_memory, per cent of the limit");
    let line = |subject: &Subject| {
        let looks = subject.runs.first()?.looks.iter().filter(|look| look.limit > 0);
        let used = looks.map(|look| (look.at as f64, 100.0 * look.used as f64 / look.limit as f64));
        let points: Vec<(f64, f64)> = used.collect();
        (!points.is_empty()).then(|| Series::new(&subject.name(), points))
    };
    let servers = outcome.subjects.iter().filter(|one| one.trace == trace);
    servers.filter_map(line).fold(plot, Plot::with)
}

/// A row for each trace, a column for each cache.
fn ratios(outcome: &Outcome<'_>) -> Table {
    let mut columns: Vec<String> = vec!["trace".to_owned()];
    if !outcome.simulated.is_empty() {
        columns.extend(Simulator::ALL.map(|simulator| simulator.name().to_owned()));
    }
    for subject in outcome.subjects {
        if !columns.contains(&subject.name()) {
            columns.push(subject.name());
        }
    }
    let row = |(at, trace): (usize, &Trace)| {
        let mut cells = vec![trace.name.clone()];
        let simulated = outcome.simulated.get(at).into_iter().flatten();
        cells.extend(simulated.map(|(_, tally)| points(tally.ratio())));
        for column in &columns[cells.len()..] {
            let of = outcome.subjects.iter().find(|one| one.trace == at && one.name() == *column);
            cells.push(of.map_or_else(|| "-".to_owned(), |one| points(one.ratio())));
        }
        cells
    };
    let title = match outcome.entries {
        Some(entries) => format!("Hits in per cent, with {} entries", count(entries as f64)),
        None => "Hits in per cent, with the same maxmemory".to_owned(),
    };
    let rows = outcome.traces.iter().enumerate().map(row).collect();
    Table { title, columns, rows }
}

fn servers(subjects: &[Subject]) -> Table {
    let exact = |one: &Subject| match one.exact {
        Some((_, hits)) => points(hits),
        None => "-".to_owned(),
    };
    Table::of(
        "The servers",
        subjects,
        &[
            ("target", &|one: &&Subject| one.target.clone()),
            ("trace", &|one| one.trace_name.clone()),
            ("policy", &|one| one.policy()),
            ("samples", &|one| one.samples()),
            ("hits, %", &|one| points(one.ratio())),
            ("exact order, as many entries", &|one| exact(one)),
            ("entries", &|one| cell(one.entries(), |n| count(n.round()))),
            ("maxmemory", &|one| cell(one.limit(), count)),
            ("most above it", &|one| cell(one.peak(), percent)),
            ("evicted", &|one| cell(one.evicted(), count)),
            ("seconds until LRU evicts", &|one| cell(one.age_s, |s| format!("{s:.1}"))),
            ("server CPU, us per request", &|one| cell(one.cpu_us(), |us| format!("{us:.2}"))),
            ("requests/s", &|one| cell(one.requests_per_second(), |n| count(n.round()))),
        ],
    )
}
