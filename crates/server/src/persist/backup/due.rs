//! When a backup begins, and its end.

use crate::log;
use crate::persist::backup::filing::Filing;
use crate::persist::backup::status::Backup;
use crate::persist::save::Running;
use crate::persist::save::status::Why;
use crate::persist::save::writing::Failure;
use crate::worker::core::Core;
use base::MonoNs;
use base::sync::atomic::Ordering::Relaxed;

const MS: u64 = 1_000_000;
/// The schedule is compared with the calendar at least so often, because clocks are set.
const CHECK_MS_MAX: i64 = 60_000;
/// How often a backup that is due looks whether the save before it is over.
const CHECK_MS_MIN: i64 = 100;

impl Core {
    /// Begins a backup that is due. Returns when to check again; `None` without a schedule.
    ///
    /// A save that is under way is awaited. Then the backup begins, late; what is due meanwhile is
    /// due once.
    pub(crate) fn check_backups(&mut self) -> Option<MonoNs> {
        let schedule = self.shared.backup_schedule();
        let (now, now_ms) = (self.turn.now(), self.turn.unix_ms().0);
        let mut state = self.shared.saves.state();
        let due_s = state.backups.next_s(schedule, now_ms / 1000)?;
        let is_due = due_s <= now_ms / 1000;
        drop(state);
        if is_due && self.want_save(Why::Backup, None).is_ok() {
            log::notice(format_args!("Backup started"));
            self.shared.saves.state().backups.follow(now_ms / 1000);
        }
        let due_s = self.shared.saves.state().backups.due_s()?;
        let left_ms = due_s.saturating_mul(1000).saturating_sub(now_ms);
        Some(now.plus(left_ms.clamp(CHECK_MS_MIN, CHECK_MS_MAX) as u64 * MS))
    }

    /// A backup is over: says so.
    pub(crate) fn end_backup(
        &mut self,
        running: &Running,
        filing: &Filing,
        outcome: Result<u64, Failure>,
    ) {
        let (saves, path) = (&self.shared.saves, filing.path());
        let (keys, path) = (saves.progress.keys.load(Relaxed), path.display());
        let seconds = self.turn.now().since(running.since) as f64 / 1e9;
        match outcome {
            Ok(bytes) => {
                log::notice(format_args!(
                    "Backup {path}: {keys} keys, {bytes} bytes in {seconds:.3} seconds"
                ));
                let took_s = seconds as i64;
                saves.end_backup(Some(Backup { moment_s: running.moment_s, bytes, took_s }));
            }
            Err(why) => {
                log::warning(format_args!("Backup error: no {path}: {why}"));
                saves.end_backup(None);
            }
        }
        let (removed, failures) = filing.pruned();
        for path in removed {
            log::notice(format_args!("Old backup removed: {}", path.display()));
        }
        for failure in failures {
            log::warning(format_args!("Old backup not removed: {failure}"));
        }
    }
}
