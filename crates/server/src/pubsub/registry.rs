//! Who subscribes, over all workers: for each channel and pattern the number of subscribers of each
//! worker. Channels stand in shards by the hash of their names; patterns have one lock.

use crate::pubsub::inbox::{Held, Inbox, POST_BYTES, Post, Published, Text, To, What};
use crate::pubsub::names::{Asked, NAME_BYTES, Name, Named, PARTS, Table, part_of, remove_from};
use crate::pubsub::patterns::Patterns;
use crate::pubsub::subscribers::Subscribers;
use crate::sessions::output::Hold;
use base::sync::atomic::Ordering::Relaxed;
use base::sync::atomic::{AtomicU8, AtomicU64};
use base::sync::{Arc, CachePadded, Mutex, MutexGuard};
use command::ops::Subject;
use driver::ConnId;

/// A part of all channels.
#[derive(Debug, Default)]
struct Shard {
    channels: Table<Subscribers>,
    shard_channels: Table<Subscribers>,
}

impl Shard {
    fn table(&mut self, subject: Subject) -> &mut Table<Subscribers> {
        match subject {
            Subject::Shard => &mut self.shard_channels,
            Subject::Channel | Subject::Pattern => &mut self.channels,
        }
    }
}

/// How many there are, for INFO, and for publishers who ask without a lock whether anybody
/// subscribes to anything.
#[derive(Debug, Default)]
pub struct Totals {
    /// Channels with subscribers.
    pub channels: AtomicU64,
    /// Shard channels with subscribers.
    pub shard_channels: AtomicU64,
    /// Different patterns.
    pub patterns: AtomicU64,
    /// Clients with subscriptions.
    pub clients: AtomicU64,
    /// Bytes of names.
    pub bytes: AtomicU64,
}

impl Totals {
    fn of(&self, subject: Subject) -> &AtomicU64 {
        match subject {
            Subject::Channel => &self.channels,
            Subject::Shard => &self.shard_channels,
            Subject::Pattern => &self.patterns,
        }
    }
}

/// What is to be published.
pub struct ToPublish<'a> {
    /// To a channel or a shard channel.
    pub subject: Subject,
    /// Its name.
    pub channel: Asked<'a>,
    /// Makes the message; not called if nobody receives it.
    pub text: &'a dyn Fn() -> Text,
    /// The epoch at which it was published; `None` for now.
    pub epoch: Option<u64>,
    /// What must have happened before anybody receives it.
    pub hold: Hold,
    /// The publisher: its worker and its connection there.
    pub from: (usize, ConnId),
    /// The publisher has it already, if it subscribes.
    pub skips_publisher: bool,
    /// It goes out although a worker is behind.
    pub cannot_wait: bool,
}

/// Publish and subscribe, as all workers share it.
#[derive(Debug)]
pub struct PubSub {
    shards: Vec<CachePadded<Mutex<Shard>>>,
    patterns: Mutex<Patterns>,
    /// Raised when a subscription begins or ends, under the lock of what it is to.
    epoch: AtomicU64,
    /// How many there are.
    pub totals: Totals,
    inboxes: Vec<CachePadded<Inbox>>,
    /// Events of keys are published to the channels of keys (1) and of events (2), also those of
    /// keys that are not there (4).
    notified: AtomicU8,
    /// Bytes of messages that are not delivered, by the publisher's worker.
    held: Vec<Arc<AtomicU64>>,
}

impl PubSub {
    /// Nobody subscribes at any of `workers` workers.
    pub fn new(workers: usize) -> Self {
        Self {
            shards: (0..PARTS).map(|_| CachePadded(Mutex::default())).collect(),
            patterns: Mutex::default(),
            epoch: AtomicU64::new(0),
            totals: Totals::default(),
            inboxes: (0..workers).map(|_| CachePadded(Inbox::default())).collect(),
            notified: AtomicU8::new(0),
            held: (0..workers).map(|_| Arc::default()).collect(),
        }
    }

    /// Sets whether events of keys are published to the channels of their keys, and to those of
    /// events; and whether there is one for each key that a read does not find.
    pub fn set_notified(&self, of_key: bool, of_event: bool, of_misses: bool) {
        let bits = u8::from(of_key) | u8::from(of_event) << 1 | u8::from(of_misses) << 2;
        self.notified.store(if of_key || of_event { bits } else { 0 }, Relaxed);
    }

    /// True if some worker is far behind: whoever would have it deliver more waits.
    pub fn is_any_behind(&self) -> bool {
        self.inboxes.iter().any(|inbox| inbox.is_full())
    }

