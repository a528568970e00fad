//! Ingest protocol 2 on two real workers, a simulated network and a simulated clock: whatever
//! happens to bytes and connections, every message is stored once and in order, and each connection
//! which the server closes gets an error with the reason.

use crate::producer::{Producer, all_up_to, entries, hello, write_data, write_data_of};
use crate::sim_world::{CUTTING, MS, Reply, Sim};
use base::prng::Prng;
use driver::sim::Faults;
use ingest::v2::{Fault, Hello, Level, SinkKind, write_bye, write_flush, write_hello};
use server::config::Config;
use server::ingest::ports::IngestCounters;

const ANY: &str = "h:0 protocol=2";

fn world(seed: u64, faults: Faults, listen: &str) -> Sim {
    let mut sim = Sim::with_ingest(seed, faults, Config::default(), listen);
    sim.connect(1);
    sim
}

fn count(sim: &Sim, of: impl Fn(&IngestCounters) -> u64) -> u64 {
    sim.shared.ingest.open.iter().flat_map(|p| &p.workers).map(|w| of(w)).sum()
}

fn to_stream(name: &str) -> Hello<'_> {
    hello(name, SinkKind::Stream, "s")
}

/// A conversation, and the byte offsets at which its messages are complete.
fn conversation() -> (Vec<u8>, Vec<usize>, usize) {
    let mut bytes = Vec::new();
    write_hello(&mut bytes, &to_stream("p"));
    let greeted = bytes.len();
    let mut ends = Vec::new();
    for numbers in [1..=3u64, 4..=4, 5..=9] {
        let (first, from) = (*numbers.start(), bytes.len() + 16);
        write_data(&mut bytes, numbers.clone());
        for n in numbers {
            let before = if n == first { from } else { *ends.last().expect("one before") };
            ends.push(before + 4 + format!("m{n}").len());
        }
        write_flush(&mut bytes);
    }
    write_bye(&mut bytes);
    (bytes, ends, greeted)
}

#[test]
fn a_connection_cut_at_any_byte_loses_no_message() {
    let (bytes, ends, greeted) = conversation();
    let mut sim = world(1, Faults::NONE, ANY);
    for cut in 0..=bytes.len() {
        sim.forget_steps();
        sim.ask(0, &["DEL", "s"]);
        sim.shared.ingest.producers.forget(base::MonoNs(u64::MAX), Some(0));
        assert!(sim.shared.ingest.producers.is_empty(), "of the last round");
        let came = count(&sim, |c| c.bytes.get()) + cut as u64;
        let mut first = Producer::connect(&mut sim, 0);
        first.unsent = bytes[..cut].to_vec();
        let whole = ends.iter().filter(|end| **end <= cut).count() as u64;
        while count(&sim, |c| c.bytes.get()) < came {
            first.step(&mut sim);
        }
        match cut % 3 {
            0 => first.conn.shutdown_write(),
            1 => {
                first.until(&mut sim, |p| p.acked == whole);
                first.conn.reset();
            }
            _ => {
                let end = sim.net.now().plus(MS);
                while sim.net.now() < end {
                    first.step(&mut sim);
                }
            }
        }
        if cut % 3 == 0 {
            first.until(&mut sim, |p| p.conn.ending().is_some());
            assert_eq!(first.acked, whole, "cut at {cut}: what is whole is acknowledged");
        }
        let acked = first.acked;
        drop(first);
        sim.run_until(|sim| sim.shared.ingest.connections() == 0);
        assert_eq!(sim.shared.ingest.producers.len(), usize::from(cut >= greeted), "cut at {cut}");
        let resume = Hello { resume: cut >= greeted, ..to_stream("p") };
        let mut second = Producer::greeted(&mut sim, 0, &resume);
        assert!(acked <= second.acked && second.acked == whole, "cut at {cut}");
        second.data(1.max(second.acked.saturating_sub(1))..=9);
        second.bye();
        assert_eq!(second.end(&mut sim), None);
        assert_eq!(second.acked, 9);
        assert_eq!(entries(&mut sim, "s"), all_up_to(9), "cut at {cut}");
    }
}

