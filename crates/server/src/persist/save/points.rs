//! Saves that nobody asks for: save points, those which BGSAVE has scheduled inside a transaction,
//! and backups.
//!
//! Every worker checks them when it keeps house after commands, and sets a timer for the earliest
//! point which has enough changes. Who is first claims the save.

use crate::log;
use crate::persist::save::Wanted;
use crate::persist::save::status::Why;
use crate::worker::core::Core;
use base::MonoNs;

impl Core {
    /// Begins a save that is due; sets when to check again.
    pub(crate) fn check_saves(&mut self) {
        if self.shared.load.is_on() {
            self.timers.save_at = None;
            return;
        }
        // A save point first: a backup waits for it, while the other would be refused as long.
        let point = self.check_save_points();
        let backup = self.check_backups();
        self.timers.save_at = point.into_iter().chain(backup).min();
    }

    /// Begins a save that is due by save points. Returns when to check again.
    fn check_save_points(&mut self) -> Option<MonoNs> {
        let (now, saves) = (self.turn.now(), &self.shared.saves);
        let points = &self.settings.save_points;
        let state = saves.state();
        if state.run.is_some() || (points.is_empty() && !state.is_scheduled) {
            return None; // behind the end of a run it is checked again
        }
        let changes = self.shared.keyspace.changes();
        let point = state.next_point(points, changes, saves.has_failed());
        let scheduled = state.is_scheduled.then(|| state.not_too_soon(now, saves.has_failed()));
        let due = point.map(|(at, _)| at).into_iter().chain(scheduled).min()?;
        let changes = changes.saturating_sub(state.saved_changes);
        drop(state);
        if due > now {
            return Some(due);
        }
        if self.claim_save(Why::Background).is_some() {
            if let Some((_, seconds)) = point.filter(|(at, _)| *at <= now) {
                log::notice(format_args!("{changes} changes in {seconds} seconds. Saving..."));
            }
            let wanted = Wanted { why: Why::Background, asker: None, is_claimed: true };
            self.tasks.saving.wanted.push(wanted);
        }
        None
    }
}