    /// Whether events of keys are published, and whether there are some of keys that are not there.
    pub fn tells_of_keys(&self) -> (bool, bool) {
        let bits = self.notified.load(Relaxed);
        (bits != 0, bits & 4 != 0)
    }

    /// To which of these two.
    pub fn notified(&self) -> (bool, bool) {
        let bits = self.notified.load(Relaxed);
        (bits & 1 != 0, bits & 2 != 0)
    }

    /// The messages on their way to a worker.
    #[inline]
    pub fn inbox(&self, worker: usize) -> &Inbox {
        &self.inboxes[worker]
    }

    /// Bytes of messages that are not delivered, each counted once.
    pub fn message_bytes(&self) -> u64 {
        self.held.iter().map(|sum| sum.load(Relaxed)).sum()
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        self.shards[part_of(hash)].lock().expect("no panic while a shard is held")
    }

    /// A client of this worker subscribes. Returns the name as it is kept, and the epoch from which
    /// on it receives messages.
    pub fn join(&self, worker: usize, subject: Subject, asked: Asked<'_>) -> (Name, u64) {
        let total = self.totals.of(subject);
        if subject == Subject::Pattern {
            let mut patterns = self.patterns.lock().expect("no panic while patterns are held");
            let (name, subscribers) = patterns.entry(asked);
            self.count_new(subscribers, &name);
            subscribers.join(worker);
            total.store(patterns.len() as u64, Relaxed);
            return (name, self.epoch.fetch_add(1, Relaxed) + 1);
        }
        let mut shard = self.shard(asked.hash);
        let table = shard.table(subject);
        let name = match table.get_key_value(&asked as &dyn Named) {
            Some((name, _)) => name.clone(),
            None => asked.to_name(),
        };
        let subscribers = table.entry(name.clone()).or_default();
        total.fetch_add(u64::from(subscribers.total() == 0), Relaxed);
        self.count_new(subscribers, &name);
        subscribers.join(worker);
        (name, self.epoch.fetch_add(1, Relaxed) + 1)
    }

    fn count_new(&self, subscribers: &Subscribers, name: &Name) {
        if subscribers.total() == 0 {
            self.totals.bytes.fetch_add(NAME_BYTES + name.text().len() as u64, Relaxed);
        }
    }

    /// A subscription of a client of this worker ends. Every message that counted it is in the
    /// worker's inbox, and has an epoch up to the one that is returned; those that did not count it
    /// have later ones.
    pub fn leave(&self, worker: usize, subject: Subject, name: &Name) -> u64 {
        let total = self.totals.of(subject);
        if subject == Subject::Pattern {
            let mut patterns = self.patterns.lock().expect("no panic while patterns are held");
            if patterns.leave(name, worker) {
                self.totals.bytes.fetch_sub(NAME_BYTES + name.text().len() as u64, Relaxed);
            }
            total.store(patterns.len() as u64, Relaxed);
            return self.epoch.fetch_add(1, Relaxed);
        }
        let mut shard = self.shard(name.parts().0);
        let table = shard.table(subject);
        if let Some(subscribers) = table.get_mut(name as &dyn Named) {
            subscribers.leave(worker);
            if subscribers.total() == 0 {
                remove_from(table, name);
                total.fetch_sub(1, Relaxed);
                self.totals.bytes.fetch_sub(NAME_BYTES + name.text().len() as u64, Relaxed);
            }
        }
        self.epoch.fetch_add(1, Relaxed)
    }

    /// True if nobody can receive what is published to any channel of this kind.
    #[inline]
    pub fn is_idle(&self, subject: Subject) -> bool {
        self.totals.of(subject).load(Relaxed) == 0 && self.is_without_patterns(subject)
    }

    /// True if no pattern can match a channel of this kind.
    #[inline]
    pub fn is_without_patterns(&self, subject: Subject) -> bool {
        subject == Subject::Shard || self.totals.patterns.load(Relaxed) == 0
    }

    /// How many would receive a message now, and the epoch of now.
    pub fn receivers(&self, subject: Subject, channel: Asked<'_>) -> (u64, u64) {
        if self.is_idle(subject) {
            return (0, 0);
        }
        let mut shard = self.shard(channel.hash);
        let direct = shard.table(subject).get(&channel as &dyn Named);
        let mut total = direct.map_or(0, Subscribers::total);
        if subject == Subject::Channel && self.totals.patterns.load(Relaxed) > 0 {
            let patterns = self.patterns.lock().expect("no panic while patterns are held");
            patterns.matching(channel.text, |_, subscribers| total += subscribers.total());
            // Under both locks: who subscribes behind them is not counted and receives nothing.
            return (total, self.epoch.load(Relaxed));
        }
        (total, self.epoch.load(Relaxed))
    }

