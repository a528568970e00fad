//! Claims, what is durable, what files have kept, and forgetting.

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
