//! Clients which push unique elements into queues, and clients which pop them and wait for them.
//!
//! Queues 0 to 2 are lists: elements enter at the right and leave at the left. Queue 3 is a sorted
//! set: an element is its own score.

use crate::books::queues::Queue;
use crate::clients::number;
use crate::session::{Family, Request, Span};
use crate::world::World;
use client::Value;

/// Queues in use.
pub const QUEUES: u32 = 4;
/// The one which is a sorted set.
const SORTED: u32 = 3;

/// The key of a queue.
pub fn key(queue: Queue) -> String {
    format!("q:{}:{}", queue.0, queue.1)
}

/// True if this queue is a list.
pub fn is_list(queue: Queue) -> bool {
    queue.0 != SORTED
}

/// A client that pushes.
pub struct Pusher {
    /// The number of the client.
    pub who: u32,
    /// Its connections before this one.
    pub connections: u32,
}

impl Family for Pusher {
    type Ask = Vec<u64>;

    fn next(&mut self, world: &mut World) -> Vec<Request<Vec<u64>>> {
        let queue = (world.prng.below(u64::from(QUEUES)) as u32, world.epoch);
        let count = if world.prng.chance(1, 4) { 1 + world.prng.below(5) } else { 1 };
        let elements: Vec<u64> = (0..count).map(|_| world.books.unique()).collect();
        for element in &elements {
            world.books.queues.pushing(queue, *element, (self.who, self.connections));
        }
        let command = if is_list(queue) { "RPUSH" } else { "ZADD" };
        let shown = |n: &u64| if is_list(queue) { n.to_string() } else { format!("{n} {n}") };
        let words: Vec<String> = elements.iter().map(shown).collect();
        let text = format!("{command} {} {}", key(queue), words.join(" "));
        vec![Request::words(&text, elements)]
    }

    fn answered(&mut self, world: &mut World, ask: Vec<u64>, reply: Value, span: Span) {
        if !matches!(reply, Value::Integer(1..)) {
            return world.fail(format!("a push of {ask:?} is answered {reply:?}"));
        }
        for element in ask {
            world.books.queues.pushed(element, span);
        }
    }

    fn lost(&mut self, _: &mut World, _: Vec<u64>, _: u64, _: u64) {}

    fn disconnected(&mut self) {
        self.connections += 1;
    }
}

/// A client that pops.
pub struct Popper;

/// A pop from some queues.
#[derive(Clone, Copy, Debug)]
pub struct Pop {
    form: Form,
    epoch: u32,
    elements_max: u64,
}

/// How the reply looks.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// An element, or an array of them.
    Elements(u32),
    /// The key, and then the element, or the member and its score.
    WithKey,
    /// The key, and then an array of elements.
    KeyAndArray,
}

impl Popper {
    fn draw(world: &mut World) -> (String, Pop, u64) {
        let (one, two) = (world.prng.below(3) as u32, world.prng.below(3) as u32);
        let (wait_ms, epoch) = (1 + world.prng.below(80), world.epoch);
        let wait = format!("0.{wait_ms:03}");
        let (a, b, z) = (key((one, epoch)), key((two, epoch)), key((SORTED, epoch)));
        let pop = |form, elements_max| Pop { form, epoch, elements_max };
        let waits = wait_ms * 1_000_000;
        match world.prng.below(12) {
            0 => (format!("LPOP {a}"), pop(Form::Elements(one), 1), 0),
            1 => (format!("LPOP {a} 3"), pop(Form::Elements(one), 3), 0),
            2..5 => (format!("BLPOP {a} {b} {wait}"), pop(Form::WithKey, 1), waits),
            5 => (format!("BLPOP {a} {b} 0"), pop(Form::WithKey, 1), u64::MAX),
            6 | 7 => {
                let to = format!("moved:{epoch}");
                let text = format!("BLMOVE {a} {to} LEFT RIGHT {wait}");
                (text, pop(Form::Elements(one), 1), waits)
            }
            8 => {
                let text = format!("BLMPOP {wait} 2 {a} {b} LEFT COUNT 2");
                (text, pop(Form::KeyAndArray, 2), waits)
            }
            9 => (format!("ZPOPMIN {z}"), pop(Form::Elements(SORTED), 1), 0),
            _ => (format!("BZPOPMIN {z} {wait}"), pop(Form::WithKey, 1), waits),
        }
    }
}

/// The queue of this key.
fn queue_of(key: &Value) -> Option<Queue> {
    let (number, epoch) = key.as_str()?.strip_prefix("q:")?.split_once(':')?;
    Some((number.parse().ok()?, epoch.parse().ok()?))
}

/// The queue and the elements in a reply.
fn popped(pop: Pop, reply: &Value) -> Option<(Queue, Vec<u64>)> {
    let element = |value: &Value| number(value).and_then(|n| u64::try_from(n).ok());
    match (pop.form, reply) {
        (Form::Elements(queue), Value::Bulk(_)) => {
            Some(((queue, pop.epoch), vec![element(reply)?]))
        }
        // A member and its score, which are the same number.
        (Form::Elements(SORTED), Value::Array(pair)) => {
            let found: Option<Vec<u64>> = pair.iter().map(element).collect();
            Some(((SORTED, pop.epoch), found?.into_iter().take(1).collect()))
        }
        (Form::Elements(queue), Value::Array(all)) => {
            let found: Option<Vec<u64>> = all.iter().map(element).collect();
            Some(((queue, pop.epoch), found?))
        }
        (Form::WithKey, Value::Array(parts)) => {
            Some((queue_of(parts.first()?)?, vec![element(parts.get(1)?)?]))
        }
        (Form::KeyAndArray, Value::Array(parts)) => {
            let all = parts.get(1)?.as_members()?;
            let found: Option<Vec<u64>> = all.iter().map(element).collect();
            Some((queue_of(parts.first()?)?, found?))
        }
        _ => None,
    }
}

impl Family for Popper {
    type Ask = Pop;

    fn next(&mut self, world: &mut World) -> Vec<Request<Pop>> {
        let (text, pop, wait_ns) = Self::draw(world);
        let mut request = Request::words(&text, pop);
        request.wait_ns = wait_ns;
        vec![request]
    }

    fn answered(&mut self, world: &mut World, ask: Pop, reply: Value, span: Span) {
        if reply.is_null() || matches!(&reply, Value::Error(text) if text.starts_with(b"UNBLOCKED"))
        {
            return;
        }
        let Some((queue, elements)) = popped(ask, &reply) else {
            return world.fail(format!("{ask:?} is answered {reply:?}"));
        };
        for element in elements {
            let answered = world.books.queues.answered_ns(element).unwrap_or(0);
            // A request waits for its element once the server has accepted its connection.
            let since = answered.max(world.disturbed_until_ns).max(span.accepted_ns);
            let late = since + world.plan.patience_ns(100);
            let late = if world.plan.deaf_one_in > 0 { 0 } else { late };
            world.books.queues.popped(queue, element, span, late);
        }
        if let Some(wrong) = world.books.queues.wrong().cloned() {
            world.fail(wrong);
        }
    }

    fn lost(&mut self, world: &mut World, ask: Pop, _: u64, _: u64) {
        world.books.queues.pop_lost(ask.epoch, ask.elements_max);
    }
}
