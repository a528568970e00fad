//! `fuzz TARGET [COUNT [SEED]]`: runs a target on COUNT new inputs; without COUNT, until stopped.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use sheafdb_fuzz::{corpus_dir, replay, run, targets};

/// Inputs between two lines of progress.
const STEP: u64 = 100_000;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| args.get(at).and_then(|text| text.parse::<u64>().ok());
    let Some(target) = targets::ALL.iter().find(|one| Some(one.name) == args.first().map(|a| &**a))
    else {
        let names: Vec<&str> = targets::ALL.iter().map(|one| one.name).collect();
        eprintln!("usage: fuzz TARGET [COUNT [SEED]]\ntargets: {}", names.join(" "));
        return ExitCode::FAILURE;
    };
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |t| t.as_nanos() as u64);
    let (count, seed) = (number(1).unwrap_or(u64::MAX), number(2).unwrap_or(clock));
    let dir = corpus_dir(target);
    println!("{} from seed {seed}", target.name);
    let mut outcome = replay(target, &dir).map(|_| ());
    let mut done = 0;
    while outcome.is_ok() && done < count {
        let step = STEP.min(count - done);
        outcome = run(target, &dir, seed.wrapping_add(done), step);
        done += step;
        println!("{done} inputs");
    }
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("failed on {}", failure.path.display());
            ExitCode::FAILURE
        }
    }
}
