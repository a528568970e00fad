//! What a completion is of, in the 64 bits that the kernel hands back.
//!
//! `kind 8 | generation 24 | place 32`, from the highest bit. Places of streams and listeners are
//! reused; only the generation tells a cancellation that comes late from its successor's operation.

/// The operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Something that nobody waits for: a cancellation that found nothing.
    Ignored,
    /// Multishot receive of a stream.
    Receive,
    /// Poll of a stream.
    Poll,
    /// Multishot accept of a listener.
    Accept,
    /// A send of the current batch that did not leave whole; the place is its number.
    Send,
    /// Multishot poll of the wake-up descriptor.
    Wake,
    /// Multishot poll of a signal's descriptor.
    Signal,
}

/// Generations count up to this and start again.
const GENERATIONS: u32 = 1 << 24;

/// Names one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Which operation.
    pub kind: Kind,
    /// Of which user of the place.
    pub generation: u32,
    /// Of which stream, listener, signal or send.
    pub place: u32,
}

impl Tag {
    /// A completion that means nothing.
    pub const IGNORED: u64 = 0;

    /// A tag; of `generation` the low 24 bits count.
    pub const fn new(kind: Kind, generation: u32, place: u32) -> Self {
        Self { kind, generation: generation % GENERATIONS, place }
    }

    /// As the kernel keeps it.
    pub const fn bits(self) -> u64 {
        (self.kind as u64) << 56 | (self.generation as u64) << 32 | self.place as u64
    }

    /// What came back.
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        let kind = match bits >> 56 {
            1 => Kind::Receive,
            2 => Kind::Poll,
            3 => Kind::Accept,
            4 => Kind::Send,
            5 => Kind::Wake,
            6 => Kind::Signal,
            _ => Kind::Ignored,
        };
        Self { kind, generation: (bits >> 32) as u32 % GENERATIONS, place: bits as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_come_back_as_they_went() {
        use Kind::{Accept, Poll, Receive, Send, Signal, Wake};
        for kind in [Receive, Poll, Accept, Send, Wake, Signal] {
            let tag = Tag::new(kind, GENERATIONS + 7, u32::MAX);
            assert_eq!(tag.generation, 7);
            assert_eq!(Tag::from_bits(tag.bits()), tag);
        }
        assert_eq!(Tag::from_bits(Tag::IGNORED).kind, Kind::Ignored);
    }
}
