//! Adaptive acknowledgements choose the best strategy for a producer: a simulated server with costs
//! for reads, messages, acknowledgements and wakes serves producers which wait for acknowledgements
//! and producers which do not. For any number of producers, it loses at most a tenth compared with
//! the better one of acknowledging each read and batching.

use base::MonoNs;
use ingest::v2::{ACK_BYTES, Acking, Acks};
use std::collections::VecDeque;

const SECOND: u64 = 1_000_000_000;
/// Costs on the server in nanoseconds, as measured on loopback. Only the ratios matter.
const WAKE: u64 = 5_000;
const POLL: u64 = 1_000;
const READ: u64 = 2_000;
const ACK: u64 = 6_000;
const TIMER: u64 = 500;
const MESSAGE: u64 = 10;
const BYTES_PER_NS: u64 = 10;
/// Costs on the producer.
const SEND: u64 = 5_000;
const MAKE: u64 = 20;
const ACK_READ: u64 = 2_000;

const MESSAGE_BYTES: u64 = 17;
const BUFFER: u64 = 65_536;
const SOCKET: u64 = 4 * BUFFER;

/// How a producer sends.
#[derive(Clone, Copy, Debug)]
enum Habit {
    /// At most this many unacknowledged messages. Everything allowed is sent in one send.
    Window(u64),
    /// The same, with one send per message.
    Singly(u64),
    /// Blocks of this many messages, as fast as the socket takes them.
    Endless(u64),
    /// One message per this many nanoseconds.
    Every(u64),
}

struct Producer {
    habit: Habit,
    acks: Acks,
    /// Sends in flight: their arrival times, and how many of their messages are not read yet.
    sends: VecDeque<(u64, u64)>,
    /// The producer's processor is busy until this time.
    busy: u64,
    /// The socket was full.
    blocked: bool,
    buffered: u64,
    taken: u64,
    acked: u64,
    written: u64,
}

impl Producer {
    fn new(habit: Habit, acking: Acking, at: u64) -> Self {
        let mut producer = Self {
            habit,
            acks: Acks::new(acking, 0, 0, 0),
            sends: VecDeque::new(),
            busy: at,
            blocked: false,
            buffered: 0,
            taken: 0,
            acked: 0,
            written: 0,
        };
        producer.may_send(at);
        producer
    }

    /// Sends what an acknowledgement has allowed.
    fn may_send(&mut self, now: u64) {
        let (window, most) = match self.habit {
            Habit::Window(window) => (window, window),
            Habit::Singly(window) => (window, 1),
            Habit::Endless(_) | Habit::Every(_) => return,
        };
        self.busy = self.busy.max(now);
        while self.written - self.acked < window {
            let count = most.min(window - (self.written - self.acked));
            self.busy += SEND + MAKE * count;
            self.push(count);
        }
    }

    fn push(&mut self, count: u64) {
        self.sends.push_back((self.busy, count));
        self.buffered += count * MESSAGE_BYTES;
        self.written += count;
    }

    /// Sends of a producer which does not wait, up to `now`.
    fn send_until(&mut self, now: u64) {
        let (count, pause) = match self.habit {
            Habit::Endless(count) => (count, 0),
            Habit::Every(pause) => (1, pause),
            Habit::Window(_) | Habit::Singly(_) => return,
        };
        while self.busy <= now && !self.blocked {
            self.blocked = self.buffered + count * MESSAGE_BYTES > SOCKET;
            if !self.blocked {
                self.busy += (SEND + MAKE * count).max(pause);
                self.push(count);
            }
        }
    }

    /// One read at `now`. Returns the number of messages.
    fn read(&mut self, now: u64) -> u64 {
        let (mut read, most) = (0, BUFFER / MESSAGE_BYTES);
        while let Some((_, count)) = self.sends.front_mut().filter(|(at, _)| *at <= now) {
            let part = (*count).min(most - read);
            *count -= part;
            read += part;
            if *count > 0 {
                break;
            }
            self.sends.pop_front();
        }
        self.taken += read;
        self.buffered -= read * MESSAGE_BYTES;
        if self.blocked && read > 0 {
            self.blocked = false;
            self.busy = self.busy.max(now + WAKE);
        }
        read
    }

