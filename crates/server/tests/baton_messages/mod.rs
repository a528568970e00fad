//! Stories of messages: threads may change places at each access to what they share.

use crate::sim_world::{CUTTING, Reply};
use crate::{Client, World, ask};
use base::sync::atomic::Ordering::Relaxed;
use base::sync::baton::{Rates, Summary};
use std::collections::VecDeque;

/// Messages in one pipeline of a publisher.
const PIPELINE: usize = 4;

/// The text of a message, whatever it was subscribed to; nothing if it is something else.
fn message(reply: &Reply) -> Option<&str> {
    let (Reply::Array(parts) | Reply::Push(parts)) = reply else { return None };
    match &parts[..] {
        [Reply::Bulk(word), .., Reply::Bulk(text)]
            if word == "message" || word == "pmessage" || word == "smessage" =>
        {
            Some(text)
        }
        _ => None,
    }
}

/// A client that publishes numbers in pipelines.
struct Publisher {
    client: Client,
    id: usize,
    sent: usize,
    /// The last number that was answered; they begin with 1.
    answered: usize,
    /// Receivers of all messages.
    counted: i64,
}

impl Publisher {
    fn new(world: &World, id: usize) -> Self {
        Self { client: world.connect(), id, sent: 0, answered: 0, counted: 0 }
    }

    fn pump(&mut self, prng: &mut base::prng::Prng, goes_on: bool) {
        if goes_on && self.answered == self.sent {
            for _ in 0..PIPELINE {
                self.sent += 1;
                self.client.say(&["PUBLISH", "a", &format!("{}:{}", self.id, self.sent)]);
            }
        }
        assert_eq!(self.client.pump(prng), None, "nobody closes");
        while let Some(reply) = self.client.take_reply() {
            self.counted += reply.integer();
            self.answered += 1;
        }
    }

    fn is_idle(&self) -> bool {
        self.answered == self.sent
    }
}

