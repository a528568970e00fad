//! What the commands on times of fields share: their arguments, and changing a hash that has times.

use std::ops::Range;

use base::UnixMs;
use base::num::parse_i64;
use keyspace::{Encoding, EntryMut, Event, Kind};
use value::Big;
use value::hash::Hash;

use super::change::hash_mut;
use super::view::View;
use crate::ctx::Ctx;
use crate::error::{Error, InvalidExpire};
use crate::parse::{integer, is};

/// `FIELDS n field ...` from argument `at` on to the end: where the fields are, each of `step`
/// arguments.
pub(super) fn fields(ctx: &Ctx<'_, '_>, at: usize, step: usize) -> Result<Range<usize>, Error> {
    if !ctx.args.try_get(at).is_some_and(|word| is(word, "FIELDS")) {
        return Err(Error::NoFields);
    }
    let count = ctx.args.try_get(at + 1).and_then(parse_i64).and_then(|n| usize::try_from(n).ok());
    let count = count.filter(|n| *n > 0).ok_or(Error::NumFields)?;
    if count.checked_mul(step) != Some(ctx.args.len() - at - 2) {
        return Err(Error::NumFieldsMatch);
    }
    Ok(at + 2..ctx.args.len())
}

/// A client's time in milliseconds of the epoch, which is not negative.
pub(super) fn absolute(
    text: &[u8],
    from: UnixMs,
    unit: i64,
    command: &'static str,
) -> Result<UnixMs, Error> {
    let time = Some(integer(text)?).filter(|time| *time >= 0);
    let at = time.and_then(|time| time.checked_mul(unit)).and_then(|ms| ms.checked_add(from.0));
    at.map(UnixMs).ok_or_else(|| InvalidExpire { command }.into())
}

/// Where absolute times count from.
pub(super) const EPOCH: UnixMs = UnixMs(0);

/// -2 for a field that does not exist, -1 for one that does not expire.
pub(super) fn code(view: View<'_>, field: &[u8], time: impl FnOnce(i64) -> i64) -> i64 {
    if view.get(field).is_none() {
        return -2;
    }
    match view {
        View::Packed(_) => -1,
        View::Big(_, hash) => hash.expiry(field).map_or(-1, time),
    }
}

/// Changes the hash in the first argument's key as a tree, which it becomes; the key goes with the
/// last field. `None` if it does not exist.
pub(super) fn change<R>(
    event: Event,
    ctx: &mut Ctx<'_, '_>,
    f: impl FnOnce(&mut Hash, &mut value::Log) -> R,
) -> Result<Option<R>, Error> {
    let Some(mut entry) = ctx.entry_mut_kind(Event::SILENT, 1, Kind::Hash)? else {
        return Ok(None);
    };
    let was_packed = entry.entry().packed().is_some();
    unpack(&mut entry);
    entry.set_event(event);
    let (result, left) = entry.edit(|big, log| {
        let hash = hash_mut(big);
        (f(hash, log), hash.len())
    });
    if left == 0 {
        entry.remove();
    }
    if was_packed {
        ctx.guard.adjust_change_count(-1); // another form is no change
    }
    Ok(Some(result))
}

/// Makes a packed hash a tree: only a tree has room for times.
fn unpack(entry: &mut EntryMut<'_, '_>) {
    if let Some(packed) = entry.entry().packed() {
        let hash = Hash::of_packed(packed);
        entry.set_big(Encoding::Hashtable, Big::Hash(hash));
    }
}
