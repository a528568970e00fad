//! PFDEBUG, PFSELFTEST.

use keyspace::Event;
use value::hll::{Hll, REGISTERS, self_test, to_dense, words};
use value::{IntText, NewStr};

use super::sketch::{block, refused};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::{Error, PfdebugSubcommand, SelfTest};
use crate::parse::is;
use crate::string::text::text_of;

/// `PFDEBUG <GETREG | DECODE | ENCODING | TODENSE> key`. GETREG makes the sketch dense, too.
pub fn pfdebug(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (word, key) = (ctx.arg(1), ctx.key(2));
    let Some(mut entry) = ctx.guard.entry_mut(Event::SILENT, ctx.db, &key) else {
        return Err(Error::PfdebugNoKey);
    };
    let mut scratch = IntText::default();
    let stored = text_of(&entry.entry())?;
    let text = &*block(&stored, &mut scratch)?;
    let sketch = Hll::new(text).map_err(refused)?;
    let reply = &mut ctx.reply;
    match sketch {
        Hll::Sparse(_) if is(word, "ENCODING") => reply.simple("sparse"),
        Hll::Dense(_) if is(word, "ENCODING") => reply.simple("dense"),
        Hll::Sparse(sparse) if is(word, "DECODE") => reply.bulk(words(sparse).as_bytes()),
        Hll::Dense(_) if is(word, "DECODE") => return Err(Error::HllNotSparse),
        _ if is(word, "GETREG") || is(word, "TODENSE") => {
            let mut registers = [0; REGISTERS];
            sketch.raise(&mut registers).map_err(refused)?;
            let dense = match sketch {
                Hll::Sparse(_) => Some(to_dense(text).map_err(refused)?),
                Hll::Dense(_) => None,
            };
            if let Some(dense) = &dense {
                entry.set_str(NewStr::Raw(dense), true);
            }
            if is(word, "TODENSE") {
                reply.integer(i64::from(dense.is_some()));
            } else {
                reply.array(REGISTERS);
                for rank in registers {
                    reply.integer(i64::from(rank));
                }
            }
        }
        _ => return Err(PfdebugSubcommand { word: word.into() }.into()),
    }
    Ok(Done::Replied)
}

/// `PFSELFTEST`.
pub fn pfselftest(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    self_test().map_err(|why| SelfTest { why: why.into() })?;
    ctx.reply.ok();
    Ok(Done::Replied)
}
