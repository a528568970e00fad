//! The simulated disk under the driver: simulated times, ends of processes and machines, and the
//! protocol by which a file is replaced.

use base::MonoNs;
use base::prng::Prng;
use driver::sim::{DiskFaults, SimDisk, SimDriver, SimNet};
use driver::{Driver, Event, FileDone, FileError, FileId, FileOp, FileValue, OpenHow};
use rustix::io::Errno;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const CREATE: OpenHow = OpenHow {
    read: true,
    write: true,
    append: false,
    create: true,
    create_new: false,
    truncate: true,
    mode: 0o600,
};
const SECOND_NS: u64 = 1_000_000_000;

/// A machine with one process.
struct Machine {
    net: SimNet,
    disk: SimDisk,
    driver: SimDriver<u32>,
    next_token: u64,
}

impl Machine {
    fn new(seed: u64, faults: DiskFaults) -> Self {
        let net = SimNet::new(seed, driver::sim::Faults::NONE);
        let disk = SimDisk::new(seed, faults);
        let driver = net.driver_on(&disk);
        Self { net, disk, driver, next_token: 0 }
    }

    /// Another process takes the place of the first one, which is killed.
    fn restart(&mut self) {
        self.driver = self.net.driver_on(&self.disk);
    }

    fn start(&mut self, op: FileOp) -> u64 {
        self.next_token += 1;
        self.driver.file(self.next_token, op);
        self.next_token
    }

    fn turn(&mut self) -> Vec<FileDone> {
        self.driver.wait(None);
        let events = std::iter::from_fn(|| self.driver.next());
        let done = events.map(|event| match event {
            Event::File(done) => *done,
            other => panic!("nothing else happens: {other:?}"),
        });
        done.collect()
    }

    fn run(&mut self, op: FileOp) -> Result<FileValue, FileError> {
        let token = self.start(op);
        loop {
            if let Some(done) = self.turn().pop() {
                assert_eq!(done.token, token);
                return done.outcome;
            }
        }
    }

    fn create(&mut self, path: &str) -> FileId {
        match self.run(FileOp::Open { path: path.into(), how: CREATE }) {
            Ok(FileValue::Opened { file, .. }) => file,
            other => panic!("{path}: {other:?}"),
        }
    }

    fn contents(&self, path: &str) -> Option<Vec<u8>> {
        self.disk.contents(Path::new(path)).ok()
    }
}

// ---- replacing a file

/// A step of a protocol that replaces `/data/conf` by way of `/data/temp`.
#[derive(Clone, Copy, Debug)]
enum Step {
    Open,
    Write,
    SyncData,
    Close,
    Rename,
    SyncFolder,
}

use Step::{Close, Open, Rename, SyncData, SyncFolder, Write};

/// After the last step the new contents are promised.
const PROTOCOL: [Step; 7] = [Open, Write, Write, SyncData, Close, Rename, SyncFolder];
const WITHOUT_DATA_SYNC: [Step; 6] = [Open, Write, Write, Close, Rename, SyncFolder];
const WITHOUT_FOLDER_SYNC: [Step; 6] = [Open, Write, Write, SyncData, Close, Rename];
const RENAME_BEFORE_SYNC: [Step; 7] = [Open, Write, Write, Rename, SyncData, Close, SyncFolder];

const OLD: [u8; 3000] = [b'o'; 3000];
const HALF: [u8; 2500] = [b'n'; 2500];
/// A protocol takes fewer turns than this, unless the disk is rough.
const TURNS: u64 = 25;

struct Replacement {
    machine: Machine,
    file: Option<FileId>,
    written: u64,
}

impl Replacement {
    fn new(seed: u64, faults: DiskFaults) -> Self {
        let machine = Machine::new(seed, faults);
        let conf = Path::new("/data/conf");
        machine.disk.install(conf, &OLD, 0o644).expect("room");
        Self { machine, file: None, written: 0 }
    }

