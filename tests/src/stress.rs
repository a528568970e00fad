//! What tests with many threads share: a seed that repeats a run, and an end that comes also after
//! a panic.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The seed of this run: `STRESS_SEED`, or a new one, which is printed.
pub fn seed() -> u64 {
    let given = std::env::var("STRESS_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| u64::from(std::process::id()));
    println!("STRESS_SEED={seed}");
    seed
}

/// Tells other threads of a scope to end when it is dropped, so that the scope ends also when its
/// owner panics.
pub struct SetAtEnd<'a>(pub &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Counts down when it is dropped: one thread less runs, also when it has panicked.
pub struct CountAtEnd<'a>(pub &'a AtomicUsize);

impl Drop for CountAtEnd<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
