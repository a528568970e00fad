//! Which keys and slots are used most, by a sample of the commands. A sketch of bounded size counts
//! them: "space-saving" of Metwally, Agrawal and El Abbadi, Efficient computation of frequent and
//! top-k elements in data streams (ICDT 2005).
//!
//! Each worker counts on its own; a reader adds up what all of them have counted. What is counted
//! without being asked for covers the last one to two minutes ([`PERIOD_MS`]).

use crate::slowlog::cut_arg;
use base::num::{U64_TEXT_MAX, format_u64};
use base::sync::{Mutex, MutexGuard};
use std::mem::swap;

/// Bytes of a name that are kept.
pub const NAME_BYTES_MAX: usize = crate::slowlog::ARG_BYTES_MAX;
/// Names which one sketch counts.
pub const COUNTED_MAX: usize = 128;
/// Values which are kept as the largest.
pub const LARGEST_MAX: usize = 32;
/// A period of what is always counted: shown are the last one and the one under way.
pub const PERIOD_MS: i64 = 60_000;

/// The beginning of a name, and its length. It takes no memory of its own.
#[derive(Clone, Copy)]
pub struct Name {
    bytes: [u8; NAME_BYTES_MAX],
    len: usize,
}

impl Name {
    /// Keeps the beginning of this name.
    pub fn new(name: &[u8]) -> Self {
        let mut bytes = [0; NAME_BYTES_MAX];
        let kept = name.len().min(NAME_BYTES_MAX);
        bytes[..kept].copy_from_slice(&name[..kept]);
        Self { bytes, len: name.len() }
    }

    /// The name, or its beginning and how much is omitted.
    pub fn shown(&self) -> Vec<u8> {
        cut_arg((&self.bytes[..self.len.min(NAME_BYTES_MAX)], self.len))
    }
}

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.shown()))
    }
}

/// What a sketch knows of one name.
#[derive(Clone, Copy, Debug)]
struct Counted {
    name: Name,
    /// At most so much: what was counted for those that had this place before is in it.
    count: u64,
    /// So much of it may have been theirs.
    error: u64,
}

/// Counts of the names which occur most, in [`COUNTED_MAX`] places.
#[derive(Debug)]
struct Sketch {
    /// Apart from the rest, because all of them are compared for each name that is counted.
    ids: Vec<u64>,
    counted: Vec<Counted>,
    /// No count is less.
    least: u64,
    /// No place before this one has the least count.
    least_from: usize,
}

impl Sketch {
    fn new() -> Self {
        let ids = Vec::with_capacity(COUNTED_MAX);
        Self { ids, counted: Vec::with_capacity(COUNTED_MAX), least: 0, least_from: 0 }
    }

    /// Adds `n` to a name. Takes time for all places, and no memory.
    fn add(&mut self, id: u64, name: &[u8], n: u64) {
        if let Some(at) = self.ids.iter().position(|other| *other == id) {
            self.counted[at].count += n;
        } else if self.ids.len() < COUNTED_MAX {
            self.ids.push(id);
            self.counted.push(Counted { name: Name::new(name), count: n, error: 0 });
        } else {
            let at = self.find_least();
            let error = self.counted[at].count;
            self.ids[at] = id;
            self.counted[at] = Counted { name: Name::new(name), count: error + n, error };
        }
    }

    /// A place with the least count. Many places share it where most names are new, so the search
    /// goes on where the last one ended: counts only grow.
    fn find_least(&mut self) -> usize {
        let has_least = |c: &Counted| c.count == self.least;
        let behind = self.counted[self.least_from..].iter().position(has_least);
        self.least_from = if let Some(at) = behind {
            self.least_from + at
        } else {
            let places = self.counted.iter().enumerate();
            let (at, least) = places.min_by_key(|(_, c)| c.count).expect("there are places");
            self.least = least.count;
            at
        };
        self.least_from
    }

    fn clear(&mut self) {
        self.ids.clear();
        self.counted.clear();
        (self.least, self.least_from) = (0, 0);
    }
}

/// A large value.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    /// Its database.
    pub db: u32,
    /// Its key.
    pub name: Name,
    /// What it takes, as when it was last looked at.
    pub bytes: u64,
    /// The command which was sampled.
    pub command: &'static str,
}

