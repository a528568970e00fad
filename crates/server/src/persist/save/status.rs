//! What all workers know about saves: the one under way, the last ones, and what is asked for.

use crate::persist::backup::status::{Backup, Backups};
use base::MonoNs;
use base::sync::atomic::Ordering::Relaxed;
use base::sync::atomic::{AtomicBool, AtomicU64};
use base::sync::{Arc, Mutex, MutexGuard};
use driver::ConnId;

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
    /// DEBUG RELOAD: the file is loaded when it is written. Writes wait.
    Reload {
        /// What is there is removed before.
        flushes: bool,
    },
    /// `backup-schedule`: the snapshot goes into a backup, and the file of the server stays.
    Backup,
    /// The append-only file is rewritten: the snapshot is its new base, and the file of the server
    /// stays.
    Rewrite,
    /// The server ends when the file is written. Writes wait.
    Shutdown,
}

impl Why {
    /// Of several saves that are wanted, the one with the lowest rank is next.
    fn rank(self) -> u8 {
        match self {
            Why::Shutdown => 0,
            Why::Flush => 1,
            Why::Command | Why::Background | Why::Reload { .. } | Why::Rewrite => 2,
            Why::Backup => 3,
        }
    }
}

/// A save that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The worker that writes the file.
    pub worker: usize,
    /// Why.
    pub why: Why,
    /// The session of SAVE or BGSAVE, while it waits for an answer.
    pub asker: Option<ConnId>,
}

/// The save under way, or about to take its moment.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// What was wanted.
    pub wanted: Wanted,
    /// Since when, by the clock of the workers and by the calendar.
    pub since: (MonoNs, i64),
    /// It has taken the moment which its file shows.
    pub has_moment: bool,
    /// It is given up, for this reason. Its worker ends it.
    pub given_up: Option<&'static str>,
}

