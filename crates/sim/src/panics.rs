//! The panics of a run. The hook of a process is global, so what it collects is, too.

use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// What a panic that was asked for says.
const ASKED_FOR: &str = "a panic was asked for";

/// Panics which nobody asked for.
static OTHERS: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Panics which DEBUG PANIC-IN-COMMAND asked for.
static HAPPENED: AtomicU64 = AtomicU64::new(0);

/// Collects panics instead of printing them.
pub fn collect() {
    std::panic::set_hook(Box::new(|info: &PanicHookInfo<'_>| {
        let text = info.to_string();
        if text.contains(ASKED_FOR) {
            HAPPENED.fetch_add(1, Relaxed);
        } else {
            OTHERS.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        }
    }));
}

/// The first panic which nobody asked for.
pub fn unexpected() -> Option<String> {
    OTHERS.lock().unwrap_or_else(PoisonError::into_inner).first().cloned()
}

/// How many panics which somebody asked for have happened.
pub fn asked_for() -> u64 {
    HAPPENED.load(Relaxed)
}
