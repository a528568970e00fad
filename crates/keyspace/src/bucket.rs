//! A bucket: one cache line of eight words.
//!
//! ```text
//!    word 0   word 1                                            word 7      64 bytes
//!   +--------+--------+--------+--------+--------+--------+--------+--------+
//!   | entry  | entry  | entry  | 0      | 0      | 0      | 0      | 0      |
//!   +--------+--------+--------+--------+--------+--------+--------+--------+
//!
//!           63             48 47                                    3 2 1 0
//!   entry  [ tag, 16 bits    |  address of the entry                 0 0 0 ]
//!          63                          33 32                            1 0
//!   link   [ 0                           |  number of the overflow bucket | 1 ]   word 7 only
//!   empty  [ 0                                                             ]
//! ```
//!
//! Entries fill the words from 0 without holes, and an overflow bucket is never empty (`chain.rs`).
//! A lookup compares the tags of all eight words at once and follows only addresses whose tag
//! matches. In the directory a bucket can also hold 16 numbers of 32 bits (`directory.rs`).
#![allow(unsafe_code)]

use crate::entry::EntryPtr;
use base::sync::hint::{AtomicU64, Ordering};

/// Words in a bucket.
pub(crate) const WORDS: usize = 8;
const ADDRESS: u64 = (1 << 48) - 1;

/// Eight words, as drawn above.
#[repr(C, align(64))]
pub(crate) struct Bucket {
    words: [AtomicU64; WORDS],
}

const _: () = assert!(size_of::<Bucket>() == 64);

/// One word of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    pub const EMPTY: Word = Word(0);

    #[inline(always)]
    pub fn entry(entry: EntryPtr, tag: u16) -> Self {
        let address = entry.address();
        debug_assert!(address & !ADDRESS == 0 && address & 7 == 0, "48-bit aligned address");
        Self(address | u64::from(tag) << 48)
    }

    #[inline(always)]
    pub fn link(id: u32) -> Self {
        Self(u64::from(id) << 1 | 1)
    }

    #[inline(always)]
    pub fn is_link(self) -> bool {
        self.0 & 1 != 0
    }

    /// The bucket that a link leads to.
    #[inline(always)]
    pub fn link_id(self) -> u32 {
        (self.0 >> 1) as u32
    }

    /// The address of an entry, unless the word is empty or a link. If it was read without the
    /// lock, it may only be prefetched.
    #[inline(always)]
    pub fn address(self) -> Option<u64> {
        let address = self.0 & ADDRESS;
        (!self.is_link() && address != 0).then_some(address)
    }

    /// The entry, unless the word is empty or a link.
    ///
    /// # Safety
    /// 1. The word is in a table, or was drained from one, and the caller holds its slot or owns
    ///    it.
    /// 2. The entry is used only while that holds, or while only the caller can reach it.
    #[inline(always)]
    pub unsafe fn as_entry(self) -> Option<EntryPtr> {
        if self.is_link() {
            return None;
        }
        // SAFETY: 1. A word of a table is zero or has the address of an entry that lives. 2. As
        // point 2 here.
        unsafe { EntryPtr::from_address(self.0 & ADDRESS) }
    }

    #[inline(always)]
    pub fn tag(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// The same entry under another tag.
    #[inline(always)]
    pub fn with_tag(self, tag: u16) -> Self {
        Self(self.0 & ADDRESS | u64::from(tag) << 48)
    }
}

impl Bucket {
    /// Where it is, for a prefetch.
    #[inline(always)]
    pub fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Reads a word.
    #[inline(always)]
    pub fn word(&self, at: usize) -> Word {
        Word(self.words[at & (WORDS - 1)].load(Ordering::Relaxed))
    }

    /// Writes a word; only under the slot's lock.
    #[inline(always)]
    pub fn set(&self, at: usize, word: Word) {
        self.words[at & (WORDS - 1)].store(word.0, Ordering::Relaxed);
    }

    /// Half a word: a 32-bit number of a directory page.
    #[inline(always)]
    pub fn half(&self, at: usize) -> u32 {
        (self.words[(at >> 1) & (WORDS - 1)].load(Ordering::Relaxed) >> ((at & 1) * 32)) as u32
    }

    /// Writes half a word; only under the slot's lock.
    pub fn set_half(&self, at: usize, value: u32) {
        let word = &self.words[(at >> 1) & (WORDS - 1)];
        let shift = (at & 1) * 32;
        let kept = word.load(Ordering::Relaxed) & !(u64::from(u32::MAX) << shift);
        word.store(kept | u64::from(value) << shift, Ordering::Relaxed);
    }

