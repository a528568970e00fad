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
        let numbers = table.known.values().map(|producer| (producer, producer.in_key.load(Acquire)));
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
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn name(producer: &str) -> Name {
        Name { producer: producer.as_bytes().into(), target: Target::Null, db: 0, key: [].into() }
    }

    fn claim(index: u32, now: u64) -> Claim {
        let conn = ConnId { index, generation: 1 };
        let now = MonoNs(now);
        let forget_ns = Some(10 * S);
        Claim { worker: 0, conn, resume: false, most: 3, forget_ns, fsynced: None, now }
    }

    #[test]
    fn the_newest_connection_owns_the_producer_and_gets_its_last_id() {
        let all = Producers::default();
        let first = all.claim(name("a"), &claim(1, 0)).expect("room");
        assert_eq!((first.last_id, first.before), (0, None));
        first.producer.state().held.hold(7);
        let second = all.claim(name("a"), &claim(2, 0)).expect("known");
        assert_eq!(second.last_id, 7);
        assert_eq!(second.before.map(|o| (o.conn.index, o.epoch)), Some((1, first.epoch)));
        let state = first.producer.state();
        assert!(state.is_owned(second.epoch) && !state.is_owned(first.epoch));
        drop(state);
        // The older connection ends later. That changes nothing.
        all.leave(&first.producer, first.epoch, MonoNs(1));
        let third = all.claim(name("a"), &claim(3, 0)).expect("known");
        assert_eq!(third.before.map(|o| o.conn.index), Some(2));
        all.leave(&third.producer, third.epoch, MonoNs(1));
        assert_eq!(all.claim(name("a"), &claim(4, 2)).expect("known").before, None);
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn each_key_database_and_sink_has_its_own_last_id() {
        let all = Producers::default();
        let claim = Claim { most: 9, ..claim(1, 0) };
        let a = name("a");
        for name in [
            a.clone(),
            Name { db: 1, ..a.clone() },
            Name { target: Target::List, ..a.clone() },
            Name { key: [1].into(), ..a.clone() },
            name("b"),
        ] {
            let got = all.claim(name, &claim).expect("room");
            assert_eq!((got.last_id, got.before), (0, None));
            got.producer.state().held.hold(5);
        }
        assert_eq!(all.len(), 5);
    }

    #[test]
    fn the_limit_refuses_only_new_producers() {
        let all = Producers::default();
        for n in 0..3 {
            all.claim(name(&n.to_string()), &claim(n, 0)).expect("room");
        }
        assert_eq!(all.claim(name("3"), &claim(9, 0)).err(), Some(Fault::Limit));
        assert!(all.claim(name("2"), &claim(9, 0)).is_ok());
        let resume = Claim { resume: true, ..claim(9, 0) };
        assert_eq!(all.claim(name("3"), &resume).err(), Some(Fault::UnknownProducer));
        assert!(all.claim(name("1"), &resume).is_ok());
    }

    #[test]
    fn a_producer_without_a_connection_expires() {
        let all = Producers::default();
        let claimed: Vec<_> =
            (0..3).map(|n| all.claim(name(&n.to_string()), &claim(n, 0)).expect("room")).collect();
        all.leave(&claimed[0].producer, claimed[0].epoch, MonoNs(S));
        all.leave(&claimed[1].producer, claimed[1].epoch, MonoNs(2 * S));
        assert!(!all.forget(MonoNs(11 * S - 1), Some(10 * S)));
        assert_eq!(all.len(), 3);
        // A reconnect keeps the producer. Its expiry time restarts at the next disconnect.
        let back = all.claim(name("1"), &claim(5, 3 * S)).expect("known");
        all.leave(&back.producer, back.epoch, MonoNs(4 * S));
        assert!(!all.forget(MonoNs(13 * S), Some(10 * S)));
        assert_eq!(all.len(), 2);
        assert!(!all.forget(MonoNs(1_000 * S), None));
        assert_eq!(all.len(), 2, "never");
        all.claim(name("9"), &claim(6, 14 * S)).expect("the look makes room");
        assert_eq!(all.len(), 2, "2 has its connection still");
    }

    #[test]
    fn what_is_durable_follows_the_journal() {
        let mut state = State::default();
        assert_eq!(state.durable(Some(9)), 0);
        state.hold(5, SeqNo(0)); // before there was a journal: its base has it
        assert_eq!((state.durable(None), state.durable(Some(0))), (0, 5));
        state.hold(8, SeqNo(12));
        state.hold(9, SeqNo(14));
        assert_eq!(state.durable(Some(11)), 5);
        assert_eq!(state.durable(Some(12)), 8);
        assert_eq!(state.durable(None), 0, "there is no journal any more");
        assert_eq!(state.durable(Some(20)), 9);
        assert_eq!(state.seen, SeqNo(14));
    }

    #[test]
    fn restored_producers_are_known_and_expire() {
        let all = Producers::default();
        let of = |producer: &str| Name { target: Target::List, ..name(producer) };
        all.restore(vec![(of("a"), 7), (of("b"), 9)], MonoNs(S));
        assert_eq!(all.len(), 2);
        let resume = Claim { resume: true, fsynced: Some(0), ..claim(1, 2 * S) };
        let a = all.claim(of("a"), &resume).expect("known");
        assert_eq!((a.last_id, a.durable, a.seen), (7, 7, SeqNo(0)));
        assert!(!all.forget(MonoNs(11 * S), Some(10 * S)));
        assert_eq!(all.len(), 1, "b has not come back");
        all.claim(of("c"), &claim(2, 12 * S)).expect("room");
        let numbers: Vec<_> =
            all.in_keys().into_iter().map(|(p, n)| (p.name().producer.clone(), n)).collect();
        assert_eq!(numbers, [(b"a"[..].into(), 7)], "c has no message");
    }

    #[test]
    fn one_expiry_pass_removes_a_bounded_number() {
        let all = Producers::default();
        let most = Claim { most: 1_000, ..claim(1, 0) };
        for n in 0..=FORGET_MAX {
            let c = all.claim(name(&n.to_string()), &most).expect("room");
            all.leave(&c.producer, c.epoch, MonoNs(0));
        }
        assert!(all.forget(MonoNs(99 * S), Some(S)));
        assert_eq!(all.len(), 1);
        assert!(!all.forget(MonoNs(99 * S), Some(S)));
        assert!(all.is_empty());
    }
}
