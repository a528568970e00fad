//! An entry: one key with its value, in one allocation of 8-byte alignment.
//!
//! ```text
//!   0          8             8 or 16          then        then
//!   +----------+- - - - - - -+- - - - - - - -+-----------+---------------------------------+
//!   | header   | expiry, i64 | key len, u32  | key       | value                           |
//!   +----------+- - - - - - -+- - - - - - - -+-----------+---------------------------------+
//!     8 bytes    if `ttl`      if `long key`               inline: the bytes, or an i64
//!                                                          `big`: 0..7 bytes of padding, then
//!                                                            8 bytes: Blob, or Box<Big>
//!   header
//!    63        40 39 37  36   35   34   33   32  31    28 27  24 23      16 15           0
//!   +------------+-----+----+----+---+----+----+--------+------+----------+--------------+
//!   | uses       |  0  |skip|gone|big|long|ttl |encoding| type | key len  | value len    |
//!   +------------+-----+----+----+---+----+----+--------+------+----------+--------------+
//!     last use, or a                                            0 if long  inline bytes: 8
//!     count: `uses.rs`                                                     for an integer
//!                                                                          and for `big`
//!   SET k 12345     8 + 1 + 8  = 17 bytes: header, key, i64
//!   SET k v EX 9    8 + 8 + 1 + 1 = 18 bytes: header, expiry, key, value
//! ```
//!
//! A key above 255 bytes is `long`. A string above [`INLINE_MAX`] bytes is a [`Blob`], a collection
//! that is not packed a `Box<Big>`: both stand outside the entry. When such a collection moves to
//! another entry, the old one is `gone`: it no longer owns the box, and is in no table. The walker
//! of a snapshot passes over an entry with `skip` (`snapshot.rs`); without a snapshot no entry has
//! it. The allocation has the size of its class (`slab/classes.rs`). The class follows from the
//! content, so it is not stored.
#![allow(unsafe_code)]

use crate::payload::{Form, INLINE_MAX, Payload};
use crate::slab::{Source, class_bytes, heap_bytes};
use base::{Blob, UnixMs};
use std::ptr::{self, NonNull};
use value::{Big, Encoding, Kind, Str};

const KEY_SHORT_MAX: usize = 255;

const TTL: u64 = 1 << 32;
const LONG_KEY: u64 = 1 << 33;
const BIG: u64 = 1 << 34;
const GONE: u64 = 1 << 35;
const SKIP: u64 = 1 << 36;
const FORM_SHIFT: u32 = 24;
const KIND_MASK: u64 = 15 << FORM_SHIFT;
const ENC_SHIFT: u32 = 28;
const USES_SHIFT: u32 = 40;

/// The first eight bytes of an entry, as drawn above.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header(u64);

const _: () = assert!(size_of::<Blob>() == 8 && size_of::<Box<Big>>() == 8);

impl Header {
    #[inline(always)]
    pub fn has_ttl(self) -> bool {
        self.0 & TTL != 0
    }

    #[inline(always)]
    pub fn is_big(self) -> bool {
        self.0 & BIG != 0
    }

    /// True if its value is a `Blob`.
    #[inline(always)]
    fn has_blob(self) -> bool {
        self.0 & (BIG | KIND_MASK) == BIG
    }

    /// True if it owns a `Box<Big>`.
    #[inline(always)]
    fn has_box(self) -> bool {
        self.0 & (BIG | GONE) == BIG && self.0 & KIND_MASK != 0
    }

    #[inline(always)]
    pub fn is_string(self) -> bool {
        self.0 & KIND_MASK == 0
    }

    #[inline(always)]
    fn kind(self) -> Kind {
        match self.0 >> FORM_SHIFT & 15 {
            0 => Kind::String,
            1 => Kind::List,
            2 => Kind::Set,
            3 => Kind::Zset,
            4 => Kind::Hash,
            _ => Kind::Stream,
        }
    }

    #[inline(always)]
    fn value_len(self) -> usize {
        (self.0 & 0xFFFF) as usize
    }

