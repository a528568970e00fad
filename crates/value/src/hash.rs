//! Hashes.
//!
//! ```text
//! small   | field | value | field | value | ...     in the order in which they came
//!
//! big     fields      field -> value
//!         due         only if a field expires:
//!             fields  field -> time, i64 in milliseconds, big-endian
//!             times   time, field -> -          | due first, hidden | ... | due last |
//!                                               |<---- hidden ----->|
//! ```
//!
//! Fields that are due can be *hidden*, all at once and in O(log n): no command sees them, and they
//! are removed later, a few at a time. Ranks and lengths count the visible fields.

mod big;
mod due;
mod hidden;
mod small;

pub use big::Hash;
pub use hidden::Fields;
pub use small::{Found, Put, find, pairs, put};

#[cfg(test)]
mod tests;
