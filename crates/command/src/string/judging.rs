//! IFEQ, IFNE, IFDEQ and IFDNE on long strings, judged in steps ahead of their command.

use base::Blob;
use keyspace::Keyspace;
use value::Str;

use super::captured::{CapturedText, LONG_BYTES, STEP_BYTES};
use super::digest::{DIGEST_CHARS, Digesting};
use super::options::Condition;
use super::text::{ArgText, text_of};
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::prepare::{self, Found, Preparation, Sources};

/// What is known of a condition before a command looks at its key.
pub(super) enum Ahead {
    /// Nothing: it is judged at once.
    Unknown,
    /// Whether it holds for what the key holds.
    Holds(bool),
    /// The command has ended, or runs again later.
    Done(Done),
}

/// The handler of a command.
pub(super) type Command = fn(&mut Ctx<'_, '_>) -> Result<Done, Error>;

/// Judges a condition on the key in the first argument of `command` ahead of it, if that takes the
/// digest of a long string, or a comparison with one of the same length.
pub(super) fn judge(
    ctx: &mut Ctx<'_, '_>,
    condition: Condition<'_>,
    command: Command,
) -> Result<Ahead, Error> {
    let (Condition::Equal(_)
    | Condition::NotEqual(_)
    | Condition::DigestEqual(_)
    | Condition::DigestNotEqual(_)) = condition
    else {
        return Ok(Ahead::Unknown);
    };
    let tries = match prepare::found::<Judging>(ctx) {
        Found::Ready(ahead) => return Ok(Ahead::Holds(ahead.holds)),
        Found::Begin(tries) => tries,
    };
    let (key, keyspace) = (ctx.key(1), ctx.guard.keyspace());
    let text = ctx.guard.peek(ctx.db, &key).and_then(|entry| text_of(&entry).ok());
    let Some(Str::Blob(stored)) = text.filter(|text| text.len() >= LONG_BYTES) else {
        return Ok(Ahead::Unknown);
    };
    let Some(test) = Test::new(keyspace, stored, condition) else { return Ok(Ahead::Unknown) };
    let if_true = matches!(condition, Condition::Equal(_) | Condition::DigestEqual(_));
    let sources = Sources::of(ctx, 1..2, tries);
    let work = Judging { sources, test, if_true, holds: false, command };
    prepare::begin(ctx, work).map(Ahead::Done)
}

/// What is asked of a long string.
enum Test {
    /// Whether this is its digest.
    HasDigest(Box<Digesting>, [u8; DIGEST_CHARS]),
    Equals(Comparing),
}

impl Test {
    /// `None` if the answer takes no time.
    fn new(keyspace: &Keyspace, stored: &Blob, condition: Condition<'_>) -> Option<Self> {
        match condition {
            Condition::Equal(ArgText::Long(text)) | Condition::NotEqual(ArgText::Long(text)) => {
                let [stored, text] =
                    [stored, text].map(|blob| CapturedText::new(keyspace, blob.clone()));
                let is_long = stored.len() == text.len();
                is_long.then(|| Test::Equals(Comparing { stored, text, at: 0 }))
            }
            Condition::DigestEqual(digest) | Condition::DigestNotEqual(digest) => {
                let wanted = digest.try_into().ok()?;
                Some(Test::HasDigest(Box::new(Digesting::new(keyspace, stored)), wanted))
            }
            _ => None,
        }
    }

    /// Reads the next [`STEP_BYTES`]; the answer when it is known.
    fn step(&mut self) -> Option<bool> {
        match self {
            Test::HasDigest(digesting, wanted) => {
                digesting.step().map(|digest| wanted.eq_ignore_ascii_case(&digest))
            }
            Test::Equals(comparing) => comparing.step(),
        }
    }
}

/// A comparison of two strings of the same length under way.
struct Comparing {
    stored: CapturedText,
    text: CapturedText,
    /// The next byte: those before are equal.
    at: usize,
}

impl Comparing {
    fn step(&mut self) -> Option<bool> {
        let end = self.text.len().min(self.at + STEP_BYTES);
        if !self.stored.equals_in(&self.text, self.at..end) {
            return Some(false);
        }
        self.at = end;
        (end == self.text.len()).then_some(true)
    }
}

/// A condition on a long string, judged ahead.
struct Judging {
    sources: Sources,
    test: Test,
    /// The condition is that the answer is yes; otherwise that it is no.
    if_true: bool,
    holds: bool,
    command: Command,
}

impl Resumable for Judging {
    fn step(&mut self, _ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let answer = self.test.step();
        self.holds = answer == Some(self.if_true);
        Ok(Progress::complete_if(answer.is_some()))
    }
}

impl Preparation for Judging {
    fn sources(&self) -> &Sources {
        &self.sources
    }

    fn finish(self, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        let command = self.command;
        ctx.set_prepared(Box::new(self));
        command(ctx)
    }
}
