//! Threads which the server cannot do without.

use crate::log;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a thread which the server cannot do without. A panic that nothing inside has caught ends
/// the process: without a worker, its clients would hang, its share of the keys would not expire,
/// and new connections would still be sent to it.
pub(crate) fn run_or_exit(who: std::fmt::Arguments<'_>, run: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(run)).is_err() {
        log::warning(format_args!("Panic in {who}, outside of any command: the server exits"));
        base::sync::exit(1);
    }
}
