//! Whole messages of classic ingest for a sink, from a stream that arrives in arbitrary blocks.
//!
//! Messages that are complete in a block are yielded in place. A message that a block cuts is
//! assembled in a buffer, which is never larger than the part that has arrived, and yielded alone.

use crate::frames::size;
use crate::{HEADER_BYTES, Layout, Messages, Order};

/// The buffer keeps at most this capacity while it is empty.
const KEPT_MAX: usize = 64 * 1024;

/// A stream of messages in pieces.
#[derive(Clone, Debug)]
pub struct Pieces {
    order: Order,
    /// The incomplete message; with its end, until the caller has taken it.
    message: Vec<u8>,
    /// How many bytes of it arrived with earlier blocks.
    from_before: usize,
}

/// What is at the front of a block.
#[derive(Clone, Debug)]
pub enum Piece<'a> {
    /// Whole messages.
    Whole {
        /// The messages.
        messages: Messages<'a>,
        /// Their number.
        count: usize,
        /// Where they end in the block.
        used: usize,
    },
    /// No whole message; the rest of the block is in the buffer now.
    Partial,
    /// A message announces more payload than is allowed.
    Oversized,
}

impl Pieces {
    /// The beginning of a stream.
    pub const fn new(order: Order) -> Self {
        Self { order, message: Vec::new(), from_before: 0 }
    }

    /// What stands at the front of `block`. The caller that takes all messages which were found
    /// calls [`Pieces::mark_taken`] before it asks for what follows; if it takes none, the next
    /// call with the same bytes finds them again.
    pub fn next<'a>(&'a mut self, block: &'a [u8], payload_max: u32) -> Piece<'a> {
        if self.from_before > 0 {
            return self.continue_message(block, payload_max);
        }
        let (mut at, mut count, mut oversized) = (0, 0, false);
        while let Some(header) = block[at..].first_chunk::<HEADER_BYTES>() {
            let size = size(self.order, header);
            oversized = size > payload_max;
            let end = at + HEADER_BYTES + size as usize;
            if oversized || end > block.len() {
                break;
            }
            (at, count) = (end, count + 1);
        }
        if count > 0 {
            return Piece::Whole { messages: self.whole(&block[..at]), count, used: at };
        }
        if oversized {
            return Piece::Oversized;
        }
        self.begin(block)
    }

    /// Continues the message that an earlier block began.
    fn continue_message<'a>(&'a mut self, block: &'a [u8], payload_max: u32) -> Piece<'a> {
        self.message.truncate(self.from_before);
        let head = HEADER_BYTES.saturating_sub(self.from_before).min(block.len());
        self.message.extend_from_slice(&block[..head]);
        let Some(header) = self.message.first_chunk::<HEADER_BYTES>() else {
            return self.begin(&[]);
        };
        let size = size(self.order, header);
        if size > payload_max {
            return Piece::Oversized;
        }
        let missing = HEADER_BYTES + size as usize - self.message.len();
        let rest = &block[head..];
        if rest.len() < missing {
            // Doubles the buffer, but not beyond the announced size.
            if self.message.capacity() - self.message.len() < rest.len() {
                let more = missing.min(self.message.len().max(KEPT_MAX)).max(rest.len());
                self.message.reserve_exact(more);
            }
            return self.begin(rest);
        }
        self.message.extend_from_slice(&rest[..missing]);
        Piece::Whole { messages: self.whole(&self.message), count: 1, used: head + missing }
    }

    fn begin<'a>(&mut self, rest: &[u8]) -> Piece<'a> {
        self.message.extend_from_slice(rest);
        self.from_before = self.message.len();
        Piece::Partial
    }

    fn whole<'a>(&self, bytes: &'a [u8]) -> Messages<'a> {
        Messages::new(bytes, Layout::Classic(self.order))
    }

    /// Bytes of memory for the incomplete message.
    pub fn buffered(&self) -> usize {
        self.message.capacity()
    }

    /// Bytes of the incomplete message that have arrived.
    pub fn partial_bytes(&self) -> usize {
        self.message.len()
    }

    /// The caller has taken all messages that were found.
    pub fn mark_taken(&mut self) {
        self.from_before = 0;
        self.message.clear();
        if self.message.capacity() > KEPT_MAX {
            self.message = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::prng::Prng;

    fn message(id: u64, size: usize) -> Vec<u8> {
        [&id.to_be_bytes()[..], &(size as u32).to_be_bytes(), &vec![id as u8; size]].concat()
    }

    /// Takes a block like a sink which accepts at most `share` messages at a time, and may accept
    /// none.
    fn take(
        pieces: &mut Pieces,
        block: &[u8],
        prng: &mut Prng,
        all: &mut Vec<(u64, Vec<u8>)>,
    ) -> bool {
        let mut at = 0;
        loop {
            match pieces.next(&block[at..], 40) {
                Piece::Partial => return true,
                Piece::Oversized => return false,
                Piece::Whole { mut messages, count, used } => {
                    let before = messages.remaining().len();
                    let share = prng.below(count as u64 + 1) as usize;
                    all.extend(messages.by_ref().take(share).map(|(id, text)| (id, text.to_vec())));
                    if share == count {
                        assert!(messages.remaining().is_empty());
                        pieces.mark_taken();
                        at += used;
                    } else {
                        at += before - messages.remaining().len();
                    }
                }
            }
        }
    }

    /// A message larger than half of the memory limit still fits.
    #[test]
    fn a_partial_message_buffers_at_most_its_own_size() {
        let (mut pieces, whole) = (Pieces::new(Order::Big), message(1, 1_000_000));
        for block in whole.chunks(10_000) {
            let piece = pieces.next(block, 1_000_000);
            let is_whole = matches!(piece, Piece::Whole { .. });
            assert_eq!(is_whole, block.len() < 10_000, "the last block is short");
            assert!(pieces.buffered() <= whole.len(), "{}", pieces.buffered());
        }
    }

    #[test]
    fn every_message_is_yielded_once_for_any_split_and_backlog() {
        let mut prng = Prng::new(11);
        for round in 0..200 {
            let sizes: Vec<usize> = (0..30).map(|_| prng.below(41) as usize).collect();
            let mut bytes: Vec<u8> =
                sizes.iter().enumerate().flat_map(|(id, size)| message(id as u64, *size)).collect();
            let ends_badly = round % 3 == 0;
            if ends_badly {
                bytes.extend(message(99, 41));
            }
            let (mut pieces, mut all, mut fine) = (Pieces::new(Order::Big), Vec::new(), true);
            let mut rest = &bytes[..];
            while !rest.is_empty() && fine {
                let (block, behind) =
                    rest.split_at(1 + prng.below(rest.len() as u64) as usize % 90);
                fine = take(&mut pieces, block, &mut prng, &mut all);
                assert!(pieces.partial_bytes() <= HEADER_BYTES + 40);
                rest = behind;
            }
            assert_eq!(fine, !ends_badly);
            let expected = sizes.iter().enumerate().map(|(id, n)| (id as u64, vec![id as u8; *n]));
            assert_eq!(all, expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_large_buffer_is_freed_after_its_message() {
        let mut pieces = Pieces::new(Order::Big);
        let long = message(1, KEPT_MAX);
        assert!(matches!(pieces.next(&long[..100], u32::MAX), Piece::Partial));
        assert!(matches!(pieces.next(&long[100..], u32::MAX), Piece::Whole { count: 1, .. }));
        pieces.mark_taken();
        assert_eq!((pieces.partial_bytes(), pieces.message.capacity()), (0, 0));
    }
}
