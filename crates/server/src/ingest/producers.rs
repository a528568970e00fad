//! Producers of ingest protocol 2: for each the highest message number that is held, whichever
//! worker has its connection.
//!
//! A producer is looked up once, when its connection says Hello. The connection then takes the
//! producer's lock for each block of messages: deciding which are new, writing these into the sink
//! and raising the highest number are one step under it. A newer connection takes the producer over
//! under the same lock. So a block is applied before the takeover, and the newer connection knows
//! its number, or it is not applied at all.
//!
//! Whoever saves the data needs the numbers which belong to it. So each number stands a second time
//! beside the lock ([`Producer::in_key`]), and is raised within the section in which the block is
//! written: under World, no block is written whose number is not raised, and none is raised whose
//! block is not written.

use crate::ingest::marks::{Mark, Marks};
use base::sync::atomic::Ordering::{Acquire, Relaxed};
use base::sync::atomic::{AtomicU64, AtomicUsize};
use base::sync::{Arc, Mutex, MutexGuard};
use base::{MonoNs, SeqNo};
use driver::ConnId;
use ingest::Target;
use ingest::v2::{Fault, Held};
use std::collections::{BTreeMap, HashMap};

/// How many producers one call of [`Producers::forget`] drops at most.
pub const FORGET_MAX: usize = 64;

/// What a producer is remembered by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// Its own name.
    pub producer: Box<[u8]>,
    /// Where its messages go.
    pub target: Target,
    /// The key's database.
    pub db: u32,
    /// The key.
    pub key: Box<[u8]>,
}

impl Name {
    /// Bytes held for a producer of this name: its texts stand in it and in the table that finds
    /// it.
    fn memory(&self) -> usize {
        2 * (self.producer.len() + self.key.len()) + size_of::<Producer>() + size_of::<Self>()
    }
}

/// The connection that a producer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The worker that has it.
    pub worker: usize,
    /// The connection at that worker's driver.
    pub conn: ConnId,
    /// Raised with every connection of this producer.
    pub epoch: u64,
}

/// What changes of a producer.
#[derive(Debug, Default)]
pub struct State {
    /// The highest number that is held.
    pub held: Held,
    /// The sequence number which acknowledgements of it wait for.
    pub seen: SeqNo,
    /// Blocks whose records were not durable when this was last asked.
    marks: Marks,
    /// Everything up to here waits for no mark.
    settled: u64,
    /// What was durable when the marks were compared with it.
    compared: Option<u64>,
    /// Its connection.
    owner: Option<Owner>,
    /// Connections so far.
    epoch: u64,
    /// When its last connection ended: its place among those that may be forgotten.
    left: Option<MonoNs>,
}

impl State {
    /// True while the connection of this epoch has not been taken over.
    #[inline]
    pub fn is_owned(&self, epoch: u64) -> bool {
        self.epoch == epoch
    }

    /// A block is written: everything up to `last` is held. `seq` is the number of its record, 0 if
    /// it has none.
    pub fn hold(&mut self, last: u64, seq: SeqNo) {
        if self.marks.is_empty() {
            self.settled = self.held.last_id();
        }
        self.held.hold(last);
        self.seen = self.seen.max(seq);
        if seq > SeqNo(0) {
            self.marks.push(Mark { seq: self.seen, id: self.held.last_id(), count: 0 });
        }
    }

    /// Up to which message everything is durable, if everything up to this number of the journal
    /// is; 0 without a journal that syncs.
    pub fn durable(&mut self, up_to: Option<u64>) -> u64 {
        let Some(up_to) = up_to else { return 0 };
        if self.compared.replace(up_to) != Some(up_to) {
            while let Some(mark) = self.marks.pop(up_to) {
                self.settled = mark.id;
            }
        }
        if self.marks.is_empty() { self.held.last_id() } else { self.settled }
    }
}

/// One producer.
#[derive(Debug)]
pub struct Producer {
    name: Name,
    number: u64,
    state: Mutex<State>,
    /// The highest number whose message is in the key, 0 for none. Raised within the section that
    /// writes it.
    in_key: AtomicU64,
}

impl Producer {
    /// Its state. Held while a block is applied: bounded work, and nothing that waits for another
    /// producer.
    #[inline]
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while a producer is held")
    }

    /// What it is remembered by.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The highest number whose message is in the key.
    pub fn in_key(&self) -> &AtomicU64 {
        &self.in_key
    }

    /// Its place among all producers.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// What Hello asks for.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The worker of the new connection.
    pub worker: usize,
    /// The connection.
    pub conn: ConnId,
    /// The producer must be known.
    pub resume: bool,
    /// Producers at most.
    pub most: usize,
    /// Forgotten after so long without a connection; `None` for never.
    pub forget_ns: Option<u64>,
    /// Everything up to this number of the journal is fsynced; `None` without one.
    pub fsynced: Option<u64>,
    /// Now.
    pub now: MonoNs,
}

