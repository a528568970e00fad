//! Retries tests which other load on the machine may have disturbed. The unit tests include this
//! file, too.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const TRIES: usize = 5;
/// From this many processors used by others, the machine counts as busy.
const BUSY: f64 = 0.5;
/// Clock ticks per second in which Linux counts processor time.
const TICKS_PER_S: f64 = 100.0;

/// Runs a timing test exclusively within its program, up to five times. Other load may disturb
/// single tries, while a defect fails each of them. If each try fails and others used the
/// processors each time, the result is unknown: this is printed, and is no failure unless `make
/// timing` requests it.
pub fn undisturbed(mut test: impl FnMut()) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut calmest, mut panic) = (f64::INFINITY, None);
    for _ in 0..TRIES {
        let (began, before) = (Instant::now(), others_s());
        // The panic of this try has been printed. Each try sets up its own state.
        let Err(why) = catch_unwind(AssertUnwindSafe(&mut test)) else { return };
        panic = Some(why);
        std::thread::sleep(Duration::from_millis(500));
        // Including the pause, because a short try is no measure.
        calmest = calmest.min((others_s() - before) / began.elapsed().as_secs_f64());
    }
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    let disturbance =
        format!("{name}: others used {calmest:.1} processors or more in {TRIES} tries");
    let is_busy = calmest >= BUSY && std::env::var_os("SHEAFDB_TIMING").is_none();
    let verdict = if is_busy { "not judged" } else { "failed" };
    // Shown even if the output of passing tests is captured.
    let _ = writeln!(std::io::stderr(), "{verdict}: {disturbance}");
    if !is_busy {
        resume_unwind(panic.expect("each try failed"));
    }
}

/// Processor seconds used by everything except this process and its finished children.
fn others_s() -> f64 {
    let number = |word: &str| word.parse::<f64>().unwrap_or(0.0);
    let all = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let all: Vec<f64> =
        all.lines().next().unwrap_or_default().split_whitespace().skip(1).map(number).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal
    let busy: f64 = [0, 1, 2, 5, 6, 7].iter().filter_map(|at| all.get(*at)).sum();
    let own = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let own = own.rsplit_once(')').map_or("", |(_, rest)| rest);
    // utime, stime, cutime, cstime
    let own: f64 = own.split_whitespace().skip(11).take(4).map(number).sum();
    (busy - own) / TICKS_PER_S
}