    /// Bytes before the key.
    #[inline(always)]
    fn fixed(self) -> usize {
        8 + ((self.0 >> 32 & 1) << 3) as usize + ((self.0 >> 33 & 1) << 2) as usize
    }

    #[inline(always)]
    fn encoding(self) -> Encoding {
        match self.0 >> ENC_SHIFT & 15 {
            0 => Encoding::Int,
            1 => Encoding::Embstr,
            2 => Encoding::Raw,
            3 => Encoding::Listpack,
            4 => Encoding::Quicklist,
            5 => Encoding::Intset,
            6 => Encoding::Hashtable,
            7 => Encoding::Skiplist,
            _ => Encoding::Stream,
        }
    }

    #[inline(always)]
    pub fn uses(self) -> u32 {
        (self.0 >> USES_SHIFT) as u32
    }

    /// The header of the same key with another inline value.
    #[inline(always)]
    fn with_value(self, form: Form, len: usize, uses: u32) -> Self {
        Self(
            self.0 & 0x0000_00FF_00FF_0000
                | len as u64
                | form.bits(FORM_SHIFT)
                | u64::from(uses) << USES_SHIFT,
        )
    }
}

/// Room for a new value in an existing entry: the entry's header and the offset of the value.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub header: Header,
    at: usize,
}

/// The address of a live entry, which only the user of this address touches. The callers of
/// [`EntryPtr::from_address`] guarantee that, so reading is safe. Functions that change or end a
/// value to which references may exist are `unsafe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryPtr(NonNull<u64>);

// SAFETY: an address; the callers of `from_address` guarantee who may follow it.
unsafe impl Send for EntryPtr {}

/// An entry that is in no table, and that only the owner of this value can reach. It is freed once,
/// through this value.
pub(crate) struct Gone(EntryPtr);

impl Gone {
    /// The entry, to be read while this value lives.
    pub fn entry(&self) -> EntryPtr {
        self.0
    }

    /// Moves its collection out, if it has one.
    pub fn take_box(&mut self) -> Option<Box<Big>> {
        // SAFETY: 1. `EntryPtr::into_gone`'s point 3: nobody has a reference into it.
        self.0.header().has_box().then(|| unsafe { self.0.take_box() })
    }

    /// Frees it and its value. `source` belongs to the keyspace for which the entry was built.
    #[inline]
    pub fn free(self, source: &mut Source<'_>) {
        // SAFETY: 1., 2. and 3. as in `EntryPtr::into_gone`, whose result ends here. 4. A worker
        // has one keyspace, and the entries of its tables came from its memory.
        unsafe { self.0.free(source) }
    }
}

