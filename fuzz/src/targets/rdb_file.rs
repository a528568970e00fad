//! RDB files: any bytes are an error with its place, or chunks which do not depend on the blocks in
//! which the bytes come. Chunks together have no more bytes than the file; what a key or a part of
//! a value claims is no reason to allocate. A value which comes in parts is the same as whole.

use rdb::file::{
    Chunk, FileError, LongChunk, LongReader, Meta, ScanOptions, Scanned, Scanner, Summary,
};
use rdb::{Builder, Owned};

use crate::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "rdb_file",
    feed,
    dictionary: &[
        b"REDIS0011",
        b"VALKEY080",
        b"\xfe\0",
        b"\xfb\x02\x01",
        b"\xfc\0\0\0\0\0\0\0\0",
        b"\xfd\0\0\0\0",
        b"\xf8\x40\x64",
        b"\xf9\x05",
        b"\xfa\x09slot-info\x051,2,3",
        b"\xfa\x01a\x01b",
        b"\xf7\x01\x02\x01\x05\x01x\0",
        b"\x07\x01k\x01\x01\x05\x03ffff\x04dddddddd\0",
        b"\xf5\x04code",
        b"\xf4\x01\x02\x03",
        b"\xf3\x03job\x01\x01\x02",
        b"\0\x01k\x01v",
        b"\x81\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x80\xff\xff\xff\xff",
        b"\xc3\x05\x15\0a\xe0\x0b\0",
        b"\xff\0\0\0\0\0\0\0\0",
    ],
};

/// An item of a file, and for a value what reading it gave.
#[derive(Debug, PartialEq)]
enum Item {
    Aux(Vec<u8>, Vec<u8>),
    Function(Vec<u8>),
    Resize(u32, u64, u64),
    /// Database, name, text of the value: scores are compared by their bits.
    Key(u32, Vec<u8>, Meta, String),
}

/// Input: a byte that chooses how to begin, a byte that chooses the blocks, a file without its
/// magic.
fn feed(input: &[u8]) {
    let [choice, block, body @ ..] = input else { return };
    let head: &[u8] = [&b""[..], b"REDIS0012", b"VALKEY080", b"REDIS0003"][*choice as usize % 4];
    let file = [head, body].concat();
    let length = (choice & 4 > 0).then_some(file.len() as u64);
    let skip_unknown = choice & 8 > 0;
    let databases = (choice & 16 > 0).then_some(16);
    let options = ScanOptions { length, databases, verify: choice & 16 > 0, skip_unknown };
    let chunk = [1, 40, 300, 1 << 20][*choice as usize >> 5 & 3];
    let (whole, error) = scan(&file, file.len().max(1), options, 1 << 20);
    let (blocks, same) = scan(&file, usize::from(*block) + 1, options, 1 << 20);
    assert_eq!(blocks, whole, "in blocks of {block}");
    // (With a length that is not known, what is missing is seen only at the end of the input.)
    let place = |error: &Result<Summary, FileError>| match error {
        Ok(summary) => Ok(*summary),
        Err(error) => Err((error.offset, error.db, error.id)),
    };
    assert_eq!(place(&same), place(&error), "in blocks of {block}");
    let (parts, other) = scan(&file, usize::from(*block) + 1, options, chunk);
    assert_eq!(other.is_ok(), error.is_ok(), "in chunks of {chunk}: {other:?}, whole {error:?}");
    if error.is_ok() {
        assert_eq!(parts, whole, "in chunks of {chunk}");
    }
}

/// The items of a file up to its end or an error.
fn scan(
    file: &[u8],
    block: usize,
    options: ScanOptions,
    chunk: usize,
) -> (Vec<Item>, Result<Summary, FileError>) {
    let mut scanner = Scanner::with_chunks(options, chunk);
    let mut items = Vec::new();
    let result = scan_into(file, block, &mut scanner, &mut items);
    if let Err(error) = &result {
        assert!(error.offset <= file.len() as u64, "{error} of {} bytes", file.len());
    }
    (items, result)
}

fn scan_into(
    file: &[u8],
    block: usize,
    scanner: &mut Scanner,
    items: &mut Vec<Item>,
) -> Result<Summary, FileError> {
    let mut blocks = file.chunks(block);
    let (mut bytes, mut long) = (0, None);
    loop {
        let chunk = match scanner.next()? {
            Scanned::More => {
                match blocks.next() {
                    Some(block) => scanner.feed(block),
                    None => scanner.end_of_input(),
                }
                continue;
            }
            Scanned::Complete(summary) => return Ok(summary),
            Scanned::Chunk(chunk) => chunk,
        };
        match chunk {
            Chunk::Aux(name, text) => items.push(Item::Aux(name, text)),
            Chunk::Function(code) => items.push(Item::Function(code)),
            Chunk::Resize { db, keys, expires } => items.push(Item::Resize(db, keys, expires)),
            Chunk::Keys(keys) => {
                bytes += keys.bytes();
                for key in &keys {
                    let key = key?;
                    let mut builder = Builder::default();
                    key.load(&mut builder)?;
                    items.push(Item::Key(key.db, key.name.to_vec(), key.meta, text(builder)));
                }
            }
            Chunk::Long(LongChunk::Begin(about)) => {
                long = Some((LongReader::new(about), Builder::default()));
            }
            Chunk::Long(LongChunk::Part(part)) => {
                bytes += part.len();
                let (reader, builder) = long.as_mut().expect("it began");
                reader.part(&part, builder)?;
            }
            Chunk::Long(LongChunk::End) => {
                let (reader, mut builder) = long.take().expect("it began");
                let (db, name, meta) = {
                    let about = reader.about();
                    (about.db, about.name.clone(), about.meta)
                };
                let value = match reader.finish(&mut builder)? {
                    Some(blob) => format!("{:?}", Owned::String(blob.to_vec())),
                    None => text(builder),
                };
                items.push(Item::Key(db, name, meta, value));
            }
        }
        assert!(bytes <= file.len(), "{bytes} bytes in chunks of a file of {}", file.len());
    }
}

/// The text of a value.
fn text(builder: Builder) -> String {
    let mut value = builder.into_value().expect("it was read");
    value.sort();
    format!("{value:?}")
}
