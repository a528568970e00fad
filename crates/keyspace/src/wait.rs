//! Blocked commands (BLPOP, BLMOVE, XREAD BLOCK): sessions that wait for keys.
//!
//! ```text
//! slot of the key (cold parts)
//!   Waiters: (hash, db) -> Queue { key, tickets: by id, so the longest wait is first }
//!                                            |
//!                                            v
//!                            Ticket { keys, destination, claimed }   shared by the queues of its
//!                                            ^                       keys and by its session
//!                                            |
//!   a push, committed, under the same locks    next_ready -> first_ticket_from -> claim, serve
//!   timeout, CLIENT UNBLOCK, disconnect        claim -> answer, remove_ticket
//! ```
//!
//! A blocked command adds its ticket to the queues of its keys while it holds their slots, so it
//! misses no push. All who may answer it race for the ticket with one compare-and-swap
//! ([`Ticket::claim`]), and the winner answers. A ticket that moves what it takes to another key
//! (BLMOVE) has a *destination*: a command that may serve it locks that key's slot in advance
//! ([`crate::Access::lock_to_fill`]).

use crate::guard::{Guard, Mode};
use crate::keyspace::Key;
use crate::stats::add;
use base::sync::Arc;
use base::sync::atomic::{AtomicBool, Ordering};
use base::{DbIndex, SlotId};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use value::Kind;

/// A list of keys in one allocation, so that a million of them are freed at once.
#[derive(Debug, Default)]
pub struct KeyList {
    bytes: Box<[u8]>,
    /// Where each key ends.
    ends: Box<[usize]>,
}

impl KeyList {
    /// Number of keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The key at an index.
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }

    /// All keys in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map_while(|at| self.get(at))
    }
}

impl<'a> FromIterator<&'a [u8]> for KeyList {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(keys: I) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for key in keys {
            bytes.extend_from_slice(key);
            ends.push(bytes.len());
        }
        Self { bytes: bytes.into(), ends: ends.into() }
    }
}

/// A blocked command, shared by the queues of its keys and its session.
pub struct Ticket {
    /// Never reused: tickets are served in this order.
    pub id: u64,
    /// The kind of value that it waits for.
    pub kind: Kind,
    /// The logical database of its keys.
    pub db: DbIndex,
    /// Its keys, in the order of the command.
    pub keys: KeyList,
    /// The key to which it moves what it takes (BLMOVE).
    pub destination: Option<Box<[u8]>>,
    /// It is also answered when one of its keys is removed (XREADGROUP).
    pub ends_without_key: bool,
    /// What the server needs to execute it.
    pub request: Box<dyn Any + Send + Sync>,
    claimed: AtomicBool,
}

impl Ticket {
    /// A ticket that nobody has claimed.
    pub fn new(
        id: u64,
        kind: Kind,
        db: DbIndex,
        keys: KeyList,
        destination: Option<Box<[u8]>>,
        ends_without_key: bool,
        request: Box<dyn Any + Send + Sync>,
    ) -> Arc<Self> {
        let claimed = AtomicBool::new(false);
        Arc::new(Self { id, kind, db, keys, destination, ends_without_key, request, claimed })
    }

