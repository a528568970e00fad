//! A range of bits: BITCOUNT, BITPOS.

use base::num::parse_i64;
use keyspace::Parked;
use resp::Args;
use value::{IntText, Str, bitmap};

use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::parse::{integer, is};
use crate::string::text::{LONG_BYTES, lookup};

/// What start and end count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Byte,
    Bit,
}

impl Unit {
    fn parse(arg: &[u8]) -> Result<Unit, Error> {
        if is(arg, "BIT") {
            Ok(Unit::Bit)
        } else if is(arg, "BYTE") {
            Ok(Unit::Byte)
        } else {
            Err(Error::Syntax)
        }
    }
}

/// Both ends included; negative ones count from the end.
#[derive(Clone, Copy)]
struct Range {
    start: i64,
    end: i64,
    unit: Unit,
}

impl Range {
    const ALL: Range = Range { start: 0, end: -1, unit: Unit::Byte };

    /// Both ends count from the text's end, and in the wrong order.
    fn is_backwards(self) -> bool {
        self.start < 0 && self.end < 0 && self.start > self.end
    }

    /// The bits that are meant of a text of `len` bytes, the last one not included; none if
    /// nothing is.
    fn bits(self, len: usize) -> Option<(u64, u64)> {
        let scale = if self.unit == Unit::Bit { 1 } else { 8 };
        let total = len as i64 * 8 / scale;
        let from_front = |at: i64| if at < 0 { at.saturating_add(total).max(0) } else { at };
        let (start, end) = (from_front(self.start), from_front(self.end).min(total - 1));
        // Only what lies in the text can be multiplied.
        (start <= end).then(|| ((start * scale) as u64, ((end + 1) * scale) as u64))
    }
}

/// `BITCOUNT key [start [end [BYTE | BIT]]]`. As Redis 8 and Valkey 9, what is behind the key is
/// judged before the key is looked up; a start alone is Valkey's.
pub fn bitcount(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let range = parse_count(&ctx.args)?;
    let count = scan(ctx, range, |bytes, range| match range.bits(bytes.len()) {
        Some((from, to)) if !range.is_backwards() => bitmap::count_range(bytes, from, to),
        _ => 0,
    })?;
    match count {
        Ok(count) => ctx.reply.integer(count.unwrap_or(0) as i64),
        Err(parked) => return Ok(Done::Park(parked)),
    }
    Ok(Done::Replied)
}

fn parse_count(args: &Args<'_>) -> Result<Range, Error> {
    match args.len() {
        2 => Ok(Range::ALL),
        3 => Ok(Range { start: integer(args.get(2))?, ..Range::ALL }),
        4 | 5 => {
            let (start, end) = (integer(args.get(2))?, integer(args.get(3))?);
            let range = Range { start, end, unit: Unit::Byte };
            // A range of nothing is answered before its unit is looked at.
            if args.len() == 4 || range.is_backwards() {
                return Ok(range);
            }
            Ok(Range { unit: Unit::parse(args.get(4))?, ..range })
        }
        _ => Err(Error::Syntax),
    }
}

/// `BITPOS key bit [start [end [BYTE | BIT]]]`. A text of which no end is said goes on with zeros.
/// The range is judged before the key is looked up.
pub fn bitpos(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let wanted = match parse_i64(ctx.arg(2)).ok_or(Error::NotInteger)? {
        0 => false,
        1 => true,
        _ => return Err(Error::BitWanted),
    };
    let goes_on = !wanted && ctx.args.len() <= 4;
    let range = parse_position(&ctx.args)?;
    let position = scan(ctx, range, |bytes, range| {
        let Some((from, to)) = range.bits(bytes.len()) else { return -1 };
        match bitmap::first(bytes, wanted, from, to) {
            Some(at) => at as i64,
            None if goes_on => to as i64,
            None => -1,
        }
    })?;
    match position {
        Ok(position) => ctx.reply.integer(position.unwrap_or(if wanted { -1 } else { 0 })),
        Err(parked) => return Ok(Done::Park(parked)),
    }
    Ok(Done::Replied)
}

fn parse_position(args: &Args<'_>) -> Result<Range, Error> {
    if args.len() > 6 {
        return Err(Error::Syntax);
    }
    let start = args.try_get(3).map_or(Ok(0), integer)?;
    let unit = args.try_get(5).map_or(Ok(Unit::Byte), Unit::parse)?;
    let end = args.try_get(4).map_or(Ok(-1), integer)?;
    Ok(Range { start, end, unit })
}

/// Looks through the text of the first argument's key, if it exists, where it lies.
fn scan<R>(
    ctx: &mut Ctx<'_, '_>,
    range: Range,
    look: impl FnOnce(&[u8], Range) -> R,
) -> Result<Result<Option<R>, Parked>, Error> {
    let key = ctx.key(1);
    let Some(text) = lookup(ctx.guard, ctx.tally, ctx.db, &key)? else { return Ok(Ok(None)) };
    match text {
        Str::Blob(blob) if blob.len() >= LONG_BYTES => {
            let blob = blob.clone();
            let marked = ctx.guard.try_mark_long();
            Ok(marked.map(|()| Some(look(&blob.to_slice(), range))))
        }
        text => Ok(Ok(Some(look(&text.bytes(&mut IntText::default()), range)))),
    }
}
