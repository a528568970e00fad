//! The payload of a long string, written and read in steps: the value is never copied as a whole.

use std::ops::Range;

use base::Blob;
use base::crc64::crc64;

use crate::lzf::{GROWTH_MAX, PieceCompressor, PieceDecompressor};
use crate::payload::TRAILER;
use crate::primitive::{COMPRESS_SAVES, Head, LZF, put_length};
use crate::switches::skips_checksums;
use crate::{Dialect, Error, Reader, STRING_MAX, VERSION, types};

/// Bytes before the text of a string, at most: its type, its form, two lengths.
const HEAD_MAX: usize = 2 + 9 + 9;

/// How much longer a byte takes to be compressed than to be read.
pub(crate) const COMPRESSION_COST: usize = 8;
/// How much longer a compressed byte takes to be expanded than to be read.
const EXPANSION_COST: usize = 32;

/// A payload in three parts.
#[derive(Debug)]
pub struct TextPayload {
    /// What stands before the text.
    pub head: Vec<u8>,
    /// The text, compressed if that is shorter.
    pub body: Blob,
    /// Version and checksum.
    pub tail: [u8; TRAILER],
}

impl TextPayload {
    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len() + self.tail.len()
    }

    /// True if there are no bytes, which cannot be.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All bytes in one vector, O(n).
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len());
        all.extend_from_slice(&self.head);
        self.body.copy_to(0..self.body.len(), &mut all);
        all.extend_from_slice(&self.tail);
        all
    }
}

/// How a text is written.
#[derive(Debug)]
pub(crate) enum Form {
    /// As it is.
    Plain,
    /// Compressed, in so many bytes, which are here if there are few enough of them.
    Packed(usize, Option<Blob>),
}

/// Compresses a text in steps, to learn how it is written.
#[derive(Debug)]
pub(crate) struct Packing {
    compressor: PieceCompressor,
    /// The next byte.
    at: usize,
    /// Compressed bytes so far.
    len: usize,
    /// They, as long as there are at most `keeps`. They stay here if they are not used, so that a
    /// step does not free them.
    packed: Blob,
    keeps: usize,
}

impl Packing {
    /// Of a text of so many bytes, more than 20. `None` if it is too long to be compressed.
    pub fn new(len: usize, keeps: usize) -> Option<Self> {
        let compressor = PieceCompressor::new(len)?;
        Some(Self { compressor, at: 0, len: 0, packed: Blob::default(), keeps })
    }

    /// Heap bytes of what is compressed.
    pub fn memory(&self) -> usize {
        self.packed.len()
    }

    /// Compresses about `count` bytes of the text, as many as take that long to be copied.
    pub fn step(&mut self, text: &Blob, count: usize) -> Option<Form> {
        let range = next(&mut self.at, text.len(), count / COMPRESSION_COST);
        for run in text.pages_in(range) {
            let packed = self.compressor.push(run);
            self.len += packed.len();
            if self.len <= self.keeps {
                self.packed.append(packed);
            }
        }
        if self.len > text.len() - COMPRESS_SAVES - 1 {
            return Some(Form::Plain);
        }
        (self.at == text.len()).then(|| {
            let is_kept = self.len <= self.keeps;
            Form::Packed(self.len, is_kept.then(|| std::mem::take(&mut self.packed)))
        })
    }
}

/// Moves `at` by up to `count` towards `len`; what it passed.
pub(crate) fn next(at: &mut usize, len: usize, count: usize) -> Range<usize> {
    let range = *at..len.min(at.saturating_add(count));
    *at = range.end;
    range
}

/// Appends what stands before a text of so many bytes.
pub(crate) fn put_head(out: &mut Vec<u8>, form: &Form, len: usize) {
    if let Form::Packed(packed, _) = form {
        out.push(LZF);
        put_length(out, *packed as u64);
    }
    put_length(out, len as u64);
}

