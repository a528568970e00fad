//! Figures of saves.

use crate::persist::backup::status::Backups;
use crate::shared::Shared;
use base::sync::atomic::Ordering::Relaxed;
use base::{MonoNs, UnixMs};

/// What is known about saves.
#[derive(Clone, Debug)]
pub struct SaveFigures {
    /// Changes which no snapshot file holds.
    pub changes: u64,
    /// A save is under way or wanted. Here and for the time, a backup is none.
    pub is_saving: bool,
    /// For how long a save is under way, seconds.
    pub current_s: Option<u64>,
    /// Keys that the save or the backup has written, and that it has to write.
    pub keys: (u64, u64),
    /// Bytes that it has written.
    pub bytes: u64,
    /// Bytes that are captured for it now, and the most that were.
    pub captured: (u64, u64),
    /// The last successful save, or the start, in Unix seconds.
    pub last_s: i64,
    /// The last background save has failed.
    pub has_failed: bool,
    /// How long the last background save took, seconds.
    pub last_took_s: Option<i64>,
    /// SAVE and background saves so far.
    pub saves: u64,
    /// The most that was captured for the last save, bytes.
    pub last_captured: u64,
    /// A backup by schedule is under way.
    pub backs_up: bool,
    /// When the next backup is due, in Unix seconds.
    pub next_backup_s: Option<i64>,
    /// Backups by schedule.
    pub backups: Backups,
    /// How often a worker held writes because too much was captured.
    pub held: u64,
}

impl SaveFigures {
    /// How many per cent of its keys the save under way has written; 0 without one.
    pub fn percent(&self) -> f64 {
        self.keys.0 as f64 * 100.0 / self.keys.1.max(1) as f64
    }

    /// The current figures.
    pub fn gather(shared: &Shared, now: MonoNs, unix_ms: UnixMs) -> Self {
        let schedule = shared.backup_schedule();
        let mut state = shared.saves.state();
        let next_backup_s = state.backups.next_s(schedule, unix_ms.0 / 1000);
        let (state, progress) = (state.clone(), &shared.saves.progress);
        let is_running = state.run.is_some();
        let saved = state.run.filter(|_| !state.is_backing_up());
        let running = |figure: u64| if is_running { figure } else { 0 };
        let captured = running(shared.keyspace.captured_bytes());
        Self {
            changes: shared.keyspace.changes().saturating_sub(state.saved_changes),
            is_saving: state.is_saving(),
            current_s: saved.map(|run| now.since(run.since.0) / 1_000_000_000),
            keys: (
                running(progress.keys.load(Relaxed)),
                running(progress.keys_total.load(Relaxed)),
            ),
            bytes: running(progress.bytes.load(Relaxed)),
            captured: (captured, running(progress.captured_peak.load(Relaxed).max(captured))),
            last_s: state.last_save_s,
            has_failed: shared.saves.has_failed(),
            last_took_s: state.last_time_s,
            saves: state.saves,
            last_captured: state.last_captured,
            backs_up: state.is_backing_up(),
            next_backup_s,
            backups: state.backups,
            held: shared.saves.held.load(Relaxed),
        }
    }
}
