//! The command line.

use sim::panics;
use sim::plan::{MS, Plan};
use sim::run;
use sim::swarm::{self, Range};
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "usage: sheafdb-sim --seed N [--time MS] [--journal] [--trace]
       sheafdb-sim --seeds A..B [--time MS] [--journal] [--jobs N] [--kept FILE]
       sheafdb-sim --hours H [--from A] [--time MS] [--journal] [--jobs N]";

/// A run takes less than this time of the real clock, even on a busy machine.
const HANGS: Duration = Duration::from_secs(300);

/// How long clients make requests if nothing else is said, simulated milliseconds.
const TIME_MS: u64 = 500;

#[derive(Default)]
struct Options {
    seed: Option<u64>,
    seeds: Option<(u64, u64)>,
    hours: Option<f64>,
    from: u64,
    time_ms: Option<u64>,
    jobs: Option<usize>,
    kept: Option<String>,
    journal: bool,
    trace: bool,
}

/// Does what the command line says.
pub fn run() -> ExitCode {
    let Some(options) = parse(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let time_ms = options.time_ms.unwrap_or(TIME_MS);
    if let Some(seed) = options.seed {
        return one(seed, time_ms, &options);
    }
    let (from, to) = options.seeds.unwrap_or((options.from, u64::MAX));
    let range = Range {
        from,
        to,
        time_ms,
        journal: options.journal,
        jobs: options.jobs.unwrap_or_else(driver::cpus_allowed),
        limit: options.hours.map(|hours| Duration::from_secs_f64(hours * 3600.0)),
        kept: options.kept,
    };
    swarm::run(&range)
}

fn parse(mut args: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options::default();
    while let Some(name) = args.next() {
        match &name[..] {
            "--trace" => {
                options.trace = true;
                continue;
            }
            "--journal" => {
                options.journal = true;
                continue;
            }
            _ => {}
        }
        let value = args.next()?;
        match &name[..] {
            "--seed" => options.seed = Some(value.parse().ok()?),
            "--seeds" => {
                let (from, to) = value.split_once("..")?;
                options.seeds = Some((from.parse().ok()?, to.parse().ok()?));
            }
            "--hours" => options.hours = Some(value.parse().ok()?),
            "--from" => options.from = value.parse().ok()?,
            "--time" => options.time_ms = Some(value.parse().ok()?),
            "--jobs" => options.jobs = Some(value.parse().ok().filter(|jobs| *jobs > 0)?),
            "--kept" => options.kept = Some(value),
            _ => return None,
        }
    }
    let is_one = [options.seed.is_some(), options.seeds.is_some(), options.hours.is_some()];
    (is_one.into_iter().filter(|given| *given).count() == 1).then_some(options)
}

/// Runs one seed in this process.
fn one(seed: u64, time_ms: u64, options: &Options) -> ExitCode {
    let trace = options.trace;
    panics::collect();
    // A run which hangs is a failure too.
    std::thread::spawn(move || {
        std::thread::sleep(HANGS);
        println!("seed {seed}: it hangs: not over after {} s", HANGS.as_secs());
        std::process::exit(3);
    });
    let draw = if options.journal { Plan::draw_with_journal } else { Plan::draw };
    let outcome = run::run(draw(seed, time_ms * MS), trace);
    if trace || outcome.failure.is_some() {
        print!("{}", outcome.trace);
    }
    swarm::print_outcome(seed, &outcome);
    match outcome.failure {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            let journal = if options.journal { " --journal" } else { "" };
            let again = format!("cargo xtask sim --seed {seed} --time {time_ms}{journal}");
            println!("seed {seed}: {failure}\nrepeat it: {again}");
            ExitCode::FAILURE
        }
    }
}
