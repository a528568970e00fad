//! Whole messages that lie one behind another, of either protocol: what a sink takes at once.

use crate::{HEADER_BYTES, Order};

/// How messages lie in their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Classic: id of 8 bytes, size of 4, payload.
    Classic(Order),
    /// Protocol 2: size of 4 bytes, payload; the first has this number, the others count up.
    Numbered(u64),
}

/// Whole messages; yields each one's number and payload. A classic id is read in the order of its
/// sizes.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    rest: &'a [u8],
    layout: Layout,
}

impl<'a> Messages<'a> {
    /// All messages of `bytes`, which end where the last one ends.
    pub const fn new(bytes: &'a [u8], layout: Layout) -> Self {
        Self { rest: bytes, layout }
    }

    /// Bytes of the messages that are still to come.
    pub const fn remaining(&self) -> &'a [u8] {
        self.rest
    }

    /// Takes messages off the front: at most so many, and about so many bytes of them, one message
    /// at least if there is one. How many they are. O(messages).
    pub fn split_off(&mut self, count_max: usize, bytes_max: usize) -> (Self, usize) {
        let (mut front, mut count) = (self.clone(), 0);
        while count < count_max
            && front.rest.len() - self.rest.len() < bytes_max
            && self.next().is_some()
        {
            count += 1;
        }
        front.rest = &front.rest[..front.rest.len() - self.rest.len()];
        (front, count)
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = (u64, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (id, size, header) = match &mut self.layout {
            Layout::Classic(order) => {
                let header = self.rest.first_chunk::<HEADER_BYTES>()?;
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
                let size = u32::from_le_bytes(*self.rest.first_chunk()?);
                let id = *next;
                *next = next.wrapping_add(1);
                (id, size, 4)
            }
        };
        let end = header + size as usize;
        let payload = self.rest.get(header..end)?;
        self.rest = &self.rest[end..];
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
    fn parts_are_bounded_and_make_up_the_whole() {
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
