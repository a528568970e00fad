//! SETRANGE and APPEND of an argument in pages: the new string is written ahead of the command, on
//! a copy of the old one which shares its pages. Under the lock it only takes the old one's place.

use base::Blob;
use keyspace::Event;
use value::{NewStr, Str};

use super::captured::{CapturedText, STEP_BYTES};
use super::text::{allowed, text_of};
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::prepare::{self, Found, Preparation, Sources};

/// Writes `text` into the string of the key in the first argument: at an offset, or at its end.
/// Replies the new length.
pub(super) fn write_long(
    ctx: &mut Ctx<'_, '_>,
    event: Event,
    offset: Option<u64>,
    text: &Blob,
) -> Result<Done, Error> {
    let tries = match prepare::found::<Writing>(ctx) {
        Found::Ready(ahead) => return ahead.finish(ctx),
        Found::Begin(tries) => tries,
    };
    let (key, keyspace) = (ctx.key(1), ctx.guard.keyspace());
    let old = match ctx.guard.read(ctx.db, &key) {
        None => Blob::default(),
        Some(entry) => match text_of(&entry)? {
            Str::Blob(blob) => blob.clone(),
            short => Blob::new(short.to_vec()),
        },
    };
    let at = allowed(ctx.settings, offset.unwrap_or(old.len() as u64), text.len())?;
    if at == 0 && old.len() <= text.len() {
        return Ok(store(ctx, event, text.clone()));
    }
    let mut whole = CapturedText::empty(keyspace);
    *whole = old;
    let text = CapturedText::new(keyspace, text.clone());
    let sources = Sources::of(ctx, 1..2, tries);
    prepare::begin(ctx, Writing { sources, event, at, text, written: 0, whole })
}

/// Puts the string under the key in the first argument, and replies its length.
fn store(ctx: &mut Ctx<'_, '_>, event: Event, whole: Blob) -> Done {
    let (key, len) = (ctx.key(1), whole.len());
    match ctx.guard.entry_mut(event, ctx.db, &key) {
        Some(mut entry) => entry.set_str(NewStr::Blob(whole), true),
        None => ctx.guard.insert(event, ctx.db, &key, NewStr::Blob(whole), None),
    }
    ctx.reply.integer(len as i64);
    Done::Replied
}

/// A string which is written ahead.
struct Writing {
    sources: Sources,
    event: Event,
    /// Where in the whole the text begins.
    at: usize,
    text: CapturedText,
    /// Bytes of the text that are written.
    written: usize,
    whole: CapturedText,
}

impl Resumable for Writing {
    fn step(&mut self, _ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let end = self.text.len().min(self.written + STEP_BYTES);
        for run in self.text.pages_in(self.written..end) {
            self.whole.write_at(self.at + self.written, run);
            self.written += run.len();
        }
        Ok(Progress::complete_if(end == self.text.len()))
    }

    fn memory(&self) -> usize {
        self.written
    }
}

impl Preparation for Writing {
    fn sources(&self) -> &Sources {
        &self.sources
    }

    fn finish(self, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        Ok(store(ctx, self.event, self.whole.into_blob()))
    }
}
