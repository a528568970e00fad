//! A page of a big string, and what a write to a shared one costs.
//!
//! ```text
//! whole      bytes
//!
//! patched    base, a whole page which others hold, too
//!            |      .      |//////|      .      |      .      |  ...   16 parts of 4 KiB
//!                             own: what was written, the rest of the part copied from the base
//! ```
//!
//! A short write to a full page that is shared copies the parts of it which it touches, not the
//! page. The page stays patched until nobody else holds its base: then a write to it, or the sweep
//! of its string (`tree.rs`), copies the parts into the base. With more than [`PARTS_MAX`] parts it
//! becomes a page of its own. So an unshared string has patched pages only for a while.

use crate::shared::{COUNT_BYTES, Shared, copy_epoch, note_copied, note_returned};
use crate::sync::OnceLock;
use std::ops::Range;

/// Bytes of a page: a size class of the allocator.
pub const PAGE_BYTES: usize = 64 << 10;
/// What a page costs besides its bytes: the block with its count and its vector.
pub(super) const PAGE_OVERHEAD: usize = COUNT_BYTES + size_of::<Page>();
/// Bytes of a part: a size class of the allocator.
const PART_BYTES: usize = 4 << 10;
const PARTS: usize = PAGE_BYTES / PART_BYTES;
/// A longer write copies the shared pages at its ends.
pub const PATCH_MAX: usize = 16 << 10;
/// A page which would have more parts of its own is copied.
pub(super) const PARTS_MAX: usize = PARTS / 2;

/// Bytes of a string. All pages but the last one of a string have [`PAGE_BYTES`].
pub(super) enum Page {
    /// They are here.
    Whole(Vec<u8>),
    /// They are here in part; [`PAGE_BYTES`] in all.
    Patched(Box<Patched>),
}

const _: () = assert!(size_of::<Page>() == 24, "a vector");
const _: () = assert!(PATCH_MAX / PART_BYTES < PARTS_MAX, "a short write fits, wherever it begins");

/// A full page which refers to another one for what it has not changed.
pub(super) struct Patched {
    /// A whole page of [`PAGE_BYTES`].
    base: Shared<Page>,
    parts: [Option<Box<[u8; PART_BYTES]>>; PARTS],
    /// In which epoch parts were copied last ([`copy_epoch`]), and bytes that were noted then.
    epoch: u32,
    noted: u32,
}

/// The page of zeros, which every string shares.
pub(super) fn zero_page() -> &'static Shared<Page> {
    static ZEROS: OnceLock<Shared<Page>> = OnceLock::new();
    ZEROS.get_or_init(|| Shared::new(Page::Whole(vec![0; PAGE_BYTES])))
}

/// Heap bytes for which a string accounts because it refers to `page`. The base of a patched page
/// counts in full, as a page that is shared.
#[inline]
pub(super) fn page_heap(page: &Shared<Page>) -> usize {
    if page.address() == zero_page().address() {
        return 0;
    }
    match &**page {
        Page::Whole(bytes) => bytes.capacity() + PAGE_OVERHEAD,
        Page::Patched(patched) => PAGE_OVERHEAD + patched.own_heap() + page_heap(&patched.base),
    }
}

/// Heap bytes which dropping this reference frees, at most what a copy of a page takes.
pub(super) fn freed_with(page: &Shared<Page>) -> usize {
    if page.is_shared() {
        return 0;
    }
    let freed = match &**page {
        Page::Whole(bytes) => bytes.capacity() + PAGE_OVERHEAD,
        Page::Patched(patched) => {
            let base = if patched.base.is_shared() { 0 } else { page_heap(&patched.base) };
            PAGE_OVERHEAD + patched.own_heap() + base
        }
    };
    freed.min(PAGE_OVERHEAD + PAGE_BYTES)
}

/// Overwrites bytes within a page. Of one that is shared it copies a part, if it `patches`, or all.
#[inline]
pub(super) fn write(page: &mut Shared<Page>, at: usize, bytes: &[u8], patches: bool) {
    if let Some(own) = page.get_mut() {
        own.write(at, bytes);
    } else {
        write_shared(page, at, bytes, patches);
    }
}

#[cold]
fn write_shared(page: &mut Shared<Page>, at: usize, bytes: &[u8], patches: bool) {
    // A page of zeros never becomes unshared, so nothing could be copied into it.
    let is_zero = page.address() == zero_page().address();
    let patched = match &**page {
        _ if !patches => None,
        Page::Whole(whole) if whole.len() == PAGE_BYTES && !is_zero => {
            Some(Patched::of(page.clone()))
        }
        Page::Whole(_) => None,
        Page::Patched(patched) => patched.fits(at, bytes.len()).then(|| patched.copy()),
    };
    *page = if let Some(mut patched) = patched {
        patched.write(at, bytes);
        patched.note(PAGE_OVERHEAD + size_of::<Patched>());
        Shared::new(Page::Patched(Box::new(patched)))
    } else {
        let mut whole = page.to_vec();
        whole[at..at + bytes.len()].copy_from_slice(bytes);
        note_copied(PAGE_OVERHEAD + whole.len());
        Shared::new(Page::Whole(whole))
    };
}

/// The parts in which bytes lie.
fn touched(at: usize, len: usize) -> Range<usize> {
    at / PART_BYTES..(at + len).div_ceil(PART_BYTES)
}

/// What a visit of the sweep has found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Swept {
    /// It is whole.
    Whole,
    /// It is whole now.
    Merged,
    /// It is patched, and its base is shared.
    Patched,
}

