//! Rewrites of the append-only file, as INFO tells of them.

use crate::wire::{Value, Wire};

/// Whether a rewrite is under way or scheduled. Both stand in one INFO: a rewrite which begins
/// between two looks is neither in the first nor in the second.
///
/// # Panics
/// If INFO does not tell.
#[track_caller]
pub fn is_rewriting(wire: &mut Wire) -> bool {
    let info = wire.command(&["INFO", "persistence"]).expect("an answer");
    let (Value::Bulk(text) | Value::Verbatim(text)) = info else { panic!("{info:?}") };
    let text = String::from_utf8_lossy(&text);
    let is_over = |field: &str| match text.lines().find_map(|line| line.strip_prefix(field)) {
        Some(flag) => flag == ":0",
        None => panic!("{field} in {text}"),
    };
    !(is_over("aof_rewrite_in_progress") && is_over("aof_rewrite_scheduled"))
}
