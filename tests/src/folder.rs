//! A folder of a test's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Removed with its contents when it is dropped.
pub struct Folder(PathBuf);

impl Folder {
    /// Makes it. The name helps who finds it left over; no other folder has the same path.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn new(name: &str) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let (process, n) = (std::process::id(), MADE.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(format!("sheafdb-{name}-{process}-{n}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    /// Where it is, as an argument of a program.
    ///
    /// # Panics
    /// If the folder for temporary files has a name which is no text.
    pub fn path(&self) -> &str {
        self.0.to_str().expect("plain")
    }

    /// The snapshot file of a server that works here.
    pub fn file(&self) -> PathBuf {
        self.at("dump.rdb")
    }

    /// A path in it.
    pub fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// What is in it, sorted.
    pub fn names(&self) -> Vec<String> {
        names(&self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What is in a folder, sorted.
///
/// # Panics
/// If it cannot be read.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("readable");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("readable").file_name().into_string().expect("plain")
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}
