//! Values in a scan: which are given whole, which in parts, which are left out.

use super::Meta;
use super::chunk::{Chunk, LongChunk, LongKey};
use super::error::Fault;
use super::scanner::{Scanner, Stage, Step};
use super::walk::{Walk, Walked, has_parts, module_name};
use crate::text::TextHead;
use crate::{Error, Reader, types};

impl Scanner {
    /// The first byte of a value.
    pub(super) fn begin(&mut self) -> Result<Step, Fault> {
        let (id, at) = (self.item.code, self.at);
        match id {
            types::STRING => {
                let Some(head) = self.read(TextHead::read)? else { return Ok(Step::More) };
                if let Some(head) = head
                    && head.bytes >= self.chunk_bytes as u64
                {
                    let here = (self.bytes.len() - self.at) as u64;
                    if head.bytes > self.further().saturating_add(here) {
                        return Err(Fault::Beyond);
                    }
                    self.begin_long(at, Some(head))?;
                    self.kept = self.at;
                    self.stage = Stage::Text(head.bytes);
                    return Ok(Step::Moved);
                }
                self.at = at;
            }
            types::MODULE_PRE | types::MODULE => {
                let Some(module) = self.read(length)? else {
                    return Ok(Step::More);
                };
                self.at = at;
                if id == types::MODULE_PRE || !self.options.skip_unknown {
                    return Err(Fault::Module(module_name(module)));
                }
                self.item.name = self.name()?;
                self.give_keys();
            }
            _ => {}
        }
        self.walk = Walk::value(id, self.dialect).ok_or(Fault::UnknownType(id))?;
        self.stage = if id == types::MODULE { Stage::Skip } else { Stage::Value };
        Ok(Step::Moved)
    }

    /// Begins a value that comes in parts, and stands at this place.
    fn begin_long(&mut self, value: usize, text: Option<TextHead>) -> Result<(), Fault> {
        let name = self.name()?;
        self.item.name.clone_from(&name);
        self.give_keys();
        self.ready.push_back(Chunk::Long(LongChunk::Begin(LongKey {
            db: self.db,
            name,
            meta: self.item.meta,
            id: self.item.code,
            dialect: self.dialect,
            offset: self.base + value as u64,
            text,
        })));
        Ok(())
    }

    /// A value.
    pub(super) fn value(&mut self) -> Result<Step, Fault> {
        let is_cut = has_parts(self.item.code, self.dialect);
        let goal = if is_cut { self.item.value + self.chunk_bytes } else { usize::MAX };
        match self.walk(goal)? {
            Walked::More => return Ok(Step::More),
            Walked::Complete => {
                self.ends.push(self.at - self.kept);
                self.end_key();
                self.cut_if_long();
            }
            Walked::Part => {
                self.begin_long(self.item.value, None)?;
                self.kept = self.item.value;
                self.give_part();
                self.stage = Stage::Parts;
            }
        }
        Ok(Step::Moved)
    }

    /// A value that is left out.
    pub(super) fn skip(&mut self) -> Result<Step, Fault> {
        let walked = self.walk(usize::MAX)?;
        self.kept = self.at;
        if walked != Walked::Complete {
            return Ok(Step::More);
        }
        self.end_key();
        self.summary.keys -= 1;
        self.summary.skipped_keys += 1;
        Ok(Step::Moved)
    }

    /// The parts of a long collection.
    pub(super) fn parts(&mut self) -> Result<Step, Fault> {
        match self.walk(self.kept + self.chunk_bytes)? {
            Walked::More => return Ok(Step::More),
            Walked::Part => self.give_part(),
            Walked::Complete => {
                self.give_part();
                self.ready.push_back(Chunk::Long(LongChunk::End));
                self.end_key();
            }
        }
        Ok(Step::Moved)
    }

    /// So many bytes of a long string.
    pub(super) fn text(&mut self, left: u64) -> Step {
        let count = left.min(self.chunk_bytes as u64);
        if ((self.bytes.len() - self.at) as u64) < count {
            return Step::More;
        }
        self.at += count as usize;
        self.give_part();
        self.stage = Stage::Text(left - count);
        if left == count {
            self.ready.push_back(Chunk::Long(LongChunk::End));
            self.end_key();
        }
        Step::Moved
    }

    /// Gives the next part of a long value.
    fn give_part(&mut self) {
        let part = self.bytes[self.kept..self.at].to_vec();
        self.kept = self.at;
        self.ready.push_back(Chunk::Long(LongChunk::Part(part)));
    }

    /// Counts a key that is complete.
    fn end_key(&mut self) {
        self.summary.keys += 1;
        self.item.meta = Meta::default();
        self.stage = Stage::Item;
    }
}

fn length(reader: &mut Reader<'_>) -> Result<u64, Error> {
    reader.length()
}
