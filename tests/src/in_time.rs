//! Trials against a clock. What must happen while a server sleeps or waits can be too late on a
//! machine that does other things as well; then the trial is repeated with twice the time.

/// How often the time is doubled: up to a factor of 64.
const DOUBLINGS: u32 = 6;

/// Runs `trial`, which takes the factor for all of its times and returns whether everything
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
    panic!("it does not come in time, however long that is");
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
    #[should_panic(expected = "however long")]
    fn what_never_comes_in_time_is_wrong() {
        in_time(|_| false);
    }
}