impl EntryPtr {
    #[inline(always)]
    pub fn address(self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    /// The entry at an address, unless that is 0.
    ///
    /// # Safety
    /// 1. The address is 0 or that of an entry that was built and not freed yet.
    /// 2. The result, and every reference read through it, is used only while the caller holds the
    ///    entry's slot (is inside and has its lock, or holds World), or while nobody else can reach
    ///    the entry.
    #[inline(always)]
    pub unsafe fn from_address(address: u64) -> Option<Self> {
        NonNull::new(ptr::with_exposed_provenance_mut(address as usize)).map(Self)
    }

    /// Makes the value through which the entry is freed.
    ///
    /// # Safety
    /// 1. The entry is in no table.
    /// 2. This is called once for it, unless it has returned to a table meanwhile.
    /// 3. Nobody uses the entry or a reference into it afterwards, except through the result.
    #[inline(always)]
    pub unsafe fn into_gone(self) -> Gone {
        Gone(self)
    }

    #[inline(always)]
    pub fn header(self) -> Header {
        // SAFETY: the entry lives and nobody else writes it, as the caller of `from_address`
        // guarantees.
        Header(unsafe { self.0.as_ptr().read() })
    }

    #[inline(always)]
    fn set_header(self, header: Header) {
        // SAFETY: as in `header`; nobody has a reference to a header.
        unsafe { self.0.as_ptr().write(header.0) }
    }

    /// The byte at `offset`, inside the allocation or one past it.
    #[inline(always)]
    fn at<T>(self, offset: usize) -> *mut T {
        // SAFETY: every caller computes `offset` from the header, within the allocation.
        unsafe { self.0.as_ptr().byte_add(offset) }.cast()
    }

    #[inline(always)]
    fn key_len(self, header: Header) -> usize {
        if header.0 & LONG_KEY == 0 {
            (header.0 >> 16 & 0xFF) as usize
        } else {
            // SAFETY: a long key's length stands before the key, 4-byte aligned (8 or 16).
            unsafe { self.at::<u32>(header.fixed() - 4).read() as usize }
        }
    }

    /// The key.
    #[inline(always)]
    pub fn key<'a>(self) -> &'a [u8] {
        let header = self.header();
        // SAFETY: the key was written when the entry was built and never changes; the reference
        // ends before the entry's slot is released and before it is freed (`from_address`,
        // `into_gone`).
        unsafe { std::slice::from_raw_parts(self.at(header.fixed()), self.key_len(header)) }
    }

    /// True if this is the entry of `key`.
    #[inline(always)]
    pub fn has_key(self, key: &[u8]) -> bool {
        let header = self.header();
        if header.0 & LONG_KEY != 0 {
            return self.has_long_key(key);
        }
        let len = (header.0 >> 16 & 0xFF) as usize;
        // SAFETY: the key has `len` bytes at this offset.
        len == key.len() && unsafe { equal(self.at(header.fixed()), key.as_ptr(), len) }
    }

    #[cold]
    fn has_long_key(self, key: &[u8]) -> bool {
        self.key() == key
    }

    #[inline(always)]
    fn value_offset(self, header: Header) -> usize {
        let end = header.fixed() + self.key_len(header);
        if header.is_big() { (end + 7) & !7 } else { end }
    }

    /// Bytes in use.
    #[inline(always)]
    pub fn size(self, header: Header) -> usize {
        self.value_offset(header) + header.value_len()
    }

    /// Bytes of its own allocation.
    #[inline(always)]
    pub fn class(self) -> usize {
        class_bytes(self.size(self.header()))
    }

    /// Bytes of its allocation and of the value outside.
    #[inline]
    pub fn memory(self) -> usize {
        self.class() + if self.header().is_big() { self.outside() } else { 0 }
    }

    /// Bytes of the value outside the entry.
    pub fn outside(self) -> usize {
        self.blob().map_or(0, blob_memory) + self.big().map_or(0, big_memory)
    }

    /// The string outside the entry.
    #[inline(always)]
    pub fn blob<'a>(self) -> Option<&'a Blob> {
        let header = self.header();
        // SAFETY: a string outside is a `Blob`, 8-byte aligned, at this offset; see `key` for the
        // lifetime. Nobody changes it while it is borrowed, as callers of `blob_mut` guarantee.
        header.has_blob().then(|| unsafe { &*self.at::<Blob>(self.value_offset(header)) })
    }

    /// The collection outside the entry.
    #[inline(always)]
    pub fn big<'a>(self) -> Option<&'a Big> {
        let header = self.header();
        // SAFETY: a collection outside is a `Box<Big>`, as a `Blob` in `blob`.
        header.has_box().then(|| unsafe { &**self.at::<Box<Big>>(self.value_offset(header)) })
    }

    /// When the next field of a hash expires.
    #[inline(always)]
    pub fn next_field_due(self) -> Option<UnixMs> {
        self.big().and_then(Big::next_due).map(UnixMs)
    }

    /// The collection outside the entry, to change.
    ///
    /// # Safety
    /// 1. There is no other reference into this entry's value while the result is used.
    pub unsafe fn big_mut<'a>(self) -> Option<&'a mut Big> {
        let header = self.header();
        // SAFETY: as in `big`, and exclusive, as the caller says.
        header.has_box().then(|| unsafe { &mut **self.at::<Box<Big>>(self.value_offset(header)) })
    }

    /// Moves the collection out of an entry that leaves its table.
    ///
    /// # Safety
    /// 1. There is no reference into this entry's value.
    pub unsafe fn take_box(self) -> Box<Big> {
        let header = self.header();
        assert!(header.has_box(), "an entry with a collection outside");
        self.set_header(Header(header.0 | GONE));
        // SAFETY: a `Box<Big>` stands there, and the flag keeps everybody from using it again.
        unsafe { self.at::<Box<Big>>(self.value_offset(header)).read() }
    }

    /// Puts back what [`EntryPtr::take_box`] moved out; all changes since then have been undone.
    pub fn put_box(self, value: Box<Big>) {
        let header = self.header();
        assert!(header.0 & GONE != 0, "an entry whose collection was taken");
        // SAFETY: there is room for the `Box`, and what stands there is one that was moved away.
        unsafe { self.at::<Box<Big>>(self.value_offset(header)).write(value) };
        self.set_header(Header(header.0 & !GONE));
    }

    /// Changes the encoding; the value stays.
    pub fn set_encoding(self, encoding: Encoding) {
        let others = self.header().0 & !(15 << ENC_SHIFT);
        self.set_header(Header(others | (encoding as u64) << ENC_SHIFT));
    }

    /// The value outside the entry, to change.
    ///
    /// # Safety
    /// 1. There is no other reference into this entry's value while the result is used.
    pub unsafe fn blob_mut<'a>(self) -> Option<&'a mut Blob> {
        let header = self.header();
        // SAFETY: as in `blob`, and exclusive, as the caller says.
        header.has_blob().then(|| unsafe { &mut *self.at::<Blob>(self.value_offset(header)) })
    }

    /// The bytes of an inline value, an integer's eight included.
    #[inline(always)]
    fn inline<'a>(self, header: Header) -> &'a [u8] {
        let start = self.at(self.value_offset(header));
        // SAFETY: the value has this many initialised bytes there; see `key` for the lifetime.
        unsafe { std::slice::from_raw_parts(start, header.value_len()) }
    }

    /// The value.
    #[inline(always)]
    pub fn str<'a>(self) -> Str<'a> {
        let header = self.header();
        debug_assert!(header.is_string(), "a collection is no string");
        match header.encoding() {
            Encoding::Int => {
                let bytes = self.inline(header).try_into().expect("an integer has 8 bytes");
                Str::Int(i64::from_ne_bytes(bytes))
            }
            Encoding::Raw if header.is_big() => {
                Str::Blob(self.blob().expect("a big entry has a blob"))
            }
            _ => Str::Bytes(self.inline(header)),
        }
    }

    /// The bytes of a collection inside the entry.
    #[inline]
    pub fn packed<'a>(self) -> Option<&'a [u8]> {
        let header = self.header();
        (!header.is_string() && !header.is_big()).then(|| self.inline(header))
    }

    #[inline(always)]
    pub fn encoding(self) -> Encoding {
        self.header().encoding()
    }

    #[inline(always)]
    pub fn kind(self) -> Kind {
        self.header().kind()
    }

    #[inline(always)]
    fn form(self) -> Form {
        Form::of_bits((self.header().0 >> FORM_SHIFT) as u8)
    }

    /// The bits about its uses (`uses.rs`).
    #[inline(always)]
    pub fn uses(self) -> u32 {
        self.header().uses()
    }

    /// Sets the bits about its uses.
    #[inline(always)]
    pub fn set_uses(self, uses: u32) {
        let others = self.header().0 & ((1 << USES_SHIFT) - 1);
        self.set_header(Header(others | u64::from(uses) << USES_SHIFT));
    }

    /// True if the walker of the snapshot skips it (`snapshot.rs`).
    pub fn is_skipped(self) -> bool {
        self.header().0 & SKIP != 0
    }

    /// Sets whether the walker of the snapshot skips it.
    pub fn set_skipped(self, skip: bool) {
        let others = self.header().0 & !SKIP;
        self.set_header(Header(if skip { others | SKIP } else { others }));
    }

    /// When it expires.
    #[inline(always)]
    pub fn expiry(self) -> Option<UnixMs> {
        // SAFETY: an entry with the ttl flag has an aligned i64 after its header.
        self.header().has_ttl().then(|| UnixMs(unsafe { self.at::<i64>(8).read() }))
    }

    /// Changes the time at which it expires; it must have one.
    pub fn set_expiry(self, expiry: UnixMs) {
        assert!(self.header().has_ttl(), "an entry without room for an expiry");
        // SAFETY: as in `expiry`, and we hold the slot.
        unsafe { self.at::<i64>(8).write(expiry.0) }
    }

    /// Builds an entry.
    #[inline]
    pub fn build(
        source: &mut Source<'_>,
        key: &[u8],
        payload: Payload<'_>,
        expiry: Option<UnixMs>,
        uses: u32,
    ) -> Self {
        let mut header = u64::from(uses) << USES_SHIFT;
        if expiry.is_some() {
            header |= TTL;
        }
        if key.len() <= KEY_SHORT_MAX {
            header |= (key.len() as u64) << 16;
        } else {
            header |= LONG_KEY;
        }
        header |= match &payload {
            Payload::Int(_) => 8,
            Payload::Inline(form, bytes) => {
                debug_assert!(bytes.len() <= INLINE_MAX);
                bytes.len() as u64 | form.bits(FORM_SHIFT)
            }
            Payload::Blob(_) => 8 | BIG | Form::string(Encoding::Raw).bits(FORM_SHIFT),
            Payload::Big(encoding, big) => {
                8 | BIG | Form::new(big.kind(), *encoding).bits(FORM_SHIFT)
            }
        };
        let header = Header(header);
        let end = header.fixed() + key.len();
        let value = if header.is_big() { (end + 7) & !7 } else { end };
        let entry = Self(source.alloc(value + header.value_len()));
        entry.set_header(header);
        // SAFETY: the allocation holds the header, the optional fields, the key and the value at
        // exactly these offsets; it is new, so nothing overlaps and nobody else sees it.
        unsafe {
            if let Some(UnixMs(at)) = expiry {
                entry.at::<i64>(8).write(at);
            }
            if header.0 & LONG_KEY != 0 {
                let len = u32::try_from(key.len()).expect("a key is shorter than 4 GiB");
                entry.at::<u32>(header.fixed() - 4).write(len);
            }
            ptr::copy_nonoverlapping(key.as_ptr(), entry.at(header.fixed()), key.len());
            match payload {
                Payload::Int(number) => entry.at::<i64>(value).write_unaligned(number),
                Payload::Inline(_, bytes) => {
                    ptr::copy_nonoverlapping(bytes.as_ptr(), entry.at(value), bytes.len());
                }
                Payload::Blob(blob) => entry.at::<Blob>(value).write(blob),
                Payload::Big(_, big) => entry.at::<Box<Big>>(value).write(big),
            }
        }
        entry
    }

    /// Frees the entry and what it owns outside.
    ///
    /// # Safety
    /// 1. The entry is in no table.
    /// 2. This is called once for it.
    /// 3. Nobody uses it or a reference into it afterwards.
    /// 4. It was built with a source of the same memory.
    #[inline]
    unsafe fn free(self, source: &mut Source<'_>) {
        let header = self.header();
        let size = self.size(header);
        if header.has_blob() {
            // SAFETY: the entry owns the `Blob` there, and is gone afterwards.
            unsafe { self.at::<Blob>(self.value_offset(header)).drop_in_place() };
        } else if header.has_box() {
            // SAFETY: the entry owns the `Box` there, and is gone afterwards.
            unsafe { self.at::<Box<Big>>(self.value_offset(header)).drop_in_place() };
        }
        // SAFETY: it was allocated for the class that follows from its content, and nobody uses it
        // afterwards (point 3).
        unsafe { source.free(self.0, size) };
    }

    /// Copies the entry to another place of its class, with everything that it has. The copy owns
    /// what the entry owned; the old place is to be freed as memory alone.
    ///
    /// # Safety
    /// 1. `place` has the bytes of the entry's class, and only the caller uses it.
    /// 2. There is no reference into this entry, and nobody uses it afterwards.
    pub unsafe fn move_to(self, place: NonNull<u64>) -> Self {
        let size = self.size(self.header());
        // SAFETY: both places have as many bytes (point 1), and are two. What the entry owns
        // outside is owned through a pointer, which does not say where it stands itself.
        unsafe { ptr::copy_nonoverlapping(self.at::<u8>(0), place.as_ptr().cast(), size) };
        Self(place)
    }

    /// Where an inline value of `len` bytes can overwrite the present one: if the allocation has
    /// the right class, and the entry has at most `copy_max` bytes, so that copying the old value
    /// is cheap.
    #[inline(always)]
    pub fn room_for(self, len: usize, copy_max: usize) -> Option<Room> {
        let header = self.header();
        if header.is_big() {
            return None;
        }
        let at = header.fixed() + self.key_len(header);
        let size = at + header.value_len();
        let fits = len == header.value_len() || class_bytes(size) == class_bytes(at + len);
        (size <= copy_max && fits).then_some(Room { header, at })
    }

    /// The bytes of the present value, or the eight of an integer, for [`EntryPtr::restore`].
    #[inline(always)]
    pub fn image<'a>(self, room: Room) -> &'a [u8] {
        // SAFETY: the value has this many initialised bytes there; see `key` for the lifetime.
        unsafe { std::slice::from_raw_parts(self.at(room.at), room.header.value_len()) }
    }

    /// Puts back a value that was overwritten only in place.
    ///
    /// # Safety
    /// 1. There is no reference into this entry's value.
    /// 2. `header` and `saved` are the header and the image that it had, and since then its value
    ///    was only overwritten in place: its allocation is the same.
    pub unsafe fn restore(self, header: Header, saved: &[u8]) {
        let class = self.class();
        self.set_header(header);
        debug_assert_eq!(class, self.class(), "changed only in place");
        let value = self.value_offset(header);
        let bytes = &saved[..header.value_len()];
        // SAFETY: the allocation is of the class that this header needs (point 2); `saved` is
        // elsewhere.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.at(value), bytes.len()) }
    }

    /// Overwrites the inline value.
    ///
    /// # Safety
    /// 1. There is no reference into this entry's value, and `bytes` are none.
    /// 2. `room` is of this entry, as it is now, for a value of this length.
    #[inline(always)]
    pub unsafe fn overwrite(self, room: Room, form: Form, bytes: &[u8], uses: u32) {
        debug_assert!(self.room_for(bytes.len(), usize::MAX).is_some_and(|r| r.at == room.at));
        self.set_header(room.header.with_value(form, bytes.len(), uses));
        // SAFETY: the allocation has room for these bytes at this offset (point 2), and they are
        // elsewhere (point 1).
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.at(room.at), bytes.len()) }
    }

    /// Changes part of an inline text in place: bytes from the old end to `at` become zero, `bytes`
    /// stand at `at`, and the text is `len` long.
    ///
    /// # Safety
    /// 1. There is no reference into this entry's value, and `bytes` are none.
    /// 2. `room` is of this entry, as it is now, for a value of length `len`.
    pub unsafe fn patch(self, room: Room, at: usize, bytes: &[u8], len: usize, uses: u32) {
        debug_assert!(self.encoding() != Encoding::Int);
        debug_assert!(self.room_for(len, usize::MAX).is_some_and(|r| r.at == room.at));
        assert!(at + bytes.len() <= len, "a patch lies inside the text");
        let (value, old) = (room.at, room.header.value_len());
        self.set_header(room.header.with_value(Form::string(Encoding::Raw), len, uses));
        // SAFETY: all within `len` bytes from the value's start, for which there is room (point 2),
        // and `bytes` are elsewhere (point 1).
        unsafe {
            if old < at {
                ptr::write_bytes(self.at::<u8>(value + old), 0, at - old);
            }
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.at(value + at), bytes.len());
        }
    }

    /// A payload equal to this entry's value. A value outside the entry is shared, not copied.
    pub fn payload<'a>(self) -> Payload<'a> {
        if let Some(blob) = self.blob() {
            Payload::Blob(blob.clone())
        } else if let Some(big) = self.big() {
            Payload::Big(self.encoding(), Box::new(big.clone()))
        } else {
            Payload::Inline(self.form(), self.inline(self.header()))
        }
    }

    /// Puts back the header of an entry whose value has not changed.
    ///
    /// # Safety
    /// 1. The entry had this header, and since then only its encoding and uses were changed.
    pub unsafe fn restore_header(self, header: Header) {
        self.set_header(header);
    }
}

