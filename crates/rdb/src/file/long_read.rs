//! Reads a long value which comes in parts.

use base::Blob;

use super::chunk::LongKey;
use super::error::FileError;
use crate::Sink;

/// Reads the parts of a long value.
#[derive(Debug)]
pub struct LongReader {
    about: LongKey,
}

impl LongReader {
    /// Nothing read yet.
    pub fn new(about: LongKey) -> Self {
        Self { about }
    }

    /// The key.
    pub fn about(&self) -> &LongKey {
        &self.about
    }

    /// Reads the next part. The sink is the same one for all parts; that of a string is not used.
    ///
    /// # Errors
    /// The part is wrong, or the sink refused something.
    pub fn part(&mut self, _part: &[u8], _sink: &mut impl Sink) -> Result<(), FileError> {
        todo!()
    }

    /// Ends the value behind its last part; the text, if it is a string.
    ///
    /// # Errors
    /// It is not complete, or the sink refused it.
    pub fn finish(self, _sink: &mut impl Sink) -> Result<Option<Blob>, FileError> {
        todo!()
    }
}
