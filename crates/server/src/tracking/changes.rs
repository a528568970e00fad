//! A key has changed: those who track it are told.

use crate::pubsub::inbox::{Post, Published, To, What};
use crate::pubsub::names::Asked;
use crate::sessions::output::Hold;
use crate::shared::Shared;
use crate::tracking::listed::{Listed, READER_BYTES, listed};
use crate::tracking::touched::{Touched, Wanted};
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;
use driver::ConnId;

/// Who has made a change, and what must have happened before anybody is told of it.
#[derive(Clone, Copy)]
pub(crate) struct Changed {
    /// The worker, and the connection there whose command runs.
    pub by: (usize, ConnId),
    /// See [`Published::hold`].
    pub hold: Hold,
    /// The connection has made it. (Nobody has if a key was due.)
    pub is_made: bool,
}

impl Shared {
    /// A connection of a worker has read a key, under the lock of its slot.
    pub(crate) fn remember_read(&self, key: Asked<'_>, worker: usize, conn: ConnId) {
        self.tracking.keys.remember(key, worker, conn);
    }

    /// A key has changed, under the lock of its slot.
    pub(crate) fn tell_touched(&self, key: Asked<'_>, changed: Changed) {
        let tracking = &self.tracking;
        tracking.keys.forget(key, |name, readers| {
            let what = Touched::key(name, Wanted::Read, changed.is_made);
            self.post_touched(what, changed, readers.lists());
        });
        if tracking.prefix_count.load(Relaxed) > 0 {
            let mut name = None;
            tracking.clients().prefixes.each(key.text, |told| {
                let name = name.get_or_insert_with(|| key.to_name()).clone();
                let what = Touched::key(name, Wanted::Prefix, changed.is_made);
                self.post_touched(what, changed, told.lists());
            });
        }
    }

    /// Any key may have changed, under World: nothing is remembered any more.
    pub(crate) fn tell_all_touched(&self, changed: Changed) {
        let forgotten = self.tracking.keys.clear();
        self.keyspace.reclaimer().reclaim_parts(Box::new(forgotten));
        let what = Touched { key: None, wanted: Wanted::Always, is_made: false, target: None };
        self.post_touched(what, changed, self.tracking.clients().all.lists());
    }

    /// Forgets that a key was read, and tells its readers, who would not hear of its change. False
    /// if nothing is remembered. `by` is the connection for which there must be room.
    pub(crate) fn forget_read(&self, by: (usize, ConnId)) -> bool {
        self.tracking.keys.forget_any(|name, readers| {
            let what = Touched::key(name, Wanted::Read, false);
            let changed = Changed { by, hold: Hold::NONE, is_made: false };
            self.post_touched(what, changed, readers.lists());
        })
    }

    /// A client has got the values of a key behind the locks under which it was read: it is told at
    /// once that the key may have changed.
    pub(crate) fn tell_late_reader(&self, key: Asked<'_>, worker: usize, conn: ConnId) {
        let what = Touched::key(key.to_name(), Wanted::Always, false);
        let changed = Changed { by: (worker, conn), hold: Hold::NONE, is_made: false };
        self.post_touched(what, changed, [(worker, listed([conn]))]);
    }

    /// Appends a message to the inboxes of the workers of these connections.
    fn post_touched(
        &self,
        what: Touched,
        changed: Changed,
        lists: impl IntoIterator<Item = (usize, Listed)>,
    ) {
        let lists: Vec<_> = lists.into_iter().collect();
        if lists.is_empty() {
            return;
        }
        // (The lists of prefixes are shared by all their keys.)
        let is_list_own = what.wanted == Wanted::Read;
        let listed = lists.iter().map(|(_, list)| list.len() as u64).sum::<u64>() * READER_BYTES;
        let bytes = what.bytes() + if is_list_own { listed } else { 0 };
        let published = Arc::new(Published {
            held: self.pubsub.hold_bytes(changed.by.0, bytes),
            what: What::Touched(what),
            epoch: u64::MAX,
            hold: changed.hold,
            from: changed.by,
            skips_publisher: false,
        });
        for (worker, list) in lists {
            let post = Post { published: published.clone(), to: To::Listed(list) };
            self.pubsub.inbox(worker).push(post);
            self.announce(worker);
        }
    }
}
