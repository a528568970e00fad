//! Publish and subscribe on two workers: the bound of what is on its way to a worker that does not
//! turn, a subscriber that never reads, the end of killed subscribers, and clients that move. All
//! limits are judged by bytes and steps.

use crate::sim_world::{CUTTING, Reply, Sim, encode};
use base::sync::atomic::Ordering::Relaxed;
use driver::sim::Faults;
use server::config::Config;
use server::config::value::BufferLimit;
use server::pubsub::UNDERWAY_MAX;

/// A message of so many bytes with a number.
fn message(number: usize, len: usize) -> String {
    format!("{number:08}{}", "x".repeat(len - 8))
}

fn confirmed(word: &str, name: &str, count: i64) -> Reply {
    Reply::Array(vec![Reply::Bulk(word.into()), Reply::Bulk(name.into()), Reply::Integer(count)])
}

fn told(channel: &str, text: &str) -> Reply {
    Reply::Array(["message", channel, text].map(|part| Reply::Bulk(part.into())).to_vec())
}

/// The reply of a client of worker 0 while worker 1 does not turn; nothing if there is none for so
/// many steps.
fn reply_of_first(sim: &mut Sim, client: usize, steps: usize) -> Option<Reply> {
    for _ in 0..steps {
        if let Some(reply) = sim.clients[client].take_reply() {
            return Some(reply);
        }
        sim.step_only(0);
    }
    None
}

/// Publishers to a worker that is 64 MiB behind wait until it turns. Nothing is dropped, what EXEC
/// publishes does not wait, and others are served.
#[test]
fn publishers_wait_for_a_worker_that_is_far_behind() {
    const LEN: usize = 1 << 20;
    const STEPS: usize = 3_000; // a request of a megabyte takes some hundred
    let mut config = Config::default();
    config.output_limits[2] = BufferLimit { hard_bytes: 0, soft_bytes: 0, soft_seconds: 0 };
    let mut sim = Sim::new(1, Faults::NONE, config);
    sim.connect(4);
    let (publisher, subscriber, other) = (0, 1, 2); // 0 and 2 are at worker 0, 1 is at worker 1
    assert_eq!(sim.ask(subscriber, &["SUBSCRIBE", "a"]), confirmed("subscribe", "a", 1));
    let mut count = 0;
    loop {
        sim.clients[publisher].say(&["PUBLISH", "a", &message(count, LEN)]);
        if reply_of_first(&mut sim, publisher, STEPS).is_none() {
            break;
        }
        count += 1;
        sim.forget_steps();
    }
    let underway = sim.shared.pubsub.inbox(1).underway();
    assert!((UNDERWAY_MAX..UNDERWAY_MAX + LEN as u64 + 1000).contains(&underway), "{underway}");
    assert_eq!(count, UNDERWAY_MAX as usize / LEN, "the last one may cross the bound");
    let held = sim.shared.pubsub.message_bytes();
    assert!(held.abs_diff(underway) < 100_000, "{held}, {underway}");
    // Others of its worker are served, and those of channels at other workers.
    for (request, reply) in [
        (&["PING"][..], Reply::Simple("PONG".into())),
        (&["PUBLISH", "b", "x"], Reply::Integer(0)),
        (&["MULTI"], Reply::ok()),
        (&["PUBLISH", "a", "of EXEC"], Reply::Simple("QUEUED".into())),
        (&["EXEC"], Reply::Array(vec![Reply::Integer(1)])),
    ] {
        sim.clients[other].say(request);
        assert_eq!(reply_of_first(&mut sim, other, STEPS), Some(reply), "{request:?}");
    }
    assert_eq!(sim.clients[publisher].take_reply(), None);
    // The worker turns: everything arrives, in order.
    while sim.clients[subscriber].got.len() < (count + 1) * LEN {
        sim.forget_steps();
        sim.step();
    }
    for n in 0..count {
        assert!(sim.reply(subscriber) == told("a", &message(n, LEN)), "message {n}");
    }
    assert_eq!(sim.reply(subscriber), told("a", "of EXEC"));
    assert_eq!(sim.reply(publisher), Reply::Integer(1));
    assert!(sim.reply(subscriber) == told("a", &message(count, LEN)));
    assert_eq!((sim.shared.pubsub.inbox(1).underway(), sim.shared.pubsub.message_bytes()), (0, 0));
    sim.end();
}