/// Each connection sends different payloads under the same numbers, like a producer which has lost
/// its state. After a Welcome only the payloads of that connection count, even if an older
/// connection still has data in flight.
#[test]
fn a_producer_that_moves_between_workers_writes_each_message_once() {
    const LAST: u64 = 300;
    for seed in 0..40 {
        let mut sim = world(seed, CUTTING, ANY);
        let mut prng = Prng::new(seed);
        let mut all = vec![Producer::greeted(&mut sim, 0, &to_stream("p"))];
        let mut welcomes = vec![0];
        while all.last().is_none_or(|now| now.acked < LAST) {
            let number = all.len() - 1;
            let now = &mut all[number];
            if now.unsent.is_empty() && now.acked < LAST {
                let first = now.acked.saturating_sub(prng.below(3)).max(1);
                let numbers = first..=(first + 1 + prng.below(40)).min(LAST);
                write_data_of(&mut now.unsent, numbers, &format!("{number} "));
                now.flush();
            }
            for p in &mut all {
                p.pump(&mut prng);
            }
            sim.step();
            if prng.chance(1, 30) {
                // The older connection has data in flight, which may have been received already.
                let mut next = Producer::connect(&mut sim, 0);
                write_hello(&mut next.unsent, &to_stream("p"));
                while next.welcome.is_none() {
                    for p in &mut all {
                        p.pump(&mut prng);
                    }
                    next.step(&mut sim);
                }
                welcomes.push(next.acked);
                all.push(next);
            }
        }
        for (n, (number, text)) in entries(&mut sim, "s").into_iter().enumerate() {
            assert_eq!(number, n as u64 + 1, "seed {seed}: each once and in order");
            let (who, rest) = text.split_once(' ').expect("who says it");
            assert_eq!(rest, format!("m{number}"));
            let who: usize = who.parse().expect("a number");
            let newer = &welcomes[who + 1..];
            assert!(newer.iter().all(|held| number <= *held), "seed {seed}: {number} of {who}");
        }
        assert_eq!(sim.ask(0, &["XLEN", "s"]), Reply::Integer(LAST as i64));
        let taken_over = all.len() as u64 - 1;
        for old in &mut all[..taken_over as usize] {
            old.unsent.clear();
            old.until(&mut sim, |p| p.conn.ending().is_some());
            assert_eq!(old.error.map(|(fault, _)| fault), Some(Fault::TakenOver), "seed {seed}");
        }
        assert!(taken_over > 0, "seed {seed}");
        assert_eq!(count(&sim, |c| c.takeovers.get()), taken_over);
        assert_eq!(count(&sim, |c| c.faults.of(Fault::TakenOver).get()), taken_over);
        assert_eq!(count(&sim, |c| c.messages.get()), LAST);
        assert_eq!(sim.shared.ingest.producers.len(), 1);
    }
}

#[test]
fn a_closed_sink_delays_only_its_own_producers() {
    for seed in 0..20 {
        let mut sim = world(seed, CUTTING, ANY);
        sim.connect(1);
        let mut held = Producer::greeted(&mut sim, 0, &to_stream("p"));
        let mut free = Producer::greeted(&mut sim, 0, &hello("q", SinkKind::Null, ""));
        for (n, close, open) in [
            (0, &["CONFIG", "SET", "maxmemory", "1"][..], &["CONFIG", "SET", "maxmemory", "0"][..]),
            (1, &["CLIENT", "PAUSE", "100000", "WRITE"][..], &["CLIENT", "UNPAUSE"][..]),
        ] {
            let (from, to) = (n * 100 + 1, n * 100 + 100);
            assert_eq!(sim.ask(1, close), Reply::ok());
            for chunk in (from..=to).step_by(10) {
                held.data(chunk..=chunk + 9);
            }
            held.flush();
            free.data(from..=to);
            free.flush();
            let end = sim.net.now().plus(50 * MS);
            while sim.net.now() < end || free.acked < to {
                held.pump(&mut Prng::new(sim.net.now().0));
                free.step(&mut sim);
            }
            assert_eq!(held.acked, from - 1, "seed {seed}: nothing is acknowledged");
            assert_eq!(count(&sim, |c| c.blocked.get()), 1);
            assert_eq!(sim.ask(1, &["XLEN", "s"]).integer() as u64, from - 1);
            assert_eq!(sim.ask(1, open), Reply::ok());
            held.until(&mut sim, |p| p.acked == to);
            assert_eq!(count(&sim, |c| c.blocked.get()), 0);
            assert_eq!(entries(&mut sim, "s"), all_up_to(to), "seed {seed}");
        }
        assert_eq!(sim.ask(1, &["PING"]), Reply::Simple("PONG".into()));
        assert_eq!((held.error, free.error), (None, None));
    }
}

