//! Runs every target on its corpus and on a bounded number of new inputs. `FUZZ_INPUTS` and
//! `FUZZ_SEED` override number and seed.

use sheafdb_fuzz::{corpus_dir, replay, run, targets};

/// New inputs per target by default.
const INPUTS: u64 = 60_000;

fn env_or(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn every_target_passes() {
    let (seed, inputs) = (env_or("FUZZ_SEED", 1), env_or("FUZZ_INPUTS", INPUTS));
    for target in targets::ALL {
        let dir = corpus_dir(target);
        let seeds = replay(target, &dir)
            .unwrap_or_else(|failure| panic!("{}: {}", target.name, failure.path.display()));
        assert!(seeds > 0, "{} has no corpus", target.name);
        run(target, &dir, seed, inputs).unwrap_or_else(|failure| {
            panic!("{}: {}: {}", target.name, failure.path.display(), failure.input.escape_ascii())
        });
    }
}
