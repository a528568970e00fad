//! Trying again what others with the machine may have spoilt. The unit tests include this file too.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Runs a test that reads the clock: alone in its program, and up to five times. What others do with the machine
/// meanwhile may spoil one try, while what is broken stays broken in each.
pub fn undisturbed(mut test: impl FnMut()) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..4 {
        // A panic of this try has been printed; what it leaves behind is its own.
        if catch_unwind(AssertUnwindSafe(&mut test)).is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    test();
}