#[test]
fn messages_wait_while_the_keyspace_is_held() {
    let mut config = Config::default();
    config.enable_debug_command = server::config::Access::Yes;
    let mut sim = Sim::with_ingest(3, Faults::NONE, config, ANY);
    sim.connect(3);
    let mut producers: Vec<Producer> =
        (0..4).map(|n| Producer::greeted(&mut sim, 0, &to_stream(&format!("p{n}")))).collect();
    sim.clients[1].say(&["DEBUG", "SLEEP", "0.2"]);
    sim.run_for(20 * MS);
    let until = sim.net.now().plus(100 * MS);
    for producer in &mut producers {
        producer.data(1..=50);
        producer.flush();
    }
    while sim.net.now() < until {
        let mut prng = Prng::new(sim.net.now().0);
        for p in &mut producers {
            p.pump(&mut prng);
        }
        sim.step();
    }
    assert!(producers.iter().all(|p| p.acked == 0), "the world is held");
    for producer in &mut producers {
        producer.until(&mut sim, |p| p.acked == 50);
    }
    assert_eq!(sim.reply(1), Reply::ok());
    assert_eq!(sim.ask(0, &["XLEN", "s"]), Reply::Integer(200));
}

/// A conversation that ends with an error.
fn ends_with(sim: &mut Sim, port: usize, bytes: &[u8]) -> Option<(Fault, u64)> {
    let mut producer = Producer::connect(sim, port);
    producer.unsent = bytes.to_vec();
    producer.end(sim)
}

fn greeting(hello: &Hello<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_hello(&mut bytes, hello);
    bytes
}

fn with_data(hello: &Hello<'_>, numbers: std::ops::RangeInclusive<u64>) -> Vec<u8> {
    let mut bytes = greeting(hello);
    write_data(&mut bytes, numbers);
    bytes
}

/// A listener with a small window, one that accepts one connection, and one with its own sink.
const THREE: &str =
    "h:0 protocol=2 window=4096 h:0 protocol=2 max-connections=1 h:0 protocol=2 sink=stream:own";

#[test]
fn every_error_names_its_reason_and_the_last_id() {
    let mut config = Config::default();
    config.password = server::config::Secret::from(&b"secret"[..]);
    let mut sim = Sim::with_ingest(5, Faults::NONE, config, THREE);
    sim.connect(1);
    sim.ask(0, &["AUTH", "secret"]);
    sim.ask(0, &["SET", "text", "x"]);
    sim.ask(0, &["XADD", "full", "18446744073709551615-18446744073709551615", "f", "v"]);
    let known = Hello { password: b"secret", ..hello("p", SinkKind::Null, "") };
    let stream = |key| Hello { password: b"secret", ..hello("p", SinkKind::Stream, key) };
    let mut wrong_version = greeting(&known);
    wrong_version[12] = 3;
    let gap =
        [with_data(&known, 1..=5), with_data(&known, 7..=7)[greeting(&known).len()..].to_vec()];
    let much: Vec<u8> = (0..30)
        .flat_map(|n| {
            let mut frame = Vec::new();
            write_data(&mut frame, 6 + n * 30..=5 + (n + 1) * 30);
            frame
        })
        .collect();
    let wrong_user = Hello { user: b"nobody", ..known };
    for (bytes, fault, id) in [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), Fault::NoHello, 0),
        (wrong_version, Fault::Version, 0),
        ([greeting(&known), greeting(&known)].concat(), Fault::Malformed, 0),
        ([greeting(&known), vec![0, 0, 1, 0, 2, 0, 0, 0]].concat(), Fault::TooLarge, 0),
        (greeting(&Hello { password: b"", ..known }), Fault::Authentication, 0),
        (greeting(&Hello { password: b"secreT", ..known }), Fault::Authentication, 0),
        (greeting(&wrong_user), Fault::Authentication, 0),
        (greeting(&Hello { db: 16, ..stream("s") }), Fault::Database, 0),
        (greeting(&Hello { level: Level::Fsynced, ..known }), Fault::Level, 0),
        (greeting(&Hello { sink: SinkKind::Listener, ..known }), Fault::Sink, 0),
        (greeting(&Hello { resume: true, ..stream("new") }), Fault::UnknownProducer, 0),
        (with_data(&stream("text"), 1..=1), Fault::WrongType, 0),
        (with_data(&stream("full"), 1..=1), Fault::Full, 0),
        (gap.concat(), Fault::Gap, 5),
        ([greeting(&known), much].concat(), Fault::Credit, 0),
        ([greeting(&known), vec![1, 0]].concat(), Fault::Idle, 0),
        (Vec::new(), Fault::Idle, 0),
    ] {
        let before = count(&sim, |c| c.faults.of(fault).get());
        let (got, last) = ends_with(&mut sim, 0, &bytes).expect("an error");
        assert_eq!(got, fault);
        assert!(last >= id, "{fault}: {last}");
        assert_eq!(count(&sim, |c| c.faults.of(fault).get()), before + 1);
    }
    assert_eq!(ends_with(&mut sim, 2, &greeting(&known)).map(|e| e.0), Some(Fault::Sink));
    let first = Producer::greeted(&mut sim, 1, &known);
    assert_eq!(ends_with(&mut sim, 1, &greeting(&known)).map(|e| e.0), Some(Fault::Limit));
    drop(first);
    sim.forget_steps();
    sim.run_until(|sim| sim.shared.ingest.connections() == 0);
    let mut again = Producer::greeted(&mut sim, 1, &known);
    sim.ask(0, &["CONFIG", "SET", "ingest-producers-max", "1"]);
    assert_eq!(ends_with(&mut sim, 0, &greeting(&stream("new"))).map(|e| e.0), Some(Fault::Limit));
    let mut newer = Producer::greeted(&mut sim, 0, &known);
    assert_eq!(again.end(&mut sim).map(|e| e.0), Some(Fault::TakenOver));
    let last = newer.acked;
    newer.data(last + 1..=last + 3);
    newer.flush();
    newer.until(&mut sim, |p| p.acked == last + 3);
    sim.shared.begin_shutdown();
    newer.until(&mut sim, |p| p.conn.ending().is_some());
    assert_eq!(newer.error, Some((Fault::Shutdown, last + 3)));
    let told = Fault::ALL.iter().filter(|f| count(&sim, |c| c.faults.of(**f).get()) > 0).count();
    assert_eq!(told, Fault::ALL.len(), "every code was seen");
}