    /// Claims the right to answer this command; true for one caller only.
    pub fn claim(&self) -> bool {
        self.claimed.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// True if somebody has claimed it.
    pub fn is_claimed(&self) -> bool {
        self.claimed.load(Ordering::Acquire)
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// A key that was changed while a ticket waits for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ready {
    /// Its logical database.
    pub db: DbIndex,
    /// The key.
    pub key: Box<[u8]>,
}

/// Up to this number, keys are compared one by one.
const READY_FEW: usize = 8;

/// Ready keys in the order of their changes, each once.
#[derive(Default)]
pub(crate) struct ReadyKeys {
    queue: VecDeque<Ready>,
    /// The same keys, for searching; empty as long as they are few.
    known: BTreeSet<Ready>,
}

impl ReadyKeys {
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Adds a key unless it is in the list.
    pub fn push(&mut self, ready: Ready) {
        if self.known.is_empty() && self.queue.len() < READY_FEW {
            if !self.queue.contains(&ready) {
                self.queue.push_back(ready);
            }
            return;
        }
        if self.known.is_empty() {
            self.known.extend(self.queue.iter().cloned());
        }
        if self.known.insert(ready.clone()) {
            self.queue.push_back(ready);
        }
    }

    /// Removes the first key and returns it.
    pub fn pop(&mut self) -> Option<Ready> {
        let ready = self.queue.pop_front()?;
        self.known.remove(&ready);
        Some(ready)
    }

    /// Removes all keys and returns them.
    pub fn take(&mut self) -> VecDeque<Ready> {
        self.known.clear();
        std::mem::take(&mut self.queue)
    }
}

/// The tickets that wait for one key; the longest wait is first.
#[derive(Default)]
struct Queue {
    key: Box<[u8]>,
    tickets: BTreeMap<u64, Arc<Ticket>>,
    /// The destinations of these tickets, and how many tickets have each.
    destinations: BTreeMap<Box<[u8]>, usize>,
    /// Tickets that are also answered when the key is removed.
    ending: usize,
}

impl Queue {
    fn add(&mut self, ticket: &Arc<Ticket>) -> bool {
        let is_new = self.tickets.insert(ticket.id, Arc::clone(ticket)).is_none();
        if let (true, Some(destination)) = (is_new, &ticket.destination) {
            *self.destinations.entry(destination.clone()).or_default() += 1;
        }
        self.ending += usize::from(is_new && ticket.ends_without_key);
        is_new
    }

    fn remove(&mut self, id: u64) -> Option<Arc<Ticket>> {
        let ticket = self.tickets.remove(&id)?;
        self.ending -= usize::from(ticket.ends_without_key);
        if let Some(destination) = &ticket.destination {
            let count = self.destinations.get_mut(destination).expect("counted when it was added");
            *count -= 1;
            if *count == 0 {
                self.destinations.remove(destination);
            }
        }
        Some(ticket)
    }
}

/// The tickets of one slot, by hash and logical database of the key.
#[derive(Default)]
pub(crate) struct Waiters {
    by_key: BTreeMap<(u64, DbIndex), Vec<Queue>>,
    /// Tickets; one that waits for two keys counts twice.
    count: usize,
    /// Tickets with a destination.
    movers: usize,
    /// Keys with tickets.
    keys: usize,
    /// Those with a ticket that is also answered when the key is removed.
    ending_keys: usize,
}

impl Waiters {
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if a ticket has a destination.
    pub fn has_movers(&self) -> bool {
        self.movers > 0
    }

    /// The destinations of the tickets that wait for a key, in any database: the pushing command
    /// may choose the database while it runs (`COPY ... DB`, SELECT within EXEC). Each once per
    /// database. Those of claimed tickets may be among them.
    pub fn destinations(&self, key: &Key<'_>) -> impl Iterator<Item = &[u8]> {
        self.by_key
            .range((key.hash, DbIndex(0))..=(key.hash, DbIndex(u32::MAX)))
            .flat_map(|(_, queues)| queues)
            .filter(|queue| *queue.key == *key.bytes)
            .flat_map(|queue| queue.destinations.keys().map(|key| &**key))
    }

    fn queue(&self, db: DbIndex, hash: u64, key: &[u8]) -> Option<&Queue> {
        self.by_key.get(&(hash, db))?.iter().find(|queue| *queue.key == *key)
    }

    /// True if tickets wait for this key.
    pub fn has(&self, db: DbIndex, hash: u64, key: &[u8]) -> bool {
        self.count > 0 && self.queue(db, hash, key).is_some()
    }

    /// Every key of a database for which tickets wait.
    pub fn of_db(&self, db: DbIndex) -> impl Iterator<Item = (&[u8], u64)> {
        self.by_key
            .iter()
            .filter(move |((_, of), _)| *of == db)
            .flat_map(|((hash, _), queues)| queues.iter().map(|queue| (&*queue.key, *hash)))
    }

    fn add(&mut self, db: DbIndex, key: &Key<'_>, ticket: &Arc<Ticket>) {
        let queues = self.by_key.entry((key.hash, db)).or_default();
        let at = queues.iter().position(|queue| *queue.key == *key.bytes).unwrap_or_else(|| {
            queues.push(Queue { key: key.bytes.into(), ..Queue::default() });
            self.keys += 1;
            queues.len() - 1
        });
        let had_ending = queues[at].ending > 0;
        // A command may name a key twice.
        if queues[at].add(ticket) {
            self.ending_keys += usize::from(!had_ending && queues[at].ending > 0);
            self.count += 1;
            self.movers += usize::from(ticket.destination.is_some());
        }
    }

    fn remove(&mut self, db: DbIndex, key: &Key<'_>, id: u64) {
        let Some(queues) = self.by_key.get_mut(&(key.hash, db)) else { return };
        let Some(at) = queues.iter().position(|queue| *queue.key == *key.bytes) else { return };
        let had_ending = queues[at].ending > 0;
        if let Some(ticket) = queues[at].remove(id) {
            self.ending_keys -= usize::from(had_ending && queues[at].ending == 0);
            self.count -= 1;
            self.movers -= usize::from(ticket.destination.is_some());
        }
        if queues[at].tickets.is_empty() {
            queues.swap_remove(at);
            self.keys -= 1;
        }
        if queues.is_empty() {
            self.by_key.remove(&(key.hash, db));
        }
        if self.by_key.is_empty() {
            // An empty map keeps a node: half a kilobyte in each slot that ever had a ticket.
            self.by_key = BTreeMap::new();
        }
    }

    /// The first unclaimed ticket that waits for this kind; claimed ones before it are dropped.
    fn first(&mut self, db: DbIndex, key: &Key<'_>, kind: Kind) -> Option<Arc<Ticket>> {
        self.first_from(db, key, 0, |ticket| ticket.kind == kind)
    }

    /// The first unclaimed ticket from number `from` on for which `f` is true; claimed ones before
    /// it are dropped.
    fn first_from(
        &mut self,
        db: DbIndex,
        key: &Key<'_>,
        from: u64,
        f: impl Fn(&Ticket) -> bool,
    ) -> Option<Arc<Ticket>> {
        loop {
            let queue = self.queue(db, key.hash, key.bytes)?;
            let mut tickets = queue.tickets.range(from..).map(|(_, ticket)| ticket);
            let ticket = tickets.find(|t| f(t) || t.is_claimed())?;
            if !ticket.is_claimed() {
                return Some(Arc::clone(ticket));
            }
            let id = ticket.id;
            self.remove(db, key, id);
        }
    }
}

impl Guard<'_> {
    /// Adds a ticket to the queues of its keys, whose slots the guard covers.
    pub fn add_ticket(&mut self, ticket: &Arc<Ticket>) {
        for bytes in ticket.keys.iter() {
            let key = self.keyspace().key(bytes);
            self.with_waiters(key.slot, |waiters| waiters.add(ticket.db, &key, ticket));
        }
    }

    /// Removes a ticket from the queue of one of its keys, whose slot the guard covers; harmless if
    /// it is not there.
    pub fn remove_ticket(&mut self, ticket: &Ticket, bytes: &[u8]) {
        let key = self.keyspace().key(bytes);
        self.with_waiters(key.slot, |waiters| waiters.remove(ticket.db, &key, ticket.id));
    }

    /// Runs `f` on the tickets of a slot, and updates the counters.
    fn with_waiters<R>(&mut self, slot: SlotId, f: impl FnOnce(&mut Waiters) -> R) -> R {
        self.owned(slot).with_parts(|slot, parts| {
            let (keys, ending) = (parts.waiters.keys, parts.waiters.ending_keys);
            let result = f(&mut parts.waiters);
            let stats = self.ks.stats(self.w.index);
            add(&stats.waited, parts.waiters.keys as i64 - keys as i64);
            add(&stats.waited_ending, parts.waiters.ending_keys as i64 - ending as i64);
            slot.count_watches(parts);
            result
        })
    }

    /// True if a committed change concerns a key for which tickets wait.
    #[inline(always)]
    pub fn has_ready(&self) -> bool {
        !self.w.ready.is_empty()
    }

    /// The next such key, in the order of the changes; it leaves the list.
    pub fn next_ready(&mut self) -> Option<Ready> {
        self.w.ready.pop()
    }

    /// Adds a key whose tickets are to be served; the guard covers its slot.
    pub fn push_ready(&mut self, ready: Ready) {
        self.w.ready.push(ready);
    }

    /// The first unclaimed ticket for a key that its present value can serve. The guard covers the
    /// key's slot.
    pub fn first_ticket(&mut self, ready: &Ready) -> Option<Arc<Ticket>> {
        let key = self.keyspace().key(&ready.key);
        let kind = self.peek(ready.db, &key)?.kind();
        if !self.owned(key.slot).is_watched() {
            return None;
        }
        self.with_waiters(key.slot, |waiters| waiters.first(ready.db, &key, kind))
    }

    /// As [`Guard::first_ticket`], from ticket number `from` on. A ticket that waits for a stream
    /// is returned whatever the key holds now, even nothing: some are answered when it is gone.
    pub fn first_ticket_from(&mut self, ready: &Ready, from: u64) -> Option<Arc<Ticket>> {
        let key = self.keyspace().key(&ready.key);
        let kind = self.peek(ready.db, &key).map(|entry| entry.kind());
        if !self.owned(key.slot).is_watched() {
            return None;
        }
        let takes = |ticket: &Ticket| ticket.kind == Kind::Stream || kind == Some(ticket.kind);
        self.with_waiters(key.slot, |waiters| waiters.first_from(ready.db, &key, from, takes))
    }

    /// True if the guard covers a key and it holds a value of this kind.
    pub fn holds(&mut self, db: DbIndex, bytes: &[u8], kind: Kind) -> bool {
        let key = self.keyspace().key(bytes);
        self.covers(key.slot) && self.peek(db, &key).is_some_and(|entry| entry.kind() == kind)
    }

    /// True if the guard covers a slot.
    pub fn covers(&self, slot: SlotId) -> bool {
        self.mode() == Mode::World || self.ks.slot(slot).lock.is_held_by(self.w.me)
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyList, READY_FEW, Ready, ReadyKeys};
    use base::DbIndex;

    #[test]
    fn a_key_list_returns_its_keys_in_order() {
        let keys: KeyList = [&b"one"[..], b"", b"three"].into_iter().collect();
        assert_eq!(keys.iter().collect::<Vec<_>>(), [&b"one"[..], b"", b"three"]);
        assert_eq!((keys.len(), keys.get(2), keys.get(3)), (3, Some(&b"three"[..]), None));
        assert!(KeyList::default().is_empty() && KeyList::default().get(0).is_none());
    }

    /// Compared with a list which is searched linearly.
    #[test]
    fn ready_keys_are_returned_once_and_in_order() {
        let mut prng = base::prng::Prng::new(7);
        let (mut keys, mut list) = (ReadyKeys::default(), Vec::new());
        for round in 0..20_000 {
            let grows = (round / 100) % 2 == 0;
            if prng.below(3) < if grows { 2 } else { 1 } {
                let key = prng.below(4 * READY_FEW as u64).to_string();
                let ready = Ready { db: DbIndex(0), key: key.as_bytes().into() };
                if !list.contains(&ready) {
                    list.push(ready.clone());
                }
                keys.push(ready);
            } else {
                let first = (!list.is_empty()).then(|| list.remove(0));
                assert_eq!(keys.pop(), first);
            }
            assert_eq!(keys.is_empty(), list.is_empty());
            assert!(keys.known.is_empty() || keys.known.len() == keys.queue.len());
        }
        assert_eq!(keys.take(), list);
        assert!(keys.pop().is_none());
    }

    /// With a linear search per key this would take minutes.
    #[test]
    fn many_ready_keys_are_queued_without_a_linear_search() {
        let mut keys = ReadyKeys::default();
        let ready = |n: u32| Ready { db: DbIndex(0), key: n.to_be_bytes()[..].into() };
        (0..500_000).for_each(|n| keys.push(ready(n)));
        (0..500_000).for_each(|n| assert_eq!(keys.pop(), Some(ready(n))));
        assert!(keys.pop().is_none());
    }
}

/// Checked as in `crate::models`. Finds a ticket which is answered twice, an element which two
/// tickets have taken, or a ticket which is missed although an element is available.
#[cfg(all(test, shuttle))]
mod models {
    use super::{Ticket, Waiters};
    use crate::keyspace::Key;
    use crate::models::{check_often, spawn_all};
    use base::sync::atomic::{AtomicU32, Ordering};
    use base::sync::{Arc, Mutex};
    use base::{DbIndex, SlotId};
    use value::Kind;

