//! Saves that nobody asks for: save points and backups.
//!
//! Every worker checks them when it keeps house after commands, and sets a timer for the earliest
//! point which has enough changes. The first to want the save gets it.

use crate::log;
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
        // A save point first: a backup is made later as well.
        let point = self.check_save_points();
        let backup = self.check_backups();
        self.timers.save_at = point.into_iter().chain(backup).min();
    }

    /// Begins a save that is due by save points. Returns when to check again.
    fn check_save_points(&mut self) -> Option<MonoNs> {
        let (now, saves) = (self.turn.now(), &self.shared.saves);
        let points = &self.settings.save_points;
        let state = saves.state();
        if points.is_empty() || state.is_saving() {
            return None; // behind the end of a run it is checked again
        }
        let changes = self.shared.keyspace.changes();
        let (due, seconds) = state.next_point(points, changes, saves.has_failed())?;
        let changes = changes.saturating_sub(state.saved_changes);
        drop(state);
        if due > now {
            return Some(due);
        }
        if self.want_save(Why::Background, None).is_ok() {
            log::notice(format_args!("{changes} changes in {seconds} seconds. Saving..."));
        }
        None
    }
}
