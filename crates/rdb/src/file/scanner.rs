//! Cuts a file into chunks.

use super::chunk::Chunk;
use super::error::FileError;

/// How a file is scanned.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScanOptions {
    /// Bytes of the file, if they are known: nothing may reach beyond them.
    pub length: Option<u64>,
    /// Whether the checksum is verified, if there is one.
    pub verify: bool,
    /// Whether values of unknown modules are left out and counted, otherwise they are an error.
    pub skip_unknown: bool,
}

/// What the scanner has next.
#[derive(Debug)]
pub enum Scanned {
    /// It needs more bytes.
    More,
    /// The next part of the file.
    Chunk(Chunk),
    /// The file is complete.
    Complete(Summary),
}

/// What became of the checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// It is right.
    Right,
    /// The file has none: it is 0, or the version is below 5.
    Absent,
    /// It was not verified.
    Not,
}

/// What was in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Its version.
    pub version: u16,
    /// Bytes up to its end; more may follow.
    pub bytes: u64,
    /// Keys in chunks, long ones included.
    pub keys: u64,
    /// Keys of unknown modules that were left out.
    pub skipped_keys: u64,
    /// Data of modules beside the keys that was left out.
    pub skipped_aux: u64,
    /// What became of the checksum.
    pub checked: Checked,
}

/// Takes blocks of a file, and gives its parts. Holds the bytes that are not given yet: up to two
/// chunks, a block, and one element of a value or one container.
#[derive(Debug)]
pub struct Scanner {
    options: ScanOptions,
}

impl Scanner {
    /// The scanner of a file.
    pub fn new(options: ScanOptions) -> Self {
        Self { options }
    }

    /// Takes the next block, of any size. Call it when [`Scanner::next`] said
    /// [`Scanned::More`].
    pub fn feed(&mut self, _block: &[u8]) {
        todo!("{:?}", self.options)
    }

    /// Says that no more bytes come, where the length of the file was not known.
    pub fn end_of_input(&mut self) {
        todo!()
    }

    /// The next part of the file, O(its bytes). After an error nothing more can be read.
    ///
    /// # Errors
    /// The file is wrong here.
    #[expect(clippy::should_implement_trait, reason = "its end is no end of an iterator")]
    pub fn next(&mut self) -> Result<Scanned, FileError> {
        todo!()
    }

    /// Bytes of the file that were scanned.
    pub fn at(&self) -> u64 {
        todo!()
    }

    /// The version, once it is read.
    pub fn version(&self) -> Option<u16> {
        todo!()
    }
}
