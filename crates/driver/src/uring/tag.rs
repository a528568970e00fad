//! Tags: the 64 bits of an operation that the kernel returns with its completion.
//!
//! ```text
//!  63     56 55              32 31                      0
//! +---------+------------------+-------------------------+
//! | kind    | generation       | place                   |
//! +---------+------------------+-------------------------+
//! ```
//!
//! The places of streams and listeners are reused. The generation distinguishes a late completion
//! from those of the place's next user.

/// The kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A completion that needs no handling: a cancellation that found nothing.
    Ignored,
    /// Multishot receive of a stream.
    Receive,
    /// Poll of a stream.
    Poll,
    /// Multishot accept of a listener.
    Accept,
    /// A send of the current batch that was not sent completely; the place is its number.
    Send,
    /// Multishot poll of the wake-up descriptor.
    Wake,
    /// Multishot poll of a signal's descriptor.
    Signal,
    /// A call on files that returns no descriptor; the place is its number.
    File,
    /// The opening of a file; the place is its number.
    Open,
}

/// Generations count up to this and start again.
const GENERATIONS: u32 = 1 << 24;

/// Names one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The kind of operation.
    pub kind: Kind,
    /// The user of the place.
    pub generation: u32,
    /// The stream, listener, signal or send.
    pub place: u32,
}

impl Tag {
    /// The tag of operations whose completion needs no handling.
    pub const IGNORED: u64 = 0;

    /// A tag; of `generation` the low 24 bits count.
    pub const fn new(kind: Kind, generation: u32, place: u32) -> Self {
        Self { kind, generation: generation % GENERATIONS, place }
    }

    /// The tag as the kernel stores it.
    pub const fn bits(self) -> u64 {
        (self.kind as u64) << 56 | (self.generation as u64) << 32 | self.place as u64
    }

    /// The tag of a completion.
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        let kind = match bits >> 56 {
            1 => Kind::Receive,
            2 => Kind::Poll,
            3 => Kind::Accept,
            4 => Kind::Send,
            5 => Kind::Wake,
            6 => Kind::Signal,
            7 => Kind::File,
            8 => Kind::Open,
            _ => Kind::Ignored,
        };
        Self { kind, generation: (bits >> 32) as u32 % GENERATIONS, place: bits as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_round_trip_through_their_bits() {
        use Kind::{Accept, File, Open, Poll, Receive, Send, Signal, Wake};
        for kind in [Receive, Poll, Accept, Send, Wake, Signal, File, Open] {
            let tag = Tag::new(kind, GENERATIONS + 7, u32::MAX);
            assert_eq!(tag.generation, 7);
            assert_eq!(Tag::from_bits(tag.bits()), tag);
        }
        assert_eq!(Tag::from_bits(Tag::IGNORED).kind, Kind::Ignored);
    }
}
