//! The history of each register. A register is a number under a key, in a field, or as a score.

use sheafdb_tests::linear::{Did, OPS_MAX as CHECKED_MAX, Op, verdict};
use std::collections::BTreeMap;

/// Registers in use at a time.
pub const REGISTERS: usize = 6;
/// Operations of a history. The rest of the bound of the checker is for those under way.
const OPS_MAX: u32 = 64;
/// Lost operations of a history: each of them doubles what the checker has to try.
const LOST_MAX: u32 = 5;

/// States that the checker tries for one history.
const STATES_MAX: usize = 100_000;

/// A register: its number, and how often it was replaced by a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// Below [`REGISTERS`].
    pub register: usize,
    /// A register whose history is full is replaced.
    pub generation: u32,
}

#[derive(Debug, Default)]
struct History {
    ops: Vec<Op>,
    asked: u32,
    lost: u32,
}

/// All histories.
#[derive(Debug, Default)]
pub struct Registers {
    generations: [u32; REGISTERS],
    /// The first generations of each server but the first.
    starts: Vec<[u32; REGISTERS]>,
    histories: BTreeMap<Id, History>,
}

impl Registers {
    /// The register of this number, for one more operation.
    pub fn take(&mut self, register: usize) -> Id {
        loop {
            let id = Id { register, generation: self.generations[register] };
            let history = self.histories.entry(id).or_default();
            if history.asked < OPS_MAX && history.lost < LOST_MAX {
                history.asked += 1;
                return id;
            }
            self.generations[register] += 1;
        }
    }

    /// The register of this number as it is now, for somebody who only looks.
    pub fn current(&self, register: usize) -> Id {
        Id { register, generation: self.generations[register] }
    }

    /// Adds what an operation did.
    pub fn add(&mut self, id: Id, op: Op) {
        let history = self.histories.entry(id).or_default();
        history.ops.push(op);
        let is_lost = matches!(op.did, Did::LostSet(_) | Did::LostIncr | Did::LostDel);
        history.lost += u32::from(is_lost);
    }

    /// All registers begin anew: the server has lost them.
    pub fn restart(&mut self) {
        for generation in &mut self.generations {
            *generation += 1;
        }
        self.starts.push(self.generations);
    }

    /// The registers that clients of the server with this number used.
    pub fn of_epoch(&self, epoch: u32) -> Vec<Id> {
        let epoch = epoch as usize;
        let from = if epoch == 0 { [0; REGISTERS] } else { self.starts[epoch - 1] };
        let to = self.starts.get(epoch).copied().unwrap_or([u32::MAX; REGISTERS]);
        let is_of = |id: &&Id| (from[id.register]..to[id.register]).contains(&id.generation);
        self.histories.keys().filter(is_of).copied().collect()
    }

    /// Whether each history is linearizable.
    pub fn check(&self) -> Result<(), String> {
        for (id, history) in &self.histories {
            if Self::is_checked(history) && verdict(&history.ops, STATES_MAX) == Some(false) {
                return Err(format!(
                    "register {}.{} is not linearizable:\n{}",
                    id.register,
                    id.generation,
                    shown(&history.ops)
                ));
            }
        }
        Ok(())
    }

    /// A kill of the server with many requests under way may leave more than can be checked.
    fn is_checked(history: &History) -> bool {
        history.ops.len() <= CHECKED_MAX
    }

    /// Histories which are too long, or have too many lost operations, for an answer.
    pub fn undecided(&self) -> Vec<Id> {
        let is_open = |h: &History| !Self::is_checked(h) || verdict(&h.ops, STATES_MAX).is_none();
        self.histories.iter().filter(|(_, h)| is_open(h)).map(|(id, _)| *id).collect()
    }

    /// Operations of all histories.
    pub fn len(&self) -> usize {
        self.histories.values().map(|history| history.ops.len()).sum()
    }

    /// True if nothing was done.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn shown(ops: &[Op]) -> String {
    let mut sorted: Vec<&Op> = ops.iter().collect();
    sorted.sort_by_key(|op| op.ret);
    let line = |op: &Op| {
        let ret = if op.ret == u64::MAX { "never".to_owned() } else { op.ret.to_string() };
        format!("  {:>6} .. {ret:>6}  {:?}\n", op.call, op.did)
    };
    sorted.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_history_is_replaced_and_a_wrong_one_is_told() {
        let mut registers = Registers::default();
        let first = registers.take(0);
        for _ in 1..OPS_MAX {
            assert_eq!(registers.take(0), first);
        }
        assert_eq!(registers.take(0).generation, 1);
        let op = |did, call, ret| Op { did, call, ret, by: call };
        registers.add(first, op(Did::Incr(1), 1, 2));
        assert_eq!(registers.check(), Ok(()));
        registers.add(first, op(Did::Get(Some(2)), 3, 4));
        assert!(registers.check().expect_err("nobody wrote 2").contains("register 0.0"));
    }
}