    /// Publishes a message: appends it to the inboxes of the workers of those who receive it, and
    /// calls `touched` for each. Returns how many receive it.
    ///
    /// # Errors
    /// The worker of which the inbox is full; nothing was appended anywhere.
    pub fn publish(
        &self,
        message: &ToPublish<'_>,
        mut touched: impl FnMut(usize),
    ) -> Result<u64, usize> {
        let ToPublish { subject, channel, .. } = *message;
        if self.is_idle(subject) {
            return Ok(0);
        }
        let mut shard = self.shard(channel.hash);
        let direct = shard.table(subject).get_key_value(&channel as &dyn Named);
        if subject == Subject::Channel && self.totals.patterns.load(Relaxed) > 0 {
            let patterns = self.patterns.lock().expect("no panic while patterns are held");
            let mut matching = Vec::new();
            patterns.matching(channel.text, |name, subscribers| matching.push((name, subscribers)));
            return self.append(message, direct, &matching, &mut touched);
        }
        self.append(message, direct, &[], &mut touched)
    }

    /// Appends a message to inboxes, under the locks of all that it is for.
    fn append(
        &self,
        message: &ToPublish<'_>,
        direct: Option<(&Name, &Subscribers)>,
        matching: &[(&Name, &Subscribers)],
        touched: &mut dyn FnMut(usize),
    ) -> Result<u64, usize> {
        let of_worker = |worker: usize| {
            let own = direct.map_or(0, |(_, subscribers)| subscribers.of(worker));
            (own, matching.iter().map(|(_, subscribers)| subscribers.of(worker)).sum::<u64>())
        };
        let workers = || (0..self.inboxes.len()).filter(|worker| of_worker(*worker) != (0, 0));
        if !message.cannot_wait
            && let Some(full) = workers().find(|worker| self.inboxes[*worker].is_full())
        {
            return Err(full);
        }
        let (mut total, mut made) = (0, None);
        for worker in workers() {
            let published: &Arc<Published> =
                made.get_or_insert_with(|| Arc::new(self.make(message, direct)));
            let (own, others) = of_worker(worker);
            let of_this = matching.iter().filter(|(_, subscribers)| subscribers.of(worker) > 0);
            let patterns = of_this.map(|(name, _)| (*name).clone()).collect();
            let to = To::Subscribers { is_direct: own > 0, patterns };
            let post = Post { published: published.clone(), to };
            self.inboxes[worker].push(post);
            touched(worker);
            total += own + others;
        }
        Ok(total)
    }

    fn make(&self, message: &ToPublish<'_>, direct: Option<(&Name, &Subscribers)>) -> Published {
        let text = (message.text)();
        let channel = direct.map_or_else(|| message.channel.to_name(), |(name, _)| name.clone());
        let bytes =
            POST_BYTES + (size_of::<Published>() + channel.text().len() + text.len()) as u64;
        Published {
            what: What::Message { subject: message.subject, channel, text },
            epoch: message.epoch.unwrap_or_else(|| self.epoch.load(Relaxed)),
            hold: message.hold,
            from: message.from,
            skips_publisher: message.skips_publisher,
            held: Held::new(&self.held[message.from.0], bytes),
        }
    }

    /// Counts a key that has changed, and what its message takes, for a worker.
    pub fn hold_bytes(&self, worker: usize, bytes: u64) -> Held {
        Held::new(&self.held[worker], POST_BYTES + size_of::<Published>() as u64 + bytes)
    }

    /// Subscribers of a channel.
    pub fn count(&self, subject: Subject, channel: Asked<'_>) -> u64 {
        let mut shard = self.shard(channel.hash);
        shard.table(subject).get(&channel as &dyn Named).map_or(0, Subscribers::total)
    }

    /// Appends the names of the channels in one of [`PARTS`] parts that `wanted` accepts. Returns
    /// how many there are.
    pub fn list(
        &self,
        part: usize,
        subject: Subject,
        into: &mut Vec<Name>,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> usize {
        let mut shard = self.shards[part].lock().expect("no panic while a shard is held");
        let names = shard.table(subject).keys();
        let count = names.len();
        into.extend(names.filter(|name| wanted(name.text())).cloned());
        count
    }
}
