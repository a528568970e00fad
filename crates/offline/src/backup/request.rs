//! Asks a running server for a fresh snapshot, and opens it.

use std::fs::{File, Permissions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use client::Value;

use super::options::Options;
use super::{Failure, about, manifest};
use crate::connection::{Asked, field, path, said};

/// Longest wait for a reply. BGSAVE replies when the moment is taken.
const REPLY: Duration = Duration::from_secs(120);
/// How often the server is asked whether it is through.
const POLL: Duration = Duration::from_millis(50);
/// How often a snapshot is asked for, if others come between.
const TRIES: usize = 20;

/// A server, and where its snapshot is.
pub struct Server {
    /// Its version.
    pub version: String,
    /// The identity of its run.
    pub run_id: String,
    /// The name of its file.
    pub file_name: String,
    folder: PathBuf,
}

impl Server {
    /// Its version and the identity of its run.
    pub fn about(&self) -> (&str, &str) {
        (&self.version, &self.run_id)
    }
}

/// An open snapshot. A later save gives the name to another file, and leaves this one as it is.
pub struct Snapshot {
    /// Whose it is.
    pub server: Server,
    /// The file.
    pub file: File,
    /// Its bytes.
    pub length: u64,
    /// Who may read it.
    pub permissions: Permissions,
    /// When it was written, seconds since 1970.
    pub modified_s: u64,
}

/// What the server says about its saves.
struct Saves {
    /// SAVE and BGSAVE so far.
    begun: u64,
    is_under_way: bool,
    has_failed: bool,
}

/// Has the server save, and opens the file. It shows a moment after this call began.
pub fn fresh_snapshot(options: &Options) -> Result<Snapshot, Failure> {
    let mut server = Asked::connect(&options.login, REPLY)?;
    let about_it = server.describe()?;
    let path = about_it.folder.join(&about_it.file_name);
    for _ in 0..TRIES {
        if let Some(file) = server.save(&path)? {
            let metadata = file.metadata().map_err(|error| about(&path, &error))?;
            let (length, modified_s) = (metadata.len(), metadata.mtime().max(0) as u64);
            let permissions = metadata.permissions();
            return Ok(Snapshot { server: about_it, file, length, permissions, modified_s });
        }
    }
    Err("the server gives up or replaces each save that is asked for".into())
}

/// What a backup asks for.
impl Asked {
    fn describe(&mut self) -> Result<Server, Failure> {
        let info = self.info("server")?;
        let version = field(&info, "sheafdb_version").map_err(|_| "this is no SheafDB server")?;
        let (folder, file_name) = (path(&self.setting("dir")?), path(&self.setting("dbfilename")?));
        if !folder.is_absolute() || !file_name.to_str().is_some_and(manifest::is_plain) {
            let path = folder.join(file_name);
            return Err(format!("a snapshot named {} cannot be backed up", path.display()));
        }
        Ok(Server {
            version: version.to_owned(),
            run_id: field(&info, "run_id")?.to_owned(),
            file_name: file_name.to_string_lossy().into_owned(),
            folder,
        })
    }

    fn saves(&mut self) -> Result<Saves, Failure> {
        let info = self.info("persistence")?;
        if field(&info, "loading")? == "1" {
            return Err("the server is loading its data; try again later".into());
        }
        let begun = field(&info, "rdb_saves")?.parse();
        Ok(Saves {
            begun: begun.map_err(|_| "the server does not count its saves")?,
            is_under_way: field(&info, "rdb_bgsave_in_progress")? != "0",
            has_failed: field(&info, "rdb_last_bgsave_status")? != "ok",
        })
    }

    /// Asks for one save as soon as none is under way, waits until it is over, and opens its file.
    /// `None`: another save came between, or FLUSHALL ended this one.
    ///
    /// The server runs one save at a time. So if no other one was begun between two questions, what
    /// has the name of the file later, and had it not before, is no older than the request. The old
    /// file stays open: no new one can have its number.
    fn save(&mut self, path: &Path) -> Result<Option<File>, Failure> {
        let mut before = self.saves()?;
        while before.is_under_way {
            before = self.wait(before.begun)?;
        }
        let old = File::open(path).ok();
        match self.try_call(&[b"BGSAVE"])? {
            Value::Error(text) if text.windows(11).any(|part| part == b"in progress") => {
                return Ok(None);
            }
            Value::Error(text) => return Err(said(b"BGSAVE", &text)),
            _ => {}
        }
        if self.saves()?.begun != before.begun + 1 {
            return Ok(None);
        }
        if self.wait(before.begun + 1)?.has_failed {
            return Err("the server could not save; its log says why".into());
        }
        let hint = "(is the server on this machine, and may this user read its files?)";
        let open = || Ok((File::open(path)?, old.as_ref().map(File::metadata).transpose()?));
        let opened = open().and_then(|(file, old)| Ok((file.metadata()?, file, old)));
        let (new, file, old) =
            opened.map_err(|error: std::io::Error| format!("{} {hint}", about(path, &error)))?;
        if !new.is_file() {
            return Err(format!("{} is no file", path.display()));
        }
        let is_old = old.is_some_and(|old| (old.dev(), old.ino()) == (new.dev(), new.ino()));
        Ok((!is_old).then_some(file))
    }

    /// Waits until the save is over with which so many were begun.
    fn wait(&mut self, begun: u64) -> Result<Saves, Failure> {
        loop {
            let saves = self.saves()?;
            if !saves.is_under_way || saves.begun > begun {
                return Ok(saves);
            }
            std::thread::sleep(POLL);
        }
    }
}