/// Writes wait while a worker is far behind with events of keys: a change that has begun cannot. A
/// read goes on.
#[test]
fn writes_wait_for_a_worker_that_is_far_behind_with_events() {
    const LEN: usize = 1 << 20;
    const STEPS: usize = 3_000;
    let mut config = Config::default();
    config.output_limits[2] = BufferLimit { hard_bytes: 0, soft_bytes: 0, soft_seconds: 0 };
    let mut sim = Sim::new(1, Faults::NONE, config);
    sim.connect(4);
    let (writer, subscriber, other) = (0, 1, 2);
    let set = ["CONFIG", "SET", "notify-keyspace-events", "KE$"];
    assert_eq!(sim.ask(writer, &set), Reply::ok());
    let pattern = "__key*__:*";
    assert_eq!(sim.ask(subscriber, &["PSUBSCRIBE", pattern]), confirmed("psubscribe", pattern, 1));
    let mut count = 0;
    loop {
        sim.clients[writer].say(&["SET", &message(count, LEN), "v"]);
        if reply_of_first(&mut sim, writer, STEPS).is_none() {
            break;
        }
        count += 1;
        sim.forget_steps();
    }
    // Two events for each key, both with its name.
    let (bound, two) = (UNDERWAY_MAX as usize, 2 * LEN + 1000);
    let underway = sim.shared.pubsub.inbox(1).underway() as usize;
    assert!((bound..bound + two).contains(&underway), "{underway}");
    assert_eq!(count, bound.div_ceil(two), "the last one may cross the bound");
    sim.clients[other].say(&["GET", "none"]);
    assert_eq!(reply_of_first(&mut sim, other, STEPS), Some(Reply::Null));
    assert_eq!(sim.clients[writer].take_reply(), None);
    // The worker turns: all events arrive, and the last write goes on.
    assert_eq!(sim.reply(writer), Reply::ok());
    for n in 0..=count {
        for key_is_text in [false, true] {
            sim.forget_steps();
            let Reply::Array(parts) = sim.reply(subscriber) else { panic!("no message") };
            let [_, _, Reply::Bulk(channel), Reply::Bulk(text)] = &parts[..] else {
                panic!("no message")
            };
            let key = if key_is_text { text } else { channel };
            assert!(key.ends_with(&message(n, LEN)), "event {n}");
        }
    }
    sim.end();
}

/// A client that waits hears of a message ahead of the change by which it is served, although its
/// worker was told of the latter first.
#[test]
fn a_served_client_hears_of_earlier_messages_first() {
    for seed in 0..20 {
        let mut sim = Sim::new(seed, Faults::NONE, Config::default());
        sim.connect(2);
        for request in [&["HELLO", "3"][..], &["SUBSCRIBE", "c"], &["BLPOP", "k", "0"]] {
            sim.clients[1].say(request);
            sim.run_for(1_000_000);
        }
        sim.clients[1].got.clear();
        sim.clients[0].say(&["PUBLISH", "c", "first"]);
        sim.clients[0].say(&["LPUSH", "k", "second"]);
        sim.run_until(|sim| {
            let got = &sim.clients[1].got;
            got.windows(6).any(|word| word == b"second") && got.windows(5).any(|w| w == b"first")
        });
        let got = String::from_utf8(sim.clients[1].got.clone()).expect("text");
        let expected = ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$5\r\nfirst\r\n\
                        *2\r\n$1\r\nk\r\n$6\r\nsecond\r\n";
        assert_eq!(got, expected, "seed {seed}");
        sim.clients[1].got.clear();
        sim.end();
    }
}

/// A subscriber that never reads is closed when more than its limit is unread, not before. The
/// publisher is answered, and the others receive everything.
#[test]
fn a_subscriber_that_never_reads_is_closed_at_its_limit() {
    const LEN: usize = 64 << 10;
    const LIMIT: usize = 1 << 20;
    let buffer = Faults::NONE.buffer_bytes;
    for at_worker in [0, 1] {
        let mut config = Config::default();
        config.output_limits[2] =
            BufferLimit { hard_bytes: LIMIT as u64, soft_bytes: 0, soft_seconds: 0 };
        let mut sim = Sim::new(2, Faults::NONE, config);
        sim.connect(4 + at_worker);
        let (publisher, near, far) = (0, 2, 1);
        let lazy = sim.join(); // its turn to be at this worker
        assert!(lazy.write(&encode(&["SUBSCRIBE", "a"])) > 0);
        for reader in [near, far] {
            assert_eq!(sim.ask(reader, &["SUBSCRIBE", "a"]), confirmed("subscribe", "a", 1));
        }
        let mut published = 0;
        loop {
            sim.forget_steps();
            let text = message(published, LEN);
            let receivers = sim.ask(publisher, &["PUBLISH", "a", &text]).integer();
            for reader in [near, far] {
                assert!(sim.reply(reader) == told("a", &text), "message {published}");
            }
            if receivers == 2 {
                break;
            }
            assert_eq!(receivers, 3);
            published += 1;
        }
        // (One buffer is the peer's, one that of the driver.)
        let unread = published * LEN;
        assert!(unread > LIMIT, "{unread}: closed too early");
        assert!(unread <= LIMIT + 2 * buffer + 2 * LEN, "{unread}: closed too late");
        sim.run_until(|sim| sim.shared.registry.len() == 4 + at_worker);
        drop(lazy);
        assert_eq!(sim.shared.pubsub.totals.clients.load(Relaxed), 2);
        sim.end();
    }
}

