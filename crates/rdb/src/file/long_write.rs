//! Long values, written to a file in steps.

use base::Blob;

use super::Meta;
use super::error::NeedsVersion;
use super::writer::FileWriter;
use crate::collection::PartWriter;
use crate::lzf::PieceCompressor;
use crate::save::{Item, Plan, Source};
use crate::stream::StreamWriter;
use crate::text::{COMPRESSION_COST, Form, Packing, next, put_head};
use crate::{Kind, VERSION, types};

/// Compressed bytes that are kept until it is known how many they are; a text which takes more is
/// compressed twice.
const KEPT_MAX: usize = 1 << 20;
/// Bytes of a stream that a step writes: to pack and compress them takes 200 us.
const STREAM_BYTES: usize = 32 << 10;

/// A value whose parts can be read from any one on.
pub trait LongSource: Source {
    /// Calls `item` with the parts from the one at `from` on, until it says `false`. A stream has
    /// no parts.
    fn each_from(&self, from: u64, item: &mut dyn FnMut(Item<'_>) -> bool);
}

/// A long string under way. It gives up what it has written of the text, so that others who hold a
/// reference find it unshared: that works if this is the only other one.
#[derive(Debug)]
pub struct LongText {
    text: Blob,
    /// The next byte of the text, or of what is kept of it.
    at: usize,
    work: Work,
    /// Bytes freed since the last [`LongText::take_freed`].
    freed: usize,
}

#[derive(Debug)]
enum Work {
    /// It is not known yet whether it is compressed.
    Packing(Packing),
    /// It is copied.
    Copy,
    /// It was compressed into these bytes.
    Kept(Blob),
    /// It is compressed again.
    Again(PieceCompressor),
}

impl LongText {
    pub(super) fn new(writer: &mut FileWriter, key: &[u8], meta: &Meta, text: Blob) -> Self {
        let plan = Plan { id: types::STRING, version: VERSION, nodes: 0, earliest: 0 };
        writer.key(key, meta, &plan).expect("every version has strings");
        let packing = writer.compresses().then(|| Packing::new(text.len(), KEPT_MAX)).flatten();
        let work = if let Some(packing) = packing {
            Work::Packing(packing)
        } else {
            put_head(&mut writer.out, &Form::Plain, text.len());
            Work::Copy
        };
        Self { text, at: 0, work, freed: 0 }
    }

    /// Heap bytes of its own: compressed ones that are kept, 1 MiB at most.
    pub fn memory(&self) -> usize {
        match &self.work {
            Work::Packing(packing) => packing.memory(),
            Work::Kept(kept) => kept.len(),
            Work::Copy | Work::Again(_) => 0,
        }
    }

    /// Heap bytes that were freed since the last call, because nobody else held them.
    pub fn take_freed(&mut self) -> usize {
        std::mem::take(&mut self.freed)
    }

    /// Reads up to `count` bytes, fewer if they are compressed, and appends what they become;
    /// true after the last step. What takes more than 1 MiB compressed is compressed twice, so that
    /// it is never kept as a whole.
    pub fn step(&mut self, writer: &mut FileWriter, count: usize) -> bool {
        match &mut self.work {
            Work::Packing(packing) => {
                if let Some(form) = packing.step(&self.text, count) {
                    self.begin(writer, form);
                }
                false
            }
            Work::Copy => {
                let range = next(&mut self.at, self.text.len(), count);
                for run in self.text.pages_in(range.clone()) {
                    writer.out.extend_from_slice(run);
                }
                self.freed += self.text.release(range);
                self.at == self.text.len()
            }
            Work::Kept(kept) => {
                for run in kept.pages_in(next(&mut self.at, kept.len(), count)) {
                    writer.out.extend_from_slice(run);
                }
                self.at == kept.len()
            }
            Work::Again(compressor) => {
                let range = next(&mut self.at, self.text.len(), count / COMPRESSION_COST);
                for run in self.text.pages_in(range.clone()) {
                    writer.out.extend_from_slice(compressor.push(run));
                }
                self.freed += self.text.release(range);
                self.at == self.text.len()
            }
        }
    }

    fn begin(&mut self, writer: &mut FileWriter, form: Form) {
        put_head(&mut writer.out, &form, self.text.len());
        self.work = match form {
            Form::Plain => Work::Copy,
            Form::Packed(_, Some(kept)) => {
                let len = self.text.len();
                self.freed += self.text.release(0..len);
                Work::Kept(kept)
            }
            Form::Packed(_, None) => Work::Again(
                PieceCompressor::new(self.text.len()).expect("it was compressed before"),
            ),
        };
    }
}

/// A long collection or stream under way.
#[derive(Debug)]
pub struct LongValue(Steps);

#[derive(Debug)]
enum Steps {
    Parts(PartWriter),
    Stream(StreamWriter),
    /// One container.
    Whole(Plan),
}

impl LongValue {
    pub(super) fn new(
        writer: &mut FileWriter,
        key: &[u8],
        meta: &Meta,
        source: &impl Source,
    ) -> Result<Self, NeedsVersion> {
        if let Some(parts) = PartWriter::new(&writer.saver, source) {
            writer.key(key, meta, parts.plan())?;
            return Ok(Self(Steps::Parts(parts)));
        }
        let plan = writer.saver.plan(source);
        writer.key(key, meta, &plan)?;
        let is_stream = source.kind() == Kind::Stream;
        let stream = |plan| Steps::Stream(StreamWriter::new(plan));
        Ok(Self(if is_stream { stream(&plan) } else { Steps::Whole(plan) }))
    }

    /// Parts that are written: later steps read what is behind them.
    pub fn passed(&self) -> u64 {
        match &self.0 {
            Steps::Parts(parts) => parts.passed(),
            Steps::Stream(_) | Steps::Whole(_) => 0,
        }
    }

    /// Reads about 1,000 parts, fewer if they are long, and appends them; true after the last
    /// step. `source` is the same value in all steps, and does not change, but may have lost
    /// what was [passed](LongValue::passed). What is one container is written in one step.
    ///
    /// # Panics
    /// If the source gives fewer parts than it counts.
    pub fn step(&mut self, writer: &mut FileWriter, source: &impl LongSource) -> bool {
        let FileWriter { saver, out, .. } = writer;
        match &mut self.0 {
            Steps::Parts(parts) => parts.step(saver, out, |at, item| source.each_from(at, item)),
            Steps::Stream(writer) => {
                let stream = source.stream().expect("it is a stream in all steps");
                writer.step(saver, stream, out, STREAM_BYTES)
            }
            Steps::Whole(plan) => {
                saver.value(plan, source, out);
                true
            }
        }
    }
}