/// Makes a patched page whole if others hold neither it nor its base.
pub(super) fn sweep(page: &mut Shared<Page>) -> Swept {
    let Page::Patched(patched) = &**page else { return Swept::Whole };
    if patched.base.is_shared() {
        return Swept::Patched;
    }
    let Some(own) = page.get_mut() else { return Swept::Patched };
    own.bytes_mut();
    Swept::Merged
}

impl Page {
    pub fn len(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::Patched(_) => PAGE_BYTES,
        }
    }

    /// Heap bytes of a copy.
    pub fn heap(&self) -> usize {
        self.len()
    }

    pub fn is_patched(&self) -> bool {
        matches!(self, Self::Patched(_))
    }

    /// The bytes from `at` to the end of their run.
    #[inline]
    pub fn run(&self, at: usize) -> &[u8] {
        match self {
            Self::Whole(bytes) => &bytes[at..],
            Self::Patched(patched) => patched.run(at),
        }
    }

    /// The first bytes, copied.
    pub fn prefix(&self, len: usize) -> Vec<u8> {
        let mut copy = Vec::with_capacity(len);
        while copy.len() < len {
            let run = self.run(copy.len());
            copy.extend_from_slice(&run[..run.len().min(len - copy.len())]);
        }
        copy
    }

    fn to_vec(&self) -> Vec<u8> {
        self.prefix(self.len())
    }

    /// The bytes as a vector, to change; a patched page becomes a whole one.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        if let Self::Patched(patched) = self {
            *self = Self::Whole(patched.take_whole());
        }
        match self {
            Self::Whole(bytes) => bytes,
            Self::Patched(_) => unreachable!("it is whole now"),
        }
    }

    /// Overwrites all of it, without a copy of what was there.
    pub fn replace(&mut self, bytes: &[u8]) {
        match self {
            Self::Whole(own) => own.copy_from_slice(bytes),
            Self::Patched(patched) => {
                if patched.base.is_shared() {
                    note_copied(PAGE_OVERHEAD + PAGE_BYTES);
                }
                note_returned(patched.noted as usize, patched.epoch);
                *self = Self::Whole(bytes.to_vec());
            }
        }
    }

    #[inline]
    fn write(&mut self, at: usize, bytes: &[u8]) {
        if let Self::Patched(patched) = self
            && patched.base.is_shared()
            && patched.fits(at, bytes.len())
        {
            return patched.write(at, bytes);
        }
        self.bytes_mut()[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// A copy is whole.
impl Clone for Page {
    fn clone(&self) -> Self {
        Self::Whole(self.to_vec())
    }
}

impl Patched {
    fn of(base: Shared<Page>) -> Self {
        Self { base, parts: Default::default(), epoch: copy_epoch(), noted: 0 }
    }

    /// A copy, which shares the base and not the parts.
    fn copy(&self) -> Self {
        let (base, parts) = (self.base.clone(), self.parts.clone());
        let mut copy = Self { base, parts, epoch: copy_epoch(), noted: 0 };
        copy.note(copy.count() * PART_BYTES);
        copy
    }

    /// How many parts are its own.
    fn count(&self) -> usize {
        self.parts.iter().flatten().count()
    }

    fn own_heap(&self) -> usize {
        size_of::<Self>() + self.count() * PART_BYTES
    }

    /// True if a write leaves it with at most [`PARTS_MAX`] parts of its own.
    fn fits(&self, at: usize, len: usize) -> bool {
        let new = self.parts[touched(at, len)].iter().filter(|part| part.is_none()).count();
        self.count() + new <= PARTS_MAX
    }

    /// Notes bytes that were copied.
    fn note(&mut self, bytes: usize) {
        let epoch = copy_epoch();
        if self.epoch != epoch {
            (self.epoch, self.noted) = (epoch, 0);
        }
        self.noted += bytes as u32;
        note_copied(bytes);
    }

    fn base(&self) -> &[u8] {
        match &*self.base {
            Page::Whole(bytes) => bytes,
            Page::Patched(_) => unreachable!("a base is whole"),
        }
    }

    /// Out of line: the paths of all requests read pages, and these are rare.
    #[cold]
    fn run(&self, at: usize) -> &[u8] {
        let part = at / PART_BYTES;
        if let Some(own) = &self.parts[part] {
            return &own[at % PART_BYTES..];
        }
        let not_own = self.parts[part..].iter().take_while(|part| part.is_none()).count();
        &self.base()[at..(part + not_own) * PART_BYTES]
    }

    /// Overwrites bytes; the parts which it touches become its own.
    fn write(&mut self, mut at: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (index, offset) = (at / PART_BYTES, at % PART_BYTES);
            let (first, rest) = bytes.split_at(bytes.len().min(PART_BYTES - offset));
            if self.parts[index].is_none() {
                let start = index * PART_BYTES;
                let part: Box<[u8]> = self.base()[start..start + PART_BYTES].into();
                self.parts[index] = Some(part.try_into().expect("so long"));
                self.note(PART_BYTES);
            }
            let part = self.parts[index].as_mut().expect("it is its own");
            part[offset..offset + first.len()].copy_from_slice(first);
            (at, bytes) = (at + first.len(), rest);
        }
    }

    /// All bytes, in the vector of the base if nobody else holds that. What it is taken from is
    /// useless then.
    fn take_whole(&mut self) -> Vec<u8> {
        let mut whole = if let Some(base) = self.base.get_mut() {
            std::mem::take(base.bytes_mut())
        } else {
            note_copied(PAGE_OVERHEAD + PAGE_BYTES);
            self.base().to_vec()
        };
        for (at, part) in self.parts.iter().enumerate() {
            if let Some(part) = part {
                whole[at * PART_BYTES..][..PART_BYTES].copy_from_slice(&part[..]);
            }
        }
        note_returned(self.noted as usize, self.epoch);
        whole
    }
}
