//! What a crash leaves of the contents of files whose names are durable.

use super::super::DiskFaults;
use super::super::store::Handle;
use super::{Machine, READ_WRITE, SECTOR};
use base::prng::Prng;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A file as the test knows it: every version of every sector since the last sync.
struct Tracked {
    path: String,
    handle: Handle,
    current: Vec<u8>,
    /// Lengths since the last sync, that of the sync among them.
    lengths: Vec<usize>,
    versions: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Sectors into which a write extended the file since the last sync.
    extended: BTreeSet<usize>,
}

/// How often each kind of sector was met, over all seeds.
#[derive(Default)]
struct Met {
    durable: u32,
    newest: u32,
    between: u32,
    zero: u32,
    garbage: u32,
    lengths_between: u32,
}

impl Tracked {
    fn new(machine: &mut Machine, path: &str, bytes: &[u8]) -> Self {
        machine.store.install(Path::new(path), bytes, 0o600).expect("room");
        let handle = machine.open(path, READ_WRITE).expect("it was installed");
        let mut file = Self {
            path: path.to_owned(),
            handle,
            current: bytes.to_vec(),
            lengths: Vec::new(),
            versions: BTreeMap::new(),
            extended: BTreeSet::new(),
        };
        file.synced();
        file
    }

    fn sector(&self, number: usize) -> Vec<u8> {
        let len = self.current.len();
        let from = number * SECTOR;
        self.current[from.min(len)..(from + SECTOR).min(len)].to_vec()
    }

    fn synced(&mut self) {
        self.lengths = vec![self.current.len()];
        self.extended.clear();
        self.versions.clear();
        for number in 0..100 {
            self.versions.insert(number, vec![self.sector(number)]);
        }
    }

    fn changed(&mut self, from: usize, to: usize) {
        self.lengths.push(self.current.len());
        for number in from / SECTOR..to.div_ceil(SECTOR) {
            let version = self.sector(number);
            self.versions.get_mut(&number).expect("a file of less than 100").push(version);
        }
    }

    fn write(&mut self, machine: &mut Machine, at: usize, bytes: &[u8]) {
        let written = machine.store.write(self.handle, Some(at as u64), bytes);
        assert_eq!(written, Ok(bytes.len()));
        let (before, end) = (self.current.len(), at + bytes.len());
        if end > before {
            self.current.resize(end, 0);
            self.extended.extend(before / SECTOR..end.div_ceil(SECTOR));
        }
        self.current[at..end].copy_from_slice(bytes);
        self.changed(at.min(before), end);
    }

    fn truncate(&mut self, machine: &mut Machine, to: usize) {
        assert_eq!(machine.store.truncate(self.handle, to as u64), Ok(()));
        let before = self.current.len();
        self.current.resize(to, 0);
        self.changed(to.min(before), to.max(before));
    }

    /// Every length and every sector is one which the file had since the last sync.
    fn check(&self, machine: &Machine, met: &mut Met) {
        let seen = machine.contents(&self.path).expect("its name is durable");
        assert!(self.lengths.contains(&seen.len()), "{} {:?}", seen.len(), self.lengths);
        let extremes = [self.lengths.first(), self.lengths.last()];
        met.lengths_between += u32::from(!extremes.contains(&Some(&seen.len())));
        for (number, sector) in seen.chunks(SECTOR).enumerate() {
            self.check_sector(number, sector, met);
        }
    }

    fn check_sector(&self, number: usize, seen: &[u8], met: &mut Met) {
        let versions = &self.versions[&number];
        // A truncation may reach the disk without the write before it: it cuts any version.
        let cuts = self.lengths.iter().map(|len| len.saturating_sub(number * SECTOR).min(SECTOR));
        let cuts: BTreeSet<usize> = cuts.chain([SECTOR]).collect();
        let is_version = |version: &Vec<u8>| {
            cuts.iter().any(|cut| {
                let common = version.len().min(seen.len()).min(*cut);
                version[..common] == seen[..common] && seen[common..].iter().all(|byte| *byte == 0)
            })
        };
        let last = versions.len() - 1;
        if versions.iter().any(is_version) && seen.iter().all(|byte| *byte == 0) {
            met.zero += 1;
            return;
        }
        match versions.iter().rposition(is_version) {
            Some(0) => met.durable += u32::from(last > 0),
            Some(place) if place == last => met.newest += 1,
            Some(_) => met.between += 1,
            None => {
                assert!(self.extended.contains(&number), "sector {number} of {}", self.path);
                let begins = |version: &Vec<u8>| seen.starts_with(version);
                assert!(versions.iter().any(begins), "sector {number} of {}", self.path);
                met.garbage += 1;
            }
        }
    }
}

