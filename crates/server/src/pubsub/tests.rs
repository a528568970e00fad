//! Delivery in bounded steps, judged by turns and sends.

use crate::config::Config;
use crate::pubsub::deliver::{SEND_NS, TURN_NS};
use crate::pubsub::inbox::{Held, Inbox, Post, Published, ROOM_KEPT, Text, To, UNDERWAY_MAX, What};
use crate::pubsub::names::{Asked, Name};
use crate::pubsub::queue::Queue;
use crate::pubsub::registry::{PubSub, ToPublish};
use crate::sessions::output::Hold;
use crate::worker::Worker;
use crate::worker::message::Message;
use base::sync::Arc;
use base::sync::atomic::AtomicU64;
use base::sync::atomic::Ordering::Relaxed;
use command::ops::Subject;
use driver::loopback::Loopback;
use driver::{ConnId, Driver};
use std::collections::VecDeque;

/// Clients of one worker; the last one publishes.
struct World {
    worker: Worker<Loopback<Message>>,
    clients: usize,
}

/// What a turn may send: its part of messages, and some replies.
const SENDS_MAX: u64 = TURN_NS / SEND_NS + 3;

impl World {
    fn new(clients: usize) -> Self {
        let mut driver = Loopback::new(7);
        (0..=clients).for_each(|_| _ = driver.connect().expect("a pair of sockets"));
        let shared = crate::boot::make_shared(Config::default(), &mut driver, 1, || (0, 0));
        assert!(shared.mailboxes.set(vec![driver.mailbox()]).is_ok(), "set once");
        let worker = Worker::new(driver, Arc::new(shared), 0, Vec::new());
        let mut world = Self { worker, clients };
        world.turns(3);
        world
    }

    fn subscribed(clients: usize) -> Self {
        let mut world = Self::new(clients);
        for client in 0..clients {
            world.say(client, "SUBSCRIBE a");
        }
        while (0..clients).any(|client| world.got(client).is_empty()) {
            world.worker.turn();
        }
        world.forget();
        world
    }

    fn turns(&mut self, count: usize) {
        (0..count).for_each(|_| self.worker.turn());
    }

    fn say(&mut self, client: usize, line: &str) {
        self.worker.driver().write(client, format!("{line}\r\n").as_bytes());
    }

    fn publish(&mut self, line: &str) {
        self.say(self.clients, line);
    }

    fn got(&mut self, client: usize) -> String {
        String::from_utf8_lossy(self.worker.driver().received(client)).into_owned()
    }

    fn forget(&mut self) {
        (0..=self.clients).for_each(|client| self.worker.driver().forget(client));
    }

    /// Turns until every message is delivered. Returns how many turns and sends that took.
    fn deliver(&mut self) -> (u64, u64) {
        let (mut turns, mut sends) = (0, 0);
        loop {
            let before = self.worker.driver().stats().sends;
            self.worker.turn();
            let of_turn = self.worker.driver().stats().sends - before;
            assert!(of_turn <= SENDS_MAX, "{of_turn} sends in turn {turns}");
            if of_turn == 0 && !self.worker.core.has_posts() {
                return (turns, sends);
            }
            (turns, sends) = (turns + 1, sends + of_turn);
        }
    }
}

fn told(text: &str) -> String {
    format!("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n${}\r\n{text}\r\n", text.len())
}

const CLIENTS: usize = 2_000;

#[test]
fn a_message_to_many_clients_is_delivered_in_several_turns() {
    let mut world = World::subscribed(CLIENTS);
    world.publish("PUBLISH a one");
    let (turns, sends) = world.deliver();
    assert_eq!(world.got(CLIENTS), format!(":{CLIENTS}\r\n"));
    assert!((0..CLIENTS).all(|client| world.got(client) == told("one")));
    assert_eq!(sends, CLIENTS as u64 + 1);
    assert!((CLIENTS as u64 / SENDS_MAX..20).contains(&turns), "{turns} turns");
}

/// Messages to the same clients leave together, in their order: not one send for each.
#[test]
fn messages_to_the_same_clients_leave_together() {
    let mut world = World::subscribed(CLIENTS);
    (0..16).for_each(|n| world.publish(&format!("PUBLISH a {n}")));
    let (_, sends) = world.deliver();
    let all: String = (0..16).map(|n| told(&n.to_string())).collect();
    assert!((0..CLIENTS).all(|client| world.got(client) == all));
    assert!(sends < 2 * CLIENTS as u64, "{sends} sends");
}

/// A pipeline fills several windows: a worker delivers once for all of them.
#[test]
fn messages_of_a_long_pipeline_leave_with_one_send() {
    const MESSAGES: usize = 256;
    let mut world = World::subscribed(2);
    let lines: Vec<_> = (0..MESSAGES).map(|n| format!("PUBLISH a {n}")).collect();
    world.publish(&lines.join("\r\n"));
    let (turns, sends) = world.deliver();
    let all: String = (0..MESSAGES).map(|n| told(&n.to_string())).collect();
    assert_eq!([world.got(0), world.got(1)], [all.clone(), all]);
    assert_eq!((turns, sends), (1, 3), "replies, and messages to two clients");
}

