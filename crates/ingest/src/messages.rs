//! Consecutive whole messages of either protocol, for a sink.
//!
//! ```text
//!  Layout::Classic     | id, 8 | size, 4 | payload | id, 8 | size, 4 | payload | ...
//!  Layout::Numbered(n) | size, 4 | payload | size, 4 | payload | ...      numbers n, n + 1, ...
//! ```

use crate::{HEADER_BYTES, Order};

/// How messages are laid out in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Classic: id of 8 bytes, size of 4, payload.
    Classic(Order),
    /// Protocol 2: size of 4 bytes, payload. The number of the first message is this; then they
    /// count up.
    Numbered(u64),
}

/// Whole messages. Yields the number and payload of each; a classic id is read in the byte order of
/// the size.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    remaining: &'a [u8],
    layout: Layout,
}

impl<'a> Messages<'a> {
    /// The messages of `bytes`, which end with the last one.
    pub const fn new(bytes: &'a [u8], layout: Layout) -> Self {
        Self { remaining: bytes, layout }
    }

    /// Bytes of the messages that were not yielded yet.
    pub const fn remaining(&self) -> &'a [u8] {
        self.remaining
    }

    /// Splits messages off the front: at most `count_max`, and about `bytes_max` bytes, but at
    /// least one if there is any. Returns them and their number. O(messages).
    pub fn split_off(&mut self, count_max: usize, bytes_max: usize) -> (Self, usize) {
        let (mut front, mut count) = (self.clone(), 0);
        while count < count_max
            && front.remaining.len() - self.remaining.len() < bytes_max
            && self.next().is_some()
        {
            count += 1;
        }
        front.remaining = &front.remaining[..front.remaining.len() - self.remaining.len()];
        (front, count)
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = (u64, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (id, size, header) = match &mut self.layout {
            Layout::Classic(order) => {
                let header = self.remaining.first_chunk::<HEADER_BYTES>()?;
                let (id, size) = header.split_at(8);
                let (id, size) = (*id.first_chunk()?, *size.first_chunk()?);
                match order {
                    Order::Big => (u64::from_be_bytes(id), u32::from_be_bytes(size), HEADER_BYTES),
                    Order::Little => {
                        (u64::from_le_bytes(id), u32::from_le_bytes(size), HEADER_BYTES)
                    }
                }
            }
            Layout::Numbered(next) => {
                let size = u32::from_le_bytes(*self.remaining.first_chunk()?);
                let id = *next;
                *next = next.wrapping_add(1);
                (id, size, 4)
            }
        };
        let end = header + size as usize;
        let payload = self.remaining.get(header..end)?;
        self.remaining = &self.remaining[end..];
        Some((id, payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_yield_numbers_and_payloads() {
        let mut classic = Vec::new();
        let mut numbered = Vec::new();
        for (id, payload) in [(7u64, &b"abc"[..]), (8, b""), (9, b"xy")] {
            classic.extend(id.to_be_bytes());
            classic.extend((payload.len() as u32).to_be_bytes());
            classic.extend(payload);
            numbered.extend((payload.len() as u32).to_le_bytes());
            numbered.extend(payload);
        }
        let expected = [(7, &b"abc"[..]), (8, b""), (9, b"xy")];
        let all: Vec<_> = Messages::new(&classic, Layout::Classic(Order::Big)).collect();
        assert_eq!(all, expected);
        let mut some = Messages::new(&numbered, Layout::Numbered(7));
        assert_eq!(some.next(), Some(expected[0]));
        assert_eq!(some.remaining(), &numbered[7..]);
        assert_eq!(some.collect::<Vec<_>>(), expected[1..]);
    }

    #[test]
    fn parts_are_bounded_and_cover_all_messages() {
        let bytes: Vec<u8> =
            [&[3, 0, 0, 0][..], b"abc", &[0; 4], &[1, 0, 0, 0], b"x", b"cut"].concat();
        for (count_max, bytes_max, expected) in
            [(9, 99, vec![3]), (2, 99, vec![2, 1]), (9, 1, vec![1; 3])]
        {
            let mut rest = Messages::new(&bytes, Layout::Numbered(5));
            let (mut counts, mut all) = (Vec::new(), Vec::new());
            loop {
                let (part, count) = rest.split_off(count_max, bytes_max);
                if count == 0 {
                    break;
                }
                counts.push(count);
                all.extend(part);
            }
            assert_eq!(counts, expected);
            assert_eq!(all, [(5, &b"abc"[..]), (6, b""), (7, b"x")]);
            assert_eq!(rest.remaining(), b"cut");
        }
    }
}
