//! Which lists OBJECT ENCODING calls small: those that fit `list-max-listpack-size` as a listpack.
//! A list that has outgrown the limit is small again when it has shrunk to half of it.

use rdb::NodeLimits;
use value::list::{Item, List, listpack_entry};
use value::packed::Packed;
use value::{Encoding, list};

use crate::ctx::Settings;

/// Bytes around the entries of a listpack.
const AROUND: u64 = 7;
/// The fewest bytes of an entry.
const ENTRY_MIN: u64 = 2;
/// A listpack never takes more bytes than these for a byte of a packed list.
const GROWTH_MAX: u64 = 2;
/// Nor does a text: the longest integer, of 20 characters, takes 9.
const TEXT_MAX: u64 = 3;
/// Bytes of a listpack whose elements are counted.
const COUNTED_BYTES_MAX: u64 = 8192;

/// What a node of a list holds at most in Redis, as `list-max-listpack-size` says.
pub(crate) fn node_limits(settings: &Settings) -> NodeLimits {
    let Limit { len, bytes, .. } = Limit::of(settings);
    NodeLimits { elements: len, bytes: bytes as usize }
}

/// What a small list holds at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    len: u64,
    bytes: u64,
    /// A single element is small whatever its bytes.
    any_single: bool,
}

impl Limit {
    /// As the setting says: a number of elements, of which 0 is one, or -1 to -5 for 4 to 64 KiB.
    #[inline]
    pub fn of(settings: &Settings) -> Self {
        let (len, bytes) = match settings.list_max_listpack_size {
            len @ 0.. => (len.max(1) as u64, COUNTED_BYTES_MAX),
            class => (u64::MAX, 2048 << class.unsigned_abs().min(5)),
        };
        Self { len, bytes, any_single: false }
    }

    /// True if a listpack of so many elements and bytes is small.
    pub fn holds(self, len: u64, bytes: u64) -> bool {
        len <= self.len && (bytes <= self.bytes || self.any_single && len == 1)
    }

    /// What a list has to fit that was not small. As Redis 7.2: where elements are counted their
    /// number is halved and not their bytes, and one alone is small in any case.
    fn half(self) -> Self {
        if self.len == u64::MAX {
            return Self { bytes: self.bytes / 2, ..self };
        }
        Self { len: self.len / 2, any_single: true, ..self }
    }

    /// What decides about a list of this encoding; `None` if it stays what it is.
    #[inline]
    fn deciding(self, was: Encoding, has_grown: bool) -> Option<Self> {
        match (was == Encoding::Quicklist, has_grown) {
            (false, true) => Some(self),
            (true, false) => Some(self.half()),
            _ => None,
        }
    }

    /// What a packed list is called that was called `was` before it has grown or shrunk.
    #[inline]
    pub fn packed(self, bytes: &[u8], was: Encoding, has_grown: bool) -> Encoding {
        self.deciding(was, has_grown).map_or(was, |limit| called(limit.fits_packed(bytes)))
    }

    #[inline]
    fn fits_packed(self, bytes: &[u8]) -> bool {
        self.takes_packed(bytes, 0, 0)
    }

    /// True if a packed list with so many elements and bytes more is small. Redis decides before
    /// elements come, and counts the bytes of their texts alone: a push can leave a list called
    /// listpack that is longer.
    #[inline]
    pub fn takes_packed(self, bytes: &[u8], len: u64, size: u64) -> bool {
        if self.len == u64::MAX && AROUND + bytes.len() as u64 * GROWTH_MAX + size <= self.bytes {
            return true;
        }
        let (mut len, mut size) = (len, AROUND + size);
        for elem in Packed::new(bytes) {
            len += 1;
            size += listpack_entry(Item::Near(elem));
        }
        self.holds(len, size)
    }

    /// What a packed list is called once elements have come, `new` with them; `coming` counts them
    /// and the bytes of their texts.
    #[inline]
    pub fn growing_packed(
        self,
        old: &[u8],
        new: &[u8],
        was: Encoding,
        coming: impl FnOnce() -> (u64, u64),
    ) -> Encoding {
        let is_short = self.len == u64::MAX && AROUND + new.len() as u64 * TEXT_MAX <= self.bytes;
        if was == Encoding::Quicklist || is_short {
            return was;
        }
        let (count, size) = coming();
        called(self.takes_packed(old, count, size))
    }

    /// The encoding of a packed list after some of its elements were popped and pushed again:
    /// `rest` are those that stayed, `new` is the whole list. As in Redis, it may grow first, and
    /// then be small again.
    #[inline]
    pub fn turned_packed(
        self,
        rest: &[u8],
        new: &[u8],
        was: Encoding,
        coming: impl FnOnce() -> (u64, u64),
    ) -> Encoding {
        let grown = self.growing_packed(rest, new, was, coming);
        self.packed(new, grown, false)
    }

    /// As [`Limit::growing_packed`] for a list of pages, before they come.
    #[inline]
    pub fn growing_big(
        self,
        list: &mut List,
        was: Encoding,
        coming: impl FnOnce() -> (u64, u64),
    ) -> Encoding {
        if was == Encoding::Quicklist {
            return was;
        }
        let (count, size) = coming();
        called(self.takes_list(list, count, size))
    }