/// What goes to the same clients through a pattern leaves together, whatever the channels are.
#[test]
fn messages_through_one_pattern_leave_together() {
    let mut world = World::new(CLIENTS);
    (0..CLIENTS).for_each(|client| world.say(client, "PSUBSCRIBE a*"));
    while (0..CLIENTS).any(|client| world.got(client).is_empty()) {
        world.worker.turn();
    }
    world.forget();
    (0..16).for_each(|n| world.publish(&format!("PUBLISH a{:02} {n}", n % 3)));
    let (_, sends) = world.deliver();
    let one = |n: usize| {
        let (channel, text) = (format!("a{:02}", n % 3), n.to_string());
        let head = "*4\r\n$8\r\npmessage\r\n$2\r\na*\r\n$3\r\n";
        format!("{head}{channel}\r\n${}\r\n{text}\r\n", text.len())
    };
    let all: String = (0..16).map(one).collect();
    assert!((0..CLIENTS).all(|client| world.got(client) == all));
    assert!(sends < 2 * CLIENTS as u64, "{sends} sends");
}

/// In the middle of a message to many: who asks receives it before the reply and not again, who
/// unsubscribes before that is confirmed, who begins to subscribe not at all, and who is closed
/// costs no other a message. A later message follows for all of them.
#[test]
fn clients_act_while_a_message_is_under_way() {
    let mut world = World::subscribed(CLIENTS);
    world.publish("PUBLISH a one");
    world.worker.turn();
    let (first, last) = (0, CLIENTS - 1);
    let both = (world.got(first), world.got(last));
    assert_eq!(both, (told("one"), String::new()), "it is under way");
    let pong = "*2\r\n$4\r\npong\r\n$0\r\n\r\n";
    let ended = "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n";
    let begun = "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n";
    world.say(first, "PING");
    world.say(last, "PING");
    world.say(last - 1, "UNSUBSCRIBE a");
    world.say(last - 2, "UNSUBSCRIBE a");
    world.say(last - 2, "SUBSCRIBE a");
    world.say(last - 3, "QUIT");
    world.worker.turn();
    assert_eq!(world.got(last), told("one") + pong);
    world.publish("PUBLISH a two");
    world.deliver();
    assert_eq!(world.got(first), told("one") + pong + &told("two"));
    assert_eq!(world.got(last), told("one") + pong + &told("two"));
    assert_eq!(world.got(last - 1), told("one") + ended);
    assert_eq!(world.got(last - 2), told("one") + ended + begun + &told("two"));
    assert!((1..last - 3).all(|client| world.got(client) == told("one") + &told("two")));
    assert_eq!(world.got(CLIENTS), format!(":{CLIENTS}\r\n:{}\r\n", CLIENTS - 2));
}

/// Clients of both protocols get several messages with one send each.
#[test]
fn messages_leave_together_in_both_protocols() {
    let mut world = World::new(CLIENTS);
    for client in 0..CLIENTS {
        if client.is_multiple_of(2) {
            world.say(client, "HELLO 3");
        }
        world.say(client, "SUBSCRIBE a");
    }
    while (0..CLIENTS).any(|client| !world.got(client).contains("subscribe")) {
        world.worker.turn();
    }
    world.forget();
    (0..16).for_each(|n| world.publish(&format!("PUBLISH a {n}")));
    let (_, sends) = world.deliver();
    let all: String = (0..16).map(|n| told(&n.to_string())).collect();
    for client in 0..CLIENTS {
        let expected =
            if client.is_multiple_of(2) { all.replace("*3\r\n", ">3\r\n") } else { all.clone() };
        assert_eq!(world.got(client), expected);
    }
    assert!(sends < 2 * CLIENTS as u64, "{sends} sends");
}

/// Patterns and channels in the middle of a message to many.
#[test]
fn messages_for_patterns_keep_their_order_in_steps() {
    let mut world = World::new(CLIENTS);
    for client in 0..CLIENTS {
        world.say(client, "PSUBSCRIBE a* *");
        if client.is_multiple_of(2) {
            world.say(client, "SUBSCRIBE a");
        }
    }
    let lines = |client: usize| if client.is_multiple_of(2) { 3 } else { 2 };
    while (0..CLIENTS).any(|c| world.got(c).matches("subscribe").count() < lines(c)) {
        world.worker.turn();
    }
    world.forget();
    (0..3).for_each(|n| world.publish(&format!("PUBLISH a {n}")));
    world.worker.turn();
    world.say(CLIENTS - 1, "PING");
    world.deliver();
    let (even, odd) = (world.got(0), world.got(1));
    for (n, count) in (0..3).map(|n| (n, 2)) {
        let text = format!("$1\r\n{n}\r\n");
        assert_eq!(odd.matches(&text).count(), count);
        assert_eq!(even.matches(&text).count(), count + 1);
    }
    let at = |n: usize| even.find(&told(&n.to_string())).expect("there");
    assert!(at(0) < at(1) && at(1) < at(2));
    for client in 0..CLIENTS - 1 {
        assert_eq!(world.got(client), [&even, &odd][client % 2].clone());
    }
    assert_eq!(world.got(CLIENTS - 1).replace("*2\r\n$4\r\npong\r\n$0\r\n\r\n", ""), odd);
}

