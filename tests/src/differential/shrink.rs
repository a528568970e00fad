//! Making a failing sequence small: leave out ever smaller runs of steps while it still fails.

use super::sequence::{Delivery, Sequence};

/// Most candidates that are tried.
const TRIES_MAX: usize = 400;

/// The smallest failing sequence found; `fails` runs a candidate.
pub fn shrink(sequence: &Sequence, mut fails: impl FnMut(&Sequence) -> bool) -> Sequence {
    let mut best = sequence.clone();
    let mut tries = 0;
    let mut try_one = |candidate: Sequence, best: &mut Sequence| {
        tries += 1;
        let better = tries <= TRIES_MAX && fails(&candidate);
        if better {
            *best = candidate;
        }
        better
    };
    // The plainest delivery is the easiest to read.
    let plain = Sequence { delivery: Delivery::OneByOne, ..best.clone() };
    try_one(plain, &mut best);
    let mut run = best.steps.len() / 2;
    while run > 0 {
        let mut at = 0;
        let mut removed = false;
        while at < best.steps.len() {
            let end = (at + run).min(best.steps.len());
            let rest = [&best.steps[..at], &best.steps[end..]].concat();
            if try_one(best.with(rest), &mut best) {
                removed = true;
            } else {
                at = end;
            }
        }
        if !removed || run > 1 {
            run /= 2;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::sequence::Step;
    use super::*;

    #[test]
    fn only_what_is_needed_stays() {
        let step = |n: u8| Step { conn: 1, args: vec![vec![n]], settle: false };
        let steps: Vec<Step> = (0..60).map(step).collect();
        let sequence = Sequence { proto: 2, delivery: Delivery::Pipelined, steps };
        let needed = [step(3), step(41), step(42)];
        let small =
            shrink(&sequence, |candidate| needed.iter().all(|one| candidate.steps.contains(one)));
        assert_eq!(small.steps, needed);
        assert_eq!(small.delivery, Delivery::OneByOne);
    }
}