/// The largest values that were seen.
#[derive(Debug)]
struct Largest(Vec<(u64, Value)>);

impl Largest {
    fn add(&mut self, id: u64, value: Value) {
        if let Some(known) = self.0.iter_mut().find(|(other, _)| *other == id) {
            known.1 = value;
        } else if self.0.len() < LARGEST_MAX {
            self.0.push((id, value));
        } else if let Some(least) = self.0.iter_mut().min_by_key(|(_, v)| v.bytes)
            && least.1.bytes < value.bytes
        {
            *least = (id, value);
        }
    }
}

/// A sampled command. It stands for [`Use::weight`] commands.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    /// Unix milliseconds.
    pub at_ms: i64,
    /// How many commands it stands for.
    pub weight: u64,
    /// Its time of execution, nanoseconds.
    pub ns: u64,
    /// Bytes of its request and its reply.
    pub bytes: u64,
    /// How many keys it has; its time and its bytes are shared between them.
    pub keys: u64,
}

/// A key of a sampled command.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyUse<'a> {
    /// Different for different keys and databases.
    pub id: u64,
    /// The key.
    pub name: &'a [u8],
    /// Its slot.
    pub slot: u16,
}

/// What was counted in some time.
#[derive(Debug)]
struct Period {
    since_ms: i64,
    commands: u64,
    ns: u64,
    bytes: u64,
    uses: Sketch,
    time: Sketch,
    traffic: Sketch,
    slots: Sketch,
    largest: Largest,
}

impl Period {
    fn new(since_ms: i64) -> Self {
        Self {
            since_ms,
            commands: 0,
            ns: 0,
            bytes: 0,
            uses: Sketch::new(),
            time: Sketch::new(),
            traffic: Sketch::new(),
            slots: Sketch::new(),
            largest: Largest(Vec::with_capacity(LARGEST_MAX)),
        }
    }

    fn begin(&mut self, since_ms: i64) {
        self.since_ms = since_ms;
        (self.commands, self.ns, self.bytes) = (0, 0, 0);
        for sketch in [&mut self.uses, &mut self.time, &mut self.traffic, &mut self.slots] {
            sketch.clear();
        }
        self.largest.0.clear();
    }

    fn add_command(&mut self, of: &Use) {
        self.commands += of.weight;
        self.ns += of.ns * of.weight;
        self.bytes += of.bytes * of.weight;
    }

    fn add_key(&mut self, of: &Use, key: &KeyUse<'_>) {
        let share = |n: u64| n * of.weight / of.keys.max(1);
        self.uses.add(key.id, key.name, of.weight);
        self.time.add(key.id, key.name, share(of.ns));
        self.traffic.add(key.id, key.name, share(of.bytes));
        let mut digits = [0; U64_TEXT_MAX];
        let slot = u64::from(key.slot);
        self.slots.add(slot, format_u64(&mut digits, slot), of.weight);
    }
}

/// A session which somebody has started.
#[derive(Debug)]
struct Session {
    /// From here on nothing is counted.
    until_ms: i64,
    counted: Period,
}

/// What one worker has counted.
#[derive(Debug)]
pub struct HotKeys(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    now: Period,
    before: Period,
    session: Option<Box<Session>>,
}

impl Inner {
    /// Begins a new period when the last one is over.
    fn turn_over(&mut self, at_ms: i64) {
        // (A clock which was set back begins a new one, too.)
        if (0..PERIOD_MS).contains(&(at_ms - self.now.since_ms)) {
            return;
        }
        swap(&mut self.now, &mut self.before);
        if at_ms - self.before.since_ms >= 2 * PERIOD_MS {
            self.before.begin(at_ms); // nothing was counted for a whole period
        }
        self.now.begin(at_ms);
    }

    /// The periods in which something counts at this moment.
    fn open(&mut self, at_ms: i64) -> impl Iterator<Item = &mut Period> {
        self.turn_over(at_ms);
        let session = self.session.as_mut().filter(|s| at_ms < s.until_ms);
        std::iter::once(&mut self.now).chain(session.map(|s| &mut s.counted))
    }
}

