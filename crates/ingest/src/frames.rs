//! Finds whole messages of classic ingest in a stream that arrives in arbitrary blocks.
//!
//! ```text
//!  a message, from the producer
//!  0               8           12                12 + size
//!  +---------------+-----------+-- - - - - - - --+
//!  | id, 8 bytes   | size, u32 | payload         |    size: big-endian for request-reply, else
//!  +---------------+-----------+-- - - - - - - --+    little-endian; the id is only echoed
//!
//!  blocks        |<---- block 1 ---->|<------ block 2 ------>|
//!  messages      | m1   | m2   | m3      | m4   | m5  | m6 ...
//!                               ^^^^ kept between blocks: header bytes (have), missing payload
//! ```
//!
//! The state between two blocks is 24 bytes: the header so far, and how many payload bytes are
//! missing. Payloads are skipped, neither read nor kept. Cost: one load and one comparison per
//! message. Messages of equal size are taken four at a time, so that finding the next header does
//! not wait for a load.

use crate::Order;

/// Bytes before the payload.
pub const HEADER_BYTES: usize = 12;

/// A message's id, in the producer's byte order.
pub type Id = [u8; 8];

/// Messages taken at once if their sizes are equal.
const RUN: usize = 4;

/// The position in a stream of messages.
#[derive(Clone, Debug)]
pub struct Frames {
    order: Order,
    /// Header bytes of the incomplete message.
    have: u8,
    header: [u8; HEADER_BYTES],
    /// Payload bytes that the incomplete message lacks; valid once its header is complete.
    missing: u32,
}

/// What a block completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Messages that are complete.
    pub whole: u64,
    /// The id of the last of them.
    pub last: Option<Id>,
    /// The next message announces more payload than is allowed: the stream ends.
    pub oversized: bool,
}

impl Frames {
    /// The beginning of a stream.
    pub const fn new(order: Order) -> Self {
        Self { order, have: 0, header: [0; HEADER_BYTES], missing: 0 }
    }

    /// True between two messages: nothing of a next one has come.
    pub const fn is_between(&self) -> bool {
        self.have == 0
    }

    /// Takes a block, counts the messages that it completes.
    #[inline]
    pub fn count(&mut self, block: &[u8], payload_max: u32) -> Scan {
        self.walk::<false>(block, payload_max, |_| {})
    }

    /// Takes a block, calls `each` with the id of every message that it completes.
    #[inline]
    pub fn each(&mut self, block: &[u8], payload_max: u32, each: impl FnMut(Id)) -> Scan {
        self.walk::<true>(block, payload_max, each)
    }

    #[inline]
    fn walk<const EACH: bool>(
        &mut self,
        block: &[u8],
        payload_max: u32,
        mut each: impl FnMut(Id),
    ) -> Scan {
        let mut scan = Scan::default();
        let mut at = 0;
        if self.have > 0 {
            match self.continue_message(block, payload_max) {
                Continued::Whole { end } => {
                    at = end;
                    scan.whole = 1;
                    scan.last = Some(id(&self.header));
                    if EACH {
                        each(id(&self.header));
                    }
                }
                Continued::Partial => return scan,
                Continued::Oversized => {
                    scan.oversized = true;
                    return scan;
                }
            }
        }
        let mut last_at = None;
        while let Some(header) = block.get(at..).and_then(|b| b.first_chunk::<HEADER_BYTES>()) {
            let size = size(self.order, header);
            if size > payload_max {
                scan.oversized = true;
                break;
            }
            let step = HEADER_BYTES + size as usize;
            if block.len() - at >= RUN * step && is_run(block, at, step) {
                if EACH {
                    (0..RUN).for_each(|n| each(id(&block[at + n * step..])));
                }
                last_at = Some(at + (RUN - 1) * step);
                scan.whole += RUN as u64;
                at += RUN * step;
                continue;
            }
            if block.len() - at < step {
                break;
            }
            if EACH {
                each(id(header));
            }
            last_at = Some(at);
            scan.whole += 1;
            at += step;
        }
        if let Some(at) = last_at {
            scan.last = Some(id(&block[at..]));
        }
        if !scan.oversized {
            self.begin(&block[at..]);
        }
        scan
    }

