//! What a seed draws: which faults and features are on, how often faults come, and how many clients
//! of each family there are.

use crate::journal::Journal;
use crate::machine::Machine;
use base::prng::Prng;
use base::sync::baton::Rates;
use driver::sim::{DiskFaults, Faults};
use std::fmt;

/// A millisecond in nanoseconds.
pub const MS: u64 = 1_000_000;

/// Switch points between two holds of seconds.
const LONG_HOLD_ONE_IN: u32 = 300_000;

/// Keys of a run, at most.
const KEYS_MAX: u64 = 5_000;
/// Makes the draws about saves another sequence than those of the other faults, so that a seed
/// without saves is the run that it was before there were saves.
const SAVES: u64 = 0x5a5e_0001;

/// Clients of each family.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Registers and counters that all of them share.
    pub registers: u64,
    /// Transactions of appends and reads.
    pub transactions: u64,
    /// Those that push into queues.
    pub pushers: u64,
    /// Those that pop, and wait.
    pub poppers: u64,
    /// Those that compare every reply with a model of their own keys.
    pub models: u64,
    /// Producers of ingest protocol 2.
    pub producers: u64,
    /// Those that give keys a time to live.
    pub expirers: u64,
    /// Those that scan while keys come and go.
    pub scanners: u64,
    /// Those that administer: pauses, kills, settings.
    pub admins: u64,
    /// Those that add to streams.
    pub adders: u64,
    /// Those that read streams, alone and in a group, and wait for entries.
    pub readers: u64,
    /// Those that monitor all others.
    pub monitors: u64,
    /// Those with strings of megabytes.
    pub bigs: u64,
    /// Those that transfer numbers between keys, so that the sum of all stays zero.
    pub ledgers: u64,
    /// Those that save, flush and swap databases, and shut the server down.
    pub savers: u64,
}

/// How the data is saved.
#[derive(Clone, Copy, Debug)]
pub struct Saves {
    /// There is a save point: after a second with a change, and before each end.
    pub points: bool,
    /// FLUSHALL, which only some families of clients can bear.
    pub flushes: bool,
    /// SHUTDOWN, with a save and without.
    pub shutdowns: bool,
    /// A save rests for so long behind each key, so that many changes come ahead of it,
    /// microseconds.
    pub key_delay_us: u64,
}

/// What a seed draws. `*_one_in: n` means with probability 1/n; 0 means never.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// How long clients make requests, simulated nanoseconds.
    pub time_ns: u64,
    /// Threads of the server.
    pub workers: usize,
    /// The network.
    pub faults: Faults,
    /// The disk.
    pub disk: DiskFaults,
    /// The machine may crash with a server that is killed.
    pub crashes: bool,
    /// Clients.
    pub counts: Counts,
    /// Requests of a session under way at most.
    pub depth_max: u64,
    /// A client rests up to so long between its requests.
    pub think_ns_max: u64,
    /// A turn of a client ends its connection: by a reset, a close, or a half-close.
    pub cut_one_in: u64,
    /// A client stops reading for a while.
    pub deaf_one_in: u64,
    /// A client writes and reads in small pieces.
    pub small_pieces: bool,
    /// How often threads of the server are switched and held.
    pub rates: Rates,
    /// The server is killed, or ended in order, and started again so many times.
    pub restarts: u64,
    /// Accepts fail for a while.
    pub failing_accepts: bool,
    /// The wall clock jumps.
    pub clock_steps: bool,
    /// Commands panic.
    pub panics: bool,
    /// CLIENT PAUSE.
    pub pauses: bool,
    /// CLIENT KILL and UNBLOCK.
    pub kills: bool,
    /// Every second client speaks RESP3.
    pub resp3: bool,
    /// Collections become trees early, so that steps, cuts and conversions happen.
    pub small_limits: bool,
    /// Data is saved, and loaded by the next server. Without it a kill loses all data.
    pub saves: Option<Saves>,
    /// There is an append-only file, which the next server loads.
    pub journal: Option<Journal>,
    /// There must be one, whatever else is drawn.
    pub must_append: bool,
}

