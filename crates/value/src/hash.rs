//! Hashes.
//!
//! Fields that are due can be *hidden*, all at once and in O(log n): nobody sees them from then on,
//! and they are removed later, a few at a time. Ranks and lengths count what is seen.

mod big;
mod due;
mod hidden;
mod small;

pub use big::Hash;
pub use hidden::Fields;
pub use small::{Found, Put, find, pairs, put};

#[cfg(test)]
mod tests;