    /// The number of entries in this bucket alone.
    #[inline]
    pub fn fill(&self) -> usize {
        let mut n = 0;
        while n < WORDS && self.word(n) != Word::EMPTY && !self.word(n).is_link() {
            n += 1;
        }
        n
    }

    /// A bit for each word whose tag is `tag`. An empty word or a link may match, too.
    ///
    /// Callers without the lock may see any mix of old and new bits, which only a prefetch may use.
    #[inline(always)]
    pub fn matches(&self, tag: u16) -> u32 {
        #[cfg(target_arch = "x86_64")]
        {
            self.matches_sse2(tag)
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            self.matches_portable(tag)
        }
    }

    /// The first word with this tag, or else the last word, which may be a link. Read without the
    /// lock, for a prefetch.
    #[inline(always)]
    pub fn candidate(&self, tag: u16) -> Word {
        let mask = self.matches(tag) | 1 << (WORDS - 1);
        self.word(mask.trailing_zeros() as usize)
    }

    #[cfg(any(test, not(target_arch = "x86_64")))]
    fn matches_portable(&self, tag: u16) -> u32 {
        (0..WORDS).fold(0, |mask, at| mask | u32::from(self.word(at).tag() == tag) << at)
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn matches_sse2(&self, tag: u16) -> u32 {
        use std::arch::asm;
        use std::arch::x86_64::{
            __m128i, _mm_castps_si128, _mm_castsi128_ps, _mm_cmpeq_epi16, _mm_movemask_epi8,
            _mm_packs_epi16, _mm_packs_epi32, _mm_set1_epi16, _mm_setzero_si128, _mm_shuffle_ps,
            _mm_srai_epi32,
        };
        let (w01, w23, w45, w67): (__m128i, __m128i, __m128i, __m128i);
        // SAFETY: the operand is the address of 64 readable bytes with 64-byte alignment (a
        // `Bucket`), and the block writes no memory. While the caller holds the slot, nobody writes
        // these bytes. A caller without the slot may race with a writer. The compiler does not see
        // that in an asm block and assumes nothing about it. The processor then loads a mix of old
        // and new bits (x86 promises whole 16 bytes only with AVX). Nothing relies on them: such
        // a caller prefetches the address that it finds (`Bucket::candidate`) and never follows it.
        unsafe {
            asm!(
                "movdqa {a}, [{p}]",
                "movdqa {b}, [{p} + 16]",
                "movdqa {c}, [{p} + 32]",
                "movdqa {d}, [{p} + 48]",
                p = in(reg) self,
                a = out(xmm_reg) w01,
                b = out(xmm_reg) w23,
                c = out(xmm_reg) w45,
                d = out(xmm_reg) w67,
                options(readonly, nostack, preserves_flags),
            );
        }
        // The upper 32 bits of each word, then their upper 16, which an arithmetic shift leaves in
        // the range that the saturating pack keeps.
        let (ps, si) = (_mm_castsi128_ps, _mm_castps_si128);
        // SAFETY: these instructions are SSE2, which every x86-64 has; they touch no memory.
        unsafe {
            let low = _mm_srai_epi32(si(_mm_shuffle_ps::<0xDD>(ps(w01), ps(w23))), 16);
            let high = _mm_srai_epi32(si(_mm_shuffle_ps::<0xDD>(ps(w45), ps(w67))), 16);
            let tags = _mm_packs_epi32(low, high);
            let equal = _mm_cmpeq_epi16(tags, _mm_set1_epi16(tag as i16));
            _mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128())) as u32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sse2_and_portable_searches_agree(words: [u64; 8], pick in 0..8_usize, other: u16) {
            let bucket = Bucket { words: words.map(AtomicU64::new) };
            for tag in [Word(words[pick]).tag(), other, 0, 0x8000, 0x7FFF, 0xFFFF] {
                prop_assert_eq!(bucket.matches(tag), bucket.matches_portable(tag));
            }
        }

        #[test]
        fn the_halves_of_a_bucket_are_independent(words: [u64; 8], at in 0..16_usize, value: u32) {
            let bucket = Bucket { words: words.map(AtomicU64::new) };
            let before: Vec<u32> = (0..16).map(|i| bucket.half(i)).collect();
            bucket.set_half(at, value);
            for (i, old) in before.into_iter().enumerate() {
                prop_assert_eq!(bucket.half(i), if i == at { value } else { old });
            }
        }
    }
}
