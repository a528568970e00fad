//! Integers of any width in a string: BITFIELD, BITFIELD_RO.

use base::Blob;
use base::num::parse_i64;
use keyspace::EntryMut;
use resp::{Args, Reply};
use value::Str;
use value::bitmap::{Field, Overflow, WINDOW_MAX};

use super::offset::{offset, scaled_offset};
use crate::ctx::{Ctx, Settings};
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::{integer, is};
use crate::spec::KeyFlags;
use crate::string::captured::fill;
use crate::string::text::{insert_blob, lookup, text_of};

/// What is done to a field.
#[derive(Clone, Copy)]
enum Action {
    Get,
    Set(i64),
    Add(i64),
}

/// One subcommand.
#[derive(Clone, Copy)]
struct Step {
    action: Action,
    field: Field,
    offset: u64,
    overflow: Overflow,
}

impl Step {
    fn writes(&self) -> bool {
        !matches!(self.action, Action::Get)
    }

    /// The byte behind the field.
    fn end(&self) -> usize {
        let (first, len) = self.field.window(self.offset);
        first as usize + len
    }

    /// The reply, and what is to be stored, for the value that is there.
    fn run(&self, old: i64) -> (Option<i64>, Option<i64>) {
        match self.action {
            Action::Get => (Some(old), None),
            Action::Set(value) => {
                let new = self.field.fit(value, self.overflow);
                (new.map(|_| old), new)
            }
            Action::Add(increment) => {
                let new = self.field.add(old, increment, self.overflow);
                (new, new)
            }
        }
    }
}

/// What BITFIELD does to its key: nothing but reading if it consists of complete GETs, and
/// OVERFLOWs, which then say nothing.
pub fn bitfield_key_flags(args: Args<'_>) -> KeyFlags {
    let mut i = 2;
    while i < args.len() {
        let left = args.len() - i - 1;
        i += match args.get(i) {
            word if left >= 2 && is(word, "GET") => 3,
            word if left >= 1 && is(word, "OVERFLOW") => 2,
            _ => return KeyFlags::of(&[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE]),
        };
    }
    KeyFlags::of(&[KeyFlags::RO, KeyFlags::ACCESS])
}

/// `BITFIELD key [GET type offset | [OVERFLOW mode] SET type offset value | INCRBY type offset n
/// ...]`.
pub fn bitfield(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let steps = parse(&ctx.args, ctx.settings)?;
    let Some(len) = steps.iter().filter(|step| step.writes()).map(Step::end).max() else {
        return read(ctx, &steps);
    };
    let (key, before) = (ctx.key(1), ctx.guard.counted());
    // A value that is as it was counts as changed where the text has grown for it.
    let mut changed = 0;
    if let Some(mut entry) = ctx.guard.entry_mut(events::SETBIT, ctx.db, &key) {
        text_of(&entry.entry())?;
        let has_grown = prepare(&mut entry, len);
        ctx.reply.array(steps.len());
        for step in &steps {
            let old = get(entry.str(), step);
            let (reply, new) = step.run(old);
            changed += u64::from(new.is_some_and(|new| has_grown || new != old));
            if let Some(new) = new.filter(|new| *new != old) {
                let (first, window, len) = patched(entry.str(), step, new);
                entry.write_at(first, &window[..len]);
            }
            answer(&mut ctx.reply, reply);
        }
        ctx.guard.count_as(before, changed);
        return Ok(Done::Replied);
    }
    let mut text = Blob::default();
    text.write_at(len - 1, &[0]);
    ctx.reply.array(steps.len());
    for step in &steps {
        let (reply, new) = step.run(get(Str::Blob(&text), step));
        if let Some(new) = new {
            changed += 1;
            let (first, window, len) = patched(Str::Blob(&text), step, new);
            text.write_at(first, &window[..len]);
        }
        answer(&mut ctx.reply, reply);
    }
    insert_blob(events::SETBIT, ctx.guard, ctx.db, &key, text);
    ctx.guard.count_as(before, changed);
    Ok(Done::Replied)
}