    fn op(&mut self, step: Step) -> FileOp {
        let (conf, temp) = (PathBuf::from("/data/conf"), PathBuf::from("/data/temp"));
        let file = || self.file.expect("it was opened first");
        match step {
            Open => FileOp::Open { path: temp, how: CREATE },
            Write => FileOp::Write { file: file(), at: self.written, bytes: HALF.to_vec() },
            SyncData => FileOp::SyncData { file: file() },
            Close => FileOp::Close { file: file() },
            Rename => FileOp::Rename { from: temp, to: conf },
            SyncFolder => FileOp::SyncFolder { folder: "/data".into() },
        }
    }

    fn note(&mut self, value: FileValue) {
        match value {
            FileValue::Opened { file, .. } => self.file = Some(file),
            FileValue::Written(bytes) => self.written += bytes.len() as u64,
            _ => (),
        }
    }

    /// Runs the steps for so many turns, or until one fails, and leaves the next one in flight.
    /// True if all have succeeded.
    fn run(&mut self, steps: &[Step], turns: u64) -> bool {
        let mut steps = steps.iter();
        let mut in_flight = false;
        for _ in 0..turns {
            if !in_flight {
                let Some(step) = steps.next() else { return true };
                let op = self.op(*step);
                self.machine.start(op);
                in_flight = true;
            }
            for done in self.machine.turn() {
                in_flight = false;
                match done.outcome {
                    Ok(value) => self.note(value),
                    Err(_) => return false,
                }
            }
        }
        if !in_flight && let Some(step) = steps.next() {
            let op = self.op(*step);
            self.machine.start(op);
            in_flight = true;
        }
        !in_flight
    }
}

/// Runs a protocol, crashes the machine at a time that is drawn, and says what is wrong.
fn replace(seed: u64, faults: DiskFaults, steps: &[Step]) -> Result<(), String> {
    let mut replacement = Replacement::new(seed, faults);
    let turns = Prng::new(!seed).below(TURNS);
    let promised = replacement.run(steps, turns);
    replacement.machine.disk.crash();
    let new = [HALF, HALF].concat();
    match replacement.machine.contents("/data/conf") {
        Some(found) if found == new => Ok(()),
        Some(found) if found == OLD && !promised => Ok(()),
        Some(found) if found == OLD => Err("the old file after the promise".into()),
        Some(found) => Err(format!("{} bytes which are neither", found.len())),
        None => Err("no file".into()),
    }
}

#[test]
fn a_file_is_replaced_as_a_whole_or_not_at_all() {
    for seed in 0..10_000 {
        let faults = [DiskFaults::NONE, DiskFaults::ROUGH, DiskFaults::HARSH][seed as usize % 3];
        assert_eq!(replace(seed, faults, &PROTOCOL), Ok(()), "seed {seed}");
    }
}

/// The number of seeds until one breaks the protocol.
fn seeds_until_broken(steps: &[Step], how: &str) -> u64 {
    let broken = |seed: &u64| {
        replace(*seed, DiskFaults::NONE, steps).is_err_and(|problem| problem.contains(how))
    };
    (0..1000).find(broken).expect("a weak protocol is found") + 1
}

/// Each protocol that leaves out a step is found. `docs/simulation.md` has the numbers of seeds.
#[test]
fn weaker_protocols_are_found() {
    let seeds = [
        seeds_until_broken(&WITHOUT_DATA_SYNC, "neither"),
        seeds_until_broken(&WITHOUT_FOLDER_SYNC, "after the promise"),
        seeds_until_broken(&RENAME_BEFORE_SYNC, "neither"),
    ];
    println!("seeds until found: {seeds:?}");
    assert!(seeds.iter().all(|seeds| *seeds <= 200), "{seeds:?}");
}

/// A program that syncs again after a failed sync, and trusts the second one, loses data.
#[test]
fn a_second_sync_after_a_failed_one_is_found() {
    let broken = |seed: &u64| {
        let mut replacement = Replacement::new(*seed, DiskFaults::NONE);
        assert!(replacement.run(&[Open, Write, Write], TURNS));
        let disk = replacement.machine.disk.clone();
        disk.set_faults(DiskFaults { sync_error_one_in: 1, ..DiskFaults::NONE });
        assert!(!replacement.run(&[SyncData], TURNS));
        disk.set_faults(DiskFaults::NONE);
        assert!(replacement.run(&[SyncData, Close, Rename, SyncFolder], TURNS));
        disk.crash();
        replacement.machine.contents("/data/conf") != Some([HALF, HALF].concat())
    };
    let seeds = (0..1000).find(broken).expect("it is found") + 1;
    println!("seeds until found: {seeds}");
    assert!(seeds <= 20, "{seeds}");
}

