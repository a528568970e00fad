//! Long work of commands that change data. It is prepared in steps, without locks, on captured
//! values.
//!
//! 1. A handler finds under its locks that its work is long (`work-at-once-elements`). It captures
//!    the values that it reads ([`Sources`]) and returns the work ([`begin`]). Nothing is changed
//!    and nothing written.
//! 2. The worker runs the steps of the work between its other commands.
//! 3. The command runs again from the beginning. The handler finds the prepared work ([`found`]).
//!    If its sources still hold what they held, the handler only puts the result in its place: the
//!    command happens at the moment of this run.
//!
//! If another client has changed a source meanwhile, the work is prepared again, [`TRIES_MAX`]
//! times at most. Then it is done under the locks, which are marked long: commands that need them
//! park.

use std::ops::Range;

use keyspace::{Captured, Entry, Kind};
use value::{Big, Str};

use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::string::captured::{CapturedText, part};

/// How often a command is prepared before it is done under its locks.
pub const TRIES_MAX: u32 = 3;

/// Whether what was made of a big collection still stands, now that it is another one.
pub type Holds = fn(was: &Big, now: &Big) -> bool;

/// What a key held when the work was begun.
enum Snapshot {
    Absent,
    /// Of a small collection: kind and bytes.
    Packed(Kind, Vec<u8>),
    Big(Captured, Holds),
    /// A string outside its entry.
    Text(CapturedText),
    /// The bytes of another string.
    Short(Vec<u8>),
}

impl Snapshot {
    fn is_still(&self, entry: Option<Entry<'_>>) -> bool {
        match (self, entry) {
            (Snapshot::Absent, None) => true,
            (Snapshot::Packed(kind, bytes), Some(entry)) => {
                entry.kind() == *kind && entry.packed() == Some(bytes)
            }
            (Snapshot::Big(was, holds), Some(entry)) => {
                entry.big().is_some_and(|big| holds(was, big))
            }
            (Snapshot::Text(was), Some(entry)) if entry.is_string() => {
                matches!(entry.str(), Str::Blob(now) if now.is_same(was))
            }
            (Snapshot::Short(bytes), Some(entry)) if entry.is_string() => {
                entry.str().len() == bytes.len() && entry.str().to_vec() == *bytes
            }
            _ => false,
        }
    }
}

/// What the keys in some arguments held, to be compared later. Capturing and comparing are O(1) for
/// each big collection and each big string.
pub struct Sources {
    /// The arguments, and what their keys held.
    held: Vec<(usize, Snapshot)>,
    /// How often the command was prepared before.
    tries: u32,
}

impl Sources {
    /// None yet, of a command that was prepared `tries` times before.
    pub const fn new(tries: u32) -> Self {
        Self { held: Vec::new(), tries }
    }

    /// Adds what the key in an argument holds, which is a big collection that may change as `holds`
    /// allows.
    ///
    /// # Panics
    /// If it is not one.
    pub fn add(&mut self, ctx: &mut Ctx<'_, '_>, at: usize, holds: Holds) {
        let (key, keyspace) = (ctx.key(at), ctx.guard.keyspace());
        let big = ctx.guard.peek(ctx.db, &key).and_then(|entry| entry.big());
        let was = keyspace.capture(big.expect("it holds a big collection"));
        self.held.push((at, Snapshot::Big(was, holds)));
    }

    /// The big collection that was added as number `n`, as it was.
    ///
    /// # Panics
    /// If there is none.
    pub fn big(&self, n: usize) -> &Big {
        match &self.held[n] {
            (_, Snapshot::Big(was, _)) => was,
            _ => unreachable!("it is no big collection"),
        }
    }

    /// The bytes in this range of the string in source `n`: fewer if it ends before. The range does
    /// not go beyond the longest of them.
    ///
    /// # Panics
    /// If it is no string.
    pub fn part<'a>(&'a self, n: usize, range: Range<usize>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let within = |len: usize| range.start.min(len)..range.end.min(len);
        match &self.held[n].1 {
            Snapshot::Absent => &[],
            Snapshot::Text(blob) => part(blob, within(blob.len()), scratch),
            Snapshot::Short(bytes) => &bytes[within(bytes.len())],
            Snapshot::Packed(..) | Snapshot::Big(..) => unreachable!("it is no string"),
        }
    }

    /// How many sources there are.
    pub fn count(&self) -> usize {
        self.held.len()
    }

    /// What the keys in these arguments hold; of a command that was prepared `tries` times before.
    pub fn of(ctx: &mut Ctx<'_, '_>, keys: Range<usize>, tries: u32) -> Self {
        let keyspace = ctx.guard.keyspace();
        let hold = |at| {
            let key = ctx.key(at);
            let source = match ctx.guard.peek(ctx.db, &key) {
                None => Snapshot::Absent,
                Some(entry) => match (entry.packed(), entry.big()) {
                    (Some(bytes), _) => Snapshot::Packed(entry.kind(), bytes.to_vec()),
                    (_, Some(big)) => Snapshot::Big(keyspace.capture(big), Big::is_same),
                    (None, None) => match entry.str() {
                        Str::Blob(blob) => {
                            Snapshot::Text(CapturedText::new(keyspace, blob.clone()))
                        }
                        short => Snapshot::Short(short.to_vec()),
                    },
                },
            };
            (at, source)
        };
        Self { held: keys.map(hold).collect(), tries }
    }

    /// True if all keys hold what they held.
    pub fn are_still(&self, ctx: &mut Ctx<'_, '_>) -> bool {
        self.held.iter().all(|(at, was)| {
            let key = ctx.key(*at);
            was.is_still(ctx.guard.peek(ctx.db, &key))
        })
    }
}

/// Work that can be done ahead.
pub trait Preparation: Resumable + Sized {
    /// What it read.
    fn sources(&self) -> &Sources;

    /// Puts the result in its place and replies.
    ///
    /// # Errors
    /// Those of the command, with nothing changed.
    fn finish(self, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error>;
}

/// What a command that prepares finds when it runs.
pub enum Found<P> {
    /// The work is done, and its sources hold what they held.
    Ready(P),
    /// It is to be begun; it was in vain so often before.
    Begin(u32),
}

/// What was prepared for the running command.
pub fn found<P: Preparation>(ctx: &mut Ctx<'_, '_>) -> Found<P> {
    match ctx.prepared::<P>() {
        Some(work) if work.sources().are_still(ctx) => Found::Ready(*work),
        Some(work) => Found::Begin(work.sources().tries + 1),
        None => Found::Begin(0),
    }
}

/// Leaves the work to be done ahead; or does it now, if that was in vain too often.
///
/// # Errors
/// Those of the work.
pub fn begin<P: Preparation>(ctx: &mut Ctx<'_, '_>, mut work: P) -> Result<Done, Error> {
    if work.sources().tries < TRIES_MAX {
        return Ok(Done::Prepare(Box::new(work)));
    }
    if let Err(parked) = ctx.guard.try_mark_long() {
        return Ok(Done::Park(parked));
    }
    loop {
        match work.step(ctx)? {
            Progress::Complete => return work.finish(ctx),
            Progress::More => {}
            Progress::Park(at) => return Ok(Done::Park(at)),
        }
    }
}
