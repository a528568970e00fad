//! Size classes: multiples of 8 bytes up to 1 KiB; above, the largest sizes of which 63, 62 ... 8
//! places fit into a span.

use super::spans::SPAN;

/// The largest size whose classes are multiples of 8.
const FINE_MAX: usize = 1024;
const FINE: usize = FINE_MAX / 8;
/// A class larger than this has no span.
pub(crate) const CLASS_MAX: usize = 8192;
/// Most and least places per span of the coarse classes: one less than fit for [`FINE_MAX`], and
/// those of [`CLASS_MAX`].
const PLACES_MOST: usize = SPAN / FINE_MAX - 1;
const PLACES_LEAST: usize = SPAN / CLASS_MAX;
/// Number of classes; class 0 is not used.
pub(crate) const CLASSES: usize = FINE + 1 + PLACES_MOST - PLACES_LEAST + 1;

/// The bytes of a place for `size` bytes, which may be any number.
#[inline(always)]
pub(crate) const fn class_bytes(size: usize) -> usize {
    if size <= FINE_MAX { (size + 7) & !7 } else { coarse_bytes(size) }
}

const fn coarse_bytes(size: usize) -> usize {
    if size <= CLASS_MAX { (SPAN / (SPAN / ((size + 7) & !7))) & !7 } else { heap_bytes(size) }
}

/// The bytes that jemalloc allocates for `size`: multiples of 16 up to 128, then four classes per
/// doubling. For another allocator this is a guess.
pub(crate) const fn heap_bytes(size: usize) -> usize {
    if size <= 128 {
        (size + 15) & !15
    } else {
        let step = 1_usize << ((size - 1).ilog2() - 2);
        (size + step - 1) & !(step - 1)
    }
}

/// The class with places of `bytes`, which must be the bytes of a class.
#[inline(always)]
pub(crate) const fn index(bytes: usize) -> usize {
    if bytes <= FINE_MAX { bytes / 8 } else { FINE + 1 + PLACES_MOST - SPAN / bytes }
}

/// The numbers of a class.
#[derive(Clone, Copy)]
struct Facts {
    bytes: u16,
    places: u16,
    /// 2^32 divided by the bytes, rounded up: a multiplication replaces the division, exact below
    /// 2^16.
    inverse: u32,
}

static FACTS: [Facts; CLASSES] = {
    let mut facts = [Facts { bytes: 0, places: 0, inverse: 0 }; CLASSES];
    let mut class = 1;
    while class < CLASSES {
        let bytes =
            if class <= FINE { class * 8 } else { (SPAN / (FINE + 1 + PLACES_MOST - class)) & !7 };
        let inverse = (1_u64 << 32).div_ceil(bytes as u64);
        facts[class] =
            Facts { bytes: bytes as u16, places: (SPAN / bytes) as u16, inverse: inverse as u32 };
        class += 1;
    }
    facts
};

/// Bytes of a place.
#[inline]
pub(crate) fn bytes(class: usize) -> usize {
    FACTS[class].bytes.into()
}

/// Places of a span.
#[inline]
pub(crate) fn places(class: usize) -> usize {
    FACTS[class].places.into()
}

/// The number of the place at `offset` in its span.
#[inline]
pub(crate) fn place(class: usize, offset: usize) -> usize {
    debug_assert!(offset < SPAN);
    ((offset as u64 * u64::from(FACTS[class].inverse)) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_smallest_sufficient_class() {
        for size in 1..=CLASS_MAX {
            let class = index(class_bytes(size));
            assert_eq!(bytes(class), class_bytes(size), "{size}");
            assert!(bytes(class) >= size && bytes(class - 1) < size, "{size}");
            assert_eq!(class_bytes(bytes(class)), bytes(class), "a class is its own class");
        }
        assert_eq!(index(class_bytes(CLASS_MAX)), CLASSES - 1);
    }

    #[test]
    fn classes_bound_internal_fragmentation() {
        for (size, expected) in [(1, 8), (32, 32), (88, 88), (1024, 1024), (1025, 1040)] {
            assert_eq!(class_bytes(size), expected, "{size}");
        }
        for size in FINE_MAX..=CLASS_MAX {
            assert!(class_bytes(size) <= size + size / 7, "{size}");
        }
        for class in 1..CLASSES {
            assert!(SPAN - places(class) * bytes(class) <= SPAN / 50, "{class}");
        }
        for (size, class) in [(8193, 10240), (16_384, 16_384), (128, 128), (129, 160), (1, 16)] {
            assert_eq!(heap_bytes(size), class, "{size}");
        }
    }

    #[test]
    fn places_are_computed_from_any_offset() {
        for class in 1..CLASSES {
            for at in 0..places(class) {
                assert_eq!(place(class, at * bytes(class)), at, "{class}");
                assert_eq!(place(class, (at + 1) * bytes(class) - 1), at, "{class}");
            }
        }
    }
}
