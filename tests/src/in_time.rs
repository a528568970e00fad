//! Waits, and tests with deadlines. A wait for what must come is as long as the machine needs. On a
//! busy machine an event may miss its deadline; then the trial is repeated with all times doubled.

use std::time::{Duration, Instant};

/// Longest wait for what must come. A machine that is busy or stands still for seconds needs much
/// less; what never comes ends the test.
pub const LIMIT: Duration = Duration::from_secs(120);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(2);
/// How often the time is doubled: up to a factor of 64.
const DOUBLINGS: u32 = 6;

/// Waits until `holds` returns true.
///
/// # Panics
/// If it does not within [`LIMIT`]; the text is `what`.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        // One look behind the limit: the test itself may have stood still.
        if began.elapsed() > LIMIT {
            assert!(holds(), "{what}: not within {LIMIT:?}");
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Runs `trial`, which multiplies its times by the given factor and returns whether everything
/// happened in time. It asserts by itself what must hold at any speed.
///
/// # Panics
/// If the trial fails even with the longest time.
pub fn in_time(mut trial: impl FnMut(u32) -> bool) {
    for doubled in 0..=DOUBLINGS {
        if trial(1 << doubled) {
            return;
        }
        println!("not in time with {} times the time", 1 << doubled);
    }
    panic!("not in time even with the longest time");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_trial_is_repeated_with_more_time() {
        let mut factors = Vec::new();
        in_time(|factor| {
            factors.push(factor);
            factor == 8
        });
        assert_eq!(factors, [1, 2, 4, 8]);
    }

    #[test]
    #[should_panic(expected = "longest time")]
    fn a_trial_that_is_never_in_time_fails() {
        in_time(|_| false);
    }
}
