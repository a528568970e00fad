//! Events are reported in the order of the changes, once these are committed. A rollback drops
//! them, except the event that a key has expired.
#![cfg(not(shuttle))]

use base::sync::{Arc, Mutex};
use base::{DbIndex, SeqNo, UnixMs};
use keyspace::{
    Access, Event, EventClass, EventClasses, EventSink, Guard, Intent, KeyEvent, Keyspace, Options,
};
use value::NewStr;

const DB: DbIndex = DbIndex(0);
const SET: Event = Event::new(&(EventClass::String, "set"));
const INCR: Event = Event::new(&(EventClass::String, "incrby"));

fn access() -> Access {
    let options = Options { databases: 2, hash_secret: 3, workers: 1 };
    let mut access = Access::new(Arc::new(Keyspace::new(&options)), 0);
    assert!(access.enter());
    access
}

fn with<R>(access: &mut Access, now: i64, f: impl FnOnce(&mut Guard<'_>) -> R) -> R {
    let slot = access.keyspace().key(b"{k}").slot;
    let mut guard = access.lock_one(slot, UnixMs(now), Intent::Write).expect("nobody holds it");
    f(&mut guard)
}

fn set(guard: &mut Guard<'_>, name: &str, value: i64, expiry: Option<i64>) {
    let key = guard.keyspace().key(name.as_bytes());
    guard.insert(SET, DB, &key, NewStr::Int(value), expiry.map(UnixMs));
}

fn reported(access: &mut Access) -> Vec<String> {
    std::iter::from_fn(|| access.next_event())
        .map(|e| format!("{} {}", e.event.name(), String::from_utf8_lossy(&e.key)))
        .collect()
}

#[test]
fn events_are_reported_only_while_enabled() {
    let mut access = access();
    with(&mut access, 1, |g| set(g, "{k}", 1, None));
    assert_eq!(reported(&mut access), [""; 0]);
    access.listen_to_events(true);
    with(&mut access, 1, |g| set(g, "{k}", 2, None));
    assert_eq!(reported(&mut access), ["set {k}"]);
    access.listen_to_events(false);
    with(&mut access, 1, |g| set(g, "{k}", 3, None));
    assert_eq!(reported(&mut access), [""; 0]);
}

#[test]
fn only_committed_changes_are_reported() {
    let mut access = access();
    access.listen_to_events(true);
    with(&mut access, 1, |g| {
        set(g, "{k}1", 1, None);
        let mark = g.mark();
        set(g, "{k}2", 1, None);
        let key = g.keyspace().key(b"{k}1");
        let mut entry = g.entry_mut(INCR, DB, &key).expect("it was just made");
        entry.set_int(2);
        // The same command changes the key again: its event is reported once.
        entry.set_int(3);
        g.rollback_to(mark);
        set(g, "{k}3", 1, None);
        assert!(g.next_event().is_none(), "nothing stands yet");
        g.commit();
        set(g, "{k}4", 1, None);
        g.rollback();
        let key = g.keyspace().key(b"{k}3");
        g.entry_mut(INCR, DB, &key).expect("it stands").remove();
    });
    let expected = ["new {k}1", "set {k}1", "new {k}3", "set {k}3", "incrby {k}3", "del {k}3"];
    assert_eq!(reported(&mut access), expected);
}

#[test]
fn a_rollback_keeps_an_expiry_and_its_event() {
    let mut access = access();
    with(&mut access, 1, |g| {
        set(g, "{k}old", 1, Some(5));
        set(g, "{k}older", 1, Some(5));
    });
    access.listen_to_events(true);
    with(&mut access, 10, |g| {
        set(g, "{k}1", 1, None);
        let mark = g.mark();
        set(g, "{k}old", 2, None);
        g.rollback_to(mark);
        g.commit();
        set(g, "{k}older", 2, None);
        g.rollback();
    });
    let expected = ["new {k}1", "set {k}1", "expired {k}old", "expired {k}older"];
    assert_eq!(reported(&mut access), expected);
}

/// The sweep reports expired keys, too.
#[test]
fn the_sweep_reports_expired_keys() {
    let mut access = access();
    with(&mut access, 1, |g| set(g, "{k}", 1, Some(5)));
    access.listen_to_events(true);
    assert_eq!(access.expire_step(UnixMs(10), u64::MAX, || base::MonoNs(0)).expired, 1);
    assert_eq!(reported(&mut access), ["expired {k}"]);
}

/// Notes what it is told, each with the number of the change.
#[derive(Default)]
struct Told(Mutex<Vec<(String, SeqNo)>>);

impl EventSink for Told {
    fn tell(&self, event: &KeyEvent, seq: SeqNo) {
        let text = format!("{} {}", event.event.name(), String::from_utf8_lossy(&event.key));
        self.0.lock().expect("no panic with it").push((text, seq));
    }
}

impl Told {
    fn take(&self) -> Vec<(String, SeqNo)> {
        std::mem::take(&mut self.0.lock().expect("no panic with it"))
    }
}

fn access_with_sink() -> (Access, Arc<Told>) {
    let (mut access, told) = (access(), Arc::new(Told::default()));
    access.tell_events_to(told.clone());
    access.keyspace().select_events(EventClasses::select(|class| class != EventClass::New));
    access.leave();
    assert!(access.enter(), "and follows");
    (access, told)
}

/// A sink is told at the commit, of the classes that are selected; of what is committed in parts
/// when all of it has its number.
#[test]
fn a_sink_is_told_of_parts_when_the_whole_has_a_number() {
    let (mut access, told) = access_with_sink();
    with(&mut access, 1, |g| {
        set(g, "{k}1", 1, None);
        g.commit_part();
        assert_eq!(told.take(), [("set {k}1".to_owned(), SeqNo(0))], "none is drawn");
        set(g, "{k}2", 1, None);
        assert_eq!(told.take(), []);
        g.commit();
        assert_eq!(told.take(), [("set {k}2".to_owned(), SeqNo(0))]);
    });
    access.keyspace().numbers().set_drawing(true);
    with(&mut access, 1, |g| {
        set(g, "{k}3", 1, None);
        g.commit_part();
        set(g, "{k}4", 1, None);
        g.commit_part();
        assert_eq!(told.take(), [], "it has no number");
        set(g, "{k}5", 1, None);
        g.rollback();
        g.finish();
    });
    let both = [("set {k}3".to_owned(), SeqNo(1)), ("set {k}4".to_owned(), SeqNo(1))];
    assert_eq!(told.take(), both);
    with(&mut access, 1, |g| set(g, "{k}6", 1, None));
    assert_eq!(told.take(), [("set {k}6".to_owned(), SeqNo(2))]);
}

/// For client-side caching: each key that is no longer what it was, once for each command, also one
/// that was due; and reads inside a transaction, in their place among its changes.
#[test]
fn touched_keys_are_told_while_they_are_tracked() {
    let mut access = access();
    let sink = Arc::new(Told::default());
    let told = || -> Vec<String> { sink.take().into_iter().map(|(text, _)| text).collect() };
    access.tell_events_to(sink.clone());
    with(&mut access, 1, |g| set(g, "{k}", 1, None));
    assert_eq!(told(), [""; 0]);
    let nothing = EventClasses::select(|_| false);
    access.keyspace().select_events(nothing.with_tracking());
    access.leave();
    assert!(access.enter());
    with(&mut access, 1, |g| {
        set(g, "{k}", 2, None);
        set(g, "{k}", 3, Some(10));
        let key = g.keyspace().key(b"{k}");
        g.notify(Event::READ, DB, &key);
        set(g, "{k}", 4, Some(10));
        let mark = g.mark();
        set(g, "{k}other", 4, None);
        g.rollback_to(mark);
        g.finish();
    });
    assert_eq!(told(), ["touched {k}", "read {k}", "touched {k}"]);
    with(&mut access, 20, |g| {
        let key = g.keyspace().key(b"{k}");
        assert!(g.look_up(DB, &key).is_none());
        g.finish();
    });
    assert_eq!(told(), ["due touched {k}"]);
    access.leave();
    access.try_world().expect("alone");
    let mut guard = access.world(UnixMs(20));
    guard.flush_db(DB);
    guard.flush_db(DbIndex(1));
    guard.finish();
    guard.swap_db(DB, DbIndex(1));
    guard.finish();
    drop(guard);
    access.open_world();
    assert_eq!(told(), ["all touched "; 2]);
}
