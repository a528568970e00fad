//! What a handler returns: whether its command is complete, and if not, how it resumes.

use std::fmt;

use keyspace::Parked;
use resp::OwnedRequest;

use crate::ctx::{Ctx, Progress, Resumable};
use crate::error::Error;

// Written and read behind every command: one byte says that all is well.
const _: () = assert!(size_of::<Result<Done, Error>>() == 24);

/// What a handler returns: whether its command is complete, and if not, how it resumes.
#[must_use]
pub enum Done {
    /// The reply is complete.
    Replied,
    /// The rest of the reply is written in steps, with the locks dropped, over a value that was
    /// captured ([`keyspace::Keyspace::capture`]); what was written of it stays.
    Steps(Box<dyn Resumable>),
    /// Nothing was changed and nothing written: this work is done ahead, in steps that write
    /// nothing and do not fail, with the locks dropped. Then the command runs again and finds it
    /// with [`Ctx::prepared`]; see [`crate::prepare`].
    Prepare(Box<dyn Resumable>),
    /// Of a blocking command: there was nothing to take.
    Nothing,
    /// As [`Done::Nothing`]; and if the command waits, then with these arguments
    /// ([`crate::stream::take`]).
    NothingYet(Box<OwnedRequest>),
    /// Nothing was changed and nothing written: the command is to be called again with the slots
    /// that serving needs; see [`Ctx::must_reach`].
    Reach,
    /// Nothing was changed and nothing written: there is a long holder on the way. All locks are
    /// dropped, the session parks there, and the command runs again.
    Park(Parked),
}

impl Done {
    /// Does the first step of a reply at once; the rest of it, if there is any, with the locks
    /// dropped.
    ///
    /// # Errors
    /// Those of the step.
    pub fn begin(mut work: impl Resumable, ctx: &mut Ctx<'_, '_>) -> Result<Self, Error> {
        Ok(match work.step(ctx)? {
            Progress::Complete => Self::Replied,
            Progress::More | Progress::Park(_) => Self::Steps(Box::new(work)),
        })
    }
}

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replied => f.write_str("Replied"),
            Self::Steps(_) => f.write_str("Steps"),
            Self::Prepare(_) => f.write_str("Prepare"),
            Self::Nothing => f.write_str("Nothing"),
            Self::NothingYet(_) => f.write_str("NothingYet"),
            Self::Reach => f.write_str("Reach"),
            Self::Park(at) => write!(f, "Park({at:?})"),
        }
    }
}