/// `BITFIELD_RO key [GET type offset ...]`.
pub fn bitfield_ro(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let steps = parse(&ctx.args, ctx.settings)?;
    if steps.iter().any(Step::writes) {
        return Err(Error::BitfieldReadOnly);
    }
    read(ctx, &steps)
}

fn read(ctx: &mut Ctx<'_, '_>, steps: &[Step]) -> Result<Done, Error> {
    let key = ctx.key(1);
    let text = lookup(ctx.guard, ctx.tally, ctx.db, &key)?;
    let text = text.unwrap_or(Str::Bytes(b""));
    ctx.reply.array(steps.len());
    for step in steps {
        ctx.reply.integer(get(text, step));
    }
    Ok(Done::Replied)
}

fn answer(reply: &mut Reply<'_>, value: Option<i64>) {
    match value {
        Some(value) => reply.integer(value),
        None => reply.null(),
    }
}

/// Makes the text `raw` and at least `len` bytes long, as every write does even if it then fails;
/// true if it has grown.
fn prepare(entry: &mut EntryMut<'_, '_>, len: usize) -> bool {
    let grows = entry.entry().str_len() < len;
    if grows {
        entry.write_at(len - 1, &[0]);
    } else {
        entry.make_raw();
    }
    grows
}

/// The value of a field; bits beyond the end are zero.
fn get(text: Str<'_>, step: &Step) -> i64 {
    let (first, len) = step.field.window(step.offset);
    let mut window = [0; WINDOW_MAX];
    let filled = fill(text, first as usize, &mut window[..len]);
    step.field.get(&window[..filled], step.offset & 7)
}

/// The bytes around a field, which lie within the text, with another value in it: where they
/// begin, and how many they are.
fn patched(text: Str<'_>, step: &Step, value: i64) -> (usize, [u8; WINDOW_MAX], usize) {
    let (first, len) = step.field.window(step.offset);
    let mut window = [0; WINDOW_MAX];
    fill(text, first as usize, &mut window[..len]);
    step.field.put(&mut window[..len], step.offset, value);
    (first as usize, window, len)
}

fn parse(args: &Args<'_>, settings: &Settings) -> Result<Vec<Step>, Error> {
    let mut steps = Vec::new();
    let mut overflow = Overflow::default();
    let mut i = 2;
    while i < args.len() {
        let (word, left) = (args.get(i), args.len() - i - 1);
        if is(word, "OVERFLOW") && left >= 1 {
            overflow = parse_overflow(args.get(i + 1))?;
            i += 2;
            continue;
        }
        let (takes, action): (_, fn(i64) -> Action) = match word {
            _ if is(word, "GET") && left >= 2 => (3, |_| Action::Get),
            _ if is(word, "SET") && left >= 3 => (4, Action::Set),
            _ if is(word, "INCRBY") && left >= 3 => (4, Action::Add),
            _ => return Err(Error::Syntax),
        };
        let field = parse_field(args.get(i + 1)).ok_or(Error::BitfieldType)?;
        let offset = match args.get(i + 2) {
            [b'#', number @ ..] => scaled_offset(number, field.bits(), settings)?,
            number => offset(number, settings)?,
        };
        let value = if takes == 4 { integer(args.get(i + 3))? } else { 0 };
        steps.push(Step { action: action(value), field, offset, overflow });
        i += takes;
    }
    Ok(steps)
}

fn parse_overflow(word: &[u8]) -> Result<Overflow, Error> {
    const NAMES: [(&str, Overflow); 3] =
        [("WRAP", Overflow::Wrap), ("SAT", Overflow::Sat), ("FAIL", Overflow::Fail)];
    let named = NAMES.into_iter().find(|(name, _)| is(word, name));
    named.map(|(_, overflow)| overflow).ok_or(Error::BitfieldOverflow)
}

/// `i` or `u` and a width.
fn parse_field(word: &[u8]) -> Option<Field> {
    let (signed, bits) = match word {
        [b'i', bits @ ..] => (true, bits),
        [b'u', bits @ ..] => (false, bits),
        _ => return None,
    };
    Field::new(signed, u8::try_from(parse_i64(bits)?).ok()?)
}
