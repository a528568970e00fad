//! Saves that nobody asks for: save points, and those which BGSAVE has scheduled inside a
//! transaction.
//!
//! Every worker checks them when it keeps house after commands, and sets a timer for the earliest
//! point which has enough changes. Who is first claims the save.

use crate::log;
use crate::persist::save::Wanted;
use crate::persist::save::status::Why;
use crate::worker::core::Core;

impl Core {
    /// Begins a save that is due; sets when to check again.
    pub(crate) fn check_save_points(&mut self) {
        let (now, saves) = (self.turn.now(), &self.shared.saves);
        self.timers.save_at = None;
        let points = &self.settings.save_points;
        let state = saves.state();
        if state.run.is_some()
            || self.shared.load.is_on()
            || (points.is_empty() && !state.is_scheduled)
        {
            return; // behind the end of a run it is checked again
        }
        let changes = self.shared.keyspace.changes();
        let point = state.next_point(points, changes, saves.has_failed());
        let scheduled = state.is_scheduled.then(|| state.not_too_soon(now, saves.has_failed()));
        let due = point.map(|(at, _)| at).into_iter().chain(scheduled).min();
        let changes = changes.saturating_sub(state.saved_changes);
        drop(state);
        if due.is_none_or(|due| due > now) {
            self.timers.save_at = due;
        } else if self.claim_save(Why::Background).is_some() {
            if let Some((_, seconds)) = point.filter(|(at, _)| *at <= now) {
                log::notice(format_args!("{changes} changes in {seconds} seconds. Saving..."));
            }
            let wanted = Wanted { why: Why::Background, asker: None, is_claimed: true };
            self.tasks.saving.wanted.push(wanted);
        }
    }
}
