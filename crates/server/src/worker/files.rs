//! Operations on files: started at the end of a turn, and passed to who has asked for them.

use crate::persist::journal::writer;
use crate::persist::save::writing::Part;
use crate::worker::Worker;
use crate::worker::message::Message;
use crate::worker::tasks::FileUser;
use driver::{Driver, FileDone};

impl<D: Driver<Message = Message>> Worker<D> {
    /// Starts what was asked for in this turn.
    #[inline]
    pub(crate) fn start_file_ops(&mut self) {
        if !self.core.tasks.file_ops.is_empty() {
            self.start_all_file_ops();
        }
    }

    #[cold]
    fn start_all_file_ops(&mut self) {
        for (user, op) in self.core.tasks.file_ops.drain(..) {
            self.driver.file(user.token(0), op);
        }
    }

    /// An operation has completed.
    #[cold]
    pub(crate) fn on_file(&mut self, done: FileDone) {
        const REWRITING: u64 = FileUser::Rewriting as u64;
        const SAVING: u64 = FileUser::Saving as u64;
        const SAVING_WRITE: u64 = FileUser::SavingWrite as u64;
        const SAVING_SYNC: u64 = FileUser::SavingSync as u64;
        const LOADING: u64 = FileUser::Loading as u64;
        const JOURNAL_STEP: u64 = FileUser::JournalStep as u64;
        const JOURNAL_WRITE: u64 = FileUser::JournalWrite as u64;
        const JOURNAL_SYNC: u64 = FileUser::JournalSync as u64;
        const JOURNAL_FIND: u64 = FileUser::JournalFind as u64;
        const JOURNAL_FOLDER: u64 = FileUser::JournalFolder as u64;
        const JOURNAL_UNAWAITED: u64 = FileUser::JournalUnawaited as u64;
        match done.token & 0xff {
            REWRITING => self.on_rewriting(done.outcome),
            SAVING => self.on_saving(Part::Stage, done.outcome),
            SAVING_WRITE => self.on_saving(Part::Write, done.outcome),
            SAVING_SYNC => self.on_saving(Part::EarlySync, done.outcome),
            LOADING => self.on_loading_file(done),
            JOURNAL_STEP => self.on_journal_file(writer::Part::Step, done),
            JOURNAL_WRITE => self.on_journal_file(writer::Part::Write, done),
            JOURNAL_SYNC => self.on_journal_file(writer::Part::Sync, done),
            JOURNAL_FIND => self.on_journal_found(done.outcome),
            JOURNAL_FOLDER => self.on_journal_folder(done.outcome),
            JOURNAL_UNAWAITED => {}
            token => unreachable!("nobody has this token: {token}"),
        }
    }
}
