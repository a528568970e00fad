//! What every worker can read about a client: one card per connection, in one registry.
//!
//! A card's hot fields are written by its own worker alone (relaxed stores to a line that nobody
//! else writes) and read by whoever renders CLIENT LIST. The registry is locked only when a
//! connection opens or closes and by CLIENT LIST and CLIENT KILL.
//!
//! A client may move to another worker. Its card says where it is: from the moment at which it
//! leaves that is the worker that it goes to, where it is at no connection before it has arrived.

use base::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use base::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, AtomicUsize};
use base::sync::{Arc, Mutex, MutexGuard};
use driver::ConnId;
use keyspace::Ticket;
use observe::Counter;
use std::collections::BTreeMap;

/// Bits of [`ClientCard::flags`], for CLIENT LIST's `flags=` field and for filters.
pub mod flag {
    /// In a transaction.
    pub const MULTI: u32 = 1;
    /// Will be closed once its replies have left.
    pub const CLOSE_AFTER_REPLY: u32 = 1 << 1;
    /// A watched key was changed.
    pub const DIRTY_EXEC: u32 = 1 << 2;
    /// To be closed as soon as possible.
    pub const CLOSE_ASAP: u32 = 1 << 3;
    /// Connected through a unix socket.
    pub const UNIX: u32 = 1 << 4;
    /// CLIENT NO-EVICT ON.
    pub const NO_EVICT: u32 = 1 << 5;
    /// CLIENT NO-TOUCH ON.
    pub const NO_TOUCH: u32 = 1 << 6;
    /// Waiting in a blocking operation or behind a long one.
    pub const BLOCKED: u32 = 1 << 7;
    /// In MONITOR.
    pub const MONITOR: u32 = 1 << 8;
    /// Blocked until a time.
    pub const TIMED: u32 = 1 << 9;
    /// CLIENT CAPA redirect.
    pub const CAN_REDIRECT: u32 = 1 << 10;
    /// CLIENT IMPORT-SOURCE ON.
    pub const IMPORT_SOURCE: u32 = 1 << 11;
    /// Has subscriptions.
    pub const PUBSUB: u32 = 1 << 12;
    /// CLIENT TRACKING ON.
    pub const TRACKING: u32 = 1 << 13;
    /// CLIENT TRACKING ON BCAST.
    pub const BROADCAST: u32 = 1 << 14;
    /// The client that is told of tracked keys instead was gone when it was to be told.
    pub const BROKEN_REDIRECTION: u32 = 1 << 15;
    /// It is told of what others track. (It stays at its worker.)
    pub const REDIRECTION_TARGET: u32 = 1 << 16;
    /// It is not connected any more.
    pub const GONE: u32 = 1 << 17;
}

/// Names and texts that change rarely, under the card's own lock.
#[derive(Clone, Debug, Default)]
pub struct CardText {
    /// CLIENT SETNAME.
    pub name: String,
    /// CLIENT SETINFO LIB-NAME.
    pub lib_name: String,
    /// CLIENT SETINFO LIB-VER.
    pub lib_ver: String,
}

/// Where a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The worker that owns its connection, or will.
    pub worker: usize,
    /// The connection at that worker.
    pub conn: ConnId,
}

impl Place {
    /// On the way to this worker.
    pub const fn on_the_way(worker: usize) -> Self {
        // No driver gives this index.
        Self { worker, conn: ConnId { index: u32::MAX, generation: 0 } }
    }
}

