//! LPOS.

use value::packed::Elem;

use super::view::View;
use super::{equals, read};
use crate::ctx::Ctx;
use crate::error::Error;
use crate::parse::{integer, is};

/// The options of LPOS.
struct Options {
    /// Backwards from the end.
    backwards: bool,
    /// Matches to pass over.
    skipped: u64,
    /// Matches to reply as an array; 0 for all. `None` for a single one by itself.
    count: Option<u64>,
    /// Elements to compare; 0 for all.
    len_max: u64,
}

impl Options {
    fn parse(ctx: &Ctx<'_, '_>) -> Result<Self, Error> {
        let mut options = Self { backwards: false, skipped: 0, count: None, len_max: 0 };
        let mut at = 3;
        while at < ctx.args.len() {
            let (word, value) = (ctx.arg(at), ctx.args.try_get(at + 1).ok_or(Error::Syntax)?);
            let natural = |error| {
                integer(value).ok().and_then(|value| u64::try_from(value).ok()).ok_or(error)
            };
            if is(word, "RANK") {
                let rank = integer(value)?;
                if rank == 0 {
                    return Err(Error::LposRank);
                }
                options.backwards = rank < 0;
                // The smallest number has no opposite: for clients it always was a rank below all.
                options.skipped = rank.checked_abs().map_or(0, |rank| rank as u64 - 1);
            } else if is(word, "COUNT") {
                options.count = Some(natural(Error::LposCount)?);
            } else if is(word, "MAXLEN") {
                options.len_max = natural(Error::LposMaxlen)?;
            } else {
                return Err(Error::Syntax);
            }
            at += 2;
        }
        Ok(options)
    }

    /// Calls `found` with the position of each match that is asked for.
    fn search(&self, view: View<'_>, text: Elem<'_>, found: impl FnMut(u64)) {
        let max = if self.len_max == 0 { usize::MAX } else { self.len_max as usize };
        let wanted = match self.count {
            None => 1,
            Some(0) => usize::MAX,
            Some(count) => usize::try_from(count).unwrap_or(usize::MAX),
        };
        let skipped = usize::try_from(self.skipped).unwrap_or(usize::MAX);
        if self.backwards {
            let len = view.len();
            let matches = view.iter_back().zip((0..len).rev()).take(max);
            let matches = matches.filter(|(item, _)| equals(*item, text)).map(|(_, at)| at);
            matches.skip(skipped).take(wanted).for_each(found);
        } else {
            let matches = view.iter_from(0).zip(0..).take(max);
            let matches = matches.filter(|(item, _)| equals(*item, text)).map(|(_, at)| at);
            matches.skip(skipped).take(wanted).for_each(found);
        }
    }
}

/// `LPOS key element [RANK rank] [COUNT count] [MAXLEN len]`.
pub fn lpos(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    let (options, text) = (Options::parse(ctx)?, Elem::of(ctx.arg(2)));
    let (view, reply) = read(ctx, 1)?;
    if options.count.is_some() {
        let (array, mut matches) = (reply.array_deferred(), 0);
        if let Some(view) = view {
            options.search(view, text, |at| {
                reply.integer(at as i64);
                matches += 1;
            });
        }
        reply.close_array(array, matches);
        return Ok(());
    }
    let mut found = None;
    if let Some(view) = view {
        options.search(view, text, |at| found = Some(at));
    }
    match found {
        Some(at) => reply.integer(at as i64),
        None => reply.null(),
    }
    Ok(())
}
