//! The histories of transactions, judged by the checker of `sheafdb_tests::serializable`.

use sheafdb_tests::serializable::{Element, Op, Txn, check, explain};
use std::collections::BTreeMap;

/// Transactions of a history.
const TXNS_MAX: u32 = 120;

/// All histories.
#[derive(Debug, Default)]
pub struct Transactions {
    round: u32,
    asked: u32,
    /// The first round of each server but the first.
    starts: Vec<u32>,
    rounds: BTreeMap<u32, Vec<Txn>>,
}

impl Transactions {
    /// The round of keys in which one more transaction runs.
    pub fn take(&mut self) -> u32 {
        self.asked += 1;
        if self.asked > TXNS_MAX {
            (self.round, self.asked) = (self.round + 1, 1);
        }
        self.round
    }

    /// Adds a transaction of a round.
    pub fn add(&mut self, round: u32, txn: Txn) {
        if !txn.ops.is_empty() {
            self.rounds.entry(round).or_default().push(txn);
        }
    }

    /// All keys begin anew: the server has lost them.
    pub fn restart(&mut self) {
        (self.round, self.asked) = (self.round + 1, 0);
        self.starts.push(self.round);
    }

    /// The rounds of the clients of the server with this number.
    pub fn of_epoch(&self, epoch: u32) -> Vec<u32> {
        let epoch = epoch as usize;
        let from = if epoch == 0 { 0 } else { self.starts[epoch - 1] };
        let to = self.starts.get(epoch).copied().unwrap_or(u32::MAX);
        self.rounds.range(from..to).map(|(round, _)| *round).collect()
    }

    /// Whether each history is strictly serializable.
    pub fn check(&self) -> Result<(), String> {
        for (round, history) in &self.rounds {
            let found = check(history);
            if !found.is_empty() {
                return Err(format!(
                    "transactions of round {round} are not strictly serializable:\n{}",
                    explain(history, &found)
                ));
            }
        }
        Ok(())
    }

    /// Transactions of all histories.
    pub fn len(&self) -> usize {
        self.rounds.values().map(Vec::len).sum()
    }

    /// True if there were none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The elements that an operation appends.
pub fn appended(op: &Op) -> Option<Element> {
    match op {
        Op::Append { element, .. } => Some(*element),
        Op::Read { .. } => None,
    }
}
