//! Generates a sequence from a seed: about one family, accompanied by others, with transactions and
//! the mistakes which clients make.

use super::dice::{Args, Dice};
use super::family::{self, Family, Mix, has, is};
use super::sequence::{Delivery, Sequence, Step};
use crate::rng::Rng;
use std::collections::BTreeSet;

/// Steps of the longest sequence, not counting those that complete its last template.
const STEPS_MAX: usize = 60;

/// The sequence of this seed.
pub fn generate(seed: u64, mix: &Mix) -> Sequence {
    let mut rng = Rng::new(seed);
    let proto = rng.pick(&[2, 3]);
    let mut delivery = match rng.below(10) {
        0..5 => Delivery::OneByOne,
        5..8 => Delivery::Pipelined,
        _ => Delivery::Pieces(1 + rng.below(60)),
    };
    let mut alone = delivery != Delivery::OneByOne;
    let mut expiring = rng.chance(25);
    let mut conns = if alone { 1 } else { 1 + rng.below(3) };
    let count = 4 + rng.below(STEPS_MAX - 4);
    let leading = rng.pick(&leading_of(seed, mix));
    if leading.gathers {
        (delivery, alone, expiring) = (Delivery::Gathered, true, false);
        conns = 1 + rng.below(4);
    }
    let mut dice = Dice::new(rng);
    (dice.expiring, dice.waiting) = (expiring, !alone);
    let mut generator = Generator { dice, mix, leading, conns, steps: Vec::new() };
    while generator.steps.len() < count {
        let conn = generator.connection();
        if generator.dice.rng.chance(8) {
            generator.transaction(conn);
        } else {
            generator.template(conn);
        }
    }
    let mut steps = generator.steps;
    without_switches(&mut steps);
    Sequence { proto, delivery, steps }
}

/// Without CLIENT TRACKING in transactions. In Redis each command of EXEC is told at once to those
/// who track at that moment, here all of them to those who do at its end.
fn without_switches(steps: &mut Vec<Step>) {
    let mut in_multi = BTreeSet::new();
    steps.retain(|step| {
        if is(&step.args, "MULTI") {
            in_multi.insert(step.conn);
        } else if ["EXEC", "DISCARD", "RESET"].iter().any(|name| is(&step.args, name)) {
            in_multi.remove(&step.conn);
        }
        let switches = is(&step.args, "CLIENT") && has(&step.args, "TRACKING");
        !(switches && in_multi.contains(&step.conn))
    });
}

/// The families that a sequence of this seed may be about. One in eight is about a family with
/// sequences of its own.
fn leading_of(seed: u64, mix: &Mix) -> Vec<&'static Family> {
    let (gathering, others): (Vec<_>, Vec<_>) =
        mix.leading.iter().copied().partition(|family| family.gathers);
    let gathers = others.is_empty() || (!gathering.is_empty() && seed.is_multiple_of(8));
    if gathers { gathering } else { others }
}

struct Generator<'a> {
    dice: Dice,
    mix: &'a Mix,
    leading: &'static Family,
    conns: usize,
    steps: Vec<Step>,
}

