//! The keys of the command whose locks are taken. Their buffers are used again by the next.

use crate::execute::window::{KeyRef, NO_KEY, key_ref};
use base::{DbIndex, SlotId};
use command::CommandId;
use keyspace::{Keyspace, PrefetchTarget};
use resp::Args;

/// Set by whoever locks for a command; of no meaning once its locks have dropped.
#[derive(Default)]
pub struct CommandKeys {
    /// Slots to lock: ascending, without repetition.
    pub slots: Vec<SlotId>,
    /// Its keys, in the order of its arguments.
    pub keys: Vec<KeyRef>,
    targets: Vec<PrefetchTarget>,
}

impl CommandKeys {
    /// Finds all keys of a command and their slots, whose lines are prefetched on the way. A
    /// command whose keys cannot be found gets none, and says itself what is wrong with its
    /// arguments.
    pub fn collect(
        &mut self,
        ks: &Keyspace,
        db: DbIndex,
        id: CommandId,
        args: Args<'_>,
        first: KeyRef,
    ) {
        self.slots.clear();
        self.keys.clear();
        let keys = &mut self.keys;
        let _ = command::keys::for_each(id.spec(), args, |key| {
            keys.push(KeyRef { arg: key.arg as u32, ..NO_KEY });
        });
        for key in keys {
            let is_hashed = key.arg == first.arg;
            *key = if is_hashed { first } else { key_ref(ks, args, key.arg as usize) };
            ks.prefetch_slot(key.slot);
        }
        if self.keys.len() > 1 {
            let ask = |key: &KeyRef| ks.prefetch_bucket(key.slot, key.hash, db);
            self.targets.extend(self.keys.iter().map(ask));
            self.targets.drain(..).for_each(|target| ks.prefetch_entry(target));
        }
        self.slots.extend(self.keys.iter().map(|k| k.slot));
        self.slots.sort_unstable();
        self.slots.dedup();
    }
}
