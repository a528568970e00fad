//! Shared code of multi-threaded tests: a seed which repeats a run, and guards which end threads
//! even after a panic.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The seed of this run: `STRESS_SEED`, or a new one, which is printed.
pub fn seed() -> u64 {
    let given = std::env::var("STRESS_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| u64::from(std::process::id()));
    println!("STRESS_SEED={seed}");
    seed
}

/// Sets the flag when dropped. The other threads of a scope end when they see it, so the scope ends
/// even if its owner panics.
pub struct SetAtEnd<'a>(pub &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Decrements the count of running threads when dropped, even after a panic.
pub struct CountAtEnd<'a>(pub &'a AtomicUsize);

impl Drop for CountAtEnd<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
