//! The machine of the servers: its disk, and the configuration file on it, which CONFIG REWRITE
//! replaces.

use crate::plan::MS;
use driver::sim::{DiskFaults, SimDisk};
use journal::History;
use journal::history::Generation;
use std::fmt::Write as _;
use std::path::Path;

/// The configuration file of every server.
pub const CONFIG_FILE: &str = "/etc/sheafdb.conf";
/// The setting that clients change and save. It has no effect on what they ask.
pub const SAVED_SETTING: &str = "slowlog-max-len";
/// The first and the last line of the file at the beginning: comments, which a rewrite keeps.
const FIRST_LINE: &str = "# The first line.";
const LAST_LINE: &str = "# The last line.";
/// Where servers save the data.
pub const DATA_FOLDER: &str = "/data";
/// The file with the data.
pub const DATA_FILE: &str = "/data/dump.rdb";
/// The folder of the append-only file, and in it the list of files which rewrites have replaced.
const JOURNAL_FOLDER: &str = "/data/appendonlydir";
const HISTORY: &str = "appendonly.aof.history";
const MANIFEST: &str = "appendonly.aof.manifest";
/// Operations on files of one CONFIG REWRITE at most, with one that it has to wait for.
const OPERATIONS_MAX: u64 = 40;

/// The disk, and what is known about the file.
pub struct Machine {
    /// The disk.
    pub disk: SimDisk,
    /// The highest value whose CONFIG REWRITE was answered with OK.
    saved: u64,
    /// The highest value that was set.
    set: u64,
}

impl Machine {
    /// A machine with a configuration file.
    pub fn new(seed: u64, faults: DiskFaults) -> Self {
        let disk = SimDisk::new(seed, faults);
        let text = format!("{FIRST_LINE}\n{SAVED_SETTING} 0\n{LAST_LINE}\n");
        disk.install(Path::new(CONFIG_FILE), text.as_bytes(), 0o640).expect("an empty disk");
        disk.install_folder(Path::new(DATA_FOLDER)).expect("an empty disk");
        Self { disk, saved: 0, set: 0 }
    }

    /// The next value of the setting; values ascend.
    pub fn next_value(&mut self) -> u64 {
        self.set += 1;
        self.set
    }

    /// CONFIG REWRITE was answered with OK after this value was set.
    pub fn promise(&mut self, value: u64) {
        self.saved = self.saved.max(value);
    }

    /// How long a CONFIG REWRITE takes at most, nanoseconds. It may wait for one under way.
    pub fn rewrite_ns_max(faults: &DiskFaults) -> u64 {
        OPERATIONS_MAX * (faults.delay_ns_max + faults.slow_ns_max + faults.hang_ns_max + MS)
    }

    /// Whether there is saved data.
    pub fn has_data(&self) -> bool {
        self.disk.contents(Path::new(DATA_FILE)).is_ok()
    }

    /// The files of the append-only file with their lengths, and its manifest, for the trace.
    pub fn journal_files(&self) -> String {
        let folder = Path::new(JOURNAL_FOLDER);
        let names = self.disk.names(folder).unwrap_or_default();
        let mut text = String::new();
        for name in names {
            let bytes = self.disk.contents(&folder.join(&name)).unwrap_or_default();
            _ = write!(text, "{} {}, ", name.display(), bytes.len());
        }
        let manifest = self.disk.contents(&folder.join(MANIFEST)).unwrap_or_default();
        _ = write!(text, "{:?}", String::from_utf8_lossy(&manifest));
        text
    }

    /// The generations of kept history. The error is what is wrong with it: a crash leaves a whole
    /// list, and every file which it names.
    pub fn check_history(&self) -> Result<usize, String> {
        let read = |name: &str| self.disk.contents(&Path::new(JOURNAL_FOLDER).join(name));
        let Ok(text) = read(HISTORY) else { return Ok(0) };
        let history = History::parse(&text).map_err(|e| format!("the list of history: {e}"))?;
        for file in history.generations.iter().flat_map(Generation::files) {
            let name = String::from_utf8_lossy(&file.name);
            read(&name).map_err(|e| format!("{name} is kept, and cannot be read: {e}"))?;
        }
        Ok(history.generations.len())
    }

    /// The value in the file. The error is what is wrong with the file: it is not whole, or older
    /// than what was promised.
    pub fn check_file(&self) -> Result<u64, String> {
        let bytes = self.disk.contents(Path::new(CONFIG_FILE));
        let bytes = bytes.map_err(|e| format!("the configuration file cannot be read: {e}"))?;
        let broken = |why: &str| {
            Err(format!("the configuration file {why}: {}", String::from_utf8_lossy(&bytes)))
        };
        let is_text = |byte: &u8| *byte == b'\n' || byte.is_ascii_graphic() || *byte == b' ';
        if !bytes.iter().all(is_text) || bytes.last() != Some(&b'\n') {
            return broken("is no text");
        }
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        if lines.first() != Some(&FIRST_LINE) || !lines.contains(&LAST_LINE) {
            return broken("is not whole");
        }
        let values = lines.iter().filter_map(|line| line.strip_prefix(SAVED_SETTING));
        let values: Vec<u64> = values.filter_map(|value| value.trim().parse().ok()).collect();
        match values[..] {
            [value] if value < self.saved => broken("is older than what was promised"),
            [value] if value > self.set => broken("has a value that nobody has set"),
            [value] => Ok(value),
            _ => broken("does not have the setting once"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_which_is_old_or_torn_is_refused() {
        let mut machine = Machine::new(1, DiskFaults::NONE);
        assert_eq!(machine.check_file(), Ok(0));
        let value = machine.next_value();
        assert_eq!(machine.check_file(), Ok(0), "nothing was promised");
        machine.promise(value);
        assert!(machine.check_file().expect_err("it is old").contains("older"));
        let write = |machine: &Machine, text: &str| {
            machine.disk.install(Path::new(CONFIG_FILE), text.as_bytes(), 0o640).expect("room");
        };
        write(&machine, "# The first line.\nslowlog-max-len 1\n# The last line.\nhz 7\n");
        assert_eq!(machine.check_file(), Ok(1));
        write(&machine, "# The first line.\nslowlog-max-len 1\n");
        assert!(machine.check_file().expect_err("it is torn").contains("not whole"));
        write(&machine, "# The first line.\nslowlog-max-len 1\n# The last line.\n\0\0\0\n");
        assert!(machine.check_file().expect_err("it has zeros").contains("no text"));
        write(&machine, "# The first line.\nslowlog-max-len 2\n# The last line.\n");
        assert!(machine.check_file().expect_err("it is new").contains("nobody has set"));
    }
}