/// Writes the payload of a string which is no integer, in the same bytes as
/// [`Saver::dump`](crate::Saver::dump).
#[derive(Debug)]
pub struct TextDump {
    text: Blob,
    packing: Option<Packing>,
    /// The text as it is written, once that is known.
    body: Option<Blob>,
    /// The next byte of that.
    at: usize,
    head: Vec<u8>,
    sum: u64,
}

impl TextDump {
    /// The payload of a text of more than 20 bytes.
    pub fn new(text: Blob) -> Self {
        let packing = Packing::new(text.len(), usize::MAX);
        Self { text, packing, body: None, at: 0, head: Vec::new(), sum: 0 }
    }

    /// Heap bytes of its own.
    pub fn memory(&self) -> usize {
        match &self.body {
            Some(body) if body.is_same(&self.text) => 0,
            Some(body) => body.len(),
            None => self.packing.as_ref().map_or(0, Packing::memory),
        }
    }

    /// Reads up to `count` bytes, fewer if they are compressed; the payload after the last step.
    pub fn step(&mut self, count: usize) -> Option<TextPayload> {
        let Some(body) = &self.body else {
            let form = match &mut self.packing {
                Some(packing) => packing.step(&self.text, count)?,
                None => Form::Plain,
            };
            self.begin(form);
            return None;
        };
        let range = next(&mut self.at, body.len(), count);
        for run in body.pages_in(range) {
            self.sum = crc64(self.sum, run);
        }
        (self.at == body.len()).then(|| self.payload())
    }

    fn begin(&mut self, form: Form) {
        self.head = vec![types::STRING];
        put_head(&mut self.head, &form, self.text.len());
        self.sum = crc64(0, &self.head);
        self.body = Some(match form {
            Form::Packed(_, packed) => packed.expect("all of it is kept"),
            Form::Plain => self.text.clone(),
        });
    }

    fn payload(&mut self) -> TextPayload {
        let mut tail = [0; TRAILER];
        let (version, sum) = tail.split_at_mut(2);
        version.copy_from_slice(&VERSION.to_le_bytes());
        sum.copy_from_slice(&crc64(self.sum, version).to_le_bytes());
        let body = self.body.take().unwrap_or_default();
        TextPayload { head: std::mem::take(&mut self.head), body, tail }
    }
}

/// A text that is being read in pieces.
#[derive(Debug)]
pub(crate) struct TextPieces {
    decompressor: Option<PieceDecompressor>,
    pub text: Blob,
}

impl TextPieces {
    /// Of a text that is compressed if it says to how many bytes it expands.
    pub fn new(expanded: Option<usize>) -> Self {
        let decompressor = expanded.map(PieceDecompressor::new);
        Self { decompressor, text: Blob::default() }
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &[u8], is_last: bool) -> Result<(), Error> {
        match &mut self.decompressor {
            Some(decompressor) => self.text.append(decompressor.push(piece, is_last)?),
            None => self.text.append(piece),
        }
        Ok(())
    }
}

/// How a string stands in a file or payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextHead {
    /// Bytes that follow.
    pub bytes: u64,
    /// Bytes of the text, if they are compressed.
    pub expanded: Option<usize>,
}

impl TextHead {
    /// Reads what stands before a text. `None` of an integer.
    pub fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, Error> {
        match reader.head()? {
            Head::Plain(bytes) if bytes <= STRING_MAX => Ok(Some(Self { bytes, expanded: None })),
            Head::Lzf => {
                let (bytes, len) = (reader.length()?, reader.length()?);
                if len > STRING_MAX || len / GROWTH_MAX as u64 > bytes {
                    return Err(Error::Corrupt);
                }
                Ok(Some(Self { bytes, expanded: Some(len as usize) }))
            }
            Head::Plain(_) => Err(Error::Corrupt),
            Head::Int(_) => Ok(None),
        }
    }
}

