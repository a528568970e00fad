//! What the patterns of SORT name: the keys are looked up for all elements at one moment.

use keyspace::Parked;
use value::keyed::Val;
use value::{IntText, Str};

use super::options::{Get, Options, Pattern};
use crate::ctx::Ctx;
use crate::error::Error;
use crate::parts::Stored;
use crate::sorting::order::{Row, Text, Texts, Weight};

/// Why SORT ends early.
pub(super) enum Stop {
    Error(Error),
    /// Behind a long holder: nothing was written yet.
    Parked(Parked),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<Parked> for Stop {
    fn from(parked: Parked) -> Self {
        Self::Parked(parked)
    }
}

/// Finds out what each element is sorted by.
pub(super) fn weigh<'r>(
    ctx: &mut Ctx<'_, '_>,
    options: &Options<'_>,
    texts: &mut Texts,
    rows: impl Iterator<Item = &'r mut Row>,
) -> Result<(), Stop> {
    let mut name = Vec::new();
    for row in rows {
        row.weight = match &options.by {
            None if options.alpha => Weight::None,
            None => Weight::of_val(texts.get(row.element))?,
            Some(pattern) => {
                pattern.name(texts.get(row.element), &mut name);
                with_value(ctx, &name, pattern, |value| match value {
                    None if options.alpha => Ok(Weight::None),
                    None => Ok(Weight::Number(0.0)),
                    Some(text) if options.alpha => Ok(Weight::Text(texts.push_val(text))),
                    Some(text) => Weight::of_val(text),
                })??
            }
        };
    }
    Ok(())
}

/// Calls `f` with what a key that a pattern has named holds: a string, or a field of a hash.
fn with_value<R>(
    ctx: &mut Ctx<'_, '_>,
    name: &[u8],
    pattern: &Pattern<'_>,
    f: impl FnOnce(Option<Val<'_>>) -> R,
) -> Result<R, Parked> {
    let key = ctx.discover(name)?;
    let entry = ctx.guard.look_up(ctx.db, &key);
    ctx.tally.count(entry.is_some());
    Ok(match (entry, pattern.field) {
        (Some(entry), Some(field)) => Stored::of(entry).field(field, f),
        (Some(entry), None) if entry.is_string() => match entry.str() {
            Str::Blob(blob) => f(Some(Val::Blob(blob))),
            short => f(Some(Val::Bytes(&short.bytes(&mut IntText::default())))),
        },
        _ => f(None),
    })
}

/// What is replied or stored of each element: itself, or what GET asks for; nil is nothing.
pub(super) fn show(
    ctx: &mut Ctx<'_, '_>,
    options: &Options<'_>,
    texts: &mut Texts,
    rows: &[Row],
) -> Result<Vec<Option<Text>>, Parked> {
    if options.gets.is_empty() {
        return Ok(rows.iter().map(|row| Some(row.element)).collect());
    }
    let mut shown = Vec::with_capacity(rows.len() * options.gets.len());
    let mut name = Vec::new();
    for row in rows {
        for get in &options.gets {
            shown.push(match get {
                Get::Element => Some(row.element),
                Get::Nothing => None,
                Get::Value(pattern) => {
                    pattern.name(texts.get(row.element), &mut name);
                    with_value(ctx, &name, pattern, |value| value.map(|text| texts.push_val(text)))?
                }
            });
        }
    }
    Ok(shown)
}
