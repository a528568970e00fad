//! Long values, written to a file in steps.

use base::Blob;

use super::Meta;
use super::error::NeedsVersion;
use super::writer::FileWriter;
use crate::save::{Item, Source};

/// A value whose parts can be read from any one on.
pub trait LongSource: Source {
    /// Calls `item` with the parts from the one at `from` on, until it says `false`. A stream has
    /// no parts.
    fn each_from(&self, from: u64, item: &mut dyn FnMut(Item<'_>) -> bool);
}

/// A long string under way.
#[derive(Debug)]
pub struct LongText {
    text: Blob,
}

impl LongText {
    pub(super) fn new(_writer: &mut FileWriter, _key: &[u8], _meta: &Meta, text: Blob) -> Self {
        Self { text }
    }

    /// Reads up to `count` bytes, fewer if they are compressed, and appends what they become;
    /// true after the last step. Compression that would take more than a bounded copy runs twice.
    pub fn step(&mut self, _writer: &mut FileWriter, _count: usize) -> bool {
        todo!("{}", self.text.len())
    }
}

/// A long collection or stream under way.
#[derive(Debug)]
pub struct LongValue {}

impl LongValue {
    pub(super) fn new(
        _writer: &mut FileWriter,
        _key: &[u8],
        _meta: &Meta,
        _source: &impl Source,
    ) -> Result<Self, NeedsVersion> {
        todo!()
    }

    /// Reads about 1,000 parts, fewer if they are long, and appends them; true after the last
    /// step. `source` is the same value in all steps, and does not change. What is one container
    /// is written in one step.
    ///
    /// # Panics
    /// If the source gives fewer parts than it counts.
    pub fn step(&mut self, _writer: &mut FileWriter, _source: &impl LongSource) -> bool {
        todo!()
    }
}