/// A message of so many bytes, counted in a sum.
fn post_of(held: &Arc<AtomicU64>, len: usize) -> Post {
    Post {
        published: Arc::new(Published {
            what: What::Message {
                subject: Subject::Channel,
                channel: Name::new(1, b"name"),
                text: Text::Short(vec![0; len].into()),
            },
            epoch: 0,
            hold: Hold::NONE,
            from: (0, ConnId { index: 0, generation: 1 }),
            skips_publisher: false,
            held: Held::new(held, len as u64),
        }),
        to: To::Subscribers { is_direct: true, patterns: Box::default() },
    }
}

/// The bound counts names, texts and what a message takes beside them. The last one may cross it;
/// whoever waits is woken by the delivery that makes room, once.
#[test]
fn an_inbox_is_full_at_its_bound() {
    let (inbox, held) = (Inbox::default(), Arc::default());
    let post = |len| post_of(&held, len);
    let (one, waiter) = (16 << 20, ConnId { index: 5, generation: 1 });
    for n in 0..3 {
        inbox.push(post(one));
        assert!(!inbox.is_full(), "{n}");
    }
    let left = UNDERWAY_MAX - inbox.underway();
    let beside = inbox.underway() - 3 * one as u64;
    inbox.push(post((left - beside / 3) as usize - 1));
    assert_eq!(inbox.underway(), UNDERWAY_MAX - 1, "a byte below it");
    assert!(!inbox.is_full() && !inbox.wait(0, waiter));
    inbox.push(post(0));
    assert!(inbox.is_full() && inbox.wait(0, waiter));
    let mut posts = std::collections::VecDeque::new();
    inbox.take(&mut posts);
    assert!(inbox.is_full(), "what was taken is not delivered");
    let woken: Vec<usize> = posts.iter().map(|post| inbox.delivered(post).len()).collect();
    assert_eq!((woken, inbox.underway()), (vec![1, 0, 0, 0, 0], 0));
}

/// A backlog of very many messages leaves no room behind when it is delivered, wherever it was.
#[test]
fn the_room_of_a_backlog_is_given_back() {
    let (inbox, mut queue, held) = (Inbox::default(), Queue::default(), Arc::default());
    for round in 0..3 {
        for _ in 0..20_000 {
            inbox.push(post_of(&held, 1));
        }
        assert!(inbox.room() > ROOM_KEPT);
        queue.take_from(&inbox);
        assert!(inbox.room() <= ROOM_KEPT, "round {round}: {}", inbox.room());
        let mut delivered = 0;
        while !queue.is_empty() {
            queue.begin();
            for post in queue.end() {
                assert!(inbox.delivered(&post).is_empty(), "nobody waits");
                delivered += 1;
            }
        }
        assert_eq!((delivered, queue.last_number()), (20_000, 20_000 * (round + 1)));
        assert!(queue.room() <= ROOM_KEPT, "round {round}: {}", queue.room());
    }
    assert_eq!((inbox.underway(), held.load(Relaxed)), (0, 0));
}

/// A client that has left is not counted by messages that follow, which another one of its worker
/// receives: by their epochs it is known that they are not for it. (Those that came between its
/// leave and its last look into the inbox were delivered to it, and counted by nobody.)
#[test]
fn what_follows_the_end_of_a_subscription_has_a_later_epoch() {
    for subject in [Subject::Channel, Subject::Pattern] {
        let pubsub = PubSub::new(1);
        let asked = Asked { hash: 7, text: b"a" };
        let (name, _) = pubsub.join(0, subject, asked);
        pubsub.join(0, subject, asked);
        let publish = || {
            let message = ToPublish {
                subject: Subject::Channel,
                channel: asked,
                text: &|| Text::Short(b"x".as_slice().into()),
                epoch: None,
                hold: Hold::NONE,
                from: (0, ConnId { index: 0, generation: 1 }),
                skips_publisher: false,
                cannot_wait: false,
            };
            pubsub.publish(&message, |_| {}).expect("there is room")
        };
        assert_eq!(publish(), 2);
        let until = pubsub.leave(0, subject, &name);
        assert_eq!(publish(), 1);
        let mut posts = VecDeque::new();
        pubsub.inbox(0).take(&mut posts);
        let is_for_it: Vec<bool> = posts.iter().map(|p| p.published.epoch <= until).collect();
        assert_eq!(is_for_it, [true, false], "{subject:?}");
    }
}
