//! A client with two strings of more than a megabyte. It writes them in parts and whole, copies
//! them, and compares each reply with a model. When a panic has cost its connection, its strings
//! are as some number of its unanswered commands have left them.

mod model;

use crate::clients::model::Want;
use crate::closings::Closing;
use crate::session::{Family, Question, Request, Span};
use crate::world::World;
use client::Value;
use model::{Key, Op, Said, Strings};

/// Commands in a pipeline or in EXEC at most.
const BATCH_MAX: u64 = 4;
/// It makes requests in one of so many of its turns, because they are large.
const TURNS: u64 = 3;

/// A client of this family.
pub struct Big {
    who: u32,
    /// Raised when it is not known what the keys hold.
    generation: u32,
    /// The incarnation of the server whose data it knows.
    epoch: u32,
    /// As of the last reply.
    strings: Strings,
    /// Commands without a reply, in their order. One of several operations takes effect whole.
    lost: Vec<Vec<Op>>,
    /// What the keys hold after the loss.
    found: Vec<Value>,
    /// What DUMP has returned, until it is restored.
    dumped: Option<Vec<u8>>,
    is_asking: bool,
}

/// A request of this family.
#[derive(Debug)]
pub enum Ask {
    /// One operation.
    One(Op),
    /// MULTI.
    Multi,
    /// An operation in MULTI.
    Queued,
    /// EXEC of these operations.
    Exec(Vec<Op>),
    /// What a key holds after commands were lost.
    Found,
    /// The last of a batch: the next one may follow.
    Last,
}

impl Big {
    /// The client with this number.
    pub fn new(who: u32) -> Self {
        Self {
            who,
            generation: 0,
            epoch: 0,
            strings: Strings::default(),
            lost: Vec::new(),
            found: Vec::new(),
            dumped: None,
            is_asking: false,
        }
    }

    fn key(&self, key: Key) -> Vec<u8> {
        format!("big{}:{}:{key:?}", self.who, self.generation).into_bytes()
    }

    fn request(&self, op: &Op) -> Vec<Vec<u8>> {
        op.command(&|key| self.key(key))
    }

    fn draw(&mut self, world: &mut World) -> Vec<Request<Ask>> {
        if let Some(payload) = self.dumped.take() {
            let op = Op::Restore(payload);
            return vec![Request::new(self.request(&op), Ask::One(op))];
        }
        let count = 1 + world.prng.below(BATCH_MAX);
        let transaction = world.prng.chance(1, 4);
        let ops: Vec<Op> = (0..count).map(|_| Op::draw(&mut world.prng, transaction)).collect();
        let requests: Vec<Vec<Vec<u8>>> = ops.iter().map(|op| self.request(op)).collect();
        if !transaction {
            let pairs = requests.into_iter().zip(ops);
            return pairs.map(|(args, op)| Request::new(args, Ask::One(op))).collect();
        }
        let mut all = vec![Request::words("MULTI", Ask::Multi)];
        all.extend(requests.into_iter().map(|args| Request::new(args, Ask::Queued)));
        all.push(Request::words("EXEC", Ask::Exec(ops)));
        all
    }

    /// Executes an operation in the model; the error is what is wrong with the reply.
    fn take(&mut self, op: &Op, reply: &Value) -> Result<(), String> {
        match self.strings.apply(op) {
            Said::Payload => match reply {
                Value::Bulk(payload) => self.dumped = Some(payload.clone()),
                other => return Err(format!("{op:?} is answered {other:.200?}")),
            },
            said if said.is(reply) => {}
            said => {
                return Err(format!("{op:?}: the model says {said:?}, the server {reply:.60?}"));
            }
        }
        Ok(())
    }

    /// Goes on with other keys.
    fn forget(&mut self) {
        let (generation, epoch) = (self.generation + 1, self.epoch);
        *self = Self { generation, epoch, ..Self::new(self.who) };
    }

    /// Finds how many of the lost commands have taken effect.
    fn resolve(&mut self, world: &mut World) {
        let (lost, found) = (std::mem::take(&mut self.lost), std::mem::take(&mut self.found));
        let count = lost.len();
        for ops in std::iter::once(Vec::new()).chain(lost) {
            for op in &ops {
                self.strings.apply(op);
            }
            let is = |key, value| Said::text(self.strings.get(key)).is(value);
            if is(Key::A, &found[0]) && is(Key::B, &found[1]) {
                world.count("strings found after a panic", self.who, format_args!("of {count}"));
                return;
            }
        }
        world.fail(format!(
            "c{}: after a panic the strings are as none of {count} unanswered commands left them",
            self.who
        ));
    }
}

impl Family for Big {
    type Ask = Ask;

    fn next(&mut self, world: &mut World) -> Vec<Request<Ask>> {
        if self.is_asking {
            return Vec::new();
        }
        if self.epoch != world.epoch {
            // Also what a panic left in doubt is gone with the server.
            self.forget();
            self.epoch = world.epoch;
        }
        if !world.prng.chance(1, TURNS) {
            return Vec::new();
        }
        self.is_asking = true;
        let mut all = if self.lost.is_empty() {
            self.draw(world)
        } else {
            let get = |key| Request::new(vec![b"GET".to_vec(), self.key(key)], Ask::Found);
            vec![get(Key::A), get(Key::B)]
        };
        all.push(Request::words("PING", Ask::Last));
        all
    }

    fn answered(&mut self, world: &mut World, ask: Ask, reply: Value, _: Span) {
        let done = match ask {
            Ask::One(op) => self.take(&op, &reply),
            Ask::Multi if reply == Value::ok() => Ok(()),
            Ask::Queued if reply == Value::simple("QUEUED") => Ok(()),
            Ask::Exec(ops) => match &reply {
                Value::Array(replies) if replies.len() == ops.len() => {
                    let mut pairs = ops.iter().zip(replies);
                    pairs.try_for_each(|(op, reply)| self.take(op, reply))
                }
                other => Err(format!("EXEC is answered {other:.60?}")),
            },
            Ask::Found => {
                self.found.push(reply);
                if self.found.len() == Key::BOTH.len() {
                    self.resolve(world);
                }
                Ok(())
            }
            Ask::Last if reply == Value::simple("PONG") => {
                self.is_asking = false;
                Ok(())
            }
            other => Err(format!("{other:?} is answered {reply:.60?}")),
        };
        if let Err(why) = done {
            world.fail(format!("c{}: {why}", self.who));
        }
    }

    fn lost(&mut self, _: &mut World, ask: Ask, _: u64, _: u64) {
        match ask {
            Ask::One(op) => self.lost.push(vec![op]),
            // What the commands before one that panicked did stands.
            Ask::Exec(ops) => self.lost.extend(ops.into_iter().map(|op| vec![op])),
            Ask::Multi | Ask::Queued | Ask::Found | Ask::Last => {}
        }
    }

    fn disconnected(&mut self, why: Closing) {
        (self.is_asking, self.dumped) = (false, None);
        self.found.clear();
        // A session that panicked executes nothing afterwards. Others may.
        if why != Closing::Panic {
            self.forget();
        }
    }

    fn questions(&self) -> Vec<Question> {
        if !self.lost.is_empty() {
            return Vec::new();
        }
        let ask = |key| {
            let text = self.strings.get(key);
            let want = if text.is_empty() { Value::Null } else { Value::bulk(text) };
            Question { args: vec![b"GET".to_vec(), self.key(key)], want: Want::Is(want) }
        };
        Key::BOTH.map(ask).into()
    }
}
