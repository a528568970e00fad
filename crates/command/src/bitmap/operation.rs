//! Several strings combined: BITOP.

use base::Blob;
use keyspace::Event;
use value::Str;
use value::bitmap::{BLOCK, Operation, combine, combine_next};

use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::is;
use crate::prepare::{self, Found, Preparation, Sources};
use crate::string::captured::{CapturedText, LONG_BYTES, STEP_BYTES};
use crate::string::text::{insert_blob, lookup};

/// The first argument that is a source.
const FIRST_SOURCE: usize = 3;

/// Bytes that a step combines at least, however many sources there are.
const BLOCK_MIN: usize = 256;

/// `BITOP <AND | OR | XOR | NOT> destkey key ...`: replies the length of the result; an empty one
/// is no key. Long sources are combined ahead of the command.
pub fn bitop(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let operation = parse(ctx.arg(1))?;
    if operation == Operation::Not && ctx.args.len() != FIRST_SOURCE + 1 {
        return Err(Error::BitopNot);
    }
    let tries = match prepare::found::<Combining>(ctx) {
        Found::Ready(ahead) => return ahead.finish(ctx),
        Found::Begin(tries) => tries,
    };
    let (mut total, mut longest) = (0, 0);
    for i in FIRST_SOURCE..ctx.args.len() {
        let key = ctx.key(i);
        let len = lookup(ctx.guard, ctx.tally, ctx.db, &key)?.map_or(0, |text| text.len());
        total += len;
        longest = longest.max(len);
    }
    if total >= LONG_BYTES {
        let sources = Sources::of(ctx, FIRST_SOURCE..ctx.args.len(), tries);
        let result = CapturedText::empty(ctx.guard.keyspace());
        let work = Combining { operation, sources, len: longest, result };
        return prepare::begin(ctx, work);
    }
    let mut sources = Vec::with_capacity(ctx.args.len() - FIRST_SOURCE);
    for i in FIRST_SOURCE..ctx.args.len() {
        let key = ctx.key(i);
        sources.push(match ctx.guard.peek(ctx.db, &key).map(|entry| entry.str()) {
            None => Operand::Small(Vec::new()),
            Some(Str::Blob(blob)) if blob.contiguous().is_some() => Operand::Big(blob.clone()),
            Some(text) => Operand::Small(text.to_vec()),
        });
    }
    let sources: Vec<&[u8]> = sources.iter().map(Operand::bytes).collect();
    store(ctx, Blob::new(combine(operation, &sources)));
    Ok(Done::Replied)
}

/// A source of which there is little: where it stands if it can be shared.
enum Operand {
    Big(Blob),
    Small(Vec<u8>),
}

impl Operand {
    fn bytes(&self) -> &[u8] {
        match self {
            Operand::Big(blob) => blob.contiguous().unwrap_or_default(),
            Operand::Small(bytes) => bytes,
        }
    }
}

/// Puts the result under the destination and replies.
fn store(ctx: &mut Ctx<'_, '_>, result: Blob) {
    let (key, len) = (ctx.key(2), result.len());
    if len == 0 {
        ctx.guard.remove(Event::DEL, ctx.db, &key);
    } else {
        insert_blob(events::SET, ctx.guard, ctx.db, &key, result);
    }
    ctx.reply.integer(len as i64);
}

/// A combination that is computed ahead.
struct Combining {
    operation: Operation,
    sources: Sources,
    /// Bytes of the longest source.
    len: usize,
    result: CapturedText,
}

impl Combining {
    /// Computes up to `len` bytes more; `scratch` is for a part of a source that stands in several
    /// runs.
    fn add_block(&mut self, len: usize, scratch: &mut Vec<u8>) {
        let mut block = [0; BLOCK];
        let at = self.result.len();
        let end = self.len.min(at + len);
        let block = &mut block[..end - at];
        for n in 0..self.sources.count() {
            let source = self.sources.part(n, at..end, scratch);
            combine_next(self.operation, n == 0, block, source);
        }
        self.result.append(block);
    }
}

impl Resumable for Combining {
    /// Reads and writes about [`STEP_BYTES`].
    fn step(&mut self, _ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let mut scratch = Vec::new();
        let len = STEP_BYTES / (self.sources.count() + 1);
        let end = self.len.min(self.result.len() + len.max(BLOCK_MIN));
        while self.result.len() < end {
            self.add_block(BLOCK.min(end - self.result.len()), &mut scratch);
        }
        Ok(Progress::complete_if(end == self.len))
    }

    fn memory(&self) -> usize {
        self.result.len()
    }
}

impl Preparation for Combining {
    fn sources(&self) -> &Sources {
        &self.sources
    }

    fn finish(self, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        store(ctx, self.result.into_blob());
        Ok(Done::Replied)
    }
}

fn parse(arg: &[u8]) -> Result<Operation, Error> {
    const NAMES: [(&str, Operation); 4] = [
        ("AND", Operation::And),
        ("OR", Operation::Or),
        ("XOR", Operation::Xor),
        ("NOT", Operation::Not),
    ];
    let named = NAMES.into_iter().find(|(name, _)| is(arg, name));
    named.map(|(_, operation)| operation).ok_or(Error::Syntax)
}
