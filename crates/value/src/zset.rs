//! Sorted sets.
//!
//! ```text
//! small   | member | score | member | score | ...   in the order of scores, then of members
//!         score: an integer if it is whole, not minus zero and of a magnitude below 2^52;
//!                otherwise the 8 bytes of the double
//!
//! big     members   member, in the order of hashes -> score, the 8 bytes of the double
//!         order     score, member -> -; one byte for minus zero
//!
//!                   the score is 8 bytes, big-endian, in an order-preserving form:
//!                   positive, zeros   1 | the other 63 bits of the double
//!                   negative          all 64 bits inverted
//! ```
//!
//! Each member of a big one stands in both trees. A change of its score moves it in `order`, and
//! writes its score in place in `members`.

mod big;
mod cut;
mod score;
pub mod small;
mod view;

pub use big::{Ascending, Descending, Scored, Zset};
pub use view::{LexBound, LexRange, ScoreRange, View};