/// A producer which a connection has claimed.
#[derive(Debug)]
pub struct Claimed {
    /// The producer.
    pub producer: Arc<Producer>,
    /// The connection's epoch.
    pub epoch: u64,
    /// The highest number held, 0 if none.
    pub last_id: u64,
    /// The highest number that is fsynced.
    pub durable: u64,
    /// The sequence number which Welcome waits for, because it shows `last_id`.
    pub seen: SeqNo,
    /// The connection which owned it until now.
    pub before: Option<Owner>,
}

/// All producers that are remembered.
#[derive(Debug, Default)]
pub struct Producers {
    table: Mutex<Table>,
    /// How many there are, for figures.
    known: AtomicUsize,
    /// Bytes held for them.
    bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct Table {
    known: HashMap<Name, Arc<Producer>>,
    /// Those without a connection, by when it ended.
    idle: BTreeMap<(MonoNs, u64), Arc<Producer>>,
    next_number: u64,
    /// Bytes held for all of them.
    bytes: usize,
}

impl Producers {
    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.known.load(Relaxed)
    }

    /// Bytes held for them.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    fn publish(&self, table: &Table) {
        self.known.store(table.known.len(), Relaxed);
        self.bytes.store(table.bytes, Relaxed);
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes a connection the owner of a producer. The caller closes the one that owned it before.
    ///
    /// # Errors
    /// [`Fault::UnknownProducer`] if it should be known, [`Fault::Limit`] if there is no room for a
    /// new one.
    pub fn claim(&self, name: Name, claim: &Claim) -> Result<Claimed, Fault> {
        let mut table = self.table.lock().expect("no panic while the table is held");
        table.forget(claim.now, claim.forget_ns, FORGET_MAX);
        let producer = match table.known.get(&name) {
            Some(producer) => producer.clone(),
            None if claim.resume => return Err(Fault::UnknownProducer),
            None if table.known.len() >= claim.most => return Err(Fault::Limit),
            None => table.add(name),
        };
        self.publish(&table);
        let mut state = producer.state();
        if let Some(left) = state.left.take() {
            table.idle.remove(&(left, producer.number));
        }
        state.epoch += 1;
        let epoch = state.epoch;
        let owner = Owner { worker: claim.worker, conn: claim.conn, epoch };
        let before = state.owner.replace(owner);
        let (last_id, seen) = (state.held.last_id(), state.seen);
        let durable = state.durable(claim.fsynced);
        drop(state);
        Ok(Claimed { producer, epoch, last_id, durable, seen, before })
    }

    /// The connection of this epoch has ended.
    pub fn leave(&self, producer: &Arc<Producer>, epoch: u64, now: MonoNs) {
        let mut table = self.table.lock().expect("no panic while the table is held");
        let mut state = producer.state();
        if state.is_owned(epoch) && state.owner.take().is_some() {
            state.left = Some(now);
            table.idle.insert((now, producer.number), producer.clone());
        }
    }

    /// Remembers producers which files have kept, as if their connections had just ended. Called
    /// before the first Hello.
    pub fn restore(&self, kept: Vec<(Name, u64)>, now: MonoNs) {
        let mut table = self.table.lock().expect("no panic while the table is held");
        for (name, number) in kept {
            let producer = match table.known.get(&name) {
                Some(producer) => producer.clone(),
                None => table.add(name),
            };
            let mut state = producer.state();
            state.held = Held { last: Some(number) };
            producer.in_key.store(number, Relaxed);
            if state.owner.is_none() && state.left.is_none() {
                state.left = Some(now);
                table.idle.insert((now, producer.number), producer.clone());
            }
        }
        self.publish(&table);
    }

    /// Those who have messages in a key, each with the highest number of these. Called under World:
    /// then this is what belongs to the data. The time is that of a walk over all producers.
    pub fn in_keys(&self) -> Vec<(Arc<Producer>, u64)> {
        let table = self.table.lock().expect("no panic while the table is held");
        let numbers =
            table.known.values().map(|producer| (producer, producer.in_key.load(Acquire)));
        numbers.filter(|(_, number)| *number > 0).map(|(p, number)| (p.clone(), number)).collect()
    }

    /// Forgets some of those whose time has come. True if there may be more.
    pub fn forget(&self, now: MonoNs, forget_ns: Option<u64>) -> bool {
        let mut table = self.table.lock().expect("no panic while the table is held");
        let all = table.forget(now, forget_ns, FORGET_MAX);
        self.publish(&table);
        !all
    }
}

impl Table {
    fn add(&mut self, name: Name) -> Arc<Producer> {
        let number = self.next_number;
        self.next_number += 1;
        let (state, in_key) = (Mutex::default(), AtomicU64::new(0));
        let producer = Arc::new(Producer { name: name.clone(), number, state, in_key });
        self.bytes += name.memory();
        self.known.insert(name, producer.clone());
        producer
    }

    /// False if `most` were not enough.
    fn forget(&mut self, now: MonoNs, forget_ns: Option<u64>, most: usize) -> bool {
        let Some(forget_ns) = forget_ns else { return true };
        for _ in 0..most {
            let Some(first) = self.idle.first_entry() else { return true };
            if first.key().0.plus(forget_ns) > now {
                return true;
            }
            let producer = first.remove();
            if self.known.remove(&producer.name).is_some() {
                self.bytes -= producer.name.memory();
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;