    fn acknowledged(&mut self, now: u64) {
        self.acked = self.taken;
        match self.habit {
            Habit::Window(_) | Habit::Singly(_) => self.may_send(now + WAKE + ACK_READ),
            Habit::Endless(_) => self.busy += ACK_READ,
            Habit::Every(_) => {}
        }
    }
}

/// Runs for a time. Returns the messages acknowledged, and the server's work per message.
fn run(acking: Acking, producers: &[Habit], time: u64) -> (u64, f64) {
    let begin = |(n, habit): (usize, &Habit)| Producer::new(*habit, acking, n as u64 * 7_001);
    let mut producers: Vec<Producer> = producers.iter().enumerate().map(begin).collect();
    let (mut now, mut slept, mut out) = (0, 0, Vec::new());
    while now < time {
        let due = |p: &Producer| p.acks.due().map_or(u64::MAX, |due| due.0);
        let mut next = u64::MAX;
        for producer in &mut producers {
            producer.send_until(now);
            let came = producer.sends.front().map_or(u64::MAX, |(at, _)| *at);
            let comes = if producer.sends.is_empty() { producer.next_send() } else { came };
            next = next.min(comes).min(due(producer));
        }
        if next > now {
            slept += next - now;
            now = next + WAKE;
            continue; // more may have arrived while it woke up
        }
        let fetched = now;
        now += POLL;
        for producer in &mut producers {
            if producer.sends.front().is_none_or(|(at, _)| *at > fetched) {
                continue;
            }
            let count = producer.read(now);
            now += READ + count * (MESSAGE + MESSAGE_BYTES / BYTES_PER_NS);
            producer.acks.add_taken(producer.taken, count, MonoNs(now));
            if producer.acks.read_done(MonoNs(now), &mut out) > 0 {
                now += ACK;
                producer.acknowledged(now);
            }
        }
        for producer in &mut producers {
            if producer.acks.due().is_some_and(|due| due.0 <= fetched) {
                now += TIMER;
                if producer.acks.tick(MonoNs(fetched), &mut out) > 0 {
                    now += ACK;
                    producer.acknowledged(now);
                }
            }
        }
    }
    assert_eq!(out.len() % ACK_BYTES, 0);
    let acked: u64 = producers.iter().map(|p| p.acked).sum();
    (acked, (now - slept) as f64 / acked as f64)
}

impl Producer {
    /// The arrival of the next send of a producer which does not wait.
    fn next_send(&self) -> u64 {
        match self.habit {
            Habit::Endless(_) | Habit::Every(_) if !self.blocked => self.busy,
            _ => u64::MAX,
        }
    }
}

/// Checks one kind of producer. Returns the throughput of adaptive relative to the better strategy.
fn compare(habit: Habit, count: usize) -> f64 {
    let producers = vec![habit; count];
    let [adaptive, synchronous, batched] =
        Acking::ALL.map(|acking| run(acking, &producers, SECOND / 4));
    let best = synchronous.0.max(batched.0);
    let part = adaptive.0 as f64 / best as f64;
    println!(
        "{habit:?} x {count}: adaptive {} ({:.0} ns), synchronous {} ({:.0} ns), batched {} ({:.0} ns): {:.1} %",
        adaptive.0,
        adaptive.1,
        synchronous.0,
        synchronous.1,
        batched.0,
        batched.1,
        part * 100.0
    );
    part
}

#[test]
fn adaptive_loses_at_most_a_tenth_to_the_better_strategy() {
    let habits = [
        Habit::Window(1),
        Habit::Window(16),
        Habit::Singly(16),
        Habit::Singly(100),
        Habit::Window(10_000),
        Habit::Endless(1),
        Habit::Endless(100),
        Habit::Endless(BUFFER / MESSAGE_BYTES),
        Habit::Every(20_000),
        Habit::Every(150_000),
        Habit::Every(1_000_000),
    ];
    let mut worse = Vec::new();
    for habit in habits {
        for count in [1, 2, 16] {
            let part = compare(habit, count);
            if part < 0.9 {
                worse.push(format!("{habit:?} x {count}: {:.1} %", part * 100.0));
            }
        }
    }
    assert!(worse.is_empty(), "{worse:#?}");
}