// ---- repeatability

/// A text of all that a run meets: completions with their times, and what a crash leaves.
fn story(seed: u64) -> String {
    let mut machine = Machine::new(seed, DiskFaults::HARSH);
    let (mut journal, mut dice) = (String::new(), Prng::new(!seed));
    let mut files: Vec<FileId> = Vec::new();
    for round in 0..60 {
        for _ in 0..dice.below(4) {
            let path = |dice: &mut Prng| PathBuf::from(format!("/{}", dice.below(4)));
            let file = dice.below(files.len().max(1) as u64) as usize;
            let op = match (dice.below(8), files.get(file).copied()) {
                (0, _) | (_, None) => FileOp::Open { path: path(&mut dice), how: CREATE },
                (1, _) => FileOp::Rename { from: path(&mut dice), to: path(&mut dice) },
                (2, _) => FileOp::SyncFolder { folder: "/".into() },
                (3, _) => FileOp::List { folder: "/".into() },
                (4, Some(file)) => FileOp::SyncData { file },
                (5, Some(file)) => FileOp::Read { file, at: 0, bytes: 3000 },
                (_, Some(file)) => {
                    FileOp::Write { file, at: dice.below(2000), bytes: vec![round; 1500] }
                }
            };
            machine.start(op);
        }
        if !machine.net.is_at_rest() {
            for done in machine.turn() {
                writeln!(journal, "{:?} {done:?}", machine.driver.now()).expect("a string");
                if let Ok(FileValue::Opened { file, .. }) = done.outcome {
                    files.push(file);
                }
            }
        }
    }
    machine.disk.crash();
    for name in machine.disk.names(Path::new("/")).expect("the root") {
        let contents = machine.disk.contents(&Path::new("/").join(&name));
        writeln!(journal, "{} {contents:?}", name.display()).expect("a string");
    }
    writeln!(journal, "{:?}", machine.disk.counts()).expect("a string");
    journal
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_times() {
    for seed in 0..50 {
        let first = story(seed);
        assert_eq!(first, story(seed), "seed {seed}");
        assert_ne!(first, story(seed + 1000));
    }
}

/// Every kind of fault happens, and is counted.
#[test]
fn a_harsh_disk_has_all_faults() {
    let mut met = std::collections::BTreeMap::new();
    for seed in 0..300 {
        let faults = DiskFaults { capacity_bytes: 16 << 10, hang_one_in: 16, ..DiskFaults::HARSH };
        let mut machine = Machine::new(seed, faults);
        for number in 0..6 {
            let path = PathBuf::from(format!("/{number}"));
            machine.start(FileOp::Open { path, how: CREATE });
        }
        for _ in 0..30 {
            for done in if machine.net.is_at_rest() { Vec::new() } else { machine.turn() } {
                if let Ok(FileValue::Opened { file, .. }) = done.outcome {
                    machine.start(FileOp::Write { file, at: 0, bytes: vec![7; 2000] });
                    machine.start(FileOp::Write { file, at: 2000, bytes: vec![8; 2000] });
                    machine.start(FileOp::Read { file, at: 0, bytes: 4000 });
                    machine.start(FileOp::SyncData { file });
                    machine.start(FileOp::Preallocate { file, from: 0, bytes: 9000 });
                    machine.start(FileOp::SyncFolder { folder: "/".into() });
                }
            }
        }
        machine.disk.crash();
        for (kind, count) in machine.disk.counts().by_kind() {
            *met.entry(kind).or_insert(0) += count;
        }
    }
    assert!(met.values().all(|count| *count > 0), "{met:?}");
}

// ---- time

#[test]
fn operations_take_simulated_time_and_overtake_each_other() {
    let faults = DiskFaults { delay_ns_max: 2_000_000, ..DiskFaults::NONE };
    let mut machine = Machine::new(5, faults);
    let file = machine.create("/f");
    let begin = machine.driver.now();
    let tokens: Vec<u64> = (0..50)
        .map(|at| machine.start(FileOp::Write { file, at, bytes: vec![at as u8] }))
        .collect();
    assert!(!machine.net.is_at_rest());
    let (mut done, mut times) = (Vec::new(), Vec::new());
    while done.len() < tokens.len() {
        let completed = machine.turn();
        times.extend(completed.iter().map(|_| machine.driver.now().since(begin)));
        done.extend(completed.into_iter().map(|done| done.token));
    }
    assert!(machine.net.is_at_rest());
    assert!(done != tokens && times.is_sorted());
    assert!(times[0] < 500_000 && times[49] > 1_500_000 && times[49] <= 2_000_000, "{times:?}");
    done.sort_unstable();
    assert_eq!(done, tokens);
    assert_eq!(machine.contents("/f"), Some((0..50).collect()));
}

#[test]
fn a_disk_that_hangs_completes_nothing_for_seconds() {
    let faults = DiskFaults { hang_one_in: 1, hang_ns_max: 5 * SECOND_NS, ..DiskFaults::NONE };
    let mut longest = 0;
    for seed in 0..20 {
        let mut machine = Machine::new(seed, DiskFaults::NONE);
        let file = machine.create("/f");
        let begin = machine.driver.now();
        let first = machine.start(FileOp::Write { file, at: 0, bytes: vec![1] });
        machine.disk.set_faults(faults);
        let second = machine.start(FileOp::SyncData { file });
        // A worker with a deadline is not held up.
        let deadline = MonoNs(begin.0 + 1);
        machine.driver.wait(Some(deadline));
        assert!(machine.driver.next().is_none());
        assert_eq!(machine.driver.now(), deadline);
        let mut done: Vec<u64> = Vec::new();
        while done.len() < 2 {
            done.extend(machine.turn().into_iter().map(|done| done.token));
        }
        done.sort_unstable();
        assert_eq!(done, [first, second], "both waited for the disk");
        let took = machine.driver.now().since(begin);
        assert!(took <= 5 * SECOND_NS && machine.disk.counts().hangs == 1);
        longest = longest.max(took);
    }
    assert!(longest > 4 * SECOND_NS, "{longest}");
}

/// A sync covers what was complete when it began, not what completes while it runs.
#[test]
fn a_sync_does_not_cover_a_write_beside_it() {
    let mut lost = 0;
    for seed in 0..200 {
        let faults = DiskFaults { delay_ns_max: 1_000_000, ..DiskFaults::NONE };
        let mut machine = Machine::new(seed, faults);
        machine.disk.install(Path::new("/f"), &[b'o'; 100], 0o600).expect("room");
        let how = OpenHow { truncate: false, ..CREATE };
        let Ok(FileValue::Opened { file, .. }) =
            machine.run(FileOp::Open { path: "/f".into(), how })
        else {
            panic!("it is there")
        };
        let sync = machine.start(FileOp::SyncData { file });
        machine.start(FileOp::Write { file, at: 0, bytes: vec![b'n'; 100] });
        let mut done: Vec<u64> = Vec::new();
        while done.len() < 2 {
            done.extend(machine.turn().into_iter().map(|done| done.token));
        }
        machine.disk.crash();
        let is_old = machine.contents("/f") == Some(vec![b'o'; 100]);
        lost += u32::from(is_old && done[1] == sync);
    }
    assert!(lost > 20, "{lost}");
}

/// A durable write covers itself. Who has left something else unsynced must not rely on it.
#[test]
fn a_durable_write_survives_a_crash_unless_something_was_left_before() {
    for seed in 0..50 {
        let mut machine = Machine::new(seed, DiskFaults::NONE);
        let file = machine.create("/f");
        assert!(machine.run(FileOp::SyncFolder { folder: "/".into() }).is_ok());
        let durably = |at, byte| FileOp::WriteDurably { file, at, bytes: vec![byte; 1000] };
        assert!(machine.run(durably(0, 1)).is_ok());
        assert!(machine.run(durably(1000, 2)).is_ok());
        machine.disk.crash();
        assert_eq!(machine.contents("/f"), Some([[1; 1000], [2; 1000]].concat()));
    }
    let mut lost = 0;
    for seed in 0..50 {
        let mut machine = Machine::new(seed, DiskFaults::NONE);
        let file = machine.create("/f");
        assert!(machine.run(FileOp::SyncFolder { folder: "/".into() }).is_ok());
        assert!(machine.run(FileOp::Write { file, at: 0, bytes: vec![1; 1000] }).is_ok());
        assert!(machine.run(FileOp::WriteDurably { file, at: 1000, bytes: vec![2; 10] }).is_ok());
        machine.disk.crash();
        lost += u32::from(machine.contents("/f") != Some([vec![1; 1000], vec![2; 10]].concat()));
    }
    assert!(lost > 10, "{lost}");
}

// ---- ends

/// What a killed process has written stays, synced or not; what it had in flight happens or not.
#[test]
fn a_killed_process_leaves_what_it_has_written() {
    let (mut happened, mut did_not) = (0, 0);
    for seed in 0..100 {
        let mut machine = Machine::new(seed, DiskFaults::NONE);
        let file = machine.create("/f");
        machine.run(FileOp::Write { file, at: 0, bytes: vec![1; 10] }).expect("no faults");
        machine.start(FileOp::Write { file, at: 10, bytes: vec![2; 10] });
        machine.restart();
        match machine.contents("/f").expect("it was created").len() {
            10 => did_not += 1,
            20 => happened += 1,
            len => panic!("{len} bytes"),
        }
        let again = machine.run(FileOp::Read { file, at: 0, bytes: 1 });
        assert_eq!(again, Err(FileError { errno: Errno::BADF, written: 0 }));
        machine.create("/f");
        assert_eq!(machine.contents("/f"), Some(Vec::new()));
    }
    assert!(happened > 20 && did_not > 20, "{happened} {did_not}");
}

/// The space of a file without a name is free when the process that had it open has ended.
#[test]
fn an_open_file_without_a_name_ends_with_its_process() {
    let mut machine = Machine::new(1, DiskFaults::NONE);
    let file = machine.create("/f");
    machine.run(FileOp::Write { file, at: 0, bytes: vec![1; 10_000] }).expect("no faults");
    machine.run(FileOp::Unlink { path: "/f".into() }).expect("no faults");
    assert_eq!(machine.disk.used_bytes(), 12 << 10);
    machine.restart();
    assert_eq!(machine.disk.used_bytes(), 0);
}

#[test]
fn a_file_that_replaces_another_is_not_the_same() {
    let mut machine = Machine::new(1, DiskFaults::NONE);
    let stands = |machine: &mut Machine| match machine.run(FileOp::Status { path: "/f".into() }) {
        Ok(FileValue::Status { inode, .. }) => inode,
        other => panic!("{other:?}"),
    };
    let opened = |machine: &mut Machine| {
        let how = OpenHow { write: true, create: true, mode: 0o600, ..OpenHow::default() };
        match machine.run(FileOp::Open { path: "/f".into(), how }) {
            Ok(FileValue::Opened { inode, .. }) => inode,
            other => panic!("{other:?}"),
        }
    };
    let first = opened(&mut machine);
    assert_eq!((stands(&mut machine), opened(&mut machine)), (first, first));
    machine.run(FileOp::Unlink { path: "/f".into() }).expect("no faults");
    assert_ne!(opened(&mut machine), first);
}

/// Two processes of one machine share its disk; another machine has its own.
#[test]
fn processes_share_a_disk_and_machines_do_not() {
    let mut machine = Machine::new(1, DiskFaults::NONE);
    let file = machine.create("/f");
    machine.run(FileOp::Write { file, at: 0, bytes: vec![1; 3] }).expect("no faults");
    let read = |driver: &mut SimDriver<u32>| {
        driver.file(9, FileOp::Status { path: "/f".into() });
        loop {
            driver.wait(None);
            if let Some(Event::File(done)) = driver.next() {
                return done.outcome;
            }
        }
    };
    let status = read(&mut machine.net.driver_on(&machine.disk));
    let right =
        matches!(status, Ok(FileValue::Status { len: 3, mode: 0o600, is_folder: false, .. }));
    assert!(right, "{status:?}");
    let other = read(&mut machine.net.driver());
    assert_eq!(other, Err(FileError { errno: Errno::NOENT, written: 0 }));
}