/// Bytes of a string outside its entry, O(1): its buffer or its pages, and the block with the
/// reference count. Pages which other strings share count for each of them.
pub(crate) fn blob_memory(blob: &Blob) -> usize {
    let heap = blob.capacity();
    let bytes = if blob.is_paged() { heap } else { heap_bytes(heap.max(1)) };
    bytes + heap_bytes(Blob::HEAD_BYTES)
}

/// Bytes of a collection outside its entry, the box included.
pub(crate) fn big_memory(big: &Big) -> usize {
    heap_bytes(size_of::<Big>()) + big.memory()
}

/// Compares `len` bytes, by words where there are eight.
///
/// # Safety
/// Both pointers are valid for `len` bytes.
#[inline(always)]
unsafe fn equal(a: *const u8, b: *const u8, len: usize) -> bool {
    // SAFETY: every offset below stays within `len` bytes of a valid pointer.
    unsafe {
        if len >= 8 {
            let word = |p: *const u8, at: usize| p.add(at).cast::<u64>().read_unaligned();
            if word(a, 0) != word(b, 0) || word(a, len - 8) != word(b, len - 8) {
                return false;
            }
            let mut at = 8;
            while at + 8 < len {
                if word(a, at) != word(b, at) {
                    return false;
                }
                at += 8;
            }
            true
        } else if len >= 4 {
            let word = |p: *const u8, at: usize| p.add(at).cast::<u32>().read_unaligned();
            word(a, 0) == word(b, 0) && word(a, len - 4) == word(b, len - 4)
        } else {
            (0..len).all(|i| *a.add(i) == *b.add(i))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::{EntryCache, EntryMem};
    use proptest::prelude::*;
    use value::NewStr;

    proptest! {
        #[test]
        fn every_layout_reads_back_what_was_written(
            key in proptest::collection::vec(any::<u8>(), 0..600),
            text in proptest::collection::vec(any::<u8>(), 0..300),
            number: i64, due: Option<i64>, what in 0..4, lru in 0..1_u32 << 24,
        ) {
            let payload = match what {
                0 => Payload::Int(number),
                1 => Payload::Inline(Form::string(Encoding::Raw), &text),
                2 => Payload::of(NewStr::Embstr(&text[..text.len().min(44)])),
                _ => Payload::Blob(Blob::from(&text[..])),
            };
            let mem = EntryMem::with_bytes(2 << 20);
            let mut cache = EntryCache::continuing(0);
            let source = &mut Source { mem: &mem, cache: &mut cache };
            let entry = EntryPtr::build(source, &key, payload, due.map(UnixMs), lru);
            prop_assert_eq!(entry.key(), &key[..]);
            prop_assert!(entry.has_key(&key));
            let mut other = key.clone();
            if let Some(last) = other.last_mut() { *last ^= 1; prop_assert!(!entry.has_key(&other)); }
            other.push(0);
            prop_assert!(!entry.has_key(&other));
            prop_assert_eq!(entry.expiry(), due.map(UnixMs));
            prop_assert_eq!(entry.uses(), lru);
            let expected = match what {
                0 => number.to_string().into_bytes(),
                2 => text[..text.len().min(44)].to_vec(),
                _ => text.clone(),
            };
            prop_assert_eq!(entry.str().to_vec(), expected);
            // SAFETY: 1. It is in no table. 2. It is freed once. 3. It is not used afterwards.
            unsafe { entry.into_gone() }.free(source);
            prop_assert_eq!(cache.bytes, 0);
        }
    }
}