#[test]
fn a_producer_can_select_the_sink_of_the_listener() {
    let mut sim = world(6, CUTTING, THREE);
    let mut producer = Producer::greeted(&mut sim, 2, &hello("p", SinkKind::Listener, ""));
    producer.data(1..=20);
    producer.bye();
    assert_eq!(producer.end(&mut sim), None);
    assert_eq!(entries(&mut sim, "own"), all_up_to(20));
}

#[test]
fn credit_is_granted_while_the_producer_sends() {
    let mut sim = world(7, CUTTING, THREE);
    let mut producer = Producer::greeted(&mut sim, 0, &to_stream("p"));
    let welcome = producer.welcome.expect("it was welcomed");
    assert_eq!((welcome.credit, welcome.max_frame), (4096, 2040));
    let (mut next, mut sent) = (1, 0);
    while producer.acked < 2_000 {
        let mut frame = Vec::new();
        write_data(&mut frame, next..=next + 99);
        if next < 2_000 && sent + frame.len() as u64 <= producer.credit {
            sent += frame.len() as u64;
            next += 100;
            producer.unsent.extend(frame);
        }
        producer.step(&mut sim);
        assert_eq!(producer.error, None);
    }
    assert!(producer.credit > 10_000 && count(&sim, |c| c.credits.get()) > 3);
    assert_eq!(entries(&mut sim, "s"), all_up_to(2_000));
}

#[test]
fn a_producer_which_reads_no_acknowledgements_is_paused_then_closed() {
    let mut sim = world(8, CUTTING, ANY);
    let mut deaf = Producer::greeted(&mut sim, 0, &to_stream("p"));
    deaf.reads = false;
    for n in 0..2_000 {
        deaf.data(n + 1..=n + 1);
        deaf.flush();
    }
    let mut other = Producer::greeted(&mut sim, 0, &hello("q", SinkKind::Null, ""));
    other.data(1..=100);
    other.flush();
    let end = sim.net.now().plus(3_000 * MS);
    while sim.net.now() < end {
        deaf.pump(&mut Prng::new(sim.net.now().0));
        other.step(&mut sim);
    }
    assert_eq!(other.acked, 100);
    assert!(!deaf.unsent.is_empty(), "it was stopped");
    let end = sim.net.now().plus(5_000 * MS);
    while sim.net.now() < end {
        other.step(&mut sim);
    }
    assert_eq!(other.error, None);
    assert_eq!(sim.shared.ingest.connections(), 1);
    assert_eq!(count(&sim, |c| c.errors.get()), 1);
}

/// The idle ones go by themselves, also if no producer connects any more.
#[test]
fn a_producer_without_a_connection_is_forgotten_in_time() {
    let mut config = Config::default();
    config.ingest_producer_timeout_s = 2;
    let mut sim = Sim::with_ingest(7, Faults::NONE, config, ANY);
    sim.connect(1);
    let mut producer = Producer::greeted(&mut sim, 0, &to_stream("p"));
    producer.data(1..=3);
    producer.bye();
    assert_eq!(producer.end(&mut sim), None);
    drop(producer);
    sim.run_until(|sim| sim.shared.ingest.connections() == 0);
    let left = sim.net.now();
    assert_eq!(sim.shared.ingest.producers.len(), 1);
    sim.run_until(|sim| sim.shared.ingest.producers.is_empty());
    let after = sim.net.now().since(left);
    assert!((2_000 * MS..3_000 * MS).contains(&after), "{after} ns");
}
