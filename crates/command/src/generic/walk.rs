//! Walks over a database: SCAN, KEYS, RANDOMKEY. They lock one slot at a time, but for KEYS of a
//! small database, which holds World for that moment. In a transaction the slots for SCAN and
//! RANDOMKEY are locked before its first command.

use std::cell::Cell;
use std::collections::VecDeque;

use base::glob::{Case, is_literal, matches};
use base::out::OutBuf;
use keyspace::{Intent, Kind, Parked, Walk};
use resp::{Args, Proto, Reply};

use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::{Error, UnknownType};
use crate::parse::{integer, is};
use crate::scan::{SCAN_COUNT_DEFAULT, SCAN_COUNT_MAX, parse_cursor};

/// The arguments of SCAN.
struct Scan<'a> {
    cursor: u64,
    count: u64,
    pattern: Option<&'a [u8]>,
    kind: Option<Kind>,
}

impl<'a> Scan<'a> {
    fn parse(args: Args<'a>) -> Result<Self, Error> {
        let cursor = parse_cursor(args.get(1)).ok_or(Error::InvalidCursor)?;
        let mut scan = Self { cursor, count: SCAN_COUNT_DEFAULT, pattern: None, kind: None };
        let mut at = 2;
        while at < args.len() {
            let value = args.try_get(at + 1).ok_or(Error::Syntax)?;
            let word = args.get(at);
            if is(word, "COUNT") {
                let count = u64::try_from(integer(value)?).ok().filter(|count| *count > 0);
                scan.count = count.ok_or(Error::Syntax)?.min(SCAN_COUNT_MAX);
            } else if is(word, "MATCH") {
                scan.pattern = Some(value).filter(|pattern| *pattern != b"*");
            } else if is(word, "TYPE") {
                // As Valkey 9: a type that is none is no type without keys.
                let kind = Kind::named(value);
                scan.kind = Some(kind.ok_or_else(|| UnknownType { name: value.into() })?);
            } else {
                return Err(Error::Syntax);
            }
            at += 2;
        }
        Ok(scan)
    }
}

/// What SCAN looks at inside a transaction; nothing if its arguments are wrong.
pub fn scan_walk(args: Args<'_>) -> Option<Walk> {
    let scan = Scan::parse(args).ok()?;
    Some(Walk::From { cursor: scan.cursor, count: scan.count })
}

