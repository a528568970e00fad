//! One folder, and a server which is killed again and again while it writes there.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::until;
use sheafdb_tests::program::{finish, spawn};
use sheafdb_tests::rdb_state::databases;
use sheafdb_tests::rng::Rng;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

use super::client::Client;
use super::mirror::{Mirror, difference, plain};
use super::ops::Maker;
use super::shared::{self, Shared};

/// Clients with databases of their own: 1, 2, 3 and beside them 9, 10, 11.
const CLIENTS: u32 = 3;
/// Longest time until a key of this suite is due, and some more.
const DUE: Duration = Duration::from_millis(60);
/// Every so many kills redis-server loads a copy of the folder.
const COPY_EVERY: usize = 5;

/// How one world works.
#[derive(Clone, Debug)]
pub struct Terms {
    pub seed: u64,
    pub threads: &'static str,
    pub fsync: &'static str,
    /// Fields of hashes expire, which redis-server 7.0 does not know.
    pub has_fields: bool,
}

impl Terms {
    /// Chosen by the seed.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        Self {
            seed,
            threads: rng.pick(&["1", "2", "2", "4"]),
            fsync: rng.pick(&["always", "always", "everysec"]),
            has_fields: rng.chance(30),
        }
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub kills: usize,
    /// Changes of clients which were compared.
    pub changes: usize,
    /// Acknowledged changes that were gone (`everysec`).
    pub lost: usize,
    /// Files that ended within a command.
    pub cut: usize,
    /// Copies which redis-server has loaded.
    pub copies: usize,
    pub rewrites: usize,
    pub toggles: usize,
    /// DEBUG RELOAD and DEBUG LOADAOF, and those of them which were not refused.
    pub reloads: usize,
    pub reloaded: usize,
}

impl Totals {
    pub fn add(&mut self, other: Self) {
        self.kills += other.kills;
        self.changes += other.changes;
        self.lost += other.lost;
        self.cut += other.cut;
        self.copies += other.copies;
        self.rewrites += other.rewrites;
        self.toggles += other.toggles;
        self.reloads += other.reloads;
        self.reloaded += other.reloaded;
    }
}

/// The folder, and what it has to hold.
pub struct World {
    terms: Terms,
    folder: Folder,
    mirror: ServerProcess,
    rng: Rng,
    clients: Vec<Client>,
    shared: Shared,
    killed: SystemTime,
    /// The log of the server that was killed last.
    log: String,
    totals: Totals,
}

impl World {
    /// An empty one.
    pub fn new(terms: Terms) -> Self {
        let mut rng = Rng::new(terms.seed ^ 0x5eed);
        let mirror = if terms.has_fields {
            ServerProcess::start(&Binary::under_test(), &["--threads", "1"])
        } else {
            ServerProcess::start(&redis(), &[])
        };
        let makers = (1..=CLIENTS).map(|db| {
            let seed = rng.below(1 << 30) as u64;
            Client::new(db, Maker::new(seed, db, terms.has_fields))
        });
        let clients = makers.collect();
        let folder = Folder::new(&format!("crash-{}", terms.seed));
        Self {
            terms,
            folder,
            mirror,
            rng,
            clients,
            shared: Shared::default(),
            killed: UNIX_EPOCH,
            log: String::new(),
            totals: Totals::default(),
        }
    }

    /// Works and kills so often.
    ///
    /// # Errors
    /// What is wrong behind which kill.
    pub fn run(mut self, kills: usize) -> Result<Totals, String> {
        let mut server = self.start(self.folder.path().as_ref());
        for life in 0..kills {
            self.live(server, life);
            self.totals.kills += 1;
            let copy = (life % COPY_EVERY == COPY_EVERY - 1).then(|| self.copy(life));
            let file = self.check_file();
            server = self.start(self.folder.path().as_ref());
            let found = file.and_then(|()| self.check(&server, copy.as_deref()));
            if let Some(copy) = copy {
                let _ = fs::remove_dir_all(copy);
            }
            found.map_err(|why| {
                let (terms, log) = (&self.terms, &self.log);
                format!("{terms:?}, kill {} of {kills}: {why}\nthe log before:\n{log}", life + 1)
            })?;
        }
        Ok(self.totals)
    }

    fn start(&self, folder: &Path) -> ServerProcess {
        let folder = folder.to_str().expect("plain");
        let (threads, fsync) = (self.terms.threads, self.terms.fsync);
        let words = ["--dir", folder, "--threads", threads, "--appendfsync", fsync];
        let more = ["--appendonly", "yes", "--auto-aof-rewrite-percentage", "0"];
        ServerProcess::start(&Binary::under_test(), &[&words[..], &more[..]].concat())
    }

