//! What all workers know about saves: the one under way, the last ones, and what is asked for.

use crate::persist::backup::status::{Backup, Backups};
use base::MonoNs;
use base::sync::atomic::Ordering::Relaxed;
use base::sync::atomic::{AtomicBool, AtomicU64};
use base::sync::{Mutex, MutexGuard};

/// How long after a failed background save the next one is tried, as in Redis.
pub(crate) const RETRY_NS: u64 = 5_000_000_000;

/// Why data is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// SAVE: its client waits for the file.
    Command,
    /// BGSAVE, or a save point.
    Background,
    /// FLUSHALL where there are save points: the file must not bring back what is gone.
    Flush,
    /// `backup-schedule`: the snapshot goes into a backup, and the file of the server stays.
    Backup,
    /// The server ends when the file is written. Writes wait.
    Shutdown {
        /// It ends although the save fails.
        force: bool,
    },
}

/// A save under way, or about to begin.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The worker that writes the file.
    pub worker: usize,
    /// Why.
    pub why: Why,
    /// Since when, by the clock of the workers and by the calendar.
    pub since: (MonoNs, i64),
}

impl Run {
    /// INFO counts it as a background save.
    pub fn is_background(&self) -> bool {
        matches!(self.why, Why::Background | Why::Flush)
    }
}

/// The saves of a server.
#[derive(Default)]
pub struct Saves {
    state: Mutex<State>,
    /// The last background save has failed.
    has_failed: AtomicBool,
    /// A save is under way after which the server ends.
    is_final: AtomicBool,
    /// How often a worker had to hold writes because captured values took too much.
    pub(crate) held: AtomicU64,
    /// How far the save under way is.
    pub(crate) progress: Progress,
}

/// How far a save is. Written by the thread that walks.
#[derive(Default)]
pub(crate) struct Progress {
    /// Keys in the file so far.
    pub keys: AtomicU64,
    /// Keys at the moment which the file shows.
    pub keys_total: AtomicU64,
    /// Bytes of the file so far.
    pub bytes: AtomicU64,
    /// The most that captured values took, bytes.
    pub captured_peak: AtomicU64,
}

impl Progress {
    fn clear(&self) {
        for figure in [&self.keys, &self.keys_total, &self.bytes, &self.captured_peak] {
            figure.store(0, Relaxed);
        }
    }
}

/// What changes seldom.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The save under way.
    pub run: Option<Run>,
    /// BGSAVE inside a transaction: a save is to begin soon.
    pub is_scheduled: bool,
    /// The last successful save, or the start: by the calendar, in seconds.
    pub last_save_s: i64,
    /// The same by the clock of the workers.
    pub last_save: MonoNs,
    /// When the last background save began.
    pub last_try: Option<MonoNs>,
    /// How long the last background save took, seconds.
    pub last_time_s: Option<i64>,
    /// SAVE and background saves so far.
    pub saves: u64,
    /// Changes of the keyspace up to the last successful save.
    pub saved_changes: u64,
    /// The most that captured values took in the last save, bytes.
    pub last_captured: u64,
    /// Backups by schedule.
    pub backups: Backups,
}

impl Saves {
    /// Nothing was saved yet; the server starts now.
    pub fn new(now: MonoNs, unix_s: i64) -> Self {
        let state = State { last_save: now, last_save_s: unix_s, ..State::default() };
        Self { state: Mutex::new(state), ..Self::default() }
    }

    /// What changes seldom.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the state of saves is held")
    }

    /// Whether the last background save has failed.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Relaxed)
    }

    /// Whether a save is under way, or wanted, after which the server ends: writes wait.
    pub fn is_final(&self) -> bool {
        self.is_final.load(Relaxed)
    }

    /// Sets [`Saves::is_final`]; true if it was not so.
    pub(crate) fn set_final(&self, is_final: bool) -> bool {
        self.is_final.swap(is_final, Relaxed) != is_final
    }

    /// Claims the only run for a worker. `None` if one is under way.
    pub(crate) fn claim(&self, run: Run) -> Option<()> {
        let mut state = self.state();
        if state.run.is_some() {
            return None;
        }
        state.run = Some(run);
        if run.is_background() {
            state.last_try = Some(run.since.0);
            state.is_scheduled = false;
        }
        state.saves += u64::from(run.why == Why::Command || run.why == Why::Background);
        self.progress.clear();
        Some(())
    }

    /// The run is over. `saved_changes`: those that the new file holds, if there is one.
    pub(crate) fn end(&self, now: (MonoNs, i64), saved_changes: Option<u64>) {
        let mut state = self.state();
        let run = state.run.take().expect("it was under way");
        if run.is_background() {
            state.last_time_s = Some((now.1 - run.since.1).max(0));
        }
        state.last_captured = self.progress.captured_peak.load(Relaxed);
        match saved_changes {
            Some(changes) => {
                (state.last_save, state.last_save_s, state.saved_changes) = (now.0, now.1, changes);
                self.has_failed.store(false, Relaxed);
            }
            None => self.has_failed.store(run.is_background() || self.has_failed(), Relaxed),
        }
    }

    /// The run was a backup, and is over; `None`: without success. What it says about the file of
    /// the server stays as it is.
    pub(crate) fn end_backup(&self, made: Option<Backup>) {
        let mut state = self.state();
        state.run = None;
        state.last_captured = self.progress.captured_peak.load(Relaxed);
        state.backups.end(made);
    }

    /// The run was given up before it could fail, as by FLUSHALL: it changes no status.
    pub(crate) fn end_given_up(&self) {
        self.state().run = None;
    }

    /// The data was loaded from a file: none of these changes is to be saved.
    pub fn forget_changes(&self, changes: u64) {
        self.state().saved_changes = changes;
    }
}