/// Once CLIENT KILL is answered, nobody counts those who were killed, although their workers had
/// nothing to do.
#[test]
fn a_killed_subscriber_of_an_idle_worker_is_not_counted() {
    for seed in 0..20 {
        let mut sim = Sim::new(seed, Faults::NONE, Config::default());
        sim.connect(4);
        for (client, request, word) in [
            (1, "SUBSCRIBE", "subscribe"),
            (2, "SUBSCRIBE", "subscribe"),
            (3, "SSUBSCRIBE", "ssubscribe"),
        ] {
            assert_eq!(sim.ask(client, &[request, "a"]), confirmed(word, "a", 1));
        }
        sim.run_for(1_000_000);
        // The other worker, where two of them are, has nothing to do and does not turn yet.
        sim.clients[0].say(&["CLIENT", "KILL", "TYPE", "PUBSUB"]);
        assert_eq!(reply_of_first(&mut sim, 0, 300), None, "seed {seed}: they are counted");
        assert_eq!(sim.reply(0), Reply::Integer(3));
        assert_eq!(sim.ask(0, &["PUBLISH", "a", "x"]), Reply::Integer(0), "seed {seed}");
        assert_eq!(sim.ask(0, &["SPUBLISH", "a", "x"]), Reply::Integer(0), "seed {seed}");
        assert_eq!(sim.ask(0, &["PUBSUB", "CHANNELS"]), Reply::Array(Vec::new()));
        sim.end();
    }
}

/// All clients move all the time, but those that subscribe. Each receives what was published while
/// it subscribed, as often as publishers counted it and in their order, wherever both are.
#[test]
fn messages_reach_subscribers_while_all_move() {
    const ROUNDS: usize = 12;
    for seed in 0..60 {
        let mut sim = Sim::new(seed, CUTTING, Config::default());
        sim.shared.loads.is_forced.store(true, Relaxed);
        sim.connect(6);
        let (subscribers, publishers) = ([0, 1, 2], [3, 4, 5]);
        let (mut counted, mut received) = (0, 0);
        for round in 0..ROUNDS {
            for client in subscribers {
                assert_eq!(sim.ask(client, &["SUBSCRIBE", "a"]), confirmed("subscribe", "a", 1));
            }
            for client in publishers {
                for n in 0..4 {
                    sim.clients[client].say(&["PUBLISH", "a", &format!("{client}:{round}:{n}")]);
                }
            }
            for client in subscribers {
                sim.clients[client].say(&["UNSUBSCRIBE", "a"]);
            }
            for client in publishers {
                counted += (0..4).map(|_| sim.reply(client).integer()).sum::<i64>();
            }
            for client in subscribers {
                let mut last = [None; 6];
                loop {
                    let reply = sim.reply(client);
                    if reply == confirmed("unsubscribe", "a", 0) {
                        break;
                    }
                    let Reply::Array(parts) = &reply else { panic!("{reply:?}") };
                    let Reply::Bulk(text) = &parts[2] else { panic!("{reply:?}") };
                    let numbers: Vec<usize> =
                        text.split(':').map(|n| n.parse().expect("digits")).collect();
                    assert_eq!(numbers[1], round, "seed {seed}: {text}");
                    let before = last[numbers[0]].replace(numbers[2]);
                    assert!(before < Some(numbers[2]), "seed {seed}: {text} behind {before:?}");
                    received += 1;
                }
            }
        }
        assert_eq!(counted, received, "seed {seed}");
        assert!(sim.shared.sum(|w| w.moved_clients.get()) > 0, "seed {seed}");
        sim.end();
    }
}

/// A client of thousands of channels subscribes and leaves in steps: no turn works on more than 256
/// names of it, and another client of the same worker is answered meanwhile.
#[test]
fn very_many_channels_come_and_go_in_steps() {
    const NAMES: usize = 5_000;
    let channels = |sim: &Sim| sim.shared.pubsub.totals.channels.load(Relaxed) as usize;
    for ending in ["UNSUBSCRIBE", "RESET", "close"] {
        let mut sim = Sim::new(4, Faults::NONE, Config::default());
        sim.connect(3);
        let (subscriber, other) = (0, 2); // both are at worker 0
        let names: Vec<String> = (0..NAMES).map(|n| format!("channel:{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        sim.clients[subscriber].say(&[&["SUBSCRIBE"], &names[..]].concat());
        for goal in [NAMES, 0] {
            if goal == 0 && ending == "close" {
                sim.clients[subscriber].close();
            } else if goal == 0 {
                sim.clients[subscriber].say(&[ending]);
            }
            let mut answered = 0;
            sim.clients[other].say(&["PING"]);
            while channels(&sim) != goal {
                let before = channels(&sim);
                sim.step();
                let now = channels(&sim);
                // (A closed client is released 512 at a time.)
                assert!(now.abs_diff(before) <= 512, "{ending}: from {before} to {now} at once");
                if sim.clients[other].take_reply().is_some() {
                    answered += u32::from(now != goal && now != NAMES - goal);
                    sim.clients[other].say(&["PING"]);
                }
            }
            assert!(answered > 0, "{ending}: nobody is answered on the way to {goal}");
            while sim.clients[other].take_reply().is_none() {
                sim.step();
            }
        }
        sim.end();
    }
}
