//! One folder, and a server which is killed again and again while producers send.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::until;
use sheafdb_tests::ports::free_addr;
use sheafdb_tests::rng::Rng;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire};

use super::source::Source;

/// How the data is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    Always,
    EverySecond,
    /// Snapshots alone: each message is there once relative to the last one.
    Snapshots,
}

/// How one world works.
#[derive(Clone, Debug)]
pub struct Terms {
    seed: u64,
    threads: &'static str,
    keeps: Keeps,
    /// The append-only file is turned off and on.
    toggles: bool,
}

impl Terms {
    /// Each kind in turn; the rest is chosen by the seed.
    pub fn of(seed: u64, number: u64) -> Self {
        let seed = seed + number;
        let mut rng = Rng::new(seed);
        let kinds = [Keeps::Always, Keeps::EverySecond, Keeps::Snapshots];
        let keeps = kinds[number as usize % kinds.len()];
        Self { seed, threads: rng.pick(&["1", "2", "4"]), keeps, toggles: rng.chance(30) }
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    kills: usize,
    /// Messages in all keys at the end.
    pub messages: u64,
    /// Those which were called fsynced.
    pub fsynced: u64,
    rewrites: usize,
    saves: usize,
    toggles: usize,
    /// Connections which were told that the level is not given.
    refused: u64,
}

impl Totals {
    pub fn add(&mut self, other: Self) {
        self.kills += other.kills;
        self.messages += other.messages;
        self.fsynced += other.fsynced;
        self.rewrites += other.rewrites;
        self.saves += other.saves;
        self.toggles += other.toggles;
        self.refused += other.refused;
    }
}

/// The folder, and who writes there.
pub struct World {
    terms: Terms,
    folder: Folder,
    rng: Rng,
    sources: Vec<Source>,
    totals: Totals,
}

impl World {
    pub fn new(terms: Terms) -> Self {
        let syncs = terms.keeps != Keeps::Snapshots;
        let sources = vec![
            Source::new("s1", false, syncs),
            Source::new("l1", true, syncs),
            Source::new("s2", false, false),
            Source::new("l2", true, false),
        ];
        let folder = Folder::new(&format!("ingest-crash-{}", terms.seed));
        let rng = Rng::new(terms.seed ^ 0x1_9e57);
        Self { terms, folder, rng, sources, totals: Totals::default() }
    }

    /// Works and kills so often.
    ///
    /// # Errors
    /// What is wrong behind which kill.
    pub fn run(mut self, kills: usize) -> Result<Totals, String> {
        let (mut server, mut ingest) = self.start();
        for life in 0..kills {
            let log = self.live(server, ingest);
            self.totals.kills += 1;
            (server, ingest) = self.start();
            self.check(&server, ingest).map_err(|why| {
                format!("{:?}, kill {} of {kills}: {why}\nlog:\n{log}", self.terms, life + 1)
            })?;
        }
        for source in &self.sources {
            self.totals.messages += source.held(&mut server.connect())?;
            self.totals.fsynced += source.fsynced;
            self.totals.refused += source.refused;
        }
        Ok(self.totals)
    }

    fn start(&self) -> (ServerProcess, SocketAddr) {
        let ingest = free_addr().expect("a free port");
        let listen = format!("{ingest} protocol=2");
        let (appends, fsync) = match self.terms.keeps {
            Keeps::Always => ("yes", "always"),
            Keeps::EverySecond => ("yes", "everysec"),
            Keeps::Snapshots => ("no", "everysec"),
        };
        let words = ["--dir", self.folder.path(), "--threads", self.terms.threads];
        let file = ["--appendonly", appends, "--appendfsync", fsync, "--save", ""];
        let more = ["--auto-aof-rewrite-percentage", "0", "--ingest-listen", &listen];
        let all = [&words[..], &file[..], &more[..]].concat();
        (ServerProcess::start(&Binary::under_test(), &all), ingest)
    }

    /// Producers send, files are rewritten, and the server is killed. Returns its log.
    fn live(&mut self, server: ServerProcess, ingest: SocketAddr) -> String {
        let addr = server.addr;
        let is_over = AtomicBool::new(false);
        let seeds: Vec<u64> = self.sources.iter().map(|_| self.rng.below(1 << 40) as u64).collect();
        let (sources, rng, totals) = (&mut self.sources, &mut self.rng, &mut self.totals);
        let terms = &self.terms;
        thread::scope(|scope| {
            for (source, seed) in sources.iter_mut().zip(seeds) {
                let is_over = &is_over;
                scope.spawn(move || source.work(ingest, &mut Rng::new(seed), is_over));
            }
            meddle(addr, terms, rng, totals);
            let log = server.kill();
            is_over.store(true, Ordering::Relaxed);
            log
        })
    }

    fn check(&mut self, server: &ServerProcess, ingest: SocketAddr) -> Result<(), String> {
        let mut wire = server.connect();
        for source in &mut self.sources {
            source.check(&mut wire, ingest)?;
        }
        Ok(())
    }
}

/// What an administrator does meanwhile, for a random time: with `everysec` sometimes longer than
/// a second.
fn meddle(addr: SocketAddr, terms: &Terms, rng: &mut Rng, totals: &mut Totals) {
    let mut wire = Wire::connect(addr).expect("the server accepts connections");
    let began = Instant::now();
    let is_long = terms.keeps == Keeps::EverySecond && rng.chance(60);
    let longest = if is_long { 2_500_000 } else { 250_000 };
    let limit = Duration::from_micros(20_000 + rng.below(longest) as u64);
    let is_appending = terms.keeps != Keeps::Snapshots;
    if is_appending && terms.toggles && rng.chance(30) {
        toggle(&mut wire, rng);
        totals.toggles += 1;
    }
    while began.elapsed() < limit {
        sleep(Duration::from_micros(rng.below(60_000) as u64));
        if rng.chance(25) {
            let command = if is_appending { "BGREWRITEAOF" } else { "BGSAVE" };
            wire.command(&[command]).expect("an answer"); // one may be under way
            *(if is_appending { &mut totals.rewrites } else { &mut totals.saves }) += 1;
        }
    }
}

/// The file ends and begins again.
fn toggle(wire: &mut Wire, rng: &mut Rng) {
    let mut set = |value| {
        let reply = wire.command(&["CONFIG", "SET", "appendonly", value]).expect("an answer");
        assert_eq!(reply, Value::Simple(b"OK".to_vec()), "appendonly {value}");
    };
    set("no");
    sleep(Duration::from_micros(rng.below(30_000) as u64));
    set("yes");
    until("the append-only file is complete", || is_complete(wire));
}

/// Nothing of a rewrite is left to do.
pub fn is_complete(wire: &mut Wire) -> bool {
    let info = wire.command(&["INFO", "persistence"]).expect("an answer");
    let (Value::Bulk(text) | Value::Verbatim(text)) = info else { panic!("{info:?}") };
    let text = String::from_utf8_lossy(&text).into_owned();
    ["aof_enabled:1", "aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0"]
        .iter()
        .all(|line| text.lines().any(|one| one == *line))
}
