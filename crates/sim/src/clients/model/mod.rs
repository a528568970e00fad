//! Clients which have keys of their own, and compare each reply, and at the end the whole of their
//! keys, with a model.

mod data;

use crate::closings::Closing;
use crate::session::{Family, Question, Request, Span};
use crate::world::World;
use client::Value;
use data::Data;

/// A client of this family.
pub struct Model {
    who: u32,
    /// Raised when it is not known what the keys hold.
    generation: u32,
    data: Data,
}

/// The reply that must come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// This one.
    Is(Value),
    /// These elements in this order, as an array.
    Elements(Vec<Vec<u8>>),
    /// These members in any order.
    Members(Vec<Vec<u8>>),
    /// These fields and values in any order.
    Pairs(Vec<(Vec<u8>, Vec<u8>)>),
    /// A number, in whatever form.
    Number(i64),
    /// The replies of a transaction.
    All(Vec<Want>),
    /// Messages of a producer, as elements of a list or entries of a stream.
    Messages(Vec<(u64, String)>),
}

impl Want {
    /// Whether `reply` is the reply that must come.
    pub fn is(&self, reply: &Value) -> bool {
        let bytes = |value: &Value| value.as_bytes().unwrap_or_default().to_vec();
        match (self, reply) {
            (Self::Is(Value::Null), reply) => reply.is_null(),
            (Self::Is(wanted), reply) => wanted == reply,
            (Self::Elements(wanted), Value::Array(all)) => {
                wanted.len() == all.len()
                    && wanted.iter().eq(all.iter().map(bytes).collect::<Vec<_>>().iter())
            }
            (Self::Members(wanted), Value::Array(all) | Value::Set(all)) => {
                let mut all: Vec<Vec<u8>> = all.iter().map(bytes).collect();
                all.sort();
                *wanted == all
            }
            (Self::Pairs(wanted), Value::Map(all)) => {
                let mut all: Vec<_> = all.iter().map(|(f, v)| (bytes(f), bytes(v))).collect();
                all.sort();
                *wanted == all
            }
            (Self::Pairs(wanted), Value::Array(all)) => {
                let mut all: Vec<_> = all
                    .chunks(2)
                    .map(|pair| (bytes(&pair[0]), bytes(&pair[pair.len() - 1])))
                    .collect();
                all.sort();
                *wanted == all
            }
            (Self::Number(wanted), reply) => crate::clients::number(reply) == Some(*wanted),
            (Self::Messages(wanted), Value::Array(all)) => {
                wanted.len() == all.len() && wanted.iter().zip(all).all(|(w, r)| is_message(w, r))
            }
            (Self::All(wanted), Value::Array(all)) => {
                wanted.len() == all.len() && wanted.iter().zip(all).all(|(w, r)| w.is(r))
            }
            _ => false,
        }
    }
}

/// Whether an element or an entry is this message.
fn is_message((number, payload): &(u64, String), found: &Value) -> bool {
    let Value::Array(entry) = found else { return found.as_str() == Some(payload) };
    let fields = entry.last().and_then(Value::as_members).unwrap_or_default();
    let texts: Vec<&str> = fields.iter().filter_map(Value::as_str).collect();
    texts == ["id", &number.to_string(), "data", payload]
}

impl Model {
    /// The client with this number.
    pub fn new(who: u32) -> Self {
        Self { who, generation: 0, data: Data::default() }
    }

    fn prefix(&self) -> String {
        format!("m{}:{}:", self.who, self.generation)
    }
}

impl Family for Model {
    type Ask = Want;

    fn next(&mut self, world: &mut World) -> Vec<Request<Want>> {
        let prefix = self.prefix();
        // Long values travel long through small buffers.
        let bytes_max = (world.plan.faults.buffer_bytes * 4).min(100_000);
        let count = 1 + world.prng.below(world.plan.depth_max);
        let mut drawn: Vec<(Vec<Vec<u8>>, Want)> = (0..count)
            .map(|_| data::draw(&mut self.data, &mut world.prng, &prefix, bytes_max))
            .collect();
        if !world.prng.chance(1, 6) {
            return drawn.into_iter().map(|(args, want)| Request::new(args, want)).collect();
        }
        let ok = Want::Is(Value::ok());
        let mut all = vec![Request::words("MULTI", ok)];
        let queued = Want::Is(Value::simple("QUEUED"));
        all.extend(
            drawn.iter_mut().map(|(args, _)| Request::new(std::mem::take(args), queued.clone())),
        );
        let wanted = drawn.into_iter().map(|(_, want)| want).collect();
        all.push(Request::words("EXEC", Want::All(wanted)));
        all
    }

    fn answered(&mut self, world: &mut World, ask: Want, reply: Value, _: Span) {
        if !ask.is(&reply) {
            let (ask, reply) = (format!("{ask:.300?}"), format!("{reply:?}"));
            let cut = |text: &str| text.chars().take(400).collect::<String>();
            let (ask, reply) = (cut(&ask), cut(&reply));
            world.fail(format!("c{}: the model says {ask}, the server {reply}", self.who));
        }
    }

    fn lost(&mut self, _: &mut World, _: Want, _: u64, _: u64) {}

    fn disconnected(&mut self, _: Closing) {
        self.generation += 1;
        self.data = Data::default();
    }

    fn questions(&self) -> Vec<Question> {
        self.data.questions(&self.prefix())
    }
}