impl Run {
    /// INFO counts it as a background save.
    pub fn is_background(&self) -> bool {
        matches!(self.wanted.why, Why::Background | Why::Flush)
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
    /// The save before the end did not take place, because of a second signal.
    pub(crate) was_cut_short: AtomicBool,
    /// A save is under way, or wanted, behind which its file is loaded; or the append-only file is
    /// about to be.
    is_reloading: AtomicBool,
    /// How often a worker had to hold writes because captured values took too much.
    pub(crate) held: AtomicU64,
    /// Bytes of buffers between the thread that walks and the worker that writes.
    pub(crate) buffer_bytes: Arc<AtomicU64>,
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
    /// The saves that wait for its end: at most one SAVE or BGSAVE, one of FLUSHALL, one of
    /// SHUTDOWN.
    queue: Vec<Wanted>,
    /// The server ends even if the save before its end fails.
    is_end_forced: bool,
    /// The server ends: SHUTDOWN ABORT comes too late.
    is_end_certain: bool,
    /// The last successful save, or the start: by the calendar, in seconds.
    pub last_save_s: i64,
    /// The same by the clock of the workers.
    pub last_save: MonoNs,
    /// When the last background save began.
    pub last_try: Option<MonoNs>,
    /// How long the last background save took, seconds.
    pub last_time_s: Option<i64>,
    /// SAVE and background saves so far, with those that are wanted.
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

    /// Sets whether writes wait for a save whose file is loaded behind it.
    pub(crate) fn set_reloading(&self, is_reloading: bool) {
        self.is_reloading.store(is_reloading, Relaxed);
    }

    /// Whether DEBUG RELOAD or DEBUG LOADAOF has begun and removed nothing yet.
    pub(crate) fn is_reloading(&self) -> bool {
        self.is_reloading.load(Relaxed)
    }

    /// Whether writes wait, because a change behind the moment of the save would be lost.
    pub(crate) fn is_holding_writes(&self) -> bool {
        self.is_final() || self.is_reloading()
    }

    /// Adds a save to those that are wanted; [`Saves::claim_next`] follows. That of FLUSHALL is
    /// never refused. Others are, and false is returned, if another one is wanted or under way, or
    /// if the server ends. What a client or a save point wants waits behind the save of FLUSHALL
    /// and a backup, which nobody has asked for, and behind one that is given up. DEBUG RELOAD does
    /// not wait for a backup, because writes would wait as long.
    pub(crate) fn want(&self, wanted: Wanted) -> bool {
        let mut state = self.state();
        // BGSAVE inside EXEC: as in Redis, one save answers any number of them.
        let is_same = |other: &Wanted| wanted.asker.is_none() && other.why == wanted.why;
        let waits = state.run.iter().filter(|run| !run.has_moment).map(|run| &run.wanted);
        if wanted.why == Why::Background && waits.chain(&state.queue).any(is_same) {
            return true;
        }
        let is_refused = match wanted.why {
            Why::Flush => false,
            Why::Shutdown => unreachable!("begin_final has wanted it"),
            Why::Backup => state.is_busy() || self.is_final(),
            Why::Rewrite => {
                let run = state.run.iter().map(|run| &run.wanted);
                run.chain(&state.queue).any(|other| other.why == Why::Rewrite) || self.is_final()
            }
            Why::Command | Why::Background | Why::Reload { .. } => {
                let is_ending = |run: &Run| run.given_up.is_some() && run.wanted.asker.is_none();
                let run = state.run.iter().filter(|run| !is_ending(run)).map(|run| &run.wanted);
                let is_reload = matches!(wanted.why, Why::Reload { .. });
                let is_awaited = |other: &Wanted| match other.why {
                    Why::Flush => true,
                    Why::Backup | Why::Rewrite => !is_reload,
                    _ => false,
                };
                run.chain(&state.queue).any(|other| !is_awaited(other)) || self.is_final()
            }
        };
        if is_refused {
            return false;
        }
        if !state.queue.iter().any(|other| other.why == wanted.why) {
            state.queue.push(wanted);
            state.saves += u64::from(matches!(wanted.why, Why::Command | Why::Background));
        }
        true
    }

    /// Claims the only run for what is wanted most, unless one is under way.
    pub(crate) fn claim_next(&self, since: (MonoNs, i64)) -> Option<Run> {
        let mut state = self.state();
        if state.run.is_some() {
            return None;
        }
        let next = (0..state.queue.len()).min_by_key(|at| state.queue[*at].why.rank())?;
        let wanted = state.queue.remove(next);
        let run = Run { wanted, since, has_moment: false, given_up: None };
        state.run = Some(run);
        if run.is_background() {
            state.last_try = Some(since.0);
        }
        self.progress.clear();
        Some(run)
    }

    /// The run takes its moment now; the caller holds World.
    pub(crate) fn note_moment(&self) {
        self.state().run.as_mut().expect("it is under way").has_moment = true;
    }

    /// Marks the run as given up, if it is one of these. Returns its worker, which is to be told.
    pub(crate) fn give_up(&self, why: &'static str, of: impl Fn(&Run) -> bool) -> Option<usize> {
        let mut state = self.state();
        let run = state.run.as_mut().filter(|run| of(run))?;
        run.given_up = Some(why);
        Some(run.wanted.worker)
    }

    /// Why the run of this worker is given up, if it is.
    pub(crate) fn given_up(&self, worker: usize) -> Option<&'static str> {
        let run = self.state().run?;
        run.given_up.filter(|_| run.wanted.worker == worker)
    }

    /// The server is to end behind a save, which this worker writes. True if that is new: then the
    /// save is wanted, and [`Saves::claim_next`] follows. `force` counts in any case.
    pub(crate) fn begin_final(&self, worker: usize, force: bool) -> bool {
        let mut state = self.state();
        let is_new = !self.is_final.swap(true, Relaxed);
        state.is_end_forced = force || (!is_new && state.is_end_forced);
        if is_new {
            state.queue.push(Wanted { worker, why: Why::Shutdown, asker: None });
        }
        is_new
    }

    /// The server does not end. True if it was to, and can stay. The save before the end is not
    /// wanted any more; if it is under way, it is given up, and its worker is to be told. That is
    /// one step: behind it another SHUTDOWN may want a save of its own.
    pub(crate) fn end_final(&self) -> bool {
        let mut state = self.state();
        if state.is_end_certain {
            return false;
        }
        state.queue.retain(|wanted| wanted.why != Why::Shutdown);
        if let Some(run) = state.run.as_mut().filter(|run| run.wanted.why == Why::Shutdown) {
            run.given_up = Some("SHUTDOWN ABORT");
        }
        self.is_final.swap(false, Relaxed)
    }

