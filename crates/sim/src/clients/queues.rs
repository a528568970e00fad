//! Clients which push unique elements into queues, and clients which pop them and wait for them.
//!
//! Queues 0 to 3 are lists. Elements enter the first two at the right and leave at the left, and go
//! through the other two the other way. Queue 4 is a sorted set: an element is its own score.

use crate::books::queues::Queue;
use crate::clients::number;
use crate::closings::Closing;
use crate::session::{Family, Request, Span};
use crate::world::World;
use client::Value;

/// Queues in use.
pub const QUEUES: u32 = 5;
/// The one which is a sorted set.
const SORTED: u32 = 4;

/// The end of a list at which elements leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The left one.
    Left,
    /// The right one.
    Right,
}

impl End {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Left, Self::Right];

    /// As a command names it.
    fn name(self) -> &'static str {
        ["LEFT", "RIGHT"][self as usize]
    }
}

/// The key of a queue.
pub fn key(queue: Queue) -> String {
    format!("q:{}:{}", queue.0, queue.1)
}

/// True if this queue is a list.
pub fn is_list(queue: Queue) -> bool {
    queue.0 != SORTED
}

/// Where elements leave a queue which is a list.
fn end_of(queue: u32) -> End {
    End::BOTH[(queue / 2 % 2) as usize]
}

/// The list to which elements are moved that leave at this end. They enter it at the other one.
pub fn moved_key(end: End, epoch: u32) -> String {
    format!("moved:{}:{epoch}", end as usize)
}

/// A client that pushes.
pub struct Pusher {
    who: u32,
    /// Connections before this one. What an earlier one has sent may come later.
    connections: u32,
}

impl Pusher {
    /// The client with this number.
    pub fn new(who: u32) -> Self {
        Self { who, connections: 0 }
    }
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
        let command = match end_of(queue.0) {
            _ if !is_list(queue) => "ZADD",
            End::Left => "RPUSH",
            End::Right => "LPUSH",
        };
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

    fn disconnected(&mut self, _: Closing) {
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
    /// It moves what it pops.
    moves: bool,
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
        let end = End::BOTH[world.prng.below(2) as usize];
        let mut queue = || 2 * end as u32 + world.prng.below(2) as u32;
        let (one, two) = (queue(), queue());
        let (wait_ms, epoch) = (1 + world.prng.below(80), world.epoch);
        let wait = format!("0.{wait_ms:03}");
        let (a, b, z) = (key((one, epoch)), key((two, epoch)), key((SORTED, epoch)));
        let (pop, from) = (if end == End::Left { "LPOP" } else { "RPOP" }, end.name());
        let takes = |form, elements_max| Pop { form, epoch, elements_max, moves: false };
        let waits = wait_ms * 1_000_000;
        match world.prng.below(14) {
            0 => (format!("{pop} {a}"), takes(Form::Elements(one), 1), 0),
            1 => (format!("{pop} {a} 3"), takes(Form::Elements(one), 3), 0),
            2..5 => (format!("B{pop} {a} {b} {wait}"), takes(Form::WithKey, 1), waits),
            5 => (format!("B{pop} {a} {b} 0"), takes(Form::WithKey, 1), u64::MAX),
            6..9 => {
                let (text, wait_ns) = Self::draw_move(world, end, &a, (&wait, waits));
                (text, Pop { moves: true, ..takes(Form::Elements(one), 1) }, wait_ns)
            }
            9 => {
                let text = format!("BLMPOP {wait} 2 {a} {b} {from} COUNT 2");
                (text, takes(Form::KeyAndArray, 2), waits)
            }
            10 => (format!("ZPOPMIN {z}"), takes(Form::Elements(SORTED), 1), 0),
            11 => {
                let text = format!("BZMPOP {wait} 1 {z} MIN COUNT 2");
                (text, takes(Form::KeyAndArray, 2), waits)
            }
            _ => (format!("BZPOPMIN {z} {wait}"), takes(Form::WithKey, 1), waits),
        }
    }

    /// A command that moves an element, and how long it waits.
    fn draw_move(
        world: &mut World,
        end: End,
        from: &str,
        (wait, wait_ns): (&str, u64),
    ) -> (String, u64) {
        let to = moved_key(end, world.epoch);
        let (blocks, is_old) = (world.prng.chance(2, 3), world.prng.chance(1, 2));
        match (end, blocks) {
            (End::Right, true) if is_old => (format!("BRPOPLPUSH {from} {to} {wait}"), wait_ns),
            (End::Right, false) if is_old => (format!("RPOPLPUSH {from} {to}"), 0),
            (_, true) => {
                let other = End::BOTH[1 - end as usize].name();
                (format!("BLMOVE {from} {to} {} {other} {wait}", end.name()), wait_ns)
            }
            (_, false) => {
                let other = End::BOTH[1 - end as usize].name();
                (format!("LMOVE {from} {to} {} {other}", end.name()), 0)
            }
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
            // A member comes with its score, which is the same number.
            let first = |value: &Value| element(value.as_members().map_or(value, |pair| &pair[0]));
            let found: Option<Vec<u64>> = all.iter().map(first).collect();
            Some((queue_of(parts.first()?)?, found?))
        }
        _ => None,
    }
}

/// Whether a waiting client gets now, with a reply, what was answered to have been added at
/// `since_ns`, later than it may. A client that does not read gets anything late.
pub fn is_late(world: &World, span: Span, since_ns: u64) -> bool {
    // A request waits for its element once the server has accepted its connection.
    let since_ns = since_ns.max(span.call_ns).max(span.accepted_ns);
    let patience_ns = world.plan.patience_ns(100);
    world.plan.deaf_one_in == 0 && world.patience_left_ns(since_ns, patience_ns).is_none()
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
            let answered = world.books.queues.answered_ns(element);
            let is_late = answered.is_some_and(|since| is_late(world, span, since));
            world.books.queues.popped((queue, element), span, is_late, ask.moves);
        }
        if let Some(wrong) = world.books.queues.wrong().cloned() {
            world.fail(wrong);
        }
    }

    fn lost(&mut self, world: &mut World, ask: Pop, _: u64, _: u64) {
        // What it has moved is where it was moved to.
        if !ask.moves {
            world.books.queues.pop_lost(ask.epoch, ask.elements_max);
        }
    }
}