    /// Clients work, files are rewritten, and the server is killed.
    fn live(&mut self, server: ServerProcess, life: usize) {
        let addr = server.addr;
        let is_over = AtomicBool::new(false);
        let seeds: Vec<u64> = (0..8).map(|_| self.rng.below(1 << 40) as u64).collect();
        let (clients, rng, totals) = (&mut self.clients, &mut self.rng, &mut self.totals);
        let name = format!("{life}");
        let (ledgers, log) = thread::scope(|scope| {
            for (client, seed) in clients.iter_mut().zip(&seeds) {
                scope.spawn(|| client.work(addr, &mut Rng::new(*seed)));
            }
            let writer = scope.spawn(|| shared::write(addr, &mut Rng::new(seeds[4]), &name));
            let takers = [5, 6].map(|at| {
                let seed = seeds[at];
                scope.spawn(move || shared::take(addr, &mut Rng::new(seed)))
            });
            let reader = scope.spawn(|| shared::read(addr, &mut Rng::new(seeds[7])));
            meddle(addr, rng, totals);
            let log = server.kill();
            is_over.store(true, Ordering::Relaxed);
            let handles = takers.into_iter().chain([writer, reader]);
            (handles.map(|one| one.join().expect("no panic")).collect::<Vec<_>>(), log)
        });
        self.killed = SystemTime::now();
        self.log = log;
        for ledger in ledgers {
            self.shared.add(ledger);
        }
    }

    /// `check-aof` finds the file whole, but for the end of the last one.
    fn check_file(&mut self) -> Result<(), String> {
        let files = self.folder.at("appendonlydir");
        let manifest = files.join("appendonly.aof.manifest");
        let text =
            fs::read_to_string(&manifest).map_err(|e| format!("{}: {e}", manifest.display()))?;
        let last = text.lines().last().and_then(|line| line.split(' ').nth(1)).unwrap_or("");
        let mut command = Command::new(Binary::under_test().path);
        let out = finish(spawn(command.arg("check-aof").arg(&manifest).stdin(Stdio::null())));
        let told = String::from_utf8_lossy(&out.stdout).into_owned()
            + &String::from_utf8_lossy(&out.stderr);
        if out.status.success() {
            return Ok(());
        }
        self.totals.cut += 1;
        let is_last = told.lines().any(|line| line.contains(last) && line.contains("not valid"));
        if is_last { Ok(()) } else { Err(format!("check-aof:\n{text}\n{told}")) }
    }

    /// A copy of the folder.
    fn copy(&self, life: usize) -> PathBuf {
        let to = self.folder.at(&format!("copy-{life}"));
        let files = to.join("appendonlydir");
        fs::create_dir_all(&files).expect("a folder");
        for entry in fs::read_dir(self.folder.at("appendonlydir")).expect("a folder") {
            let entry = entry.expect("an entry");
            fs::copy(entry.path(), files.join(entry.file_name())).expect("a copy");
        }
        to
    }

    /// What the restored server holds.
    fn check(&mut self, server: &ServerProcess, copy: Option<&Path>) -> Result<(), String> {
        // By then everything is due that was to be due in a moment.
        while self.killed.elapsed().unwrap_or_default() < DUE {
            sleep(Duration::from_millis(1));
        }
        let is_whole = self.terms.fsync == "always";
        let mut seen = server.connect();
        for client in &mut self.clients {
            let history = std::mem::take(&mut client.history);
            let kept = Mirror::new(&self.mirror, &mut seen, client.db).check(&history, is_whole)?;
            self.totals.changes += kept.atoms;
            self.totals.lost += kept.lost;
        }
        self.shared.check(&mut seen, is_whole)?;
        match copy {
            Some(copy) if !self.terms.has_fields => self.compare(copy, &mut seen),
            _ => Ok(()),
        }
    }

    /// redis-server finds the same in a copy of the folder.
    fn compare(&mut self, copy: &Path, seen: &mut Wire) -> Result<(), String> {
        let folder = copy.to_str().expect("plain");
        let redis = ServerProcess::start(&redis(), &["--dir", folder, "--appendonly", "yes"]);
        self.totals.copies += 1;
        let (theirs, ours) = (databases(&mut redis.connect(), 0..16), databases(seen, 0..16));
        let (theirs, ours) = (plain(&theirs), plain(&ours));
        if theirs == ours {
            return Ok(());
        }
        Err(format!("redis-server (-) and the server (+):\n{}", difference(&theirs, &ours)))
    }
}

/// redis-server 7.0, never another oracle.
pub fn redis() -> Binary {
    Binary { path: "redis-server".into(), kind: Kind::Redis }
}

/// What an administrator does meanwhile, for a random time.
fn meddle(addr: SocketAddr, rng: &mut Rng, totals: &mut Totals) {
    let mut wire = Wire::connect(addr).expect("the server accepts connections");
    let began = Instant::now();
    let limit = Duration::from_micros(20_000 + rng.below(250_000) as u64);
    if rng.chance(15) {
        toggle(&mut wire, rng);
        totals.toggles += 1;
    }
    while began.elapsed() < limit {
        sleep(Duration::from_micros(rng.below(60_000) as u64));
        if rng.chance(20) {
            // One may be under way.
            wire.command(&["BGREWRITEAOF"]).expect("an answer");
            totals.rewrites += 1;
        }
        if rng.chance(15) {
            // The server may be killed meanwhile, or behind it. (Beside a rewrite it is refused.)
            let subcommand = rng.pick(&["RELOAD", "LOADAOF"]);
            wire.send(&encode(&["DEBUG", subcommand])).expect("sent");
            totals.reloads += 1;
            if rng.chance(20) {
                return;
            }
            let reply = wire.receive().expect("an answer");
            totals.reloaded += usize::from(reply == Value::Simple(b"OK".to_vec()));
        }
    }
}

/// The file ends and begins again. Once it is complete, what was acknowledged is in it.
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
