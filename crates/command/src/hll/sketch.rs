//! Reading the sketches that keys hold.

use value::hll::{Invalid, Registers};
use value::{IntText, hll::Hll};

use crate::ctx::Ctx;
use crate::error::Error;
use crate::string::text::lookup;

/// The reply for a text that is no sketch.
#[cold]
pub(super) fn refused(why: Invalid) -> Error {
    match why {
        Invalid::NotOne => Error::NotHll,
        Invalid::Corrupt => Error::CorruptHll,
    }
}

/// Raises `registers` to what the keys of the arguments from `first` on have seen; says whether one
/// of them is dense.
pub(super) fn raise_all(
    ctx: &mut Ctx<'_, '_>,
    first: usize,
    registers: &mut Registers,
) -> Result<bool, Error> {
    let mut dense = false;
    for i in first..ctx.args.len() {
        let key = ctx.key(i);
        if let Some(text) = lookup(ctx.guard, ctx.tally, ctx.db, &key)? {
            let mut scratch = IntText::default();
            let text = text.bytes(&mut scratch);
            let sketch = Hll::new(&text).map_err(refused)?;
            dense |= matches!(sketch, Hll::Dense(_));
            sketch.raise(registers).map_err(refused)?;
        }
    }
    Ok(dense)
}