impl State {
    /// When a save point with so many changes is due: the earliest of those which have enough of
    /// them, with its seconds. Not before [`RETRY_NS`] after a failure.
    pub(crate) fn next_point(
        &self,
        points: &[(u64, u64)],
        changes: u64,
        has_failed: bool,
    ) -> Option<(MonoNs, u64)> {
        let changes = changes.saturating_sub(self.saved_changes);
        let has_enough = |(_, count): &&(u64, u64)| changes >= (*count).max(1);
        let (seconds, _) = points.iter().filter(has_enough).min()?;
        let due = self.last_save.plus(seconds.saturating_mul(1_000_000_000));
        Some((self.not_too_soon(due, has_failed), *seconds))
    }

    /// When a save that is wanted by `due` may begin.
    pub(crate) fn not_too_soon(&self, due: MonoNs, has_failed: bool) -> MonoNs {
        let tried = self.last_try.filter(|_| has_failed);
        tried.map_or(due, |tried| due.max(tried.plus(RETRY_NS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTS: [(u64, u64); 3] = [(3600, 1), (300, 100), (60, 10_000)];

    fn at(seconds: u64) -> MonoNs {
        MonoNs(seconds * 1_000_000_000)
    }

    fn run(why: Why, seconds: u64) -> Run {
        Run { worker: 0, why, since: (at(seconds), seconds as i64) }
    }

    #[test]
    fn a_save_point_is_due_when_its_time_is_over_and_it_has_enough_changes() {
        let mut state = State { last_save: at(100), saved_changes: 50, ..State::default() };
        let due = |state: &State, changes| state.next_point(&POINTS, changes, false).map(|p| p.0);
        assert_eq!(due(&state, 50), None);
        assert_eq!(due(&state, 51), Some(at(3700)));
        assert_eq!(due(&state, 149), Some(at(3700)));
        assert_eq!(due(&state, 150), Some(at(400)));
        assert_eq!(due(&state, 10_050), Some(at(160)));
        assert_eq!(state.next_point(&[], 10_050, false), None);
        state.last_try = Some(at(158));
        assert_eq!(due(&state, 10_050), Some(at(160)), "the last try did not fail");
        assert_eq!(state.next_point(&POINTS, 10_050, true), Some((at(163), 60)));
        assert_eq!(state.next_point(&[(1, 0)], 50, true), None, "nothing has changed");
    }

    #[test]
    fn there_is_one_run_at_a_time() {
        let saves = Saves::new(at(1), 1);
        saves.claim(run(Why::Background, 10)).expect("none is under way");
        assert_eq!(saves.claim(run(Why::Command, 11)), None);
        saves.end((at(12), 12), Some(7));
        let state = saves.state().clone();
        assert_eq!((state.last_save_s, state.last_time_s, state.saved_changes), (12, Some(2), 7));
        assert_eq!((state.saves, state.last_try), (1, Some(at(10))));
        saves.claim(run(Why::Command, 20)).expect("none is under way");
        assert_eq!(saves.state().saves, 2);
    }

    /// As in Redis: a failed SAVE says nothing about background saves, a successful one does.
    #[test]
    fn failures_of_background_saves_are_remembered() {
        let saves = Saves::new(at(1), 1);
        let try_one = |why, works: bool| {
            saves.claim(run(why, 10)).expect("none is under way");
            saves.end((at(12), 12), works.then_some(0));
            saves.has_failed()
        };
        assert!(!try_one(Why::Command, false));
        assert!(try_one(Why::Background, false));
        assert!(try_one(Why::Command, false));
        assert!(!try_one(Why::Command, true));
        assert!(try_one(Why::Flush, false));
        assert!(!try_one(Why::Background, true));
    }
}
