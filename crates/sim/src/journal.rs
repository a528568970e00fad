//! Worlds with an append-only file: what a seed draws about it, and what that means for everybody.

use crate::machine::Machine;
use crate::plan::{MS, Plan, Saves};
use base::prng::Prng;
use driver::sim::DiskFaults;

/// Makes these draws another sequence than all others, so that a seed without an append-only file
/// is the run that it was before there were any.
const JOURNAL: u64 = 0x5a5e_0002;
/// Of history, too.
const HISTORY: u64 = 0x5a5e_0003;
/// So much slower are the clients, and so much longer do they make requests, where the server
/// waits for seconds: for the next sync, or behind a failure.
const SLOWER: u64 = 6;
/// How long the server may take to recover from failures of its disk.
const RECOVERY_NS_MAX: u64 = 40_000 * MS;
/// How long an end in order takes at most, without what it waits for.
const END_NS_MAX: u64 = 1_200 * MS;
/// How long the end waits for a disk which fails, and then for its clients.
const GIVING_UP_NS_MAX: u64 = 62_000 * MS;
/// How often `everysec` syncs.
const SYNC_EVERY_NS: u64 = 1_000 * MS;

/// `appendfsync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fsync {
    /// What was answered is durable.
    Always,
    /// The last second may be lost.
    EverySecond,
    /// What was not synced at a cut or an end may be lost.
    No,
}

/// How changes are appended.
#[derive(Clone, Copy, Debug)]
pub struct Journal {
    /// `appendfsync`.
    pub fsync: Fsync,
    /// `auto-aof-rewrite-min-size`, bytes.
    pub rewrite_bytes: u64,
    /// `aof-timestamp-enabled`.
    pub timestamps: bool,
    /// CONFIG SET appendonly, no and yes.
    pub switches: bool,
    /// `aof-history`.
    pub history: &'static str,
}

impl Journal {
    /// The settings of a server.
    pub fn settings(&self) -> Vec<(&'static [u8], Vec<u8>)> {
        let fsync: &[u8] = match self.fsync {
            Fsync::Always => b"always",
            Fsync::EverySecond => b"everysec",
            Fsync::No => b"no",
        };
        let timestamps: &[u8] = if self.timestamps { b"yes" } else { b"no" };
        vec![
            (b"appendonly", b"yes".to_vec()),
            (b"appendfsync", fsync.to_vec()),
            (b"auto-aof-rewrite-min-size", self.rewrite_bytes.to_string().into_bytes()),
            (b"aof-timestamp-enabled", timestamps.to_vec()),
            (b"aof-history", self.history.into()),
        ]
    }
}

impl Plan {
    /// Draws the append-only file, if there is one.
    pub(crate) fn draw_journal(&mut self) {
        let p = &mut Prng::new(self.seed ^ JOURNAL);
        let flushes = self.saves.is_some_and(|saves| saves.flushes);
        // What MONITOR shows of refused commands is not modelled.
        let is_drawn = p.chance(1, 3) || self.must_append;
        if self.counts.monitors > 0 || flushes || !is_drawn {
            return;
        }
        let fsync = [Fsync::Always, Fsync::Always, Fsync::EverySecond, Fsync::No];
        let fsync = fsync[p.below(4) as usize];
        let bounds = ["0", "1gb", "20kb", "2s"];
        self.journal = Some(Journal {
            fsync,
            rewrite_bytes: [1 << 10, 16 << 10, 64 << 20][p.below(3) as usize],
            timestamps: p.chance(1, 3),
            switches: fsync != Fsync::Always && p.chance(1, 4),
            history: bounds[Prng::new(self.seed ^ HISTORY).below(4) as usize],
        });
        let shutdowns = p.chance(1, 3);
        let none = Saves { points: false, flushes: false, shutdowns, key_delay_us: 0 };
        self.saves.get_or_insert(none);
        self.counts.savers = 1;
        self.counts.ledgers = self.counts.ledgers.max(1);
        self.restarts = p.below(4);
        self.disk.in_order = true;
        if self.disk.write_error_one_in > 0 {
            let one_in = [50, 200, 800][p.below(3) as usize];
            self.disk.write_error_one_in = one_in;
            self.disk.sync_error_one_in = one_in / 2;
            self.disk.name_error_one_in = one_in;
        }
        self.disk.capacity_bytes = match p.below(8) {
            0 => (16 + p.below(200)) << 10,
            _ => DiskFaults::NONE.capacity_bytes,
        };
        if self.journal_may_fail() || fsync == Fsync::EverySecond {
            self.time_ns *= SLOWER;
            self.think_ns_max *= SLOWER;
        }
    }

    /// What was answered is durable: histories go on from server to server.
    pub fn is_durable(&self) -> bool {
        self.journal.is_some_and(|journal| journal.fsync == Fsync::Always)
    }

    /// The append-only file may be impossible to write for some time: writes are refused.
    pub fn journal_may_fail(&self) -> bool {
        self.journal.is_some() && self.saves_may_fail()
    }

    /// A reply may wait so long for the disk.
    pub fn journal_ns_max(&self) -> u64 {
        match self.journal {
            Some(_) if self.journal_may_fail() => RECOVERY_NS_MAX,
            Some(journal) if journal.fsync == Fsync::Always => Machine::rewrite_ns_max(&self.disk),
            _ => 0,
        }
    }

    /// How long an end in order takes at most, nanoseconds.
    pub fn end_ns_max(&self) -> u64 {
        END_NS_MAX + if self.journal_may_fail() { GIVING_UP_NS_MAX } else { self.journal_ns_max() }
    }

    /// Messages can be acknowledged as fsynced, all the time.
    pub fn always_syncs(&self) -> bool {
        let syncs = |journal: Journal| journal.fsync != Fsync::No && !journal.switches;
        self.journal.is_some_and(syncs)
    }

    /// What is older than this when a server dies, nanoseconds, is there again; `None`: nothing
    /// need be. A server that was answered from memory while its disk failed loses more.
    pub fn window_ns(&self) -> Option<u64> {
        let journal = self.journal.filter(|journal| !journal.switches)?;
        match journal.fsync {
            Fsync::Always => Some(0),
            Fsync::EverySecond if !self.journal_may_fail() => {
                Some(SYNC_EVERY_NS + Machine::rewrite_ns_max(&self.disk))
            }
            _ => None,
        }
    }
}
