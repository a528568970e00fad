//! Sorted sets.

mod big;
mod cut;
mod score;
pub mod small;
mod view;

pub use big::{Ascending, Descending, Scored, Zset};
pub use view::{LexBound, LexRange, ScoreRange, View};