impl HotKeys {
    /// Nothing was counted yet. Allocates all the memory that will be needed outside of sessions.
    pub fn new(at_ms: i64) -> Self {
        let (now, before) = (Period::new(at_ms), Period::new(at_ms));
        Self(Mutex::new(Inner { now, before, session: None }))
    }

    /// Counts a sampled command and its keys. Takes time for each key, and no memory.
    pub fn count(&self, of: &Use, keys: &[KeyUse<'_>]) {
        for period in self.lock().open(of.at_ms) {
            period.add_command(of);
            for key in keys {
                period.add_key(of, key);
            }
        }
    }

    /// Notes how large the value of a sampled key is.
    pub fn note_value(&self, at_ms: i64, id: u64, value: Value) {
        for period in self.lock().open(at_ms) {
            period.largest.add(id, value);
        }
    }

    /// Begins to count for a session.
    pub fn start(&self, at_ms: i64, until_ms: i64) {
        let session = Session { until_ms, counted: Period::new(at_ms) };
        self.lock().session = Some(Box::new(session));
    }

    /// Ends counting for the session. What it has counted stays.
    pub fn stop(&self, at_ms: i64) {
        if let Some(session) = &mut self.lock().session {
            session.until_ms = session.until_ms.min(at_ms);
        }
    }

    /// Forgets the session.
    pub fn reset(&self) {
        self.lock().session = None;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No code panics in the middle of an update under this lock.
        match self.0.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

/// What all workers have counted.
#[derive(Debug, Default)]
pub struct View {
    /// Unix milliseconds.
    pub since_ms: i64,
    /// Commands, about.
    pub commands: u64,
    /// Their time of execution, nanoseconds.
    pub ns: u64,
    /// The bytes of their requests and replies.
    pub bytes: u64,
    /// Keys by how often they were used, at least, the most used first.
    pub by_uses: Vec<(Name, u64)>,
    /// Keys by the nanoseconds which their commands took.
    pub by_time: Vec<(Name, u64)>,
    /// Keys by bytes of requests and replies.
    pub by_bytes: Vec<(Name, u64)>,
    /// Slots by how often their keys were used.
    pub by_slot: Vec<(Name, u64)>,
    /// The largest values.
    pub largest: Vec<Value>,
}

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// What is always counted: the last one to two minutes.
    Always,
    /// The session that somebody has started.
    Session,
}

impl View {
    /// Adds up what all workers have counted, with `most` of each kind.
    pub fn gather<'a>(
        workers: impl Iterator<Item = &'a HotKeys>,
        shown: Shown,
        at_ms: i64,
        most: usize,
    ) -> Self {
        let mut view = Self { since_ms: at_ms, ..Self::default() };
        let mut sums: [Vec<(u64, Name, u64)>; 4] = Default::default();
        let mut largest = Vec::new();
        for worker in workers {
            let mut inner = worker.lock();
            inner.turn_over(at_ms);
            let session = || inner.session.as_ref().map(|s| &s.counted);
            let periods = match shown {
                Shown::Always => [Some(&inner.before), Some(&inner.now)],
                Shown::Session => [session(), None],
            };
            for period in periods.into_iter().flatten() {
                view.add_totals(period);
                let sketches = [&period.uses, &period.time, &period.traffic, &period.slots];
                for (sum, sketch) in sums.iter_mut().zip(sketches) {
                    add_up(sum, sketch);
                }
                period.largest.0.iter().for_each(|(id, v)| keep_largest(&mut largest, *id, v));
            }
        }
        let [uses, time, traffic, slots] = sums.map(|sum| top(sum, most));
        (view.by_uses, view.by_time, view.by_bytes, view.by_slot) = (uses, time, traffic, slots);
        largest.sort_by_key(|(_, v): &(u64, Value)| std::cmp::Reverse(v.bytes));
        view.largest = largest.into_iter().map(|(_, v)| v).take(most).collect();
        view
    }

    fn add_totals(&mut self, period: &Period) {
        self.since_ms = self.since_ms.min(period.since_ms);
        self.commands += period.commands;
        self.ns += period.ns;
        self.bytes += period.bytes;
    }
}

/// Adds what a sketch is sure of.
fn add_up(sum: &mut Vec<(u64, Name, u64)>, sketch: &Sketch) {
    for (&id, counted) in sketch.ids.iter().zip(&sketch.counted) {
        let sure = counted.count - counted.error;
        match sum.iter_mut().find(|(other, ..)| *other == id) {
            Some(known) => known.2 += sure,
            None => sum.push((id, counted.name, sure)),
        }
    }
}

fn keep_largest(all: &mut Vec<(u64, Value)>, id: u64, value: &Value) {
    match all.iter_mut().find(|(other, _)| *other == id) {
        Some(known) => known.1 = *value, // periods come in order, the latest last
        None => all.push((id, *value)),
    }
}

/// The first ones by count; by name if counts are equal.
fn top(mut sum: Vec<(u64, Name, u64)>, most: usize) -> Vec<(Name, u64)> {
    sum.sort_by(|(_, a, n), (_, b, m)| m.cmp(n).then_with(|| a.bytes.cmp(&b.bytes)));
    sum.into_iter().map(|(_, name, n)| (name, n)).filter(|(_, n)| *n > 0).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> u64 {
        name.bytes().fold(7, |id, byte| id.wrapping_mul(131) + u64::from(byte))
    }

    fn use_key(keys: &HotKeys, at_ms: i64, name: &str, weight: u64) {
        let of = Use { at_ms, weight, ns: 100, bytes: 10, keys: 1 };
        let key = KeyUse { id: id(name), name: name.as_bytes(), slot: name.len() as u16 };
        keys.count(&of, &[key]);
    }

    fn shown(list: &[(Name, u64)]) -> Vec<(String, u64)> {
        let text = |name: &Name| String::from_utf8(name.shown()).expect("UTF-8");
        list.iter().map(|(name, n)| (text(name), *n)).collect()
    }

    fn view(keys: &[HotKeys], shown: Shown, at_ms: i64) -> View {
        View::gather(keys.iter(), shown, at_ms, 3)
    }

    #[test]
    fn what_workers_have_counted_is_added_up() {
        let workers = [HotKeys::new(0), HotKeys::new(0)];
        use_key(&workers[0], 1, "a", 5);
        use_key(&workers[1], 1, "a", 5);
        use_key(&workers[1], 1, "bb", 7);
        let view = view(&workers, Shown::Always, 2);
        assert_eq!(shown(&view.by_uses), [("a".into(), 10), ("bb".into(), 7)]);
        assert_eq!(shown(&view.by_time), [("a".into(), 1000), ("bb".into(), 700)]);
        assert_eq!(shown(&view.by_bytes), [("a".into(), 100), ("bb".into(), 70)]);
        assert_eq!(shown(&view.by_slot), [("1".into(), 10), ("2".into(), 7)]);
        assert_eq!((view.commands, view.ns, view.bytes, view.since_ms), (17, 1700, 170, 0));
    }

    #[test]
    fn a_command_shares_its_time_between_its_keys() {
        let keys = [HotKeys::new(0)];
        let of = Use { at_ms: 1, weight: 2, ns: 90, bytes: 30, keys: 3 };
        let names = ["a", "b", "c"];
        let used = names.map(|n| KeyUse { id: id(n), name: n.as_bytes(), slot: 1 });
        keys[0].count(&of, &used);
        let view = view(&keys, Shown::Always, 2);
        assert_eq!(shown(&view.by_time), names.map(|n| (n.to_string(), 60)));
        assert_eq!(shown(&view.by_bytes), names.map(|n| (n.to_string(), 20)));
        assert_eq!((view.commands, view.ns, view.bytes), (2, 180, 60));
        assert_eq!(shown(&view.by_slot), [("1".into(), 6)]);
    }

    #[test]
    fn a_new_name_takes_a_place_with_the_least_count() {
        let (mut sketch, mut random, mut replaced) = (Sketch::new(), 1u64, 0);
        for n in 0..5_000 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(7);
            let id = (random >> 33) % 300;
            let is_new = sketch.ids.len() == COUNTED_MAX && !sketch.ids.contains(&id);
            let least = sketch.counted.iter().map(|c| c.count).min();
            sketch.add(id, b"name", random >> 62);
            if is_new {
                let at = sketch.ids.iter().position(|other| *other == id).expect("it was added");
                assert_eq!(Some(sketch.counted[at].error), least, "after {n}");
                replaced += 1;
            }
        }
        assert!(replaced > 1_000, "{replaced}");
    }

