//! Every target on its corpus, and a bounded run of new inputs. `FUZZ_INPUTS` and `FUZZ_SEED`
//! choose more.

use sheafdb_fuzz::{corpus_dir, replay, run, targets};

/// New inputs for each target without a wish.
const INPUTS: u64 = 60_000;

fn wish(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn every_target_stands() {
    let (seed, inputs) = (wish("FUZZ_SEED", 1), wish("FUZZ_INPUTS", INPUTS));
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