    /// Continues the message that an earlier block began.
    #[inline]
    fn continue_message(&mut self, block: &[u8], payload_max: u32) -> Continued {
        let mut at = 0;
        let have = self.have as usize;
        if have < HEADER_BYTES {
            at = block.len().min(HEADER_BYTES - have);
            self.header[have..have + at].copy_from_slice(&block[..at]);
            self.have += at as u8;
            if (self.have as usize) < HEADER_BYTES {
                return Continued::Partial;
            }
            self.missing = size(self.order, &self.header);
            if self.missing > payload_max {
                return Continued::Oversized;
            }
        }
        let rest = block.len() - at;
        if rest < self.missing as usize {
            self.missing -= rest as u32;
            return Continued::Partial;
        }
        self.have = 0;
        Continued::Whole { end: at + self.missing as usize }
    }

    /// Keeps the beginning of an incomplete message. If its size is known, it is allowed.
    fn begin(&mut self, tail: &[u8]) {
        let have = tail.len().min(HEADER_BYTES);
        self.header[..have].copy_from_slice(&tail[..have]);
        self.have = have as u8;
        if have == HEADER_BYTES {
            let arrived = (tail.len() - HEADER_BYTES) as u32;
            self.missing = size(self.order, &self.header) - arrived;
        }
    }
}

enum Continued {
    Whole { end: usize },
    Partial,
    Oversized,
}

/// True if the `RUN` messages from `at` on, all inside the block, have equal sizes.
#[inline(always)]
fn is_run(block: &[u8], at: usize, step: usize) -> bool {
    let run = &block[at..at + RUN * step];
    let size = |n: usize| &run[n * step + 8..n * step + HEADER_BYTES];
    (1..RUN).all(|n| size(n) == size(0))
}

#[inline(always)]
pub(crate) fn size(order: Order, header: &[u8; HEADER_BYTES]) -> u32 {
    let [.., a, b, c, d] = *header;
    match order {
        Order::Big => u32::from_be_bytes([a, b, c, d]),
        Order::Little => u32::from_le_bytes([a, b, c, d]),
    }
}

/// The first 8 bytes.
#[inline(always)]
fn id(bytes: &[u8]) -> Id {
    *bytes.first_chunk().expect("a header begins with an id")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: u64, size: usize) -> Vec<u8> {
        let mut bytes = id.to_le_bytes().to_vec();
        bytes.extend((size as u32).to_le_bytes());
        bytes.extend(vec![0xff; size]);
        bytes
    }

    #[test]
    fn the_state_of_the_parser_is_small() {
        assert!(size_of::<Frames>() <= 24);
    }

    #[test]
    fn a_message_is_counted_at_its_last_byte() {
        let bytes = message(7, 5);
        let mut frames = Frames::new(Order::Little);
        for byte in &bytes[..16] {
            assert_eq!(frames.count(&[*byte], 100), Scan::default());
            assert!(!frames.is_between());
        }
        let scan = frames.count(&bytes[16..], 100);
        assert_eq!(scan, Scan { whole: 1, last: Some(7u64.to_le_bytes()), oversized: false });
        assert!(frames.is_between());
    }

    #[test]
    fn a_message_of_the_maximum_size_is_accepted() {
        for (limit, oversized) in [(5, false), (4, true)] {
            let bytes = [message(1, 0), message(2, 5)].concat();
            let whole = Frames::new(Order::Little).count(&bytes, limit);
            assert_eq!((whole.oversized, whole.whole), (oversized, 2 - u64::from(oversized)));
            let mut frames = Frames::new(Order::Little);
            let scans: Vec<Scan> = bytes.chunks(1).map(|b| frames.count(b, limit)).collect();
            assert_eq!(scans.iter().any(|s| s.oversized), oversized);
        }
    }

    #[test]
    fn runs_of_equal_sizes_end_at_a_change() {
        let sizes = [5, 5, 5, 5, 5, 5, 5, 5, 5, 0, 0, 0, 0, 3, 5, 5, 5, 5];
        let bytes: Vec<u8> =
            sizes.iter().enumerate().flat_map(|(n, size)| message(n as u64, *size)).collect();
        let mut ids = Vec::new();
        let scan = Frames::new(Order::Little).each(&bytes, 100, |id| ids.push(id));
        let expected: Vec<Id> = (0..sizes.len() as u64).map(u64::to_le_bytes).collect();
        assert_eq!(ids, expected);
        assert_eq!(scan.whole, sizes.len() as u64);
        assert_eq!(scan.last, expected.last().copied());
        assert_eq!(Frames::new(Order::Little).count(&bytes, 100), scan);
    }

    #[test]
    fn the_largest_size_does_not_overflow() {
        let mut header = [0; HEADER_BYTES];
        header[8..].fill(0xff);
        let mut frames = Frames::new(Order::Big);
        assert_eq!(frames.count(&header, u32::MAX), Scan::default());
        assert_eq!(frames.missing, u32::MAX);
    }
}