    /// A key that has a share of more than one in [`COUNTED_MAX`] is found among any others, and
    /// none is said to be used more often than it was.
    #[test]
    fn hot_keys_are_found_among_many_others() {
        let keys = [HotKeys::new(0)];
        for n in 0..20_000u64 {
            use_key(&keys[0], 1, &format!("cold:{n}"), 1);
            if n % 20 == 0 {
                use_key(&keys[0], 1, "hot", 1);
            }
        }
        let view = view(&keys, Shown::Always, 2);
        let (name, count) = &shown(&view.by_uses)[0];
        assert!(name == "hot" && (900..=1000).contains(count), "{name} {count}");
        assert!(shown(&view.by_uses)[1].1 <= 1, "{:?}", view.by_uses);
        let inner = keys[0].lock();
        assert_eq!(inner.now.uses.ids.len(), COUNTED_MAX);
        assert_eq!(inner.now.uses.counted.capacity(), COUNTED_MAX, "no memory was allocated");
    }

    #[test]
    fn what_is_always_counted_covers_one_to_two_periods() {
        let keys = [HotKeys::new(0)];
        use_key(&keys[0], 10, "old", 1);
        use_key(&keys[0], PERIOD_MS + 10, "new", 1);
        let at = |at_ms| {
            let view = view(&keys, Shown::Always, at_ms);
            (view.since_ms, shown(&view.by_uses).into_iter().map(|(n, _)| n).collect::<Vec<_>>())
        };
        assert_eq!(at(PERIOD_MS + 20), (0, vec!["new".to_string(), "old".to_string()]));
        let later = 2 * PERIOD_MS + 30;
        assert_eq!(at(later), (PERIOD_MS + 10, vec!["new".to_string()]));
        let (since_ms, names) = at(later + 3 * PERIOD_MS);
        assert!(since_ms >= later + 2 * PERIOD_MS && names.is_empty());
    }