impl Plan {
    /// What belongs to this seed.
    pub fn draw(seed: u64, time_ns: u64) -> Self {
        let mut plan = Self::draw_rest(seed, time_ns);
        plan.draw_saves();
        plan.draw_journal();
        plan
    }

    /// What belongs to this seed, with an append-only file in any case, and without what such a
    /// world cannot have.
    pub fn draw_with_journal(seed: u64, time_ns: u64) -> Self {
        let mut plan = Self::draw_rest(seed, time_ns);
        plan.must_append = true;
        plan.counts.monitors = 0;
        plan.draw_saves();
        plan.draw_journal();
        plan
    }

    /// All but saves and the append-only file.
    fn draw_rest(seed: u64, time_ns: u64) -> Self {
        let mut prng = Prng::new(seed);
        let p = &mut prng;
        let mut faults = draw_network(p);
        let counts = draw_counts(p);
        if counts.bigs > 0 {
            faults.buffer_bytes = faults.buffer_bytes.max(64 << 10);
        }
        let clock_steps = p.chance(1, 4);
        Self {
            seed,
            time_ns,
            workers: 1 + p.below(4) as usize,
            faults,
            disk: draw_disk(p),
            crashes: p.chance(1, 2),
            counts,
            depth_max: one_of(p, &[1, 1, 3, 12]),
            think_ns_max: one_of(p, &[2 * MS, 5 * MS, 10 * MS, 30 * MS]),
            cut_one_in: one_of(p, &[0, 0, 400, 1500]),
            deaf_one_in: one_of(p, &[0, 0, 500]),
            small_pieces: p.chance(1, 3),
            rates: draw_rates(p),
            restarts: one_of(p, &[0, 0, 0, 1, 2]),
            failing_accepts: p.chance(1, 4),
            clock_steps,
            // A rollback of a large string is rare otherwise.
            panics: p.chance(1, if counts.bigs > 0 { 2 } else { 4 }),
            // A pause ends by the wall clock.
            pauses: !clock_steps && p.chance(1, 2),
            kills: p.chance(1, 3),
            resp3: p.chance(1, 2),
            small_limits: p.chance(1, 2),
            saves: None,
            journal: None,
            must_append: false,
        }
    }

    fn draw_saves(&mut self) {
        let p = &mut Prng::new(self.seed ^ SAVES);
        // What MONITOR shows of refused commands is not modelled.
        if self.counts.monitors > 0 || p.chance(1, 2) {
            return;
        }
        let saves = Saves {
            points: p.chance(1, 3),
            flushes: p.chance(1, 5) && !self.must_append,
            shutdowns: p.chance(1, 2),
            key_delay_us: one_of(p, &[0, 0, 50, 500]),
        };
        if saves.flushes {
            self.counts = Counts { admins: self.counts.admins, ..Counts::default() };
            self.panics = false;
        }
        self.counts.ledgers = 1 + p.below(3);
        self.counts.savers = 1;
        if p.chance(1, 6) {
            self.disk.capacity_bytes = (16 + p.below(200)) << 10;
        }
        self.saves = Some(saves);
    }

    /// Whether only requests of the one saver save: no save point and no FLUSHALL does.
    pub fn saves_on_request(&self) -> bool {
        self.saves.is_some_and(|saves| !saves.points && !saves.flushes)
    }

    /// How long a save, or loading what was saved, takes at most, nanoseconds. A save may wait for
    /// one under way.
    pub fn save_ns_max(&self) -> u64 {
        let keys_ns = self.saves.map_or(0, |saves| KEYS_MAX * saves.key_delay_us * 1000);
        2 * (Machine::rewrite_ns_max(&self.disk) + keys_ns)
    }

    /// Whether a save may be refused: the disk fails, or is full.
    pub fn saves_may_fail(&self) -> bool {
        let (disk, none) = (&self.disk, DiskFaults::NONE);
        disk.write_error_one_in > 0 || disk.capacity_bytes < none.capacity_bytes
    }

