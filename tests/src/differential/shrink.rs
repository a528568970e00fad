//! Shrinks a failing sequence: removes ever shorter runs of commands while it still fails, then
//! arguments.

use std::time::{Duration, Instant};

use super::family;
use super::sequence::{Delivery, Sequence, Step};

/// Maximum number of candidates tried.
const TRIES_MAX: usize = 600;
/// Time limit of the search: a server which hangs makes each candidate slow.
const TIME_MAX: Duration = Duration::from_secs(30);

/// The smallest failing sequence found; `fails` runs a candidate.
pub fn shrink(sequence: &Sequence, fails: impl FnMut(&Sequence) -> bool) -> Sequence {
    let mut search = Search { best: sequence.clone(), tries: 0, started: Instant::now(), fails };
    // One by one in RESP2 is the easiest to read.
    if sequence.delivery != Delivery::Gathered {
        search.accepts(Sequence { delivery: Delivery::OneByOne, ..search.best.clone() });
    }
    search.accepts(Sequence { proto: 2, ..search.best.clone() });
    search.steps();
    search.connections();
    search.arguments();
    search.steps();
    search.best
}

struct Search<F> {
    best: Sequence,
    tries: usize,
    started: Instant,
    fails: F,
}

impl<F: FnMut(&Sequence) -> bool> Search<F> {
    fn accepts(&mut self, candidate: Sequence) -> bool {
        let over = self.tries >= TRIES_MAX || self.started.elapsed() > TIME_MAX;
        if candidate == self.best || over {
            return false;
        }
        self.tries += 1;
        let better = (self.fails)(&candidate);
        if better {
            self.best = candidate;
        }
        better
    }

    /// Removes runs of commands; tied steps are removed together.
    fn steps(&mut self) {
        let mut run = groups(&self.best.steps).len() / 2;
        while run > 0 {
            let mut at = 0;
            let mut removed = false;
            loop {
                let groups = groups(&self.best.steps);
                if at >= groups.len() {
                    break;
                }
                let end = (at + run).min(groups.len());
                let rest = [&groups[..at], &groups[end..]].concat().concat();
                if self.accepts(self.best.with(rest)) {
                    removed = true;
                } else {
                    at = end;
                }
            }
            if !removed || run > 1 {
                run /= 2;
            }
        }
    }

    /// Moves all steps to one connection.
    fn connections(&mut self) {
        let alone = self.best.steps.iter().map(|step| Step { conn: 1, ..step.clone() }).collect();
        self.accepts(self.best.with(alone));
    }

    /// Removes runs of arguments, and shortens long ones.
    fn arguments(&mut self) {
        for at in 0..self.best.steps.len() {
            let steps = &self.best.steps;
            let tied = steps[at].tied || steps.get(at + 1).is_some_and(|next| next.tied);
            if tied || family::is_brittle(&steps[at].args) {
                continue;
            }
            let mut run = (self.best.steps[at].args.len() - 1) / 2;
            while run > 0 {
                let mut from = 1;
                while from + run <= self.best.steps[at].args.len() {
                    let mut args = self.best.steps[at].args.clone();
                    args.drain(from..from + run);
                    if !self.accepts_args(at, args) {
                        from += run;
                    }
                }
                run /= 2;
            }
            for which in 1..self.best.steps[at].args.len() {
                let mut args = self.best.steps[at].args.clone();
                if args[which].len() > 8 {
                    args[which].truncate(1);
                    self.accepts_args(at, args);
                }
            }
        }
    }

    fn accepts_args(&mut self, at: usize, args: Vec<Vec<u8>>) -> bool {
        if family::is_open(&args, true) {
            return false;
        }
        let mut candidate = self.best.clone();
        candidate.steps[at].args = args;
        self.accepts(candidate)
    }
}

/// Groups of steps which are tied together.
fn groups(steps: &[Step]) -> Vec<Vec<Step>> {
    let mut groups: Vec<Vec<Step>> = Vec::new();
    for step in steps {
        match groups.last_mut() {
            Some(group) if step.tied => group.push(step.clone()),
            _ => groups.push(vec![step.clone()]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(n: u8, tied: bool) -> Step {
        Step { conn: 1, args: vec![vec![n]], settle: false, tied }
    }

    #[test]
    fn unneeded_commands_are_removed() {
        let steps: Vec<Step> = (0..60).map(|n| step(n, false)).collect();
        let sequence = Sequence { proto: 3, delivery: Delivery::Pipelined, steps };
        let needed = [step(3, false), step(41, false), step(42, false)];
        let small =
            shrink(&sequence, |candidate| needed.iter().all(|one| candidate.steps.contains(one)));
        assert_eq!(small.steps, needed);
        assert_eq!((small.delivery, small.proto), (Delivery::OneByOne, 2));
    }

    #[test]
    fn tied_steps_are_removed_together() {
        let steps: Vec<Step> = (0..60).map(|n| step(n, n % 3 != 0)).collect();
        let sequence = Sequence { proto: 2, delivery: Delivery::OneByOne, steps };
        let small = shrink(&sequence, |candidate| candidate.steps.contains(&step(32, true)));
        assert_eq!(small.steps, [step(30, false), step(31, true), step(32, true)]);
    }

    #[test]
    fn unneeded_arguments_are_removed() {
        let args = ["SADD", "k", "a", "b", "a rather long one", "d", "e"];
        let args = args.iter().map(|arg| arg.as_bytes().to_vec()).collect();
        let steps = vec![Step { conn: 2, args, settle: false, tied: false }];
        let sequence = Sequence { proto: 2, delivery: Delivery::OneByOne, steps };
        let small = shrink(&sequence, |candidate| {
            candidate.steps.iter().any(|step| step.args.contains(&b"d".to_vec()))
        });
        assert_eq!(small.steps.len(), 1);
        assert_eq!(small.steps[0].args, [b"SADD".to_vec(), b"d".to_vec()]);
        assert_eq!(small.steps[0].conn, 1);
    }
}