/// Reads the payload of a string.
#[derive(Debug)]
pub struct TextRestore {
    payload: Blob,
    /// The next byte.
    at: usize,
    sum: u64,
    /// Where the text stands in the payload.
    body: Range<usize>,
    pieces: TextPieces,
    /// The text is corrupt; said if the checksum is right.
    is_corrupt: bool,
}

impl TextRestore {
    /// Begins to read a payload, of which nothing is known. `None` if it is not that of a string
    /// which is worth steps: [`restore`](crate::restore) reads it.
    pub fn new(payload: Blob) -> Option<Self> {
        let mut head = Vec::with_capacity(HEAD_MAX);
        payload.copy_to(0..HEAD_MAX, &mut head);
        let mut reader = Reader::new(&head);
        if reader.byte() != Ok(types::STRING) {
            return None;
        }
        let TextHead { bytes, expanded } = TextHead::read(&mut reader).ok()??;
        let from = head.len() - reader.rest().len();
        let end = usize::try_from(bytes).ok().and_then(|bytes| from.checked_add(bytes))?;
        (end + TRAILER <= payload.len()).then(|| Self {
            payload,
            at: 0,
            sum: 0,
            body: from..end,
            pieces: TextPieces::new(expanded),
            // No bytes are no text, and no step reads them.
            is_corrupt: bytes == 0 && expanded.is_some_and(|len| len > 0),
        })
    }

    /// Heap bytes of its own.
    pub fn memory(&self) -> usize {
        self.pieces.text.len()
    }

    /// Reads up to `count` bytes, fewer if they are compressed; true after the last step.
    pub fn step(&mut self, count: usize) -> Result<bool, Error> {
        let is_packed = self.pieces.decompressor.is_some();
        let count = if is_packed { count / EXPANSION_COST } else { count };
        let checked = self.payload.len() - size_of::<u64>();
        let range = self.at..checked.min(self.at + count);
        if self.at == 0 {
            self.check_version()?;
        }
        for run in self.payload.pages_in(range.clone()) {
            self.sum = crc64(self.sum, run);
        }
        let part = range.start.max(self.body.start)..range.end.min(self.body.end);
        if !part.is_empty() {
            self.is_corrupt = self.is_corrupt || self.take(part).is_err();
        }
        self.at = range.end;
        if self.at < checked {
            return Ok(false);
        }
        let mut sum = [0; size_of::<u64>()];
        copy(&self.payload, checked, &mut sum);
        let is_right = skips_checksums() || self.sum == u64::from_le_bytes(sum);
        match is_right {
            false => Err(Error::Envelope),
            true if self.is_corrupt => Err(Error::Corrupt),
            true => Ok(true),
        }
    }

    fn check_version(&self) -> Result<(), Error> {
        let mut version = [0; 2];
        copy(&self.payload, self.payload.len() - TRAILER, &mut version);
        let dialect = Dialect::of(u16::from_le_bytes(version));
        dialect.map(|_| ()).ok_or(Error::Envelope)
    }

    /// Takes a part of the body.
    fn take(&mut self, part: Range<usize>) -> Result<(), Error> {
        let mut at = part.start;
        for run in self.payload.pages_in(part) {
            at += run.len();
            self.pieces.push(run, at == self.body.end)?;
        }
        Ok(())
    }

    /// The text, after the last step.
    pub fn take_text(&mut self) -> Blob {
        std::mem::take(&mut self.pieces.text)
    }
}