    /// A reply to a request of `bytes` comes within so many nanoseconds, not counting those in
    /// which a thread is held. Each filled buffer costs a way there and back.
    pub fn patience_ns(&self, bytes: usize) -> u64 {
        let rounds = 4 + 2 * (bytes / self.faults.buffer_bytes.max(1)) as u64;
        30 * MS + rounds * self.faults.delay_ns_max * 2 + self.journal_ns_max()
    }
}

fn one_of(prng: &mut Prng, of: &[u64]) -> u64 {
    of[prng.below(of.len() as u64) as usize]
}

/// From hardly any switches to holds of seconds.
fn draw_rates(p: &mut Prng) -> Rates {
    let switch_one_in = one_of(p, &[0, 30, 200, 2_000]) as u32;
    let (hold_one_in, hold_ns_min, hold_ns_max) = [
        (0, 0, 0),
        (0, 0, 0),
        (0, 0, 0),
        (2_000, 0, MS / 10),
        (2_000, 0, MS / 10),
        (20_000, 0, 4 * MS),
        (20_000, 0, 4 * MS),
        (200_000, 0, 250 * MS),
        (200_000, 0, 250 * MS),
        (LONG_HOLD_ONE_IN, 1_000 * MS, 5_000 * MS),
    ][p.below(10) as usize];
    let early_one_in = one_of(p, &[0, 50]) as u32;
    Rates { switch_one_in, hold_one_in, hold_ns_min, hold_ns_max, early_one_in }
}

fn draw_network(p: &mut Prng) -> Faults {
    Faults {
        partial_read_one_in: one_of(p, &[0, 2, 10]),
        partial_write_one_in: one_of(p, &[0, 2, 10]),
        reset_one_in: one_of(p, &[0, 0, 0, 1000, 5000]),
        blind_poll_one_in: one_of(p, &[0, 5, 20]),
        delay_ns_max: one_of(p, &[0, MS / 20, MS / 2, 5 * MS]),
        buffer_bytes: one_of(p, &[700, 4 << 10, 64 << 10, 256 << 10]) as usize,
    }
}

/// Without faults, slow, or failing; hangs are shorter than a run.
fn draw_disk(p: &mut Prng) -> DiskFaults {
    let disks = [DiskFaults::NONE, DiskFaults::ROUGH, DiskFaults::HARSH];
    let disk = disks[p.below(3) as usize];
    let (slow_ns_max, hang_ns_max) =
        (disk.slow_ns_max.min(20 * MS), disk.hang_ns_max.min(200 * MS));
    DiskFaults { slow_ns_max, hang_ns_max, hang_one_in: disk.hang_one_in.min(64), ..disk }
}

fn draw_counts(p: &mut Prng) -> Counts {
    let mut up_to = |n: u64| p.below(n + 1);
    let mut counts = Counts {
        registers: up_to(4),
        transactions: up_to(4),
        pushers: up_to(2),
        poppers: up_to(3),
        models: up_to(3),
        producers: up_to(2),
        expirers: up_to(1),
        scanners: up_to(1),
        admins: up_to(1),
        adders: up_to(2),
        readers: up_to(3),
        ..Counts::default()
    };
    // One without the other has nothing to do.
    if counts.pushers == 0 || counts.poppers == 0 {
        (counts.pushers, counts.poppers) = (0, 0);
    }
    if counts.adders == 0 || counts.readers == 0 {
        (counts.adders, counts.readers) = (0, 0);
    }
    // Lines of megabytes would be slow to make.
    match p.below(8) {
        0 => counts.monitors = 1,
        1 => (counts.bigs, counts.admins) = (1, 1),
        _ => {}
    }
    // A history of one client is hardly a history.
    counts.registers += u64::from(counts.registers == 1);
    counts.transactions += u64::from(counts.transactions == 1);
    counts
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
