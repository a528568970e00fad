//! The keyspace against a map: random commands, with growth, shrinkage, expiry, several databases
//! and rollbacks. Every counter is checked.
#![cfg(not(shuttle))]

use base::sync::Arc;
use base::{DbIndex, UnixMs};
use keyspace::{Access, EntryMut, Event, Guard, Intent, Key, Keyspace, Options};
use proptest::prelude::*;
use std::collections::BTreeMap;
use value::{NewStr, encode};

const DATABASES: u16 = 3;

#[derive(Clone, Debug)]
enum Op {
    Set(u16, u16, Vec<u8>, Option<i64>),
    Del(u16, u16),
    Get(u16, u16),
    Append(u16, u16, Vec<u8>),
    WriteAt(u16, u16, usize, Vec<u8>),
    SetInt(u16, u16, i64),
    SetStr(u16, u16, Vec<u8>, bool),
    Expire(u16, u16, Option<i64>),
    Copy(u16, u16, u16, u16),
    Move(u16, u16, u16, u16),
    Pass(i64),
    Flush(u16),
    FlushAll,
    Swap(u16, u16),
    Many(u16, u16, u16),
    RemoveMany(u16, u16, u16),
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => proptest::collection::vec(any::<u8>(), 0..60),
        2 => any::<i64>().prop_map(|v| v.to_string().into_bytes()),
        1 => (100..2000_usize).prop_map(|n| vec![b'x'; n]),
        1 => (16_000..20_000_usize).prop_map(|n| vec![b'y'; n]),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let (db, key) = (0..DATABASES, 0..40_u16);
    let due = proptest::option::of(1..60_i64);
    prop_oneof![
        12 => (db.clone(), key.clone(), text(), due.clone()).prop_map(|(d, k, v, e)| Op::Set(d, k, v, e)),
        6 => (db.clone(), key.clone()).prop_map(|(d, k)| Op::Del(d, k)),
        6 => (db.clone(), key.clone()).prop_map(|(d, k)| Op::Get(d, k)),
        6 => (db.clone(), key.clone(), text()).prop_map(|(d, k, v)| Op::Append(d, k, v)),
        6 => (db.clone(), key.clone(), 0..20_000_usize, text())
            .prop_map(|(d, k, at, v)| Op::WriteAt(d, k, at, v)),
        3 => (db.clone(), key.clone(), any::<i64>()).prop_map(|(d, k, v)| Op::SetInt(d, k, v)),
        4 => (db.clone(), key.clone(), text(), any::<bool>())
            .prop_map(|(d, k, v, t)| Op::SetStr(d, k, v, t)),
        4 => (db.clone(), key.clone(), due).prop_map(|(d, k, e)| Op::Expire(d, k, e)),
        3 => (db.clone(), key.clone(), db.clone(), key.clone())
            .prop_map(|(a, k, b, l)| Op::Copy(a, k, b, l)),
        3 => (db.clone(), key.clone(), db.clone(), key.clone())
            .prop_map(|(a, k, b, l)| Op::Move(a, k, b, l)),
        4 => (1..30_i64).prop_map(Op::Pass),
        1 => db.clone().prop_map(Op::Flush),
        1 => Just(Op::FlushAll),
        1 => (db.clone(), db.clone()).prop_map(|(a, b)| Op::Swap(a, b)),
        2 => (db.clone(), 0..1000_u16, 0..600_u16).prop_map(|(d, k, n)| Op::Many(d, k, n)),
        2 => (db, 0..1000_u16, 0..600_u16).prop_map(|(d, k, n)| Op::RemoveMany(d, k, n)),
    ]
}

/// Even keys share one slot, so that its table grows. Odd ones are spread over the slots.
fn key_name(n: u16) -> Vec<u8> {
    match n % 4 {
        0 | 2 => format!("{{tag}}:{n}").into_bytes(),
        1 => format!("k{n}").into_bytes(),
        _ => [format!("long{n}").into_bytes(), vec![b'l'; 300]].concat(),
    }
}

