//! Every target.

mod frame;
mod glob;
mod numbers;

use crate::Target;

/// All targets.
pub const ALL: &[Target] = &[frame::TARGET, glob::TARGET, numbers::TARGET];
