//! PUBSUB: who subscribes to what.

use crate::execute::caller::Caller;
use crate::execute::outcome::{Called, Outcome};
use crate::pubsub::names::{Asked, Name, PARTS};
use crate::pubsub::patterns::is_match;
use crate::shared::Shared;
use crate::worker::core::Core;
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;
use command::ops::{Bytes, PubSubOp, Subject};
use command::{Ctx, Done, Error, Progress, Resumable};
use resp::{OutBuf, Reply};

/// Names that a step looks at, or writes. A part of all channels is looked at whole.
const NAMES_PER_STEP: usize = 2048;

impl Core {
    /// PUBSUB.
    pub(crate) fn pubsub_op(&self, out: &mut OutBuf, caller: &Caller, op: PubSubOp) -> Called {
        let pubsub = &self.shared.pubsub;
        match op {
            PubSubOp::Patterns => {
                let count = pubsub.totals.patterns.load(Relaxed);
                caller.reply(out).integer(count as i64);
            }
            PubSubOp::Counts(subject, names) => {
                let mut reply = caller.reply(out);
                reply.array(2 * names.len());
                for text in &names {
                    let hash = self.shared.keyspace.key(text).hash;
                    reply.bulk(text);
                    reply.integer(pubsub.count(subject, Asked { hash, text }) as i64);
                }
            }
            PubSubOp::Channels(subject, pattern) => {
                let shared = Arc::clone(&self.shared);
                let (names, part, written) = (Vec::new(), 0, 0);
                let mut listing = Listing { shared, subject, pattern, names, part, written };
                if caller.may_suspend {
                    return Called::Left(Done::Steps(Box::new(listing)));
                }
                let mut reply = caller.reply(out);
                while listing.advance(&mut reply) == Progress::More {}
            }
        }
        Outcome::Done.into()
    }
}

/// PUBSUB CHANNELS, in steps: first the names are collected, then they are written. Inside EXEC all
/// steps are done at once.
struct Listing {
    shared: Arc<Shared>,
    subject: Subject,
    pattern: Option<Bytes>,
    names: Vec<Name>,
    part: usize,
    written: usize,
}

impl Listing {
    /// A step.
    fn advance(&mut self, reply: &mut Reply<'_>) -> Progress {
        let wanted = |name: &[u8]| match &self.pattern {
            Some(pattern) => is_match(pattern, name),
            None => true,
        };
        let mut seen = 0;
        if self.part < PARTS {
            while self.part < PARTS && seen < NAMES_PER_STEP {
                let pubsub = &self.shared.pubsub;
                seen += pubsub.list(self.part, self.subject, &mut self.names, wanted);
                self.part += 1;
            }
            if self.part < PARTS {
                return Progress::More;
            }
            reply.array(self.names.len());
        }
        let end = self.names.len().min(self.written + NAMES_PER_STEP);
        self.names[self.written..end].iter().for_each(|name| reply.bulk(name.text()));
        self.written = end;
        Progress::complete_if(end == self.names.len())
    }
}

impl Resumable for Listing {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        Ok(self.advance(&mut ctx.reply))
    }

    fn memory(&self) -> usize {
        self.names.capacity() * size_of::<Name>()
    }
}
