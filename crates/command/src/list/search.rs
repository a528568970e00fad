//! LPOS.

use keyspace::{Captured, Kind};
use resp::Reply;
use value::list::Item;

use super::element::{OwnedElement, equals, wanted};
use super::view::{View, of_big};
use crate::collection::STEP_ELEMENTS;
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
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
                let rank = rank.checked_abs().ok_or(Error::CountRange)?;
                options.skipped = rank as u64 - 1;
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

    /// Replies the positions that were found.
    fn reply(&self, reply: &mut Reply<'_>, found: &[u64]) {
        match (self.count, found.first()) {
            (Some(_), _) => {
                reply.array(found.len());
                for at in found {
                    reply.integer(*at as i64);
                }
            }
            (None, Some(at)) => reply.integer(*at as i64),
            (None, None) => reply.null(),
        }
    }

    /// Calls `found` with the position of each match that is asked for.
    fn search(&self, view: View<'_>, text: Item<'_>, found: impl FnMut(u64)) {
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

/// `LPOS key element [RANK rank] [COUNT count] [MAXLEN len]`. A long search goes in steps, over the
/// list as it was.
pub fn lpos(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let options = Options::parse(ctx)?;
    let (text, keyspace, at_once) =
        (wanted(&ctx.args, 2), ctx.guard.keyspace(), ctx.settings.at_once_elements);
    let (entry, reply) = ctx.read_reply(1, Kind::List)?;
    let view = entry.map(View::of);
    let max = if options.len_max == 0 { u64::MAX } else { options.len_max };
    if let Some(big) =
        entry.and_then(|entry| entry.big()).filter(|big| big.len().min(max) > at_once)
    {
        let list = keyspace.capture(big);
        let text = OwnedElement::of(text);
        let search = Searching { list, text, options, seen: 0, found: Vec::new() };
        return Ok(Done::Steps(Box::new(search)));
    }
    let mut found = Vec::new();
    if let Some(view) = view {
        options.search(view, text, |at| found.push(at));
    }
    options.reply(reply, &found);
    Ok(Done::Replied)
}

/// LPOS under way.
struct Searching {
    list: Captured,
    text: OwnedElement,
    options: Options,
    /// Elements that were compared.
    seen: u64,
    found: Vec<u64>,
}

impl Resumable for Searching {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let (list, text) = (of_big(&self.list), self.text.as_item());
        let (len, options) = (list.len(), &mut self.options);
        let max = if options.len_max == 0 { len } else { len.min(options.len_max) };
        let count = (max - self.seen).min(STEP_ELEMENTS) as usize;
        let wanted = match options.count {
            None => 1,
            Some(0) => usize::MAX,
            Some(count) => usize::try_from(count).unwrap_or(usize::MAX),
        };
        let found = &mut self.found;
        let mut look = |item, at| {
            if found.len() < wanted && equals(item, text) {
                if options.skipped > 0 {
                    options.skipped -= 1;
                } else {
                    found.push(at);
                }
            }
        };
        if options.backwards {
            let from = len - self.seen;
            let items = list.iter_back_from(from).take(count);
            items.zip((0..from).rev()).for_each(|(item, at)| look(item, at));
        } else {
            let items = list.iter_from(self.seen).take(count);
            items.zip(self.seen..).for_each(|(item, at)| look(item, at));
        }
        self.seen += count as u64;
        let is_done = self.seen == max || self.found.len() >= wanted;
        if is_done {
            self.options.reply(&mut ctx.reply, &self.found);
        }
        Ok(Progress::complete_if(is_done))
    }
}
