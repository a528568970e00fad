//! A rewrite, as the writer sees it: a cut changes the segment, and at the end a base takes the
//! place of the files before the cut.

use super::{Part, RETRY_NS, Rewrite, Trouble, Writer};
use crate::persist::journal::steps::{Done, Failed};
use crate::persist::load::kept::Replaced;
use base::{MonoNs, SeqNo};
use config::Retention;
use driver::FileDone;
use journal::manifest::{BaseFormat, FileInfo};
use journal::{Extent, Moment};

impl Writer {
    /// The base of the rewrite whose moment is about to be taken: a file of this name in the
    /// folder. The cut follows.
    pub(crate) fn begin_rewrite(&mut self, format: BaseFormat, moment: Moment) -> FileInfo {
        let base = self.manifest.clone().next_base(&self.name, format);
        self.cuts_begun += 1;
        let (cut, last, incr) = (self.cuts_begun, SeqNo(0), None);
        let extent = Extent { moment, position: None };
        self.rewrite = Some(Rewrite { format, extent, cut, last, incr, is_done: false });
        base
    }

    /// How far the changes reach which the base of the rewrite holds that was just begun: what was
    /// recorded before its cut has been pushed.
    pub(crate) fn locate_rewrite(&mut self) -> Option<Extent> {
        let rewrite = self.rewrite.as_mut()?;
        rewrite.extent.position = self.merger.position_at(SeqNo(rewrite.extent.moment.number));
        debug_assert!(rewrite.extent.position.is_some(), "all is handed over under World");
        Some(rewrite.extent)
    }

    /// A cut was reached: if it is that of the rewrite, its base says where it is in the stream.
    pub(super) fn check_position(&self) {
        let is_its = |rewrite: &&Rewrite| rewrite.cut == self.cuts_ended + 1;
        let said = self.rewrite.as_ref().filter(is_its).and_then(|rewrite| rewrite.extent.position);
        let is_right = said.is_none_or(|said| said.offset == self.merger.offset());
        debug_assert!(is_right, "{said:?} is {}", self.merger.offset());
    }

    /// The base of the rewrite is complete, with so many bytes, or there will be none.
    pub(crate) fn end_rewrite(&mut self, bytes: Option<u64>, now: MonoNs) {
        match bytes {
            Some(_) => self.pause.end(),
            None => _ = self.pause.begin(now),
        }
        match (&mut self.rewrite, bytes) {
            (Some(rewrite), Some(bytes)) => {
                rewrite.is_done = true;
                self.replaced_bytes += std::mem::replace(&mut self.base_bytes, bytes);
            }
            _ => self.rewrite = None,
        }
    }

    /// A rewrite may begin by itself: none is under way, and none has failed a short time ago.
    pub(crate) fn may_rewrite(&self, now: MonoNs) -> bool {
        !self.is_rewriting() && self.pause.is_over(now)
    }

    /// True while a rewrite is under way, the change of the manifest at its end included.
    pub(crate) fn is_rewriting(&self) -> bool {
        self.rewrite.is_some() || self.ends_rewrite
    }

    /// A cut: everything before it is durable, so the segment is closed and the next one opened.
    pub(super) fn reach_cut(&mut self) {
        let is_still = !self.is_writing && self.syncing.is_none() && self.pieces.is_empty();
        // Both lists write the manifest.
        let has_steps = !self.steps.is_empty() || !self.takeover.is_empty();
        if !self.at_cut || !is_still || !self.gathered.is_empty() || has_steps {
            return;
        }
        if let Some(segment) = self.segment.take() {
            self.before_bytes += segment.end;
            if segment.synced < segment.end {
                // With `appendfsync no`. A file ahead of the last one must not lose its end.
                self.steps.sync(segment.file);
            }
            self.steps.close(segment.file);
        }
        self.at_cut = false;
        self.cuts_ended += 1;
        self.pass(self.gathered_last);
        self.merger.begin_file();
        self.stamped_s = 0;
        self.begin_segment();
    }

    /// A new segment is opened and, if the folder can be loaded, added to the manifest.
    pub(super) fn begin_segment(&mut self) {
        let incr = self.manifest.next_incr(&self.name);
        self.steps.create_folder(&self.folder);
        self.segment_path = self.path(&incr.name);
        self.steps.open(self.segment_path.clone());
        // The name must be there when a manifest lists it.
        self.steps.sync_folder(&self.folder);
        if let Some(rewrite) = &mut self.rewrite
            && rewrite.incr.is_none()
            && rewrite.cut == self.cuts_ended
        {
            rewrite.incr = Some(incr);
            rewrite.last = self.durable;
        }
        if self.is_complete && self.lost.is_none() {
            self.steps.manifest(&self.folder, &self.name, self.manifest.text(), false);
        }
    }

