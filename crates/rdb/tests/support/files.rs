//! Whole files in memory: written from values, read into values.

use rdb::file::{
    Chunk, FileError, FileOptions, FileWriter, LongChunk, LongReader, LongSource, Meta,
    ScanOptions, Scanned, Scanner, Summary,
};
use rdb::{Builder, Item, Kind, Owned, Shape, Source};

/// A key of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub db: u32,
    pub name: Vec<u8>,
    pub meta: Meta,
    pub value: Owned,
}

/// What a file has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    pub aux: Vec<(Vec<u8>, Vec<u8>)>,
    pub functions: Vec<Vec<u8>>,
    pub sizes: Vec<(u32, u64, u64)>,
    pub entries: Vec<Entry>,
    /// Entries that came in parts, and these.
    pub long: usize,
    pub parts: usize,
    /// The most that the scanner held.
    pub held: usize,
}

pub const ALL: ScanOptions =
    ScanOptions { length: None, databases: None, verify: true, skip_unknown: false };

/// Reads a file which is fed in blocks of this size.
pub fn read(
    file: &[u8],
    block: usize,
    options: ScanOptions,
) -> Result<(Content, Summary), FileError> {
    let mut scanner = Scanner::new(options);
    let mut blocks = file.chunks(block);
    let mut content = Content::default();
    let mut long: Option<(LongReader, Builder)> = None;
    loop {
        let chunk = match scanner.next()? {
            Scanned::More => {
                match blocks.next() {
                    Some(block) => scanner.feed(block),
                    None => scanner.end_of_input(),
                }
                content.held = content.held.max(scanner.memory());
                continue;
            }
            Scanned::Complete(summary) => return Ok((content, summary)),
            Scanned::Chunk(chunk) => chunk,
        };
        match chunk {
            Chunk::Aux(name, text) => content.aux.push((name, text)),
            Chunk::Function(code) => content.functions.push(code),
            Chunk::Resize { db, keys, expires } => content.sizes.push((db, keys, expires)),
            Chunk::Keys(keys) => {
                assert!(!keys.is_empty(), "a chunk has keys");
                for key in &keys {
                    let key = key?;
                    let mut builder = Builder::default();
                    key.load(&mut builder)?;
                    let value = builder.into_value().expect("it was read");
                    let (db, name, meta) = (key.db, key.name.to_vec(), key.meta);
                    content.entries.push(Entry { db, name, meta, value });
                }
            }
            Chunk::Long(LongChunk::Begin(about)) => {
                content.long += 1;
                long = Some((LongReader::new(about), Builder::default()));
            }
            Chunk::Long(LongChunk::Part(part)) => {
                let (reader, builder) = long.as_mut().expect("it began");
                content.parts += 1;
                reader.part(&part, builder)?;
            }
            Chunk::Long(LongChunk::End) => {
                let (reader, mut builder) = long.take().expect("it began");
                let about = reader.about().clone();
                let text = reader.finish(&mut builder)?;
                let text = text.map(|text| Owned::String(text.to_vec()));
                let value = text.or_else(|| builder.into_value()).expect("it was read");
                let (db, name, meta) = (about.db, about.name, about.meta);
                content.entries.push(Entry { db, name, meta, value });
            }
        }
    }
}

/// A value that can be read from any part on.
pub struct Long<'a>(pub &'a Owned, pub Shape);

impl Source for Long<'_> {
    fn kind(&self) -> Kind {
        self.0.kind()
    }

    fn count(&self) -> u64 {
        self.0.count()
    }

    fn shape(&self) -> Shape {
        self.1
    }

    fn expires(&self) -> bool {
        self.0.expires()
    }

    fn stream(&self) -> Option<&value::Stream> {
        self.0.stream()
    }

    fn each(&self, item: impl FnMut(Item<'_>)) {
        self.0.each(item);
    }
}

impl LongSource for Long<'_> {
    fn each_from(&self, from: u64, item: &mut dyn FnMut(Item<'_>) -> bool) {
        let (mut at, mut goes_on) = (0, true);
        self.0.each(|part| {
            if at >= from && goes_on {
                goes_on = item(part);
            }
            at += 1;
        });
    }
}

/// How values are written: at once, or in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Whole,
    Steps,
}

/// Writes an entry; says in how many steps.
pub fn put(writer: &mut FileWriter, entry: &Entry, shape: Shape, way: Way) -> usize {
    let Entry { db, name, meta, value } = entry;
    writer.database(base::DbIndex(*db), None);
    let source = Long(value, shape);
    if way == Way::Whole {
        writer.value(name, meta, &source).expect("the version has it");
        return 1;
    }
    let is_text = |text: &Vec<u8>| text.len() > 20;
    if let Owned::String(text) = value
        && is_text(text)
    {
        let mut long = writer.begin_text(name, meta, base::Blob::from(&text[..]));
        return 1 + std::iter::repeat_with(|| long.step(writer, 1 << 16))
            .take_while(|done| !done)
            .count();
    }
    let mut long = writer.begin_long(name, meta, &source).expect("the version has it");
    1 + std::iter::repeat_with(|| long.step(writer, &source)).take_while(|done| !done).count()
}

/// A file of these entries, whose bytes are taken now and then.
pub fn file(options: FileOptions, entries: &[Entry], shape: Shape, way: Way) -> Vec<u8> {
    let mut writer = FileWriter::new(options, Vec::new());
    let mut file = Vec::new();
    writer.begin(&[("redis-ver", b"7.0.0"), ("redis-bits", b"64")]);
    for (at, entry) in entries.iter().enumerate() {
        put(&mut writer, entry, shape, way);
        assert_eq!(writer.total(), (file.len() + writer.len()) as u64);
        if at % 7 == 3 {
            file.extend(writer.take(Vec::new()));
        }
    }
    writer.end();
    file.extend(writer.take(Vec::new()));
    file
}

/// A file of these entries and nothing else, written at once.
pub fn file_without_aux(options: FileOptions, entries: &[Entry]) -> Vec<u8> {
    let mut writer = FileWriter::new(options, Vec::new());
    writer.begin(&[]);
    for entry in entries {
        put(&mut writer, entry, Shape::Plain, Way::Whole);
    }
    writer.end();
    writer.take(Vec::new())
}