impl Generator<'_> {
    fn connection(&mut self) -> u8 {
        1 + self.dice.rng.below(self.conns) as u8
    }

    /// The commands of one template, sometimes with a mistake.
    fn template(&mut self, conn: u8) {
        let named = |name| self.mix.all.iter().copied().find(|family| family.name == name);
        let pick_any = |dice: &mut Dice| {
            let others: Vec<_> =
                self.mix.all.iter().copied().filter(|family| !family.gathers).collect();
            dice.rng.pick(&others)
        };
        let drawn = match self.dice.rng.below(100) {
            66..84 | 88.. if self.leading.gathers => Some(self.leading),
            84..88 if self.leading.gathers => named("transactions"),
            0..66 => Some(self.leading),
            66..84 => named("generic"),
            84..88 => named("database"),
            88..90 => named("transactions"),
            _ => Some(pick_any(&mut self.dice)),
        };
        let family = drawn.unwrap_or(self.leading);
        // Values of other types mostly have their own keys.
        let own = family.name == self.leading.name || !family.leads || family.name == "generic";
        self.dice.foreign = if own { 8 } else { 85 };
        let commands = family.draw(&mut self.dice);
        let settle = self.dice.settle;
        let last = commands.len() - 1;
        for (at, args) in commands.into_iter().enumerate() {
            let fixed = last > 0 || family::is_brittle(&args);
            let args = if fixed { args } else { self.spoiled(args) };
            let settle = settle && at == last;
            self.steps.push(Step { conn, args, settle, tied: at > 0 });
        }
    }

    /// A whole transaction, often with a watch before it and another client's write in between.
    fn transaction(&mut self, conn: u8) {
        if self.dice.rng.chance(40) {
            let mut words = vec![b"WATCH".to_vec()];
            words.extend((0..=self.dice.rng.below(2)).map(|_| self.dice.key()));
            self.push(conn, words, false);
            for _ in 0..self.dice.rng.below(3) {
                let other = self.connection();
                self.template(other);
            }
        }
        self.push(conn, vec![b"MULTI".to_vec()], false);
        let first = self.steps.len();
        for _ in 0..self.dice.rng.below(6) {
            self.template(conn);
        }
        let mut settle = false;
        for step in &mut self.steps[first..] {
            settle |= std::mem::take(&mut step.settle);
        }
        if self.conns > 1 && self.dice.rng.chance(30) {
            let other = self.connection();
            if other != conn {
                self.template(other);
            }
        }
        let end = if self.dice.rng.chance(85) { "EXEC" } else { "DISCARD" };
        self.push(conn, vec![end.into()], settle);
    }

    fn push(&mut self, conn: u8, args: Args, settle: bool) {
        self.steps.push(Step { conn, args, settle, tied: false });
    }

    /// Sometimes adds a mistake which clients make.
    fn spoiled(&mut self, args: Args) -> Args {
        let dice = &mut self.dice;
        let mut bad = args.clone();
        let value = |dice: &mut Dice| {
            let mut one = Args::new();
            dice.word("$v", &mut one);
            one.remove(0)
        };
        // A mistake must not produce an expiry which passes while the sequence does not wait for
        // it.
        let timed = ["EXPIRE", "PEXPIRE", "SETEX", "PSETEX", "RESTORE"];
        let timed = timed.iter().any(|name| family::is(&bad, name))
            || family::has(&bad, "PX")
            || family::has(&bad, "EX");
        match dice.rng.below(100) {
            0..2 if bad.len() > 1 => {
                bad.pop();
            }
            2..6 if timed => {}
            2..4 => bad.push(value(dice)),
            4 if bad.len() > 2 => {
                let at = 1 + dice.rng.below(bad.len() - 1);
                bad[at] = value(dice);
            }
            5 if bad.len() > 2 => {
                let (a, b) = (dice.rng.below(bad.len() - 1), dice.rng.below(bad.len() - 1));
                bad.swap(1 + a, 1 + b);
            }
            6 if dice.rng.chance(30) => bad[0] = b"NOSUCHCOMMAND".to_vec(),
            7..20 => {
                for byte in &mut bad[0] {
                    if dice.rng.chance(50) {
                        *byte = byte.to_ascii_lowercase();
                    }
                }
            }
            _ => {}
        }
        if family::is_open(&bad, dice.expiring) { args } else { bad }
    }
}

#[cfg(test)]
mod tests {
    use super::super::family::{ENABLED, FAMILIES};
    use super::*;

    #[test]
    fn seeds_repeat_and_differ() {
        let mix = Mix::of(ENABLED);
        assert_eq!(generate(5, &mix), generate(5, &mix));
        assert_ne!(generate(5, &mix), generate(6, &mix));
    }

    #[test]
    fn pipelines_use_one_connection_and_never_wait() {
        let mix = Mix::of(ENABLED);
        for sequence in (0..300).map(|seed| generate(seed, &mix)) {
            let together = [Delivery::OneByOne, Delivery::Gathered];
            let alone = !together.contains(&sequence.delivery);
            assert!(sequence.steps.iter().all(|step| !alone || (step.conn == 1 && !step.settle)));
        }
    }

    /// Every command of every grammar is generated.
    #[test]
    fn every_command_is_made() {
        for family in FAMILIES {
            let mut missing = family.commands();
            let mut dice = Dice::new(Rng::new(1));
            for _ in 0..20_000 {
                if missing.is_empty() {
                    break;
                }
                for args in family.draw(&mut dice) {
                    let name = String::from_utf8_lossy(&args[0]).to_ascii_uppercase();
                    missing.remove(name.as_str());
                }
            }
            assert!(missing.is_empty(), "{}: {missing:?}", family.name);
        }
    }
}
