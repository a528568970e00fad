//! Reading the sketches that keys hold.

use std::borrow::Cow;

use value::hll::{Invalid, Registers};
use value::{IntText, Str, hll::Hll};

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

/// The bytes of a text which may be a sketch. One in pages is too long: its head tells whether it
/// is refused as a broken sketch or as none.
pub(super) fn block<'b>(text: &Str<'b>, scratch: &'b mut IntText) -> Result<Cow<'b, [u8]>, Error> {
    if let Str::Blob(blob) = text
        && blob.is_paged()
    {
        Hll::new(blob.pages().next().unwrap_or_default()).map_err(refused)?;
        return Err(Error::CorruptHll);
    }
    Ok(text.bytes(scratch))
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
            let text = block(&text, &mut scratch)?;
            let sketch = Hll::new(&text).map_err(refused)?;
            dense |= matches!(sketch, Hll::Dense(_));
            sketch.raise(registers).map_err(refused)?;
        }
    }
    Ok(dense)
}
