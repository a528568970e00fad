//! A sample of the commands, for the view of hot keys. A command of a window that is to be looked
//! at makes its window unusual, so that the others pay nothing; it is timed by itself. Commands
//! which are timed by themselves anyway are counted here when they are recorded.
//!
//! How large the value of a sampled key is, is looked up by housekeeping: inside EXEC its slot may
//! be locked.

use crate::execute::window::{Framed, Window};
use crate::worker::core::Core;
use base::DbIndex;
use base::sync::Arc;
use command::CommandId;
use keyspace::{Access, Intent};
use observe::hot::{KeyUse, Name, Use, Value};
use resp::{Args, OutBuf};

/// Keys of one command that are counted.
const KEYS_MAX: usize = 16;

impl Core {
    /// Follows the sessions of HOTKEYS: another share of the commands may be looked at.
    #[inline]
    pub(crate) fn follow_hot_sessions(&mut self) {
        let version = self.shared.hot.version();
        if version != self.sampler.version {
            self.follow_ratio(version);
        }
    }

    #[cold]
    fn follow_ratio(&mut self, version: u64) {
        self.sampler.version = version;
        self.sampler.ratio = self.shared.hot.ratio(self.turn.unix_ms().0);
        self.sampler.next_framed = self.draw_gap() - 1;
        self.sampler.next_alone = self.draw_gap() - 1;
    }

    /// To the next command that is looked at: the ratio on average, and as likely shorter as
    /// longer, so that a client with a rhythm does not hide a key.
    fn draw_gap(&mut self) -> usize {
        let ratio = u64::from(self.sampler.ratio);
        1 + (self.tally.draw() % (2 * ratio - 1)) as usize
    }

    /// A command of the window is looked at, if it takes the short path. (If not, it is recorded by
    /// itself.)
    #[cold]
    pub(super) fn run_sampled(
        &mut self,
        access: &mut Access,
        window: &Window,
        c: &Framed,
        input: &[u8],
        out: &mut OutBuf,
    ) {
        self.sampler.next_framed += self.draw_gap();
        self.find_unusual();
        let started = self.clock.now();
        self.run_usual(access, window, c, input, out);
        let ns = self.clock.now().since(started);
        let Some(session) = self.sessions[c.session as usize].as_deref() else { return };
        if let Some(id) = c.id
            && self.batch.is_on_short_path(c)
        {
            let db = session.db;
            let sizes = self.sizes(u64::from(c.end - c.start), out);
            self.count_use(db, id, window.args(input, c), ns, sizes.request + sizes.reply);
        }
    }

    /// A command that was timed by itself has ended.
    #[inline]
    pub(super) fn sample_alone(
        &mut self,
        db: DbIndex,
        id: CommandId,
        args: Args<'_>,
        ns: u64,
        bytes: u64,
    ) {
        if self.sampler.next_alone > 0 {
            self.sampler.next_alone -= 1;
            return;
        }
        self.sampler.next_alone = self.draw_gap() - 1;
        self.count_use(db, id, args, ns, bytes);
    }

    /// Counts a command and its keys; of many keys, some in a row.
    #[cold]
    fn count_use(&mut self, db: DbIndex, id: CommandId, args: Args<'_>, ns: u64, bytes: u64) {
        let mut all = 0;
        // A command whose keys cannot be told apart has failed.
        _ = command::keys::for_each(id.spec(), args, |_| all += 1);
        let from = self.tally.draw() as usize % (all.max(KEYS_MAX) - KEYS_MAX + 1);
        let (mut used, mut found, mut seen) = ([KeyUse::default(); KEYS_MAX], 0, 0);
        let ks = &self.shared.keyspace;
        _ = command::keys::for_each(id.spec(), args, |key| {
            if seen >= from && found < KEYS_MAX {
                let key = ks.key(args.get(key.arg));
                let (id, slot) = (id_of(db, key.hash), key.slot.index() as u16);
                used[found] = KeyUse { id, name: key.bytes, slot };
                found += 1;
            }
            seen += 1;
        });
        let used = &used[..found];
        let (at_ms, weight) = (self.turn.unix_ms().0, u64::from(self.sampler.ratio));
        self.counters().hot.count(&Use { at_ms, weight, ns, bytes, keys: all as u64 }, used);
        if found > 0 {
            let one = used[self.tally.draw() as usize % found];
            self.sampler.look_at(db, id, one.name);
        }
    }

    /// Looks up how large the values of sampled keys are. Housekeeping does it.
    pub(crate) fn look_at_values(&mut self, access: &mut Access) {
        if self.sampler.looks.is_empty() || !access.enter() {
            return;
        }
        self.follow();
        let ks = Arc::clone(&self.shared.keyspace);
        let mut looks = std::mem::take(&mut self.sampler.looks);
        let now = self.turn.unix_ms();
        for look in looks.drain(..) {
            let key = ks.key(look.key());
            // Behind a long holder it is not looked at: it will be sampled again.
            let Ok(guard) = access.lock_one(key.slot, now, Intent::Read) else { continue };
            let bytes = guard.stored_memory(look.db, &key);
            drop(guard);
            if let Some(bytes) = bytes {
                let (name, command) = (Name::new(key.bytes), look.id.spec().full_name);
                let value = Value { db: look.db.0, name, bytes, command };
                self.counters().hot.note_value(now.0, id_of(look.db, key.hash), value);
            }
        }
        self.sampler.looks = looks;
        access.leave();
    }
}

/// Different for different keys and databases.
fn id_of(db: DbIndex, hash: u64) -> u64 {
    hash ^ u64::from(db.0).rotate_right(16)
}
