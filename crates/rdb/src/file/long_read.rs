//! Reads a long value which comes in parts.

use base::Blob;

use super::chunk::LongKey;
use super::error::{Fault, FileError};
use crate::load::PartReader;
use crate::text::TextPieces;
use crate::{Error, Reader, Sink};

/// Reads the parts of a long value.
#[derive(Debug)]
pub struct LongReader {
    about: LongKey,
    /// Where the next part begins in the file.
    offset: u64,
    work: Work,
}

#[derive(Debug)]
enum Work {
    /// Bytes that are still to come.
    Text(TextPieces, u64),
    /// None before the first part.
    Parts(Option<PartReader>),
}

impl LongReader {
    /// Nothing read yet.
    pub fn new(about: LongKey) -> Self {
        let work = match about.text {
            Some(head) => Work::Text(TextPieces::new(head.expanded), head.bytes),
            None => Work::Parts(None),
        };
        Self { offset: about.offset, about, work }
    }

    /// The key.
    pub fn about(&self) -> &LongKey {
        &self.about
    }

    /// Reads the next part. The sink is the same one for all parts; that of a string is not used.
    ///
    /// # Errors
    /// The part is wrong, or the sink refused something.
    pub fn part(&mut self, part: &[u8], sink: &mut impl Sink) -> Result<(), FileError> {
        let read = match &mut self.work {
            Work::Text(pieces, left) => match left.checked_sub(part.len() as u64) {
                Some(still) => {
                    *left = still;
                    pieces.push(part, still == 0)
                }
                None => Err(Error::Corrupt),
            },
            Work::Parts(parts) => read(&self.about, parts, part, sink),
        };
        read.map_err(|error| self.error(error))?;
        self.offset += part.len() as u64;
        Ok(())
    }

    /// Takes what is there of a string, which [`LongReader::finish`] then returns without.
    pub fn take_text(&mut self) -> Blob {
        match &mut self.work {
            Work::Text(pieces, _) => std::mem::take(&mut pieces.text),
            Work::Parts(_) => Blob::default(),
        }
    }

    /// Ends the value behind its last part; the text, if it is a string.
    ///
    /// # Errors
    /// It is not complete, or the sink refused it.
    pub fn finish(self, sink: &mut impl Sink) -> Result<Option<Blob>, FileError> {
        let end = match &self.work {
            Work::Text(_, 0) => Ok(()),
            Work::Parts(Some(parts)) if parts.left() == 0 => parts.finish(sink),
            Work::Text(..) | Work::Parts(_) => Err(Error::Short),
        };
        end.map_err(|error| self.error(error))?;
        Ok(match self.work {
            Work::Text(pieces, _) => Some(pieces.text),
            Work::Parts(_) => None,
        })
    }

    /// That the value is wrong in the part at hand.
    fn error(&self, error: Error) -> FileError {
        FileError {
            offset: self.offset,
            db: Some(self.about.db),
            key: Some(self.about.name.clone()),
            id: Some(self.about.id),
            fault: Fault::Value(error),
        }
    }
}

/// Reads the part of a collection.
fn read(
    about: &LongKey,
    parts: &mut Option<PartReader>,
    part: &[u8],
    sink: &mut impl Sink,
) -> Result<(), Error> {
    let mut reader = Reader::new(part);
    let parts = match parts {
        Some(parts) => parts,
        none => {
            let (id, dialect) = (about.id, about.dialect);
            let begun = PartReader::begin(id, dialect, &mut reader, u64::MAX, sink)?;
            none.insert(begun.ok_or(Error::Type(id))?)
        }
    };
    while !reader.rest().is_empty() {
        if parts.left() == 0 {
            return Err(Error::Corrupt);
        }
        parts.read(&mut reader, sink)?;
    }
    Ok(())
}
