//! A view of a request's arguments where they stand.

use base::Blob;
use base::sync::OnceLock;

/// Where one argument stands: in the buffer it was framed in, or in a list of big buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte; with [`Span::BLOB`] set, the index of the big buffer that is the argument.
    pub start: u32,
    /// Length in bytes; of no meaning for a big buffer.
    pub len: u32,
}

impl Span {
    /// The bit of `start` that says: this is a big buffer. So a buffer that requests are framed in
    /// is shorter than 2 GiB.
    pub const BLOB: u32 = 1 << 31;

    /// The span of `blobs[index]`.
    #[inline]
    pub(crate) fn of_blob(index: usize) -> Self {
        Self { start: Self::BLOB | index as u32, len: 0 }
    }
}

/// An argument in a big buffer, which can be stored by reference.
#[derive(Debug, Default)]
pub struct BigArg {
    blob: Blob,
    /// The bytes of a buffer of pages as one slice, copied for the first reader who needs them so.
    whole: OnceLock<Vec<u8>>,
}

impl BigArg {
    /// The buffer.
    #[inline]
    pub fn blob(&self) -> &Blob {
        &self.blob
    }

    /// The bytes as one slice: those of a buffer of pages are copied once, O(n), and kept as long
    /// as the argument.
    pub fn bytes(&self) -> &[u8] {
        let whole = || self.whole.get_or_init(|| self.blob.to_vec());
        self.blob.contiguous().unwrap_or_else(|| whole())
    }

    /// Heap bytes, spare room included.
    pub(crate) fn memory(&self) -> usize {
        let whole = self.whole.get().map_or(0, Vec::capacity);
        size_of::<Self>() + Blob::HEAD_BYTES + self.blob.capacity() + whole
    }
}

impl From<Blob> for BigArg {
    fn from(blob: Blob) -> Self {
        Self { blob, whole: OnceLock::new() }
    }
}

impl Clone for BigArg {
    fn clone(&self) -> Self {
        self.blob.clone().into()
    }
}

/// The arguments of one request; the first is the command's name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Args<'a> {
    base: &'a [u8],
    spans: &'a [Span],
    blobs: &'a [BigArg],
}

impl<'a> Args<'a> {
    /// The arguments that `spans` say, in the buffer they were framed in.
    #[inline]
    pub fn new(base: &'a [u8], spans: &'a [Span], blobs: &'a [BigArg]) -> Self {
        Self { base, spans, blobs }
    }

    /// Number of arguments.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// True if there is none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The bytes of argument `index`, which must be below [`Args::len`]. Those of a buffer of pages
    /// are copied, see [`Args::blob`].
    #[inline(always)]
    pub fn get(&self, index: usize) -> &'a [u8] {
        let span = self.spans[index];
        if span.start & Span::BLOB == 0 {
            let start = span.start as usize;
            &self.base[start..start + span.len as usize]
        } else {
            self.big(span)
        }
    }

    #[cold]
    fn big(&self, span: Span) -> &'a [u8] {
        self.blobs[(span.start & !Span::BLOB) as usize].bytes()
    }

    /// The bytes of argument `index`, if there is one.
    #[inline]
    pub fn try_get(&self, index: usize) -> Option<&'a [u8]> {
        (index < self.len()).then(|| self.get(index))
    }

    /// The length of argument `index` in bytes, O(1).
    #[inline]
    pub fn len_of(&self, index: usize) -> usize {
        self.blob(index).map_or(self.spans[index].len as usize, Blob::len)
    }

    /// The first bytes of argument `index`, without a copy: all of them, or at least
    /// [`base::blob::PAGE_BYTES`].
    pub fn start(&self, index: usize) -> &'a [u8] {
        match self.blob(index) {
            Some(blob) => blob.pages().next().unwrap_or_default(),
            None => self.get(index),
        }
    }

    /// The lengths of all arguments in order.
    pub fn lens(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).map(|index| self.len_of(index))
    }

    /// The big buffer that argument `index` came in, to be taken over by reference; `None` if it
    /// stands among others.
    #[inline]
    pub fn blob(&self, index: usize) -> Option<&'a Blob> {
        let span = self.spans[index];
        let at = (span.start & !Span::BLOB) as usize;
        (span.start & Span::BLOB != 0).then(|| self.blobs[at].blob())
    }

    /// All arguments in order.
    #[inline]
    pub fn iter(&self) -> ArgsIter<'a> {
        ArgsIter { args: *self }
    }

    /// The arguments from `first` on; none if there are fewer.
    #[inline]
    #[must_use]
    pub fn from(&self, first: usize) -> Self {
        Self { spans: self.spans.get(first..).unwrap_or(&[]), ..*self }
    }
}

impl<'a> IntoIterator for Args<'a> {
    type Item = &'a [u8];
    type IntoIter = ArgsIter<'a>;

    #[inline]
    fn into_iter(self) -> ArgsIter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Args<'a> {
    type Item = &'a [u8];
    type IntoIter = ArgsIter<'a>;

    #[inline]
    fn into_iter(self) -> ArgsIter<'a> {
        self.iter()
    }
}

/// Iterator over the bytes of [`Args`].
#[derive(Clone, Debug)]
pub struct ArgsIter<'a> {
    args: Args<'a>,
}

impl<'a> Iterator for ArgsIter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let arg = self.args.try_get(0)?;
        self.args = self.args.from(1);
        Some(arg)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.args.len(), Some(self.args.len()))
    }
}

impl ExactSizeIterator for ArgsIter<'_> {}
