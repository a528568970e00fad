//! The delays for each key by which a save or a load is slowed down.

use base::sync::thread;
use std::time::Duration;

/// How long a thread sleeps at a time.
const NAP: Duration = Duration::from_millis(1);

/// Sleeps for so many keys, while `goes_on` says so. `delay_us`, microseconds for each key, is read
/// again after each nap: what was delayed can be let go on.
pub(crate) fn sleep_for_keys(keys: u64, delay_us: impl Fn() -> u64, goes_on: impl Fn() -> bool) {
    let mut slept = Duration::ZERO;
    while goes_on() {
        let all = Duration::from_micros(delay_us().saturating_mul(keys));
        let nap = all.saturating_sub(slept).min(NAP);
        if nap.is_zero() {
            break;
        }
        thread::sleep(nap);
        slept += nap;
    }
}
