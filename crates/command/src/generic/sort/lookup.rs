//! What the patterns of SORT name: the keys are looked up for all elements at one moment.

use base::SlotId;
use keyspace::{Key, Parked};
use value::keyed::Val;
use value::{IntText, Str};

use super::options::{Get, Options, Pattern};
use crate::ctx::{Ctx, WARM_KEYS};
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

/// The keys that a pattern names for some elements, [`WARM_KEYS`] at most.
#[derive(Default)]
struct Named {
    names: Vec<u8>,
    /// Where each name ends, its hash and its slot.
    keys: Vec<(usize, u64, SlotId)>,
}

impl Named {
    /// Names the keys, and prefetches what they are found by. A key that is in no cache takes four
    /// loads, one behind the other; those of several keys go on at the same time.
    fn fetch<'t>(
        &mut self,
        ctx: &Ctx<'_, '_>,
        pattern: &Pattern<'_>,
        elements: impl Iterator<Item = Val<'t>>,
    ) {
        let keyspace = ctx.guard.keyspace();
        self.names.clear();
        self.keys.clear();
        for element in elements {
            let start = self.names.len();
            pattern.name(element, &mut self.names);
            let Key { hash, slot, .. } = keyspace.key(&self.names[start..]);
            keyspace.prefetch_slot(slot);
            self.keys.push((self.names.len(), hash, slot));
        }
        ctx.fetch(self.keys.iter().map(|&(_, hash, slot)| (slot, hash)));
    }

    fn keys(&self) -> impl Iterator<Item = Key<'_>> {
        let mut start = 0;
        self.keys.iter().map(move |&(end, hash, slot)| Key {
            bytes: &self.names[std::mem::replace(&mut start, end)..end],
            hash,
            slot,
        })
    }
}

/// Finds out what each element is sorted by.
pub(super) fn weigh<'r>(
    ctx: &mut Ctx<'_, '_>,
    options: &Options<'_>,
    texts: &mut Texts,
    mut rows: impl Iterator<Item = &'r mut Row>,
) -> Result<(), Stop> {
    let Some(pattern) = &options.by else {
        return Ok(rows.try_for_each(|row| {
            let number = !options.alpha;
            row.weight =
                if number { Weight::of_val(texts.get(row.element))? } else { Weight::None };
            Ok::<_, Error>(())
        })?);
    };
    let (mut named, mut batch) = (Named::default(), Vec::with_capacity(WARM_KEYS));
    loop {
        batch.extend(rows.by_ref().take(WARM_KEYS));
        if batch.is_empty() {
            return Ok(());
        }
        named.fetch(ctx, pattern, batch.iter().map(|row| texts.get(row.element)));
        for (row, key) in batch.drain(..).zip(named.keys()) {
            row.weight = with_value(ctx, &key, pattern, |value| match value {
                None if options.alpha => Ok(Weight::None),
                None => Ok(Weight::Number(0.0)),
                Some(text) if options.alpha => Ok(Weight::Text(texts.push_val(text))),
                Some(text) => Weight::of_val(text),
            })??;
        }
    }
}

/// Calls `f` with what a key that a pattern has named holds: a string, or a field of a hash.
fn with_value<R>(
    ctx: &mut Ctx<'_, '_>,
    key: &Key<'_>,
    pattern: &Pattern<'_>,
    f: impl FnOnce(Option<Val<'_>>) -> R,
) -> Result<R, Parked> {
    ctx.guard.cover(key.slot)?;
    let entry = ctx.guard.look_up(ctx.db, key);
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
    let width = options.gets.len();
    let mut shown = vec![None; rows.len() * width];
    let mut named = Named::default();
    for (rows, shown) in rows.chunks(WARM_KEYS).zip(shown.chunks_mut(WARM_KEYS * width)) {
        for (column, get) in options.gets.iter().enumerate() {
            let cells = shown.iter_mut().skip(column).step_by(width);
            match get {
                Get::Nothing => {}
                Get::Element => cells.zip(rows).for_each(|(cell, row)| *cell = Some(row.element)),
                Get::Value(pattern) => {
                    named.fetch(ctx, pattern, rows.iter().map(|row| texts.get(row.element)));
                    for (cell, key) in cells.zip(named.keys()) {
                        let push = |value: Option<Val<'_>>| value.map(|text| texts.push_val(text));
                        *cell = with_value(ctx, &key, pattern, push)?;
                    }
                }
            }
        }
    }
    Ok(shown)
}