    const ITERATIONS: usize = 20_000;
    const KEY: Key<'static> = Key { bytes: b"k", hash: 7, slot: SlotId::new(7) };

    /// The state guarded by the slot's lock: the waiting tickets and the available elements.
    #[derive(Default)]
    struct Place {
        waiters: Waiters,
        elements: Vec<u32>,
    }

    struct Model {
        place: Mutex<Place>,
        tickets: [Arc<Ticket>; 2],
        /// Answers by ticket.
        answers: [AtomicU32; 2],
        taken: Mutex<Vec<(u64, u32)>>,
    }

    impl Model {
        fn new() -> Self {
            let ticket = |id| {
                Ticket::new(
                    id,
                    Kind::List,
                    DbIndex(0),
                    [KEY.bytes].into_iter().collect(),
                    None,
                    false,
                    Box::new(()),
                )
            };
            let tickets = [ticket(0), ticket(1)];
            let mut place = Place::default();
            tickets.iter().for_each(|t| place.waiters.add(DbIndex(0), &KEY, t));
            let (place, taken) = (Mutex::new(place), Mutex::default());
            Self { place, tickets, answers: [AtomicU32::new(0), AtomicU32::new(0)], taken }
        }

        fn answer(&self, id: u64) {
            self.answers[id as usize].fetch_add(1, Ordering::SeqCst);
        }