#[test]
fn every_sector_is_old_or_new_and_what_was_synced_is_there() {
    let mut met = Met::default();
    for seed in 0..2000 {
        let mut machine = Machine::new(seed, DiskFaults::NONE);
        let mut dice = Prng::new(!seed);
        let mut files: Vec<Tracked> = ["/d/a", "/d/b"]
            .iter()
            .map(|path| {
                let mut bytes = vec![0; dice.below(6000) as usize];
                dice.fill(&mut bytes);
                Tracked::new(&mut machine, path, &bytes)
            })
            .collect();
        for _ in 0..dice.below(12) {
            let file = &mut files[dice.below(2) as usize];
            match dice.below(8) {
                0 => {
                    machine.sync(file.handle).expect("no faults");
                    file.synced();
                }
                1 => file.truncate(&mut machine, dice.below(8000) as usize),
                draw => {
                    let mut bytes = vec![0; 1 + dice.below(2500) as usize];
                    dice.fill(&mut bytes);
                    let len = file.current.len();
                    let at = if draw < 5 { len } else { dice.below(8000) as usize };
                    file.write(&mut machine, at, &bytes);
                }
            }
        }
        machine.crash();
        for file in &files {
            file.check(&machine, &mut met);
        }
    }
    let Met { durable, newest, between, zero, garbage, lengths_between } = met;
    let all = [durable, newest, between, zero, garbage, lengths_between];
    assert!(all.iter().all(|count| *count > 200), "{all:?}");
}

/// Two writes to one sector: without the first one the second is not there either, because the
/// sector reaches the disk as a whole. Writes to two sectors survive one without the other.
#[test]
fn sectors_are_whole_and_reordered() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let mut machine = Machine::new(seed, DiskFaults::NONE);
        machine.store.install(Path::new("/f"), &[b'-'; 2 * SECTOR], 0o600).expect("room");
        let file = machine.open("/f", READ_WRITE).expect("a file");
        for (at, bytes) in [(0, b"1"), (1, b"2"), (SECTOR, b"3")] {
            machine.store.write(file, Some(at as u64), bytes).expect("no faults");
        }
        machine.crash();
        let bytes = machine.contents("/f").expect("a file");
        seen.insert([bytes[0], bytes[1], bytes[SECTOR]]);
    }
    let expected = ["---", "--3", "1--", "1-3", "12-", "123"];
    assert_eq!(seen, expected.iter().map(|s| s.as_bytes().try_into().expect("3")).collect());
}

/// A write over several sectors survives in part.
#[test]
fn writes_are_torn_at_sectors() {
    let (mut torn, mut whole, mut none) = (0, 0, 0);
    for seed in 0..500 {
        let mut machine = Machine::new(seed, DiskFaults::NONE);
        machine.store.install(Path::new("/f"), &[b'-'; 4 * SECTOR], 0o600).expect("room");
        let file = machine.open("/f", READ_WRITE).expect("a file");
        machine.store.write(file, Some(0), &[b'x'; 4 * SECTOR]).expect("no faults");
        machine.crash();
        let bytes = machine.contents("/f").expect("a file");
        for sector in bytes.chunks(SECTOR) {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is whole");
        }
        match bytes.chunks(SECTOR).filter(|sector| sector[0] == b'x').count() {
            0 => none += 1,
            4 => whole += 1,
            _ => torn += 1,
        }
        let counts = machine.store.counts;
        assert_eq!(counts.writes_kept + counts.writes_torn + counts.writes_dropped, 1);
    }
    assert!(torn > 50 && whole > 100 && none > 100, "{torn} {whole} {none}");
}

/// Permissions survive in any version: no operation here makes them durable.
#[test]
fn permissions_are_those_of_some_time() {
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let mut machine = Machine::new(seed, DiskFaults::NONE);
        machine.store.install(Path::new("/f"), b"", 0o600).expect("room");
        let file = machine.open("/f", READ_WRITE).expect("a file");
        machine.store.set_mode(file, 0o640).expect("no faults");
        machine.sync(file).expect("no faults");
        machine.crash();
        seen.insert(machine.store.status(Path::new("/f")).expect("a file").1);
    }
    assert_eq!(seen, BTreeSet::from([0o600, 0o640]));
}