    /// The base of a rewrite and the segment behind its cut are there: they take the place of what
    /// was before, which is kept or removed. Writes go on beside that: a crash finds the old
    /// manifest with the old files and the segment, or the new one.
    pub(super) fn end_cut(&mut self, keep: Retention, unix_ms: i64) {
        let is_over = |rewrite: &Rewrite| rewrite.is_done && rewrite.incr.is_some();
        if !self.at_cut
            && self.segment.is_some()
            && let Some(rewrite) = self.rewrite.take_if(|rewrite| is_over(rewrite))
        {
            let incr = rewrite.incr.expect("it was just tested");
            let older = self.manifest.incr.iter().filter(|file| file.seq < incr.seq);
            let replaced = Replaced {
                base: self.manifest.base.clone(),
                incr: older.cloned().collect(),
                bytes: std::mem::take(&mut self.replaced_bytes) + self.before_bytes,
            };
            self.before_bytes = 0;
            let left_over = self.manifest.history.len();
            self.manifest.next_base(&self.name, rewrite.format);
            self.manifest.retire(incr.seq);
            if keep != Retention::Nothing && self.lost.is_none() {
                self.keep(replaced, left_over, rewrite.extent.moment);
            }
            self.ends_rewrite = true;
            self.base_last = rewrite.last;
            self.replace_files(keep, unix_ms);
        }
    }

    /// Adds what a base has replaced to the history. The list names it before the manifest leaves
    /// it out: so a crash leaves no file which nobody knows.
    fn keep(&mut self, mut replaced: Replaced, left_over: usize, until: Moment) {
        // Changes of which the beginning is missing are of no use.
        let Some(base) = replaced.base.take() else { return };
        self.manifest.history.truncate(left_over);
        self.history.add(base, replaced, until);
        if self.history.take_damage() {
            self.takeover.set_list_aside(&self.folder, &self.name);
        }
        if let Some(text) = self.history.text() {
            self.takeover.list(&self.folder, &self.name, text);
        }
    }

    /// Writes the manifest, and removes files: those which it names for that, and those which are
    /// not kept any more. It names them before the list leaves them out.
    fn replace_files(&mut self, keep: Retention, now_ms: i64) {
        let had_files = self.history.bytes() > 0;
        let expelled = self.history.expel(keep, now_ms);
        self.is_history_too_small =
            had_files && self.history.bytes() == 0 && keep != Retention::Nothing;
        let is_shorter =
            !expelled.is_empty() || keep == Retention::Nothing && self.history.is_listed();
        self.manifest.history.extend(expelled);
        self.takeover.manifest(&self.folder, &self.name, self.manifest.text(), true);
        if is_shorter {
            if let Some(text) = self.history.text() {
                self.takeover.list(&self.folder, &self.name, text);
            } else {
                self.history.forget_list();
                self.takeover.remove_list(&self.folder, &self.name);
            }
        }
        self.remove_retired();
    }

    /// Removes the files which the manifest names for that, then takes them out of it.
    fn remove_retired(&mut self) {
        let gone = std::mem::take(&mut self.manifest.history);
        for file in &gone {
            self.takeover.remove(self.path(&file.name));
        }
        if !gone.is_empty() {
            self.takeover.manifest(&self.folder, &self.name, self.manifest.text(), false);
        }
        self.removed = gone;
    }

    /// Starts the next step of those by which a base takes over.
    pub(super) fn run_takeover(&mut self, now: MonoNs) {
        if self.takeover.is_empty() {
            (self.ends_rewrite, self.takeover_trouble) = (false, None);
            self.removed.clear();
        }
        if self.takeover_trouble.is_some() && now < self.takeover_again_at {
            return;
        }
        if let Some(op) = self.takeover.start() {
            self.takeover_began = now;
            self.ops.push((Part::Takeover, op));
        }
    }

    pub(super) fn complete_takeover(&mut self, done: FileDone, now: MonoNs) {
        match self.takeover.complete(done.outcome.map_err(|e| e.errno)) {
            Ok(done) => {
                self.takeover_again_at = now;
                if done == Done::Complete {
                    self.is_complete = true;
                    self.synced = self.synced.max(self.base_last);
                    self.find_again();
                }
            }
            Err(failed) if failed.is_gone => {
                self.lose(failed.what, failed.errno, now.plus(RETRY_NS));
            }
            Err(Failed { what, errno, .. }) => {
                self.takeover_trouble = Some(Trouble { what, errno });
                self.takeover_again_at = now.plus(RETRY_NS);
            }
        }
    }
}