/// Fills `to` with the bytes from `at` on, which are there.
fn copy(blob: &Blob, at: usize, to: &mut [u8]) {
    let mut filled = 0;
    for run in blob.pages_in(at..at + to.len()) {
        to[filled..filled + run.len()].copy_from_slice(run);
        filled += run.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Owned, Saver, Shape};

    /// Bytes of a step: few, so that steps end everywhere.
    const STEP: usize = 1 << 16;

    fn dump(text: &[u8]) -> Vec<u8> {
        let mut dump = TextDump::new(Blob::from(text));
        loop {
            if let Some(payload) = dump.step(STEP) {
                assert_eq!(payload.len(), payload.to_vec().len());
                return payload.to_vec();
            }
        }
    }

    fn restore(payload: &[u8]) -> Option<Result<Blob, Error>> {
        let mut restore = TextRestore::new(Blob::from(payload))?;
        loop {
            match restore.step(STEP) {
                Ok(false) => {}
                Ok(true) => return Some(Ok(restore.take_text())),
                Err(why) => return Some(Err(why)),
            }
        }
    }

    /// Texts which compress well, a little, and not at all.
    fn texts() -> Vec<Vec<u8>> {
        let mut noise = vec![0; (2 << 20) + 77];
        base::prng::Prng::new(3).fill(&mut noise);
        let mut mixed = vec![b'm'; (1 << 20) + 1];
        mixed[500_000..700_000].copy_from_slice(&noise[..200_000]);
        let mut nearly = noise.clone();
        nearly[2 << 20..(2 << 20) + 70].fill(0);
        vec![vec![b'z'; 3 << 20], noise[..100_000].to_vec(), noise, mixed, nearly, vec![7; 70_000]]
    }

    #[test]
    fn steps_write_and_read_what_one_pass_does() {
        for text in texts() {
            let payload = dump(&text);
            let owned = Owned::String(text.clone());
            let whole = Saver::default().dump(&owned.shaped(Shape::Plain));
            assert!(payload == whole, "{} bytes", text.len());
            let read = restore(&payload).expect("a string").expect("it is right");
            assert!(read.to_vec() == text, "{} bytes", text.len());
            let cut = [&payload[..payload.len() - TRAILER], b"behind"].concat();
            let mut sealed = cut;
            crate::seal(&mut sealed, VERSION);
            let read = restore(&sealed).expect("a string").expect("what is behind is ignored");
            assert!(read.to_vec() == text);
        }
    }

    /// Nothing that claims to expand to up to 87 bytes: no byte of it is ever read.
    #[test]
    fn a_compressed_text_of_no_bytes_is_corrupt() {
        for (len, expected) in [(0, Ok(Vec::new())), (1, Err(())), (50, Err(()))] {
            let mut payload = [&[types::STRING, LZF, 0, len][..], &vec![b'j'; 100_000]].concat();
            crate::seal(&mut payload, VERSION);
            let whole = Owned::restore(&payload).map_err(|_| ());
            let steps = restore(&payload).expect("a string").map_err(|_| ());
            assert_eq!(steps.map(|text| text.to_vec()), expected, "{len}");
            assert_eq!(whole, expected.map(Owned::String), "{len}");
        }
    }

    #[test]
    fn wrong_payloads_are_refused_as_in_one_pass() {
        let text = &texts()[3];
        let payload = dump(text);
        for at in [20, 1000, payload.len() / 2, payload.len() - 11, payload.len() - 1] {
            let mut wrong = payload.clone();
            wrong[at] ^= 1;
            assert_eq!(restore(&wrong).expect("a string"), Err(Error::Envelope), "at {at}");
            // With the right checksum it is as corrupt as in one pass.
            if at < payload.len() - TRAILER {
                wrong.truncate(payload.len() - TRAILER);
                crate::seal(&mut wrong, VERSION);
                let whole = Owned::restore(&wrong).map_err(|_| Error::Corrupt);
                let steps = restore(&wrong).expect("a string");
                assert_eq!(steps.map(|text| Owned::String(text.to_vec())), whole, "at {at}");
            }
        }
        let mut old = payload.clone();
        let len = old.len();
        old[len - TRAILER] = 200;
        assert_eq!(restore(&old).expect("a string"), Err(Error::Envelope));
        let list = Saver::default().dump(&Owned::List(vec![vec![1]]).shaped(Shape::Plain));
        assert!(restore(&list).is_none());
    }
}
