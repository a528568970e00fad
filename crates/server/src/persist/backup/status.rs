//! What is known about the backups of a server: when the next one is due, and the last one.

use config::schedule::Schedule;

/// A clock that shows so many seconds less than another one was set back. Workers, which share the
/// schedule, have the time at which their turn began, and a long command makes a turn long.
const SET_BACK_S: i64 = 60;

/// The backups of a server. Times are seconds since 1970.
#[derive(Clone, Debug, Default)]
pub struct Backups {
    schedule: Option<Schedule>,
    /// The schedule was followed up to this second.
    followed_s: i64,
    /// The last backup that is whole.
    pub last: Option<Backup>,
    /// The last one has failed.
    pub has_failed: bool,
    /// Backups that were made.
    pub made: u64,
    /// Those that have failed.
    pub failed: u64,
}

/// A backup that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The moment which it shows.
    pub moment_s: i64,
    /// Bytes of its snapshot.
    pub bytes: u64,
    /// How long it took, in seconds.
    pub took_s: i64,
}

impl Backups {
    /// When the next backup is due, which may be past; `None` without a schedule. A changed
    /// schedule counts from now on, and so does one whose clock was set back.
    pub(crate) fn next_s(&mut self, schedule: Option<Schedule>, now_s: i64) -> Option<i64> {
        if self.schedule != schedule {
            (self.schedule, self.followed_s) = (schedule, now_s);
        }
        if now_s < self.followed_s - SET_BACK_S {
            self.followed_s = now_s;
        }
        self.due_s()
    }

    /// The same by the schedule that was followed last.
    pub fn due_s(&self) -> Option<i64> {
        self.schedule?.after(self.followed_s)
    }

    /// A backup begins, or takes its moment: what was due up to now is followed.
    pub(crate) fn follow(&mut self, now_s: i64) {
        self.followed_s = now_s;
    }

    /// It has ended; `None`: without success.
    pub(crate) fn end(&mut self, made: Option<Backup>) {
        self.has_failed = made.is_none();
        self.made += u64::from(made.is_some());
        self.failed += u64::from(made.is_none());
        self.last = made.or(self.last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_due_once() {
        let mut backups = Backups::default();
        assert_eq!(backups.next_s(None, 5), None);
        let hourly = Some(Schedule::Every(3600));
        assert_eq!(backups.next_s(hourly, 5), Some(3600));
        // Due, and late: it stays due until it begins, and then those between are not made up for.
        assert_eq!(backups.next_s(hourly, 9000), Some(3600));
        backups.follow(9000);
        assert_eq!(backups.next_s(hourly, 9000), Some(10_800));
        // A new schedule begins now; what was due by it before is not due.
        let daily = Some(Schedule::Every(86_400));
        assert_eq!(backups.next_s(daily, 90_000), Some(172_800));
        // The clock is set back.
        assert_eq!(backups.next_s(daily, 100), Some(86_400));
    }

    /// A worker whose turn had begun before that of another one took a backup back: it was made
    /// again, and had the same name.
    #[test]
    fn a_worker_whose_turn_is_long_changes_nothing() {
        let (mut backups, schedule) = (Backups::default(), Some(Schedule::Every(1)));
        assert_eq!(backups.next_s(schedule, 100), Some(101));
        backups.follow(103);
        assert_eq!(backups.next_s(schedule, 101), Some(104));
        assert_eq!(backups.next_s(schedule, 103), Some(104));
    }

    #[test]
    fn a_failure_keeps_the_last_backup() {
        let mut backups = Backups::default();
        let made = Some(Backup { moment_s: 7, bytes: 9, took_s: 1 });
        backups.end(made);
        backups.end(None);
        assert_eq!((backups.last, backups.has_failed), (made, true));
        assert_eq!((backups.made, backups.failed), (1, 1));
    }
}
