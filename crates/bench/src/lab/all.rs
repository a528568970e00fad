//! All experiments one after the other, in one report.

use std::time::Instant;

use clap::Args;

use crate::cli::defaults;

use super::{Error, Output, Setup, acks, concurrency, pipelining, ramp, single_connection};
use crate::report::{Section, Table};

/// The name of all together.
pub const NAME: &str = "all";

/// Options of `lab all`.
#[derive(Args, Clone, Debug, Default)]
pub struct Options {
    /// Run the long forms; the short ones take less than 5 minutes
    #[arg(long)]
    pub long: bool,
}

/// An experiment with its options left as they are.
type Run = fn(&Setup, &mut dyn FnMut(&str)) -> Result<Output, Error>;

/// In the order of the report. One line adds one.
const EXPERIMENTS: &[(&str, Run)] = &[
    (concurrency::NAME, |setup, progress| concurrency::run(setup, &defaults(), progress)),
    (acks::NAME, |setup, progress| acks::run(setup, &defaults(), progress)),
    (pipelining::NAME, |setup, progress| pipelining::run(setup, &defaults(), progress)),
    (ramp::NAME, |setup, progress| ramp::run(setup, &defaults(), progress)),
    (single_connection::NAME, |setup, progress| {
        single_connection::run(setup, &defaults(), progress)
    }),
];

/// Runs them. An experiment that cannot be made is mentioned in the report, and the command fails
/// after the report is written.
pub fn run(
    setup: &Setup,
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Result<Output, Error> {
    Ok(run_these(EXPERIMENTS, setup, options, progress))
}

fn run_these(
    experiments: &[(&str, Run)],
    setup: &Setup,
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Output {
    let setup = Setup { short: !options.long, ..setup.clone() };
    let (mut all, mut took) = (Output::default(), Vec::new());
    for (name, experiment) in experiments {
        let started = Instant::now();
        let output = experiment(&setup, &mut |what| progress(&format!("{name}: {what}")));
        took.push(vec![(*name).to_owned(), format!("{:.1}", started.elapsed().as_secs_f64())]);
        match output {
            Ok(output) => {
                all.measurements.extend(output.measurements);
                all.findings.extend(output.findings);
                all.sections.extend(output.sections);
                all.files.extend(output.files);
                all.failed.extend(output.failed.into_iter().map(|why| format!("{name}: {why}")));
            }
            Err(error) => {
                let why = format!("{name} could not be run: {error}");
                let title = format!("{name}: not run");
                let answers = vec![((*name).to_owned(), format!("It could not be run. {error}"))];
                all.sections.push(Section { title, answers, ..Section::default() });
                all.failed.push(why);
            }
        }
    }
    let columns = ["experiment", "seconds"].map(str::to_owned).to_vec();
    let table = Table { title: "How long each took".to_owned(), columns, rows: took };
    let title = "This run".to_owned();
    all.sections.push(Section { title, tables: vec![table], ..Section::default() });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_experiment_does_not_suppress_the_others() {
        let good: Run = |setup, progress| {
            assert!(setup.short);
            progress("at work");
            let section = Section { title: "good".to_owned(), ..Section::default() };
            Ok(Output { sections: vec![section], ..Output::default() })
        };
        let bad: Run = |_, _| Err(Error::Machine("no".to_owned()));
        let wrong: Run = |_, _| Ok(Output { failed: vec!["lies".to_owned()], ..Output::default() });
        let setup = Setup { targets: vec![], seconds: None, short: false, repetitions: 1 };
        let mut reports = Vec::new();
        let experiments = [("a", bad), ("b", good), ("c", wrong)];
        let output = run_these(&experiments, &setup, &Options::default(), &mut |what| {
            reports.push(what.to_owned());
        });
        let titles: Vec<&str> = output.sections.iter().map(|s| s.title.as_str()).collect();
        assert_eq!(titles, ["a: not run", "good", "This run"]);
        assert_eq!(output.sections[0].answer(), ["a: It could not be run. no"]);
        assert_eq!(output.failed, ["a could not be run: no", "c: lies"]);
        assert_eq!(reports, ["b: at work"]);
    }

    #[test]
    fn every_experiment_runs_without_options() {
        let plan = defaults::<acks::Options>();
        assert!(!plan.classic && plan.threads == 1);
        let _: concurrency::Options = defaults();
        let _: ramp::Options = defaults();
        let names: Vec<&str> = EXPERIMENTS.iter().map(|(name, _)| *name).collect();
        assert!(names.contains(&acks::NAME));
    }
}
