//! Union, intersection and difference, and what becomes of scores.

use keyspace::Event;

use super::inputs::Input;
use crate::events;

/// What is made of several inputs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Union,
    Inter,
    Diff,
}

impl Operation {
    /// What it is called that its result was stored.
    pub fn stored(self) -> Event {
        match self {
            Self::Union => events::ZUNIONSTORE,
            Self::Inter => events::ZINTERSTORE,
            Self::Diff => events::ZDIFFSTORE,
        }
    }
}

/// What becomes of a member's scores.
#[derive(Clone, Copy)]
pub(super) enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    /// One score of two.
    pub fn of(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Sum => number(a + b),
            Self::Min if b < a => b,
            Self::Max if b > a => b,
            Self::Min | Self::Max => a,
        }
    }
}

/// A sum or a product of scores: infinities that cancel out are 0.
pub(super) fn number(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

/// The sum of a member's scores, if all others have it too.
pub(super) fn in_all(
    others: &[(Input, f64)],
    member: &[u8],
    score: f64,
    aggregate: Aggregate,
) -> Option<f64> {
    let mut sum = Some(score);
    for (other, weight) in others {
        let so_far = sum?;
        sum = other.score(member).map(|score| aggregate.of(so_far, score * weight));
    }
    sum
}
