//! Files for tests.

use base::DbIndex;
use journal::record::{write_command, write_exec, write_multi, write_select, write_timestamp};
use rdb::Owned;
use rdb::file::{FileOptions, FileWriter, Meta};

/// Builds a file of commands, and knows where each record ends.
#[derive(Default)]
pub struct Incr {
    pub bytes: Vec<u8>,
    /// Number and end of each record.
    pub ends: Vec<(u64, usize)>,
    next: u64,
}

impl Incr {
    pub fn note(mut self, number: u64, ms: i64) -> Self {
        self.bytes.extend_from_slice(format!("#NUM:{number}:{ms}\r\n").as_bytes());
        self.next = number;
        self
    }

    pub fn second(mut self, unix_s: i64) -> Self {
        write_timestamp(&mut self.bytes, unix_s);
        self
    }

    pub fn select(mut self, db: u32) -> Self {
        write_select(&mut self.bytes, db);
        self
    }

    pub fn text(mut self, text: &str) -> Self {
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    fn command(&mut self, line: &str) {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        write_command(&mut self.bytes, words);
    }

    pub fn record(mut self, line: &str) -> Self {
        self.command(line);
        self.end()
    }

    pub fn transaction(mut self, lines: &[&str]) -> Self {
        write_multi(&mut self.bytes);
        for line in lines {
            self.command(line);
        }
        write_exec(&mut self.bytes);
        self.end()
    }

    fn end(mut self) -> Self {
        self.ends.push((self.next, self.bytes.len()));
        self.next += 1;
        self
    }
}

/// An RDB file with these fields and texts.
pub fn rdb(aux: &[(&str, &str)], keys: &[(&str, &str)]) -> Vec<u8> {
    let options = FileOptions { compress: true, checksum: true, version: 10 };
    let mut writer = FileWriter::new(options, Vec::new());
    let aux: Vec<(&str, &[u8])> = aux.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    writer.begin(&aux);
    writer.database(DbIndex(0), None);
    for (key, text) in keys {
        let value = Owned::String(text.as_bytes().to_vec());
        writer.value(key.as_bytes(), &Meta::default(), &value).expect("every version has texts");
    }
    writer.end();
    writer.take(Vec::new())
}

/// A folder which is removed when it is dropped.
pub struct Folder(pub std::path::PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("restore-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    /// Writes a file.
    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.0.join(name), bytes).expect("a file");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
