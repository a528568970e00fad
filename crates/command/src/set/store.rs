//! Storing several sets in one: SINTERSTORE, SUNIONSTORE, SDIFFSTORE.

use keyspace::{Encoding, Kind};
use value::Big;
use value::packed::{Elem, PACKED_MAX};
use value::set::Set;

use super::Form;
use super::merge::{Merge, Operation};
use crate::ctx::Ctx;
use crate::error::Error;

/// `SINTERSTORE destination key [key ...]`.
pub fn sinterstore(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    store(ctx, Operation::Intersection)
}

/// `SUNIONSTORE destination key [key ...]`.
pub fn sunionstore(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    store(ctx, Operation::Union)
}

/// `SDIFFSTORE destination key [key ...]`.
pub fn sdiffstore(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    store(ctx, Operation::Difference)
}

fn store(ctx: &mut Ctx<'_, '_>, operation: Operation) -> Result<(), Error> {
    let keys = 2..ctx.args.len();
    let mut merge = Merge::new(ctx, operation, keys)?;
    let settings = ctx.settings;
    let (mut set, mut form, mut bytes) = (Set::new(), Form::NEW, 0);
    merge.step(u64::MAX, |key| {
        set.build(key);
        if form.encoding != Encoding::Hashtable || bytes <= PACKED_MAX {
            let elem = Elem::of(key.tail);
            bytes += elem.size();
            form.add(settings, elem, set.len());
        }
        true
    });
    let (db, key, members) = (ctx.db, ctx.key(1), set.len());
    if members == 0 {
        ctx.guard.remove(db, &key);
    } else if bytes <= PACKED_MAX {
        let packed = pack(&set, form.encoding == Encoding::Intset);
        ctx.guard.insert_packed(db, &key, Kind::Set, form.encoding, &packed, None);
    } else {
        ctx.guard.insert_big(db, &key, form.encoding, Big::Set(set), None);
    }
    ctx.reply.integer(members as i64);
    Ok(())
}

/// A small set in its packed form, integers in their order.
fn pack(set: &Set, ordered: bool) -> Vec<u8> {
    let mut members: Vec<_> = set.iter().map(Elem::of).collect();
    if ordered {
        members.sort_unstable_by_key(|member| match member {
            Elem::Int(number) => *number,
            Elem::Bytes(_) => unreachable!("an intset has integers only"),
        });
    }
    let mut packed = Vec::with_capacity(members.iter().map(|member| member.size()).sum());
    for member in members {
        member.push(&mut packed);
    }
    packed
}