/// One client as others see it.
#[derive(Debug)]
pub struct ClientCard {
    /// CLIENT ID: never reused.
    pub id: u64,
    /// Where it is; changed by the worker that it leaves and by the one at which it arrives.
    pub(crate) place: Mutex<Place>,
    /// Remote address as CLIENT LIST prints it.
    pub addr: String,
    /// Local address as CLIENT LIST prints it.
    pub laddr: String,
    /// File descriptor, for CLIENT LIST.
    pub fd: i64,
    /// When it connected, Unix seconds.
    pub since_s: i64,
    /// Names, rarely changed.
    pub text: Mutex<CardText>,
    /// Last command seen, Unix seconds.
    pub last_s: AtomicI64,
    /// Index of the last command in the table, `u32::MAX` for none.
    pub last_command: AtomicU32,
    /// Selected database.
    pub db: AtomicU32,
    /// 2 or 3.
    pub proto: AtomicU32,
    /// Commands queued by MULTI, -1 outside.
    pub multi: AtomicI64,
    /// Keys watched.
    pub watching: AtomicU32,
    /// Channels, shard channels and patterns subscribed to.
    pub subscriptions: [AtomicU32; 3],
    /// What the client waits for in a blocking command.
    pub ticket: Mutex<Option<Arc<Ticket>>>,
    /// Bits of [`flag`].
    pub flags: AtomicU32,
    /// Bytes of input kept back.
    pub input_bytes: AtomicU64,
    /// Bytes held by a request that arrives in parts.
    pub argv_bytes: AtomicU64,
    /// Bytes held by a request that waits in the middle: for its keys, or for its next step.
    pub waiting_bytes: AtomicU64,
    /// Bytes held by watches.
    pub watch_bytes: AtomicU64,
    /// Bytes held by subscriptions.
    pub subscription_bytes: AtomicU64,
    /// Bytes of its prefixes in client-side caching.
    pub tracking_bytes: AtomicU64,
    /// The client that is told of tracked keys instead; 0 if none is, -1 without tracking.
    pub redirection: AtomicI64,
    /// The most bytes that it held of requests at a time.
    pub input_peak: AtomicU64,
    /// Bytes of replies not sent yet.
    pub output_bytes: AtomicU64,
    /// Bytes held by a queued transaction.
    pub multi_bytes: AtomicU64,
    /// Bytes received.
    pub net_in: Counter,
    /// Bytes sent.
    pub net_out: Counter,
    /// Commands executed.
    pub commands: Counter,
}

impl ClientCard {
    /// The card of a client which connected at `now_s` (Unix seconds) and has sent nothing. It has
    /// no addresses, no descriptor and no flags.
    pub fn new(id: u64, worker: u32, conn: ConnId, now_s: i64) -> Self {
        Self {
            id,
            place: Mutex::new(Place { worker: worker as usize, conn }),
            addr: String::new(),
            laddr: String::new(),
            fd: -1,
            since_s: now_s,
            text: Mutex::default(),
            last_s: AtomicI64::new(now_s),
            last_command: AtomicU32::new(u32::MAX),
            db: AtomicU32::new(0),
            proto: AtomicU32::new(2),
            multi: AtomicI64::new(-1),
            watching: AtomicU32::new(0),
            subscriptions: Default::default(),
            ticket: Mutex::default(),
            flags: AtomicU32::new(0),
            input_bytes: AtomicU64::new(0),
            argv_bytes: AtomicU64::new(0),
            waiting_bytes: AtomicU64::new(0),
            watch_bytes: AtomicU64::new(0),
            subscription_bytes: AtomicU64::new(0),
            tracking_bytes: AtomicU64::new(0),
            redirection: AtomicI64::new(-1),
            input_peak: AtomicU64::new(0),
            output_bytes: AtomicU64::new(0),
            multi_bytes: AtomicU64::new(0),
            net_in: Counter::default(),
            net_out: Counter::default(),
            commands: Counter::default(),
        }
    }

    /// Where the client is.
    pub fn place(&self) -> Place {
        *self.place.lock().expect("no panic while a card is held")
    }

    /// The client has left for this place, or has arrived there.
    pub fn set_place(&self, place: Place) {
        *self.place.lock().expect("no panic while a card is held") = place;
    }

    /// Sets or clears bits of [`flag`]. Any worker may: CLIENT KILL marks clients of others.
    pub fn set_flag(&self, bits: u32, on: bool) {
        if on {
            self.flags.fetch_or(bits, Relaxed);
        } else {
            self.flags.fetch_and(!bits, Relaxed);
        }
    }

