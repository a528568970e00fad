//! What clients asked and what they were answered, and whether any correct server could have
//! answered so.

pub mod monitored;
pub mod queues;
pub mod registers;
pub mod saves;
pub mod streams;
pub mod transactions;

use std::collections::BTreeMap;

/// All records of a run.
#[derive(Debug, Default)]
pub struct Books {
    /// Registers and counters.
    pub registers: registers::Registers,
    /// Transactions of appends and reads.
    pub transactions: transactions::Transactions,
    /// Elements which are pushed and popped.
    pub queues: queues::Queues,
    /// Entries of streams.
    pub streams: streams::Streams,
    /// What was saved, and when servers died.
    pub saves: saves::Saves,
    /// Commands, and the lines about them for MONITOR.
    pub monitored: monitored::Monitored,
    /// Connections that CLIENT KILL has ended, by address, and the tick of its reply.
    pub killed: BTreeMap<String, u64>,
    last: u64,
}

impl Books {
    /// A number which nobody else gets.
    pub fn unique(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// What cannot be true, if there is anything.
    pub fn check(&self) -> Result<(), String> {
        self.registers.check()?;
        self.transactions.check()?;
        self.monitored.check()?;
        self.queues.check()
    }
}