    /// A save before the end of the server is over. Returns whether the server ends, which
    /// [`Saves::end_final`] cannot change any more. `None`: that has been called since the save
    /// began. If the server is to end all the same, it ends behind a save of a later moment.
    pub(crate) fn conclude_final(&self, is_saved: bool) -> Option<bool> {
        let mut state = self.state();
        let mut wanted = state.run.iter().map(|run| &run.wanted).chain(&state.queue);
        if !self.is_final() || wanted.any(|wanted| wanted.why == Why::Shutdown) {
            return None;
        }
        state.is_end_certain = is_saved || state.is_end_forced;
        Some(state.is_end_certain)
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

    /// The run was a rewrite of the append-only file, and is over: nothing of what is told about
    /// saves changes.
    pub(crate) fn end_rewrite(&self) {
        let mut state = self.state();
        state.run = None;
        state.last_captured = self.progress.captured_peak.load(Relaxed);
    }

    /// The run was given up, which changes no status. If a client waits for it, it is wanted again:
    /// so its file comes behind what it was given up for.
    pub(crate) fn end_given_up(&self) {
        let mut state = self.state();
        let wanted = state.run.take().map(|run| run.wanted).filter(|w| w.asker.is_some());
        state.queue.extend(wanted);
    }

    /// The client of the run has its answer.
    pub(crate) fn forget_asker(&self) {
        self.state().run.as_mut().expect("it is under way").wanted.asker = None;
    }

    /// The data was loaded from a file: none of these changes is to be saved.
    pub fn forget_changes(&self, changes: u64) {
        self.state().saved_changes = changes;
    }
}

impl State {
    /// Whether a save or a backup is under way or wanted.
    pub(crate) fn is_busy(&self) -> bool {
        self.run.is_some() || !self.queue.is_empty()
    }

    /// Whether a save is under way or wanted. (A backup is none.)
    pub fn is_saving(&self) -> bool {
        let mut all = self.run.iter().map(|run| &run.wanted).chain(&self.queue);
        all.any(|wanted| !matches!(wanted.why, Why::Backup | Why::Rewrite))
    }

    /// Whether the run is a backup.
    pub(crate) fn is_backing_up(&self) -> bool {
        self.run.is_some_and(|run| matches!(run.wanted.why, Why::Backup | Why::Rewrite))
    }

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

    fn wanted(worker: usize, why: Why) -> Wanted {
        Wanted { worker, why, asker: None }
    }

    /// Wants a save and claims it.
    fn claim(saves: &Saves, why: Why, seconds: u64) -> Option<Why> {
        saves.want(wanted(0, why)).then(|| next(saves, seconds)).flatten()
    }

    fn next(saves: &Saves, seconds: u64) -> Option<Why> {
        saves.claim_next((at(seconds), seconds as i64)).map(|run| run.wanted.why)
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
        assert_eq!(claim(&saves, Why::Background, 10), Some(Why::Background));
        assert_eq!(claim(&saves, Why::Command, 11), None);
        saves.end((at(12), 12), Some(7));
        let state = saves.state().clone();
        assert_eq!((state.last_save_s, state.last_time_s, state.saved_changes), (12, Some(2), 7));
        assert_eq!((state.saves, state.last_try), (1, Some(at(10))));
        assert_eq!(claim(&saves, Why::Command, 20), Some(Why::Command));
        assert_eq!(saves.state().saves, 2);
    }

    #[test]
    fn saves_wait_in_the_order_of_their_rank() {
        let saves = Saves::new(at(1), 1);
        assert_eq!(claim(&saves, Why::Flush, 2), Some(Why::Flush));
        assert!(saves.want(wanted(1, Why::Background)), "it waits");
        assert!(!saves.want(wanted(2, Why::Command)), "one of them is enough");
        assert!(saves.want(wanted(2, Why::Flush)) && saves.want(wanted(3, Why::Flush)));
        assert!(saves.begin_final(2, true) && !saves.begin_final(3, false));
        assert!(saves.state().is_end_forced, "it stays forced");
        assert_eq!(next(&saves, 3), None, "one is under way");
        let mut order = Vec::new();
        while saves.state().run.is_some() {
            saves.end((at(4), 4), Some(0));
            order.extend(next(&saves, 5));
        }
        assert_eq!(order, [Why::Shutdown, Why::Flush, Why::Background]);
        assert!(!saves.want(wanted(1, Why::Background)), "the server ends");
        assert!(saves.end_final() && !saves.end_final());
        assert!(saves.want(wanted(1, Why::Background)));
    }