    /// As [`Limit::packed`] for a list of pages.
    #[inline]
    pub fn big(self, list: &mut List, was: Encoding, has_grown: bool) -> Encoding {
        self.deciding(was, has_grown).map_or(was, |limit| called(limit.fits_list(list)))
    }

    #[inline]
    fn fits_list(self, list: &mut list::List) -> bool {
        self.takes_list(list, 0, 0)
    }

    /// As [`Limit::takes_packed`] for a list of pages.
    #[inline]
    pub fn takes_list(self, list: &mut list::List, len: u64, size: u64) -> bool {
        let count = list.len() + len;
        if self.any_single && count == 1 {
            return count <= self.len;
        }
        count <= self.len
            && list.len().saturating_mul(ENTRY_MIN) + AROUND <= self.bytes
            && list.weight().is_some_and(|weight| weight + size + AROUND <= self.bytes)
    }
}

pub(super) fn called(fits: bool) -> Encoding {
    if fits { Encoding::Listpack } else { Encoding::Quicklist }
}

#[cfg(test)]
mod tests {
    use super::*;
    use value::packed;

    fn limit(setting: i64) -> Limit {
        Limit::of(&Settings { list_max_listpack_size: setting, ..Settings::default() })
    }

    #[test]
    fn settings_limit_bytes_or_elements() {
        let bytes = [-1, -2, -3, -4, -5, -6, i64::MIN].map(|n| limit(n).bytes >> 10);
        assert_eq!(bytes, [4, 8, 16, 32, 64, 64, 64]);
        assert_eq!((limit(128).len, limit(128).bytes), (128, 8192));
    }

    /// A list of this many elements of 100 bytes: 103 bytes each in a listpack.
    fn list(len: usize) -> (List, Vec<u8>) {
        let (mut list, mut packed) = (List::new(), Vec::new());
        for _ in 0..len {
            list.build(value::list::NewItem::of(&[b'x'; 100]));
            packed::push(&mut packed, &[b'x'; 100]);
        }
        (list, packed)
    }

    #[test]
    fn a_list_becomes_a_listpack_again_at_half_the_limit() {
        use Encoding::{Listpack, Quicklist};
        for (setting, len, half) in [(-2, 79, 39), (-1, 39, 19), (10, 10, 5), (1000, 79, 79)] {
            let limit = limit(setting);
            for (n, was, has_grown, called) in [
                (len, Listpack, true, Listpack),
                (len + 1, Listpack, true, Quicklist),
                (len + 1, Listpack, false, Listpack),
                (len, Quicklist, true, Quicklist),
                (half, Quicklist, true, Quicklist),
                (half, Quicklist, false, Listpack),
                (half + 1, Quicklist, false, Quicklist),
            ] {
                let (mut list, packed) = list(n);
                assert_eq!(limit.big(&mut list, was, has_grown), called, "{setting}: {n}");
                assert_eq!(limit.packed(&packed, was, has_grown), called, "{setting}: {n}");
            }
        }
    }

    /// Observed on 7.2: with a limit on elements, a single remaining element of any size makes a
    /// listpack again.
    #[test]
    fn a_single_element_is_a_listpack_under_an_element_limit() {
        for (setting, called) in [
            (128, Encoding::Listpack),
            (2, Encoding::Listpack),
            (1, Encoding::Quicklist),
            (-2, Encoding::Quicklist),
        ] {
            let (mut list, mut packed) = list(0);
            let elem = vec![b'x'; 20_000];
            list.build(value::list::NewItem::of(&elem));
            packed::push(&mut packed, &elem[..10_000]);
            let was = Encoding::Quicklist;
            assert_eq!(limit(setting).big(&mut list, was, false), called, "{setting}");
            assert_eq!(limit(setting).packed(&packed, was, false), called, "{setting}");
        }
    }

    /// Exact to the byte: 79 elements of 103 bytes and one of 48, with header and terminator, are
    /// 8192 bytes.
    #[test]
    fn a_listpack_can_be_filled_to_its_last_byte() {
        for (len, called) in [(46, Encoding::Listpack), (47, Encoding::Quicklist)] {
            let (mut list, mut packed) = list(79);
            list.build(value::list::NewItem::of(&vec![b'x'; len]));
            packed::push(&mut packed, &vec![b'x'; len]);
            assert_eq!(limit(-2).big(&mut list, Encoding::Listpack, true), called);
            assert_eq!(limit(-2).packed(&packed, Encoding::Listpack, true), called);
        }
    }

    #[test]
    fn no_listpack_is_larger_than_estimated() {
        let texts = ["", "0", "47", "48", "128", "-1", "4096", "40000", "9000000", "3000000000"];
        for text in
            texts.map(str::to_owned).into_iter().chain([64, 125, 191, 192].map(|n| "x".repeat(n)))
        {
            let mut packed = Vec::new();
            packed::push(&mut packed, text.as_bytes());
            let elem = packed::Elem::of(text.as_bytes());
            assert!(listpack_entry(Item::Near(elem)) <= packed.len() as u64 * GROWTH_MAX, "{text}");
            assert!(listpack_entry(Item::Near(elem)) >= ENTRY_MIN);
        }
    }
}
