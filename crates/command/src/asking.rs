//! Many questions to one collection: above [`AT_ONCE`] they are answered in steps, on the
//! collection as it was when the command was executed.

use base::UnixMs;
use keyspace::{Captured, Encoding, Entry, Keyspace, Kind};
use resp::{OwnedRequest, Reply};
use value::Big;

use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;

/// More questions are answered in steps.
const AT_ONCE: usize = 1_000;
/// Questions that are answered in one step: a miss of the cache for each node on the way.
const STEP_QUESTIONS: usize = 200;
/// Bytes of a reply that end a step.
const STEP_BYTES: usize = 64 * 1024;

/// A collection apart from its key.
pub(crate) enum Held {
    /// A copy of a packed one.
    Packed(Vec<u8>, Encoding),
    /// A reference to another one.
    Big(Captured),
}

impl Held {
    fn of(keyspace: &Keyspace, entry: Entry<'_>) -> Self {
        if let Some(big) = entry.big() {
            return Self::Big(keyspace.capture(big));
        }
        let packed = entry.packed().expect("packed or big");
        Self::Packed(packed.to_vec(), entry.encoding())
    }

    /// The value outside an entry.
    pub fn big(&self) -> Option<&Big> {
        match self {
            Self::Packed(..) => None,
            Self::Big(big) => Some(big),
        }
    }
}

/// Replies what the collection holds under one argument.
pub(crate) type Answer = fn(&Held, &[u8], UnixMs, &mut Reply<'_>);

/// Answers the questions in the arguments from `from` on in steps, if they are many, as an array.
/// Returns `None` if they are few, or if there is no such collection; nothing has happened then.
///
/// # Errors
/// If the first key holds another kind of value.
#[inline]
pub(crate) fn in_steps(
    ctx: &mut Ctx<'_, '_>,
    kind: Kind,
    from: usize,
    answer: Answer,
) -> Result<Option<Done>, Error> {
    if ctx.args.len() <= from + AT_ONCE { Ok(None) } else { begin(ctx, kind, from, answer) }
}

#[cold]
fn begin(
    ctx: &mut Ctx<'_, '_>,
    kind: Kind,
    from: usize,
    answer: Answer,
) -> Result<Option<Done>, Error> {
    let (key, keyspace) = (ctx.key(1), ctx.guard.keyspace());
    if ctx.guard.peek(ctx.db, &key).is_none() {
        return Ok(None);
    }
    let request = OwnedRequest::new(ctx.args);
    let (Some(entry), reply) = ctx.read_reply(1, kind)? else { return Ok(None) };
    reply.array(request.args().len() - from);
    let held = Held::of(keyspace, entry);
    Ok(Some(Done::Steps(Box::new(Asking { held, request, next: from, answer, now: ctx.now }))))
}

/// Questions under way.
struct Asking {
    held: Held,
    request: OwnedRequest,
    /// The argument that is asked next.
    next: usize,
    answer: Answer,
    /// When the command was executed.
    now: UnixMs,
}

impl Resumable for Asking {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let args = self.request.args();
        let full = ctx.reply.position().bytes + STEP_BYTES;
        for _ in 0..STEP_QUESTIONS.min(args.len() - self.next) {
            (self.answer)(&self.held, args.get(self.next), self.now, &mut ctx.reply);
            self.next += 1;
            if ctx.reply.position().bytes >= full {
                break;
            }
        }
        Ok(Progress::complete_if(self.next == args.len()))
    }

    fn memory(&self) -> usize {
        self.request.memory()
    }
}
