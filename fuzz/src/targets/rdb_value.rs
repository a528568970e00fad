//! RDB values: any bytes with a valid trailer decode to an error or a value, the same one in steps
//! as at once. The memory of a value is bounded by its number of bytes. Encoding and decoding it
//! again returns the same value, in every shape and dialect.

use base::Blob;
use rdb::{
    Builder, CollectionRestore, Dialect, Error, Item, Options, Owned, Saver, Shape, Source,
    VERSION, VERSION_VALKEY, lzf, seal,
};

use crate::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "rdb_value",
    feed,
    dictionary: &[
        b"\x81\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x80\xff\xff\xff\xff",
        b"\x80\0\0\0\x01",
        b"\xc3\x05\x15\0a\xe0\x0b\0",
        b"\xe0\xff\0",
        b"\x13\0\0\0\x03\0\x82a0\x03\x82a1\x03\x82a2\x03\xff",
        b"\x07\0\0\0\0\0\xff",
        b"\xff\xff",
        b"\x02\0\0\0\x01\0\0\0",
        b"\0\0\0\0\0\0\xf8\x7f",
        b"\xf1\0\0\x03",
        b"\xf4\0\0\0\0\0\0\0\x80\x09",
        b"\xc0\x01",
        b"\xc2\0\0\0\x80",
        b"\xfe\x2c\x01\0\0",
    ],
};

/// Input: a byte that chooses version and shape, a type, a value.
fn feed(input: &[u8]) {
    let Some((choice, body)) = input.split_first() else { return };
    let dialect = if choice & 1 == 0 { Dialect::Redis } else { Dialect::Valkey };
    let mut payload = body.to_vec();
    seal(&mut payload, if dialect == Dialect::Redis { 12 } else { 80 });
    let whole = Owned::restore(&payload).map(sorted);
    if let Some(in_steps) = restore_in_steps(&payload, 1 + usize::from(*choice)) {
        // (Scores compare by their bits in the text of both.)
        assert_eq!(format!("{in_steps:?}"), format!("{whole:?}"), "read in steps");
    }
    let value = match whole {
        Ok(value) => value,
        Err(error) => return assert_ne!(error, Error::Envelope, "the trailer is right"),
    };
    // An integer of one byte has up to four digits; scores and expiries are not counted.
    let mut bytes = 0;
    value.each(|item| {
        bytes += match item {
            Item::Element(one) | Item::Member(one, _) => one.len(),
            Item::Field(field, value, _) => field.len() + value.len(),
        };
    });
    assert!(bytes <= body.len() * lzf::GROWTH_MAX * 4, "{bytes} of {}", body.len());
    let shape = [Shape::Packed, Shape::Intset, Shape::Plain][(choice >> 1) as usize % 3];
    for version in [VERSION, VERSION_VALKEY] {
        let mut saver = Saver::new(Options { compress: choice & 64 == 0, version });
        let again = saver.dump(&value.shaped(shape));
        let again = sorted(Owned::restore(&again).expect("our own payload"));
        assert!(same(&again, &value), "{again:?} of {value:?}");
    }
}

/// The value of a payload that has parts, of which `count` bytes are checked in a step.
fn restore_in_steps(payload: &[u8], count: usize) -> Option<Result<Owned, Error>> {
    let mut work = CollectionRestore::new(Blob::from(payload))?;
    let mut builder = Builder::default();
    loop {
        match work.step(count, &mut builder) {
            Ok(false) => {}
            Ok(true) => return Some(Ok(sorted(builder.into_value()?))),
            Err(error) => return Some(Err(error)),
        }
    }
}

fn sorted(mut value: Owned) -> Owned {
    value.sort();
    value
}

/// Redis's types hold 48 bits of an expiry, and none that is 0.
fn same(a: &Owned, b: &Owned) -> bool {
    let (Owned::Hash(a), Owned::Hash(b)) = (a, b) else { return a == b };
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| {
            let bounded = |at: base::UnixMs| at.0.clamp(1, rdb::EXPIRE_MAX);
            (&a.name, &a.value) == (&b.name, &b.value)
                && a.expires.map(bounded) == b.expires.map(bounded)
        })
}
