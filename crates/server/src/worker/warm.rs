//! Prefetching in collections: a run of commands on one key waits for memory once, and not each by
//! itself.

use crate::execute::window::{Framed, Window};
use crate::worker::core::Core;
use keyspace::{Access, Intent, Key, WARM_MAX};

impl Core {
    /// Counts how many commands from `at` on use the same key, and prefetches the pages of all
    /// their members. Like all guesses of framing this decides nothing: a wrong one only costs
    /// time.
    #[inline(never)]
    pub(crate) fn warm(&mut self, access: &mut Access, window: &Window, at: usize, input: &[u8]) {
        let first = &window.commands[at];
        let is_like = |c: &&Framed| c.key.hash == first.key.hash && c.key.slot == first.key.slot;
        let run = window.commands[at..].iter().take(WARM_MAX).take_while(is_like);
        let mut members = [(&[][..], None); WARM_MAX];
        let mut count = 0;
        for c in run {
            let Some(member) = c.id.map(|id| usize::from(self.hot[id.index()].member)) else {
                break;
            };
            let args = window.args(input, c);
            let Some(name) = args.try_get(member).filter(|_| member != 0) else { break };
            // A number in front of the member is its score.
            let score = if member == 3 { base::double::parse(args.get(2)) } else { None };
            members[count] = (name, score);
            count += 1;
        }
        self.batch.set_warmed(at + count.max(1));
        if count < 2 || self.batch.is_behind_gate {
            return;
        }
        let Some(key) = window.args(input, first).try_get(first.key.arg as usize) else { return };
        let key = Key { bytes: key, hash: first.key.hash, slot: first.key.slot };
        if let Ok(guard) = access.lock_one(key.slot, self.turn.unix_ms(), Intent::Read)
            && let Some(big) = guard.stored_big(first.db, &key)
        {
            big.warm(&members[..count]);
        }
    }
}
