//! A range of bits: BITCOUNT, BITPOS.

use std::ops::Range;

use base::Blob;
use base::num::parse_i64;
use resp::Args;
use value::{IntText, Str, bitmap};

use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::parse::{integer, is};
use crate::string::captured::{CapturedText, LONG_BYTES, STEP_BYTES};
use crate::string::text::lookup;

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
struct Bounds {
    start: i64,
    end: i64,
    unit: Unit,
}

impl Bounds {
    const ALL: Bounds = Bounds { start: 0, end: -1, unit: Unit::Byte };

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
    scan(ctx, Look::Count(0), |len| range.bits(len).filter(|_| !range.is_backwards()))
}

fn parse_count(args: &Args<'_>) -> Result<Bounds, Error> {
    match args.len() {
        2 => Ok(Bounds::ALL),
        3 => Ok(Bounds { start: integer(args.get(2))?, ..Bounds::ALL }),
        4 | 5 => {
            let (start, end) = (integer(args.get(2))?, integer(args.get(3))?);
            let range = Bounds { start, end, unit: Unit::Byte };
            // A range of nothing is answered before its unit is looked at.
            if args.len() == 4 || range.is_backwards() {
                return Ok(range);
            }
            Ok(Bounds { unit: Unit::parse(args.get(4))?, ..range })
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
    scan(ctx, Look::Find { wanted, goes_on, found: None }, |len| range.bits(len))
}

fn parse_position(args: &Args<'_>) -> Result<Bounds, Error> {
    if args.len() > 6 {
        return Err(Error::Syntax);
    }
    let start = args.try_get(3).map_or(Ok(0), integer)?;
    let unit = args.try_get(5).map_or(Ok(Unit::Byte), Unit::parse)?;
    let end = args.try_get(4).map_or(Ok(-1), integer)?;
    Ok(Bounds { start, end, unit })
}

/// What is looked for in a range of bits.
#[derive(Clone, Copy)]
enum Look {
    /// How many are set.
    Count(u64),
    /// The first one with a value. With `goes_on` it may be the one behind the range.
    Find { wanted: bool, goes_on: bool, found: Option<u64> },
}

impl Look {
    /// Looks at the bits of a range, `base` bits of the text stand before `bytes`; false if nothing
    /// behind them matters.
    fn at(&mut self, bytes: &[u8], base: u64, bits: &Range<u64>) -> bool {
        let end = base + bytes.len() as u64 * 8;
        let (from, to) = (bits.start.max(base) - base, bits.end.min(end) - base);
        match self {
            Look::Count(count) => *count += bitmap::count_range(bytes, from, to),
            Look::Find { wanted, found, .. } => {
                *found = bitmap::first(bytes, *wanted, from, to).map(|at| base + at);
                return found.is_none();
            }
        }
        true
    }

    /// Looks at the bits of a range in some bytes of a text; false if nothing behind them matters.
    fn through(&mut self, text: &Blob, bytes: Range<usize>, bits: &Range<u64>) -> bool {
        let mut at = bytes.start;
        text.pages_in(bytes).all(|run| {
            let base = at as u64 * 8;
            at += run.len();
            self.at(run, base, bits)
        })
    }

    /// The reply for a text in which these bits were looked at, if the range has any.
    fn reply(self, bits: Option<&Range<u64>>) -> i64 {
        match (self, bits) {
            (Look::Count(count), _) => count as i64,
            (Look::Find { found: Some(at), .. }, _) => at as i64,
            (Look::Find { goes_on: true, .. }, Some(bits)) => bits.end as i64,
            (Look::Find { .. }, _) => -1,
        }
    }

    /// The reply for a key that does not exist.
    fn reply_of_none(self) -> i64 {
        if matches!(self, Look::Find { wanted: true, .. }) { -1 } else { 0 }
    }
}

/// Looks through the text of the first argument's key, if it exists: a long range in steps.
fn scan(
    ctx: &mut Ctx<'_, '_>,
    mut look: Look,
    bits: impl FnOnce(usize) -> Option<(u64, u64)>,
) -> Result<Done, Error> {
    let (key, keyspace) = (ctx.key(1), ctx.guard.keyspace());
    let Some(text) = lookup(ctx.guard, ctx.tally, ctx.db, &key)? else {
        ctx.reply.integer(look.reply_of_none());
        return Ok(Done::Replied);
    };
    let bits = bits(text.len()).map(|(from, to)| from..to);
    if let Some(bits) = bits.clone() {
        match text {
            Str::Blob(blob) if bits.end - bits.start >= LONG_BYTES as u64 * 8 => {
                let text = CapturedText::new(keyspace, blob.clone());
                let at = (bits.start >> 3) as usize;
                return Ok(Done::Steps(Box::new(Scan { text, look, bits, at })));
            }
            Str::Blob(blob) => {
                look.through(blob, bytes_of(&bits), &bits);
            }
            short => {
                look.at(&short.bytes(&mut IntText::default()), 0, &bits);
            }
        }
    }
    ctx.reply.integer(look.reply(bits.as_ref()));
    Ok(Done::Replied)
}

/// The bytes in which bits of this range stand.
fn bytes_of(bits: &Range<u64>) -> Range<usize> {
    (bits.start >> 3) as usize..bits.end.div_ceil(8) as usize
}

/// A long range that is looked through in steps.
struct Scan {
    text: CapturedText,
    look: Look,
    bits: Range<u64>,
    /// The next byte.
    at: usize,
}

impl Resumable for Scan {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let end = bytes_of(&self.bits).end.min(self.at + STEP_BYTES);
        let is_open = self.look.through(&self.text, self.at..end, &self.bits)
            && end < bytes_of(&self.bits).end;
        self.at = end;
        if !is_open {
            ctx.reply.integer(self.look.reply(Some(&self.bits)));
        }
        Ok(Progress::complete_if(!is_open))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the runs are, a range is looked at as if it stood in one.
    #[test]
    fn runs_are_looked_at_as_one_text() {
        let mut random = base::prng::Prng::new(5);
        for round in 0..2000 {
            let fill = [0, 0xff, 0x10][round % 3];
            let mut bytes = vec![fill; 1 + random.below(40) as usize];
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.draw() as u8;
            let total = bytes.len() as u64 * 8;
            let (a, b) = (random.below(total), random.below(total));
            let bits = a.min(b)..a.max(b) + 1;
            let wanted = round % 2 == 0;
            let find = Look::Find { wanted, goes_on: round % 5 == 0, found: None };
            for look in [Look::Count(0), find] {
                let (mut whole, mut by_runs) = (look, look);
                whole.at(&bytes, 0, &bits);
                let (mut at, end) = (bytes_of(&bits).start, bytes_of(&bits).end);
                while at < end {
                    let len = (1 + random.below(7) as usize).min(end - at);
                    if !by_runs.at(&bytes[at..at + len], at as u64 * 8, &bits) {
                        break;
                    }
                    at += len;
                }
                assert_eq!(whole.reply(Some(&bits)), by_runs.reply(Some(&bits)), "{bytes:?}");
            }
        }
    }
}
