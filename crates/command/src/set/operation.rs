//! Intersection, union, difference.

/// What is made of several sets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Intersection,
    Union,
    /// The first without the others.
    Difference,
}