    /// The card's texts, held for a moment.
    pub fn text(&self) -> MutexGuard<'_, CardText> {
        self.text.lock().expect("no panic while a card is held")
    }

    /// Raises the peak of bytes held by requests; only the owning worker calls this.
    pub fn raise_input_peak(&self) {
        let held = self.input_bytes.load(Relaxed) + self.argv_bytes.load(Relaxed);
        if held > self.input_peak.load(Relaxed) {
            self.input_peak.store(held, Relaxed);
        }
    }

    /// Bytes held for this client, beside those that each client takes anyway.
    pub fn held_bytes(&self) -> u64 {
        let held = [
            &self.input_bytes,
            &self.argv_bytes,
            &self.waiting_bytes,
            &self.output_bytes,
            &self.multi_bytes,
            &self.watch_bytes,
            &self.subscription_bytes,
            &self.tracking_bytes,
        ];
        held.iter().map(|bytes| bytes.load(Relaxed)).sum()
    }

    /// Marks the client as one to be closed. False if it was marked already.
    pub fn claim_close(&self) -> bool {
        self.flags.fetch_or(flag::CLOSE_ASAP, Relaxed) & flag::CLOSE_ASAP == 0
    }

    /// True if any of the bits is set.
    pub fn has_flag(&self, bits: u32) -> bool {
        self.flags.load(Relaxed) & bits != 0
    }
}

/// All connected clients by id.
#[derive(Debug, Default)]
pub struct Registry {
    cards: Mutex<BTreeMap<u64, Arc<ClientCard>>>,
    /// Clients that CLIENT KILL has chosen and whose workers have not stopped them yet.
    condemned: Mutex<Vec<Arc<ClientCard>>>,
    /// How many.
    condemned_count: AtomicUsize,
}

impl Registry {
    /// Adds a new client.
    pub fn insert(&self, card: Arc<ClientCard>) {
        self.cards.lock().expect("no panic while the registry is held").insert(card.id, card);
    }

    /// Removes a client.
    pub fn remove(&self, id: u64) {
        self.cards.lock().expect("no panic while the registry is held").remove(&id);
    }

    /// All clients in order of their ids.
    pub fn all(&self) -> Vec<Arc<ClientCard>> {
        self.cards.lock().expect("no panic while the registry is held").values().cloned().collect()
    }

    /// One client by id.
    pub fn get(&self, id: u64) -> Option<Arc<ClientCard>> {
        self.cards.lock().expect("no panic while the registry is held").get(&id).cloned()
    }

    /// CLIENT KILL: the client executes nothing more once its worker has seen this.
    pub fn condemn(&self, card: Arc<ClientCard>) {
        let mut condemned = self.condemned.lock().expect("no panic while the registry is held");
        condemned.push(card);
        self.condemned_count.store(condemned.len(), Release);
    }

    /// True if some client is to be stopped.
    pub fn has_condemned(&self) -> bool {
        self.condemned_count.load(Acquire) > 0
    }

    /// Takes those that a worker has to stop.
    pub fn take_condemned(&self, worker: usize) -> Vec<Arc<ClientCard>> {
        let mut condemned = self.condemned.lock().expect("no panic while the registry is held");
        let own = condemned.extract_if(.., |card| card.place().worker == worker).collect();
        self.condemned_count.store(condemned.len(), Release);
        own
    }

    /// Number of clients.
    pub fn len(&self) -> usize {
        self.cards.lock().expect("no panic while the registry is held").len()
    }

    /// True if nobody is connected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::sync::thread;

    /// CLIENT KILL sets a flag of a client while the client's own worker sets another: neither is
    /// lost.
    #[test]
    fn concurrent_flag_changes_of_one_card_are_all_kept() {
        let conn = ConnId { index: 0, generation: 0 };
        let card = Arc::new(ClientCard::new(1, 0, conn, 0));
        let toggle = |bit: u32| {
            let card = Arc::clone(&card);
            thread::spawn(move || {
                for turn in 0..2_000_000 {
                    let on = turn % 2 == 0;
                    card.set_flag(bit, on);
                    assert_eq!(card.has_flag(bit), on, "nobody else sets or clears this flag");
                }
            })
        };
        for thread in [flag::CLOSE_ASAP, flag::BLOCKED].map(toggle) {
            thread.join().expect("no flag is lost");
        }
    }
}