    /// SHUTDOWN ABORT is too late for a save before the end which cannot be stopped any more. If
    /// another SHUTDOWN comes, the server does not end behind that file: it may lack what came
    /// between.
    #[test]
    fn the_server_ends_behind_the_last_save_that_is_wanted_for_it() {
        let saves = Saves::new(at(1), 1);
        let begin = |force| saves.begin_final(0, force) && next(&saves, 2) == Some(Why::Shutdown);
        let end_run = || saves.end((at(3), 3), Some(0));
        // It stays, or is to end behind another save, which waits or is under way by now.
        assert!(begin(false) && saves.end_final());
        end_run();
        assert_eq!(saves.conclude_final(true), None);
        assert!(begin(true) && saves.end_final() && saves.begin_final(1, false));
        assert_eq!(saves.given_up(0), Some("SHUTDOWN ABORT"), "before the other one was wanted");
        assert_eq!(saves.conclude_final(true), None);
        end_run();
        assert_eq!(next(&saves, 4), Some(Why::Shutdown));
        assert_eq!(saves.given_up(0), None);
        assert_eq!(saves.conclude_final(true), None);
        // A save that has failed; then nothing prevents the end.
        end_run();
        assert_eq!(saves.conclude_final(false), Some(false), "it was forced before, not now");
        assert!(saves.end_final() && begin(false));
        end_run();
        assert_eq!(saves.conclude_final(true), Some(true));
        assert!(!saves.end_final() && saves.is_final());
    }

    /// A backup is no save that a client or a save point has to know of. Writes would wait behind
    /// it for DEBUG RELOAD.
    #[test]
    fn saves_wait_for_a_backup() {
        let saves = Saves::new(at(1), 1);
        for why in [Why::Command, Why::Background] {
            assert_eq!(claim(&saves, Why::Backup, 2), Some(Why::Backup));
            assert!(saves.state().is_backing_up() && !saves.state().is_saving());
            assert!(!saves.want(wanted(0, Why::Reload { flushes: true })));
            assert!(saves.want(wanted(0, why)) && saves.state().is_saving());
            assert!(!saves.want(wanted(0, Why::Backup)), "one follows the schedule, later");
            assert_eq!(saves.want(wanted(1, Why::Background)), why == Why::Background);
            saves.end_backup(None);
            assert_eq!(next(&saves, 3), Some(why));
            saves.end((at(4), 4), Some(0));
        }
        assert_eq!(saves.state().saves, 2);
    }

    /// Nobody who waits for a save is forgotten when it is given up.
    #[test]
    fn a_save_that_is_given_up_is_wanted_again_if_a_client_waits() {
        for (asker, again) in [(None, None), (Some(ConnId::from_token(7)), Some(Why::Command))] {
            let saves = Saves::new(at(1), 1);
            assert!(saves.want(Wanted { asker, ..wanted(3, Why::Command) }));
            assert_eq!(next(&saves, 2), Some(Why::Command));
            assert_eq!(saves.give_up("flushed", |run| run.has_moment), None);
            saves.note_moment();
            assert_eq!(saves.give_up("flushed", |run| run.has_moment), Some(3));
            assert_eq!((saves.given_up(3), saves.given_up(2)), (Some("flushed"), None));
            assert_eq!(saves.want(wanted(1, Why::Background)), again.is_none());
            saves.end_given_up();
            assert_eq!(next(&saves, 3), again.or(Some(Why::Background)));
            assert_eq!(saves.given_up(3), None);
            assert_eq!(saves.state().saves, if again.is_some() { 1 } else { 2 });
        }
    }

    /// As in Redis: a failed SAVE says nothing about background saves, a successful one does.
    #[test]
    fn failures_of_background_saves_are_remembered() {
        let saves = Saves::new(at(1), 1);
        let try_one = |why, works: bool| {
            assert_eq!(claim(&saves, why, 10), Some(why));
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