    #[test]
    fn a_session_counts_from_its_start_to_its_end() {
        let keys = [HotKeys::new(0)];
        use_key(&keys[0], 1, "before", 1);
        keys[0].start(10, 100);
        use_key(&keys[0], 50, "in", 1);
        use_key(&keys[0], 100, "behind", 1);
        let in_session = |at_ms| shown(&view(&keys, Shown::Session, at_ms).by_uses);
        assert_eq!(in_session(150), [("in".into(), 1)]);
        keys[0].start(200, i64::MAX);
        use_key(&keys[0], 201, "second", 1);
        keys[0].stop(300);
        use_key(&keys[0], 301, "late", 1);
        assert_eq!(in_session(400), [("second".into(), 1)]);
        assert_eq!(view(&keys, Shown::Session, 400).since_ms, 200);
        assert_eq!(view(&keys, Shown::Always, 400).by_uses.len(), 3, "of five, three are shown");
        assert_eq!(in_session(3 * PERIOD_MS), [("second".into(), 1)], "no period ends it");
        keys[0].reset();
        assert!(in_session(3 * PERIOD_MS).is_empty());
    }

    #[test]
    fn the_largest_values_are_kept_as_they_were_last_seen() {
        let keys = [HotKeys::new(0)];
        let note = |n: u64, bytes: u64| {
            let name = Name::new(format!("v{n}").as_bytes());
            keys[0].note_value(1, n, Value { db: 0, name, bytes, command: "get" });
        };
        (0..100).for_each(|n| note(n, n * 10));
        note(99, 5);
        let view = view(&keys, Shown::Always, 2);
        assert_eq!(view.largest.iter().map(|v| v.bytes).collect::<Vec<_>>(), [980, 970, 960]);
        assert_eq!(keys[0].lock().now.largest.0.capacity(), LARGEST_MAX);
    }

    #[test]
    fn a_long_name_is_cut() {
        assert_eq!(Name::new(b"short").shown(), b"short");
        let name = Name::new(&[b'x'; 130]).shown();
        assert!(name.ends_with(b"xx... (2 more bytes)") && name.len() == NAME_BYTES_MAX + 20 - 2);
    }
}