/// Texts and expiries by key.
type Values = BTreeMap<Vec<u8>, (Vec<u8>, Option<i64>)>;
type Model = BTreeMap<u16, Values>;

struct Pair {
    ks: Arc<Keyspace>,
    access: Access,
    model: Model,
    now: i64,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let options = Options { databases: DATABASES, hash_secret: seed.into(), workers: 1 };
        let ks = Arc::new(Keyspace::new(&options));
        let mut access = Access::new(Arc::clone(&ks), 0);
        assert!(access.enter());
        let model = (0..DATABASES).map(|db| (db, BTreeMap::new())).collect();
        Self { ks, access, model, now: 1_000_000 }
    }

    fn world(&mut self, f: impl FnOnce(&mut Guard<'_>, &Keyspace)) {
        self.access.try_world().expect("nobody else holds it");
        let mut guard = self.access.world(UnixMs(self.now));
        f(&mut guard, &self.ks);
        drop(guard);
        self.access.open_world();
    }

    /// Runs `f` with the slots of these keys locked.
    fn locked<R>(&mut self, keys: &[Key<'_>], f: impl FnOnce(&mut Guard<'_>) -> R) -> R {
        let now = UnixMs(self.now);
        let mut slots: Vec<_> = keys.iter().map(|key| key.slot).collect();
        slots.sort_unstable();
        slots.dedup();
        let mut guard = if let [slot] = slots[..] {
            self.access.lock_one(slot, now, Intent::Write).expect("free")
        } else {
            self.access.lock(&slots, now, Intent::Write).expect("free")
        };
        f(&mut guard)
    }

    fn forget_expired(&mut self) {
        let now = self.now;
        for keys in self.model.values_mut() {
            keys.retain(|_, (_, due)| due.is_none_or(|due| due > now));
        }
    }

    fn apply(&mut self, op: &Op) {
        self.forget_expired();
        match op {
            Op::Set(db, n, text, due) => self.set(*db, *n, text, *due),
            Op::Del(db, n) => self.delete(*db, *n),
            Op::Get(db, n) => self.check(*db, &key_name(*n)),
            Op::Append(db, n, bytes) => self.edit(*db, *n, bytes, None),
            Op::WriteAt(db, n, at, bytes) => self.edit(*db, *n, bytes, Some(*at)),
            Op::SetInt(db, n, value) => self.set_int(*db, *n, *value),
            Op::SetStr(db, n, bytes, keep) => self.set_str(*db, *n, bytes, *keep),
            Op::Expire(db, n, due) => self.expire(*db, *n, *due),
            Op::Copy(from, k, to, l) => self.relocate((*from, *k), (*to, *l), false),
            Op::Move(from, k, to, l) => self.relocate((*from, *k), (*to, *l), true),
            Op::Pass(ms) => self.pass(*ms),
            Op::Flush(db) => {
                self.world(|g, _| {
                    g.flush_db(DbIndex::new(*db));
                    g.commit();
                });
                self.values(*db).clear();
                self.access.reclaim(100);
            }
            Op::FlushAll => self.flush_all(),
            Op::Swap(a, b) => self.swap(*a, *b),
            Op::Many(db, from, n) => {
                (*from..from + n).for_each(|n| self.set(*db, n, n.to_string().as_bytes(), None));
            }
            Op::RemoveMany(db, from, n) => (*from..from + n).for_each(|n| self.delete(*db, n)),
        }
    }

    /// The expected content of a database.
    fn values(&mut self, db: u16) -> &mut Values {
        self.model.get_mut(&db).expect("db")
    }

    /// Runs `f` on a key's entry, if there is one.
    fn change(&mut self, db: u16, n: u16, f: impl FnOnce(&mut EntryMut<'_, '_>)) {
        let name = key_name(n);
        let ks = Arc::clone(&self.ks);
        let key = ks.key(&name);
        self.locked(&[key], |g| {
            if let Some(mut entry) = g.entry_mut(Event::SILENT, DbIndex::new(db), &key) {
                f(&mut entry);
            }
        });
    }

    fn set(&mut self, db: u16, n: u16, text: &[u8], due: Option<i64>) {
        let name = key_name(n);
        let due = due.map(|d| self.now + d);
        let ks = Arc::clone(&self.ks);
        let key = ks.key(&name);
        self.forget_expired();
        self.locked(&[key], |g| {
            g.insert(Event::SILENT, DbIndex::new(db), &key, encode(text), due.map(UnixMs));
            g.commit();
        });
        self.values(db).insert(name, (text.to_vec(), due));
    }

    fn delete(&mut self, db: u16, n: u16) {
        let name = key_name(n);
        let ks = Arc::clone(&self.ks);
        let key = ks.key(&name);
        self.forget_expired();
        let removed = self.locked(&[key], |g| g.remove(Event::SILENT, DbIndex::new(db), &key));
        assert_eq!(removed, self.values(db).remove(&name).is_some());
    }

    fn set_int(&mut self, db: u16, n: u16, value: i64) {
        self.change(db, n, |entry| entry.set_int(value));
        if let Some((text, _)) = self.values(db).get_mut(&key_name(n)) {
            *text = value.to_string().into_bytes();
        }
    }

    fn set_str(&mut self, db: u16, n: u16, bytes: &[u8], keeps_ttl: bool) {
        self.change(db, n, |entry| {
            entry.set_str(NewStr::Raw(bytes), keeps_ttl);
            assert_eq!(entry.str().to_vec(), *bytes);
        });
        if let Some((text, due)) = self.values(db).get_mut(&key_name(n)) {
            *text = bytes.to_vec();
            *due = due.filter(|_| keeps_ttl);
        }
    }

    fn expire(&mut self, db: u16, n: u16, due: Option<i64>) {
        let at = due.map(|d| self.now + d);
        self.change(db, n, |entry| {
            entry.set_expiry(at.map(UnixMs));
            assert_eq!(entry.expiry(), at.map(UnixMs));
        });
        if let Some((_, old)) = self.values(db).get_mut(&key_name(n)) {
            *old = at;
        }
    }

    /// Copies or moves a key. Source and target are a database and a key number each.
    fn relocate(&mut self, from: (u16, u16), to: (u16, u16), moves: bool) {
        let (source, target) = (key_name(from.1), key_name(to.1));
        let ks = Arc::clone(&self.ks);
        let (source_key, target_key) = (ks.key(&source), ks.key(&target));
        let done = self.locked(&[source_key, target_key], |g| {
            let (from, to) = (DbIndex::new(from.0), DbIndex::new(to.0));
            if moves {
                g.move_entry([Event::SILENT; 2], from, &source_key, to, &target_key)
            } else {
                g.copy_entry(Event::SILENT, from, &source_key, to, &target_key)
            }
        });
        let value = self.values(from.0).get(&source).cloned();
        assert_eq!(done, value.is_some());
        if let Some(value) = value {
            if moves {
                self.values(from.0).remove(&source);
            }
            self.values(to.0).insert(target, value);
        }
    }

    /// Advances the clock. Every second time it runs the sweep and checks the counters of expiries.
    fn pass(&mut self, ms: i64) {
        self.now += ms;
        if ms % 2 != 0 {
            return;
        }
        let report = self.access.expire_step(UnixMs(self.now), u64::MAX, || base::MonoNs(0));
        assert!(!report.more);
        self.forget_expired();
        for db in 0..DATABASES {
            let due = self.model[&db].values().filter_map(|v| v.1);
            let (keys, left) = due.fold((0, 0), |(n, sum), at| (n + 1, sum + at - self.now));
            assert_eq!(self.ks.db_expires(DbIndex::new(db)), keys as u64);
            let average = left.checked_div(keys).unwrap_or(0) as u64;
            assert_eq!(self.ks.average_ttl_ms(DbIndex::new(db), UnixMs(self.now)), average);
        }
    }

    fn flush_all(&mut self) {
        self.world(|g, _| {
            g.flush_all();
        });
        self.model.values_mut().for_each(BTreeMap::clear);
        while self.access.reclaim(100) {}
        assert_eq!(self.ks.memory().entries, 0, "everything was freed");
        assert_eq!(self.ks.memory().buckets, 0, "every bucket was freed");
        assert!((0..DATABASES).all(|db| self.ks.db_bytes(DbIndex::new(db)) == 0));
    }

    fn swap(&mut self, a: u16, b: u16) {
        self.world(|g, _| g.swap_db(DbIndex::new(a), DbIndex::new(b)));
        let first = self.model.remove(&a).expect("db");
        if let Some(second) = self.model.insert(b, first).filter(|_| a != b) {
            self.model.insert(a, second);
        }
    }

    fn edit(&mut self, db: u16, n: u16, bytes: &[u8], at: Option<usize>) {
        let name = key_name(n);
        let ks = Arc::clone(&self.ks);
        let key = ks.key(&name);
        let len = self.locked(&[key], |g| {
            let mut entry = g.entry_mut(Event::SILENT, DbIndex::new(db), &key)?;
            Some(match at {
                Some(at) => entry.write_at(at, bytes),
                None => entry.append(bytes),
            })
        });
        let value = self.model.get_mut(&db).expect("db").get_mut(&name);
        assert_eq!(len.is_some(), value.is_some());
        if let Some((text, _)) = value {
            let at = at.unwrap_or(text.len());
            text.resize(text.len().max(at + bytes.len()), 0);
            text[at..at + bytes.len()].copy_from_slice(bytes);
            assert_eq!(len, Some(text.len()));
        }
    }

    fn check(&mut self, db: u16, name: &[u8]) {
        let expected = self.model[&db].get(name).cloned();
        let ks = Arc::clone(&self.ks);
        let key = ks.key(name);
        ks.prefetch_slot(key.slot);
        let guess = ks.prefetch_bucket(key.slot, key.hash, DbIndex::new(db));
        ks.prefetch_entry(guess);
        let found = self.locked(&[key], |g| {
            g.read(DbIndex::new(db), &key).map(|e| (e.str().to_vec(), e.expiry().map(|at| at.0)))
        });
        assert_eq!(found, expected, "key {:?}", String::from_utf8_lossy(name));
    }

    fn check_all(&mut self) {
        self.forget_expired();
        for db in 0..DATABASES {
            let names: Vec<_> = self.model[&db].keys().cloned().collect();
            for name in &names {
                self.check(db, name);
            }
            // A scan returns exactly the keys of the model.
            let mut shown = BTreeMap::new();
            let mut cursor = 0;
            loop {
                let mut guard = self.access.free(UnixMs(self.now));
                let next = guard.scan(DbIndex::new(db), cursor, 7, |e| {
                    shown.insert(e.key().to_vec(), (e.str().to_vec(), e.expiry().map(|a| a.0)));
                });
                cursor = next.expect("nobody else holds a slot");
                assert!(cursor < 1 << 53);
                if cursor == 0 {
                    break;
                }
            }
            assert_eq!(shown, self.model[&db]);
            let mut guard = self.access.free(UnixMs(self.now));
            let key = guard.random_key(DbIndex::new(db), || 77).expect("nobody else holds a slot");
            assert_eq!(key.is_none(), self.model[&db].is_empty());
            assert!(key.is_none_or(|key| self.model[&db].contains_key(&key)));
        }
        let report = self.access.expire_step(UnixMs(self.now), u64::MAX, || base::MonoNs(0));
        assert!(!report.more);
        for db in (0..DATABASES).map(DbIndex::new) {
            assert_eq!(self.ks.db_len(db), self.model[&(db.0 as u16)].len() as u64);
            let measured = self.access.free(UnixMs(self.now)).measure_bytes(db).expect("free");
            assert_eq!(self.ks.db_bytes(db), measured, "database {db:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn the_keyspace_behaves_like_a_map(ops in proptest::collection::vec(op(), 1..120), seed: u64) {
        let mut pair = Pair::new(seed);
        for op in &ops {
            pair.apply(op);
        }
        pair.check_all();
    }
}
