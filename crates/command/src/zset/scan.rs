//! ZSCAN: a cursor is a point in the space of hashes; a small sorted set is shown at once.

use base::double;
use base::glob::{Case, matches};
use base::out::OutBuf;
use keyspace::Kind;
use resp::{Proto, Reply};
use value::packed::Elem;
use value::zset::View;
use value::{IntText, Zset, hash32};

use super::reply::write_member;
use super::view::view_of;
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::parse::{integer, is};
use crate::scan::{SCAN_COUNT_DEFAULT, SCAN_COUNT_MAX, matching_cost, parse_cursor};

/// `ZSCAN key cursor [MATCH pattern] [COUNT count] [NOSCORES]`. NOSCORES is Valkey's.
pub fn zscan(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let cursor = parse_cursor(ctx.arg(2)).ok_or(Error::InvalidCursor)?;
    let args = ctx.args;
    let (entry, reply) = ctx.read_reply(1, Kind::Zset)?;
    let mut shown = Shown { pairs: OutBuf::new(), len: 0, pattern: None, names_only: false };
    let mut next = 0;
    if let Some(entry) = entry {
        // A key that does not exist is not asked with these, whatever they are.
        let (count, pattern, names_only) = options(&args)?;
        (shown.pattern, shown.names_only) = (pattern, names_only);
        match view_of(entry) {
            small @ View::Small(_) => {
                let len = small.len();
                small.each(0..len, false, |member, score| {
                    shown.show(member, score);
                    true
                });
            }
            View::Big(zset) => next = walk(zset, cursor, count, &mut shown),
        }
    }
    reply.array(2);
    reply.bulk_int(next);
    reply.array(shown.len);
    reply.raw(&shown.pairs.bytes);
    Ok(Done::Replied)
}

/// COUNT, MATCH, and whether NOSCORES is given.
fn options<'a>(args: &resp::Args<'a>) -> Result<(u64, Option<&'a [u8]>, bool), Error> {
    let (mut count, mut pattern, mut names_only) = (SCAN_COUNT_DEFAULT, None, false);
    let mut at = 3;
    while let Some(word) = args.try_get(at) {
        if is(word, "NOSCORES") {
            names_only = true;
            at += 1;
            continue;
        }
        let value = args.try_get(at + 1).ok_or(Error::Syntax)?;
        if is(word, "COUNT") {
            let given = u64::try_from(integer(value)?).ok().filter(|count| *count > 0);
            count = given.ok_or(Error::Syntax)?.min(SCAN_COUNT_MAX);
        } else if is(word, "MATCH") {
            pattern = Some(value);
        } else {
            return Err(Error::Syntax);
        }
        at += 2;
    }
    Ok((count, pattern, names_only))
}

/// Shows at least `count` members from a point on, and all of the last one's hash; returns the next
/// point, 0 at the end.
fn walk(zset: &Zset, cursor: u64, count: u64, shown: &mut Shown<'_>) -> i64 {
    let Ok(from) = u32::try_from(cursor) else { return 0 };
    let (mut last, mut seen) = (from, 0);
    for scored in zset.iter_hashed(from) {
        let hash = hash32(scored.member);
        if seen >= count && hash != last {
            return i64::from(hash);
        }
        last = hash;
        seen += 1 + matching_cost(shown.pattern, scored.member.len());
        shown.show(Elem::Bytes(scored.member), scored.score);
    }
    0
}

struct Shown<'a> {
    pairs: OutBuf,
    len: usize,
    pattern: Option<&'a [u8]>,
    names_only: bool,
}

impl Shown<'_> {
    fn show(&mut self, member: Elem<'_>, score: f64) {
        let mut text = IntText::default();
        let fits = |pattern| matches(pattern, member.bytes(&mut text), Case::Sensitive);
        if self.pattern.is_none_or(fits) {
            self.len += 1;
            let mut reply = Reply::new(&mut self.pairs, Proto::Resp2);
            write_member(&mut reply, member);
            if self.names_only {
                return;
            }
            self.len += 1;
            let mut text = Vec::with_capacity(double::TEXT_MAX);
            double::write(&mut text, score);
            reply.bulk(&text);
        }
    }
}
