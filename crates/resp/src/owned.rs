//! A request that owns its arguments: for the queue of a transaction and for parked commands.

use base::Blob;

use crate::args::{Args, BigArg, Span};
use crate::limits::SMALL_BYTES_MAX;

/// A deep copy of a request; big buffers are shared by reference.
#[derive(Clone, Debug, Default)]
pub struct OwnedRequest {
    base: Vec<u8>,
    spans: Vec<Span>,
    blobs: Vec<BigArg>,
}

impl OwnedRequest {
    /// Copies `args`.
    pub fn new(args: Args<'_>) -> Self {
        let small = |index: &usize| args.blob(*index).is_none();
        let bytes = (0..args.len()).filter(small).map(|index| args.len_of(index)).sum();
        let mut copy = Self {
            base: Vec::with_capacity(SMALL_BYTES_MAX.min(bytes)),
            spans: Vec::with_capacity(args.len()),
            blobs: Vec::new(),
        };
        for index in 0..args.len() {
            match args.blob(index) {
                Some(blob) => copy.push_blob(blob.clone()),
                None => copy.push(args.get(index)),
            }
        }
        copy
    }

    /// Copies these words.
    pub fn of<'a>(words: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut request = Self::default();
        words.for_each(|word| request.push(word));
        request
    }

    /// The arguments.
    #[inline]
    pub fn args(&self) -> Args<'_> {
        Args::new(&self.base, &self.spans, &self.blobs)
    }

    /// True if this is the only owner of a buffer of more than `pages` pages.
    pub fn owns_pages(&self, pages: usize) -> bool {
        let is_owned = |arg: &BigArg| arg.blob().page_count() > pages && !arg.blob().is_shared();
        self.blobs.iter().any(is_owned)
    }

    /// Bytes this request occupies, spare room included and each big buffer counted in full.
    pub fn memory(&self) -> usize {
        let blobs: usize = self.blobs.iter().map(BigArg::memory).sum();
        size_of::<Self>() + self.base.capacity() + self.spans.capacity() * size_of::<Span>() + blobs
    }

    /// Appends an argument by copy.
    fn push(&mut self, bytes: &[u8]) {
        if self.has_room_for(bytes.len(), SMALL_BYTES_MAX) {
            self.base.extend_from_slice(bytes);
            self.end_small(bytes.len());
        } else {
            self.push_blob(Blob::from(bytes));
        }
    }

    /// True if `len` more bytes may share the one buffer, which holds at most `bytes_max`.
    pub(crate) fn has_room_for(&self, len: usize, bytes_max: usize) -> bool {
        len <= bytes_max.saturating_sub(self.base.len())
    }

    /// Appends to the argument that [`OwnedRequest::end_small`] will end.
    pub(crate) fn extend_small(&mut self, bytes: &[u8]) {
        self.base.extend_from_slice(bytes);
    }

    /// The last `len` bytes of the shared buffer are an argument.
    pub(crate) fn end_small(&mut self, len: usize) {
        let start = self.base.len() - len;
        self.spans.push(Span { start: start as u32, len: len as u32 });
    }

    /// Appends an argument by reference.
    pub(crate) fn push_blob(&mut self, blob: Blob) {
        self.spans.push(Span::of_blob(self.blobs.len()));
        self.blobs.push(blob.into());
    }

    /// The parts, for an inline request to be split into: its line, spans of it and blobs.
    pub(crate) fn parts_mut(&mut self) -> (&mut Vec<u8>, &mut Vec<Span>, &mut Vec<BigArg>) {
        (&mut self.base, &mut self.spans, &mut self.blobs)
    }
}