/// A client that subscribes, receives some messages and unsubscribes, again and again.
struct Visitor {
    client: Client,
    on: [&'static str; 2],
    off: [&'static str; 2],
    rounds: usize,
    asked: bool,
    leaves: bool,
    /// What was answered to each publisher before it has subscribed.
    before: [usize; 2],
    /// What it has received in each round.
    received: Vec<Vec<String>>,
}

impl Visitor {
    fn pump(&mut self, prng: &mut base::prng::Prng, publishers: &[Publisher]) {
        if !self.asked && self.rounds > 0 {
            self.before = [publishers[0].answered, publishers[1].answered];
            self.client.say(&self.on);
            self.received.push(Vec::new());
            (self.asked, self.leaves) = (true, false);
        }
        assert_eq!(self.client.pump(prng), None, "nobody closes");
        while let Some(reply) = self.client.take_reply() {
            if let Some(text) = message(&reply) {
                let (who, n) = text.split_once(':').expect("publisher:number");
                let (who, n): (usize, usize) = (who.parse().expect("it"), n.parse().expect("it"));
                assert!(n > self.before[who], "{text} is from before the subscription");
                let all = self.received.last_mut().expect("it has subscribed");
                all.push(text.to_owned());
                if all.len() >= 3 && !self.leaves {
                    self.client.say(&self.off);
                    self.leaves = true;
                }
                continue;
            }
            let Reply::Array(parts) = &reply else { panic!("{reply:?}") };
            if parts[0] == Reply::Bulk(self.off[0].to_lowercase()) {
                assert!(self.leaves, "it has not asked to leave");
                (self.asked, self.rounds) = (false, self.rounds - 1);
            } else {
                assert_eq!(parts[0], Reply::Bulk(self.on[0].to_lowercase()));
                assert_eq!(self.received.last(), Some(&Vec::new()), "before it is confirmed");
            }
        }
    }
}

/// Clients subscribe and leave while others publish. Each message reaches as many as its publisher
/// counted; all see all publishers in one order, and each sees a part of it without gaps, between
/// its answered SUBSCRIBE and its answered UNSUBSCRIBE.
pub fn subscribers_come_and_go(seed: u64) -> Summary {
    const ROUNDS: usize = 6;
    let mut world = World::start(seed, Rates::ROUGH, CUTTING);
    // This one receives everything: it tells the order.
    let mut witness = world.connect();
    ask(&mut world, &mut witness, &["SUBSCRIBE", "a"]);
    let mut publishers = [0, 1].map(|id| Publisher::new(&world, id));
    let ways = [
        (["SUBSCRIBE", "a"], ["UNSUBSCRIBE", "a"]),
        (["PSUBSCRIBE", "a*"], ["PUNSUBSCRIBE", "a*"]),
        (["SUBSCRIBE", "a"], ["UNSUBSCRIBE", "a"]),
        (["SUBSCRIBE", "a"], ["UNSUBSCRIBE", "a"]),
    ];
    let mut visitors = ways.map(|(on, off)| Visitor {
        client: world.connect(),
        on,
        off,
        rounds: ROUNDS,
        asked: false,
        leaves: false,
        before: [0; 2],
        received: Vec::new(),
    });
    let mut order: Vec<String> = Vec::new();
    world.run(|prng| {
        let goes_on = visitors.iter().any(|visitor| visitor.rounds > 0);
        publishers.iter_mut().for_each(|publisher| publisher.pump(prng, goes_on));
        visitors.iter_mut().for_each(|visitor| visitor.pump(prng, &publishers));
        assert_eq!(witness.pump(prng), None, "nobody closes");
        while let Some(reply) = witness.take_reply() {
            order.push(message(&reply).expect("a message").to_owned());
        }
        let sent: usize = publishers.iter().map(|publisher| publisher.sent).sum();
        !goes_on && publishers.iter().all(Publisher::is_idle) && order.len() == sent
    });
    for publisher in &publishers {
        let own = order.iter().filter_map(|text| text.strip_prefix(&format!("{}:", publisher.id)));
        assert!(own.eq((1..=publisher.sent).map(|n| n.to_string()).collect::<Vec<_>>().iter()));
    }
    let mut received = order.len();
    for visitor in &visitors {
        for all in &visitor.received {
            received += all.len();
            let from = order.iter().position(|text| *text == all[0]).expect("it was published");
            assert_eq!(order[from..from + all.len()], all[..], "a part of the order");
        }
    }
    let counted: i64 = publishers.iter().map(|publisher| publisher.counted).sum();
    assert_eq!(received as i64, counted, "what was counted was received");
    drop((witness, publishers, visitors));
    world.shut_down()
}

/// Requests of a client that tracks in one pipeline.
const READS: usize = 6;

/// A client that keeps what it reads until it is told of a change, and another connection of the
/// same user, which reads the same behind it.
struct Cached {
    tracks: Client,
    other: Client,
    key: &'static str,
    step: usize,
    rounds: usize,
    held: Option<Reply>,
    now: Option<Reply>,
    /// The last value that it was answered, and whether it was told of a change since.
    last: Option<Reply>,
    is_told: bool,
    unanswered: usize,
    /// Rounds in which it was told of nothing, and compared.
    compared: usize,
}

impl Cached {
    /// In each round: it reads several times, the other one reads, and it reads what writers have
    /// counted behind their changes.
    fn pump(&mut self, prng: &mut base::prng::Prng) {
        let Self { tracks, other, key, .. } = self;
        match self.step {
            0 => {
                (0..READS).for_each(|_| tracks.say(&["GET", key]));
                self.unanswered = READS;
            }
            2 => other.say(&["GET", key]),
            4 => tracks.say(&["GET", &format!("behind:{key}")]),
            _ => {}
        }
        self.step += 1 - self.step % 2;
        assert_eq!((tracks.pump(prng), other.pump(prng)), (None, None), "nobody closes");
        while let Some(reply) = self.tracks.take_reply() {
            match (&reply, self.step) {
                (Reply::Push(parts), _) => {
                    assert_eq!(parts[0], Reply::Bulk("invalidate".into()));
                    let Reply::Array(keys) = &parts[1] else { panic!("{parts:?}") };
                    if keys.contains(&Reply::Bulk(self.key.into())) {
                        (self.held, self.is_told) = (None, true);
                    }
                }
                (Reply::Bulk(_), 1) => {
                    let is_same = self.last.as_ref() == Some(&reply);
                    assert!(!(is_same && self.is_told), "it was told ahead of an old value");
                    let is_new = self.last.is_some() && !is_same;
                    assert!(!is_new || self.is_told, "it was told behind a new value");
                    (self.last, self.is_told) = (Some(reply.clone()), false);
                    (self.held, self.unanswered) = (Some(reply), self.unanswered - 1);
                    self.step += usize::from(self.unanswered == 0);
                }
                (Reply::Bulk(behind), 5) => {
                    if let Some(held) = self.held.take() {
                        let number = |text: &str| text.parse::<u64>().expect("a number");
                        let Reply::Bulk(held_text) = &held else { panic!("{held:?}") };
                        let is_seen = number(behind) > number(held_text);
                        assert!(!is_seen, "it sees a change of which it was not told");
                        assert_eq!(Some(held), self.now, "it is stale, and nobody has told");
                        self.compared += 1;
                    }
                    (self.step, self.rounds) = (0, self.rounds - 1);
                }
                other => panic!("{other:?}"),
            }
        }
        if let Some(reply) = self.other.take_reply() {
            assert_eq!(self.step, 3);
            (self.now, self.step) = (Some(reply), 4);
        }
    }
}

/// Clients that track read keys while others change them, alone and in transactions, and count
/// behind each change. A value that they hold, although they were told of what has come, is the one
/// that another connection has read meanwhile: no message stands before the reply with the old
/// value. And they have not seen a count behind a change of which they were not told.
pub fn caches_are_told(seed: u64) -> Summary {
    const ROUNDS: usize = 30;
    const PAUSE: u64 = 20;
    // (Short holds, often: a change fits between any two steps of a read.)
    let rates = Rates { switch_one_in: 30, hold_one_in: 100, hold_ns_max: 300_000, ..Rates::ROUGH };
    let mut world = World::start(seed, rates, CUTTING);
    let modes: [&[&str]; 3] = [&[], &["BCAST", "PREFIX", "k"], &[]];
    let mut caches: Vec<Cached> = Vec::new();
    for (mode, key) in modes.into_iter().zip(["k0", "k0", "k1"]) {
        let [mut tracks, mut other] = [(); 2].map(|()| world.connect());
        ask(&mut world, &mut other, &["MSET", key, "0", &format!("behind:{key}"), "0"]);
        ask(&mut world, &mut tracks, &["HELLO", "3"]);
        let on = [&["CLIENT", "TRACKING", "ON"], mode].concat();
        assert_eq!(ask(&mut world, &mut tracks, &on), Reply::ok());
        caches.push(Cached {
            tracks,
            other,
            key,
            step: 0,
            rounds: ROUNDS,
            held: None,
            now: None,
            last: None,
            is_told: false,
            unanswered: 0,
            compared: 0,
        });
    }
    let mut writers = [(); 3].map(|()| (world.connect(), 0));
    world.run(|prng| {
        let goes_on = caches.iter().any(|cache| cache.rounds > 0);
        for (at, (writer, unanswered)) in writers.iter_mut().enumerate() {
            // (With pauses: a reader that is told of something each time compares nothing.)
            if *unanswered == 0 && goes_on && prng.chance(1, PAUSE) {
                let key = if at < 2 { "k0" } else { "k1" };
                if prng.chance(1, 3) {
                    writer.say(&["MULTI"]);
                    writer.say(&["INCR", key]);
                    writer.say(&["EXEC"]);
                    *unanswered = 3;
                } else {
                    writer.say(&["INCR", key]);
                    *unanswered = 1;
                }
                writer.say(&["INCR", &format!("behind:{key}")]);
                *unanswered += 1;
            }
            assert_eq!(writer.pump(prng), None, "nobody closes");
            while writer.take_reply().is_some() {
                *unanswered -= 1;
            }
        }
        caches.iter_mut().filter(|cache| cache.rounds > 0).for_each(|cache| cache.pump(prng));
        !goes_on && writers.iter().all(|(_, unanswered)| *unanswered == 0)
    });
    let compared: usize = caches.iter().map(|cache| cache.compared).sum();
    eprintln!("{compared} of {} reads were compared", 3 * ROUNDS);
    assert!(caches.iter().any(|cache| cache.compared < ROUNDS), "nothing was changed");
    let tracking = &world.server.shared().expect("it runs").expect("it has started").tracking;
    assert!(tracking.bytes() < 1000, "four keys, and who has read them");
    drop((caches, writers));
    world.shut_down()
}

/// Subscribers are killed, or close, while messages are delivered and others take their places. No
/// other loses a message or receives one that is not its own; who is killed is not counted once
/// CLIENT KILL is answered; nothing is left of them.
pub fn subscribers_are_killed(seed: u64) -> Summary {
    const ROUNDS: usize = 8;
    let mut world = World::start(seed, Rates::ROUGH, CUTTING);
    let mut stays: Vec<(Client, VecDeque<String>)> = Vec::new();
    for _ in 0..3 {
        let mut client = world.connect();
        ask(&mut world, &mut client, &["SUBSCRIBE", "a"]);
        stays.push((client, VecDeque::new()));
    }
    let mut publisher = Publisher::new(&world, 0);
    let (mut control, mut second) = (world.connect(), world.connect());
    for round in 0..ROUNDS {
        let controls = [&mut control, &mut second];
        some_are_killed(&mut world, round, &mut stays, &mut publisher, controls);
    }
    let numbers: Vec<String> = (1..=publisher.sent).map(|n| format!("0:{n}")).collect();
    world.run(|prng| {
        take_messages(&mut stays, prng);
        stays.iter().all(|(_, got)| got.len() >= numbers.len())
    });
    for (_, got) in &stays {
        assert_eq!(*got, numbers, "all of them, in order");
    }
    let shared = world.server.shared().expect("it runs").expect("it has started");
    world.run(|_| shared.pubsub.totals.clients.load(Relaxed) == 3);
    assert_eq!(ask(&mut world, &mut control, &["PUBLISH", "a", "x"]), Reply::Integer(3));
    world.run(|prng| {
        take_messages(&mut stays, prng);
        stays.iter().all(|(_, got)| got.back().is_some_and(|text| text == "x"))
    });
    world.run(|_| shared.pubsub.message_bytes() == 0);
    drop((shared, stays, publisher, control, second));
    world.shut_down()
}

/// Some subscribe, and are killed or close, while the publisher goes on.
fn some_are_killed(
    world: &mut World,
    round: usize,
    stays: &mut [(Client, VecDeque<String>)],
    publisher: &mut Publisher,
    [control, second]: [&mut Client; 2],
) {
    let mut ids = Vec::new();
    let mut victims: Vec<Client> = Vec::new();
    for _ in 0..3 {
        let mut victim = world.connect();
        ids.push(ask(world, &mut victim, &["CLIENT", "ID"]).integer().to_string());
        ask(world, &mut victim, &["SUBSCRIBE", "a"]);
        victims.push(victim);
    }
    // All are killed; or one closes by itself, and another client takes a place that is free.
    if round % 2 == 0 {
        let closes = world.prng.below(3) as usize;
        drop(victims.remove(closes));
        ids.remove(closes);
    }
    let mut newcomer = world.connect();
    newcomer.say(&["PING"]);
    for id in &ids {
        control.say(&["CLIENT", "KILL", "ID", id]);
    }
    let (mut killed, mut last, mut newcomers) = (0, None, None);
    world.run(|prng| {
        publisher.pump(prng, killed < ids.len());
        assert_eq!(control.pump(prng), None, "nobody closes");
        while let Some(reply) = control.take_reply() {
            assert_eq!(reply, Reply::Integer(1));
            killed += 1;
            if killed == ids.len() {
                second.say(&["PUBSUB", "NUMSUB", "a"]);
            }
        }
        assert_eq!(second.pump(prng), None, "nobody closes");
        last = last.take().or_else(|| second.take_reply());
        for victim in &mut victims {
            _ = victim.pump(prng); // closed, sooner or later
        }
        take_messages(stays, prng);
        assert_eq!(newcomer.pump(prng), None, "nobody closes");
        newcomers = newcomers.take().or_else(|| newcomer.take_reply());
        last.is_some() && newcomers.is_some() && publisher.is_idle()
    });
    let Some(Reply::Array(parts)) = last else { panic!("{last:?}") };
    // (That one has closed may not be known.)
    let (count, most) = (parts[1].integer(), 6 - ids.len() as i64);
    assert!((3..=most).contains(&count), "round {round}: {count} are counted");
    assert_eq!(newcomers, Some(Reply::Simple("PONG".into())));
    assert_eq!(newcomer.take_reply(), None, "it has subscribed to nothing");
}

fn take_messages(stays: &mut [(Client, VecDeque<String>)], prng: &mut base::prng::Prng) {
    for (client, got) in stays {
        assert_eq!(client.pump(prng), None, "nobody closes");
        while let Some(reply) = client.take_reply() {
            got.push_back(message(&reply).expect("a message").to_owned());
        }
    }
}
