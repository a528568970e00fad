//! Saves that nobody asks for: save points.
//!
//! Every worker checks them when it keeps house after commands, and sets a timer for the earliest
//! point which has enough changes. The first to want the save gets it.

use crate::log;
use crate::persist::save::status::Why;
use crate::worker::core::Core;

impl Core {
    /// Begins a save that is due; sets when to check again.
    pub(crate) fn check_save_points(&mut self) {
        let (now, saves) = (self.turn.now(), &self.shared.saves);
        self.timers.save_at = None;
        let points = &self.settings.save_points;
        let state = saves.state();
        if points.is_empty() || state.is_busy() || self.shared.load.is_on() {
            return; // behind the end of a run it is checked again
        }
        let changes = self.shared.keyspace.changes();
        let point = state.next_point(points, changes, saves.has_failed());
        let changes = changes.saturating_sub(state.saved_changes);
        drop(state);
        let Some((due, seconds)) = point else { return };
        if due > now {
            self.timers.save_at = Some(due);
        } else if self.want_save(Why::Background, None).is_ok() {
            log::notice(format_args!("{changes} changes in {seconds} seconds. Saving..."));
        }
    }
}