        /// A push, which serves waiters under the same lock.
        fn push(&self, element: u32) {
            let mut place = self.place.lock().expect("nobody panics under it");
            place.elements.push(element);
            while !place.elements.is_empty()
                && let Some(ticket) = place.waiters.first(DbIndex(0), &KEY, Kind::List)
            {
                place.waiters.remove(DbIndex(0), &KEY, ticket.id);
                if ticket.claim() {
                    let element = place.elements.remove(0);
                    self.taken.lock().expect("nobody panics under it").push((ticket.id, element));
                    self.answer(ticket.id);
                }
            }
        }

        /// The timeout, or CLIENT UNBLOCK: answered without a lock. The ticket leaves the queue
        /// afterwards.
        fn give_up(&self, at: usize) {
            let ticket = &self.tickets[at];
            if ticket.claim() {
                self.answer(ticket.id);
            }
            let mut place = self.place.lock().expect("nobody panics under it");
            place.waiters.remove(DbIndex(0), &KEY, ticket.id);
        }
    }

    #[test]
    fn pushers_a_timeout_and_an_unblock_race_for_two_tickets() {
        let race = || {
            let model = Arc::new(Model::new());
            let shared = Arc::clone(&model);
            spawn_all(4, move |i| match i {
                0 | 1 => shared.push(i as u32),
                // Both end the first ticket. The second has no timeout.
                _ => shared.give_up(0),
            });
            let answers = model.answers.each_ref().map(|n| n.load(Ordering::SeqCst));
            assert_eq!(answers, [1, 1], "each is answered once");
            let taken = model.taken.lock().expect("nobody panics under it");
            let place = model.place.lock().expect("nobody panics under it");
            let mut elements: Vec<u32> = taken.iter().map(|(_, element)| *element).collect();
            elements.extend(&place.elements);
            elements.sort_unstable();
            assert_eq!(elements, [0, 1], "each element is somewhere, once");
            assert!(taken.is_sorted_by_key(|(id, _)| *id), "the longest wait first: {taken:?}");
            assert_eq!(place.waiters.len(), 0, "nobody is left in the queue");
        };
        check_often(ITERATIONS, race);
    }
}