/// As [`scan_walk`], of RANDOMKEY.
pub fn randomkey_walk(_: Args<'_>) -> Option<Walk> {
    Some(Walk::Anywhere)
}

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`.
pub fn scan(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let Scan { cursor, count, pattern, kind } = Scan::parse(ctx.args)?;
    let mut keys = OutBuf::new();
    let mut shown = 0;
    let work = Cell::new(0);
    let goes_on = || {
        work.set(work.get() + BUCKET_WORK);
        work.get() < SCAN_WORK_MAX
    };
    let next = ctx.guard.scan_while(ctx.db, cursor, count, goes_on, |entry| {
        let key = entry.key();
        let matching = pattern.map_or(0, |pattern| match_work(pattern, key));
        work.set(work.get() + KEY_WORK + matching);
        if pattern.is_none_or(|pattern| matches(pattern, key, Case::Sensitive))
            && kind.is_none_or(|kind| kind == entry.kind())
        {
            shown += 1;
            work.set(work.get() + SHOWN_WORK + key.len() / 16);
            Reply::new(&mut keys, Proto::Resp2).bulk(key);
        }
    });
    let next = match next {
        Ok(next) => next,
        Err(parked) => return Ok(Done::Park(parked)),
    };
    ctx.reply.array(2);
    ctx.reply.bulk(next.to_string().as_bytes());
    ctx.reply.array(shown);
    ctx.reply.raw(&keys.bytes);
    Ok(Done::Replied)
}

/// `RANDOMKEY`.
pub fn randomkey(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let tally = &mut *ctx.tally;
    match ctx.guard.random_key(ctx.db, || tally.draw()) {
        Ok(Some(key)) => ctx.reply.bulk(&key),
        Ok(None) => ctx.reply.null(),
        Err(parked) => return Ok(Done::Park(parked)),
    }
    Ok(Done::Replied)
}

/// `KEYS pattern`.
pub fn keys(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let pattern: Box<[u8]> = ctx.arg(1).into();
    if is_literal(&pattern) {
        return Done::begin(OneKey(pattern), ctx);
    }
    if ctx.guard.is_world() {
        let mut keys = Keys::new(pattern.clone());
        if keys.walk_at_once(ctx) {
            return Ok(Done::Replied);
        }
    }
    Ok(Done::Steps(Box::new(Keys::new(pattern))))
}

/// True if this `KEYS` looks at every key.
pub(crate) fn is_walk(args: Args<'_>) -> bool {
    args.try_get(1).is_some_and(|pattern| !is_literal(pattern))
}

/// `KEYS` with a pattern that matches only itself.
struct OneKey(Box<[u8]>);

impl Resumable for OneKey {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let db = ctx.db;
        let key = ctx.guard.keyspace().key(&self.0);
        let found = ctx.guard.visit(key.slot, Intent::Read, |guard| guard.contains(db, &key));
        let exists = match found {
            Ok(exists) => exists,
            Err(parked) => return Ok(Progress::Park(parked)),
        };
        ctx.reply.array(exists.into());
        if exists {
            ctx.reply.bulk(&self.0);
        }
        Ok(Progress::Complete)
    }
}

/// Work of one step of KEYS, in steps of pattern matching of about two nanoseconds: some hundred
/// keys.
const STEP_WORK_MAX: usize = 50_000;
/// Keys of a database that KEYS sees at one moment.
pub(crate) const ONE_MOMENT_KEYS_MAX: u64 = 2_000;
/// What it may take, about a millisecond: where keys or the pattern are so long that it takes more,
/// it goes in steps.
const ONE_MOMENT_WORK_MAX: usize = 500_000;
/// Elements shown by one call of the walk, and the work of visiting their buckets.
const CALL_COUNT: u64 = 4;
const CALL_WORK: usize = 500;
/// Work of reading a key from memory.
const KEY_WORK: usize = 50;
/// Work of one SCAN, of some 3,000 keys: its COUNT is a hint.
const SCAN_WORK_MAX: usize = 320_000;
/// Work of visiting a bucket by SCAN, and of showing a key.
const BUCKET_WORK: usize = 10;
const SHOWN_WORK: usize = 50;
/// Bytes of the reply that are written in one step.
const CHUNK_BYTES: usize = 128 * 1024;

/// Work of matching a key: at most a step for each byte of the pattern and each of the key. Mostly
/// much less.
fn match_work(pattern: &[u8], key: &[u8]) -> usize {
    key.len().saturating_mul(pattern.len()) / 4
}

/// `KEYS`: a walk that collects the reply, then the reply in pieces.
struct Keys {
    pattern: Box<[u8]>,
    /// Where the walk resumes; `None` behind its end.
    cursor: Option<u64>,
    found: usize,
    /// The found keys as bulk strings: full pieces, and the one that is being filled.
    pieces: VecDeque<Vec<u8>>,
    piece: OutBuf,
}

impl Keys {
    fn new(pattern: Box<[u8]>) -> Self {
        let (pieces, piece) = (VecDeque::new(), OutBuf::new());
        Self { pattern, cursor: Some(0), found: 0, pieces, piece }
    }

    /// Reads everything under World and replies. Returns false if that would take too long: then
    /// the rest is read in steps.
    fn walk_at_once(&mut self, ctx: &mut Ctx<'_, '_>) -> bool {
        let walked = self.walk(ctx, ONE_MOMENT_WORK_MAX);
        walked.expect("who holds World waits for nobody");
        if self.cursor.is_some() {
            return false;
        }
        self.pieces.push_back(std::mem::take(&mut self.piece.bytes));
        ctx.reply.array(self.found);
        self.pieces.drain(..).for_each(|piece| ctx.reply.raw(&piece));
        true
    }

    /// Resumes the walk until `work_max` is reached or a slot is held for long.
    fn walk(&mut self, ctx: &mut Ctx<'_, '_>, work_max: usize) -> Result<(), Parked> {
        let mut work = 0;
        while work < work_max
            && let Some(cursor) = self.cursor
        {
            work += CALL_WORK;
            let db = ctx.db;
            let next = ctx.guard.scan(db, cursor, CALL_COUNT, |entry| {
                let key = entry.key();
                work += KEY_WORK + match_work(&self.pattern, key);
                if matches(&self.pattern, key, Case::Sensitive) {
                    self.found += 1;
                    Reply::new(&mut self.piece, Proto::Resp2).bulk(key);
                    if self.piece.bytes.len() >= CHUNK_BYTES {
                        self.pieces.push_back(std::mem::take(&mut self.piece.bytes));
                    }
                }
            })?;
            self.cursor = Some(next).filter(|&next| next != 0);
        }
        Ok(())
    }
}

impl Resumable for Keys {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        if self.cursor.is_some() {
            if let Err(parked) = self.walk(ctx, STEP_WORK_MAX) {
                return Ok(Progress::Park(parked));
            }
            if self.cursor.is_some() {
                return Ok(Progress::More);
            }
            self.pieces.push_back(std::mem::take(&mut self.piece.bytes));
            ctx.reply.array(self.found);
        }
        if let Some(piece) = self.pieces.pop_front() {
            ctx.reply.raw(&piece);
        }
        Ok(Progress::complete_if(self.pieces.is_empty()))
    }
}
