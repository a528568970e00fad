//! Asks a running server for a fresh snapshot, and opens it.

use std::fs::{File, Permissions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use client::{Address, Client, Value};

use super::options::Options;
use super::{Failure, about, manifest};

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
    let mut server = Asked::connect(options)?;
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

/// A connection.
struct Asked(Client);

impl Asked {
    fn connect(options: &Options) -> Result<Self, Failure> {
        let place = match &options.address {
            Address::Tcp(text) => text.clone(),
            Address::Unix(path) => path.display().to_string(),
        };
        let client = Client::connect(&options.address, REPLY)
            .map_err(|error| format!("no connection to {place}: {error}"))?;
        let mut asked = Self(client);
        if let Some(password) = &options.password {
            let words: Vec<&[u8]> = [b"AUTH".as_slice()]
                .into_iter()
                .chain(options.user.as_deref())
                .chain([password.as_slice()])
                .collect();
            asked.call(&words)?;
        }
        Ok(asked)
    }

    /// The reply, if it is no error.
    fn call(&mut self, words: &[&[u8]]) -> Result<Value, Failure> {
        match self.try_call(words)? {
            Value::Error(text) => Err(said(words[0], &text)),
            reply => Ok(reply),
        }
    }

    fn try_call(&mut self, words: &[&[u8]]) -> Result<Value, Failure> {
        let lost = |error| format!("{}: the connection is lost: {error}", words[0].escape_ascii());
        self.0.call(words).map_err(lost)
    }

    fn info(&mut self, section: &str) -> Result<String, Failure> {
        let reply = self.call(&[b"INFO", section.as_bytes()])?;
        Ok(reply.as_str().unwrap_or_default().to_owned())
    }

    fn describe(&mut self) -> Result<Server, Failure> {
        let info = self.info("server")?;
        let version = field(&info, "sheafdb_version").map_err(|_| "this is no SheafDB server")?;
        let (folder, file_name) = (self.setting("dir")?, self.setting("dbfilename")?);
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

    fn setting(&mut self, name: &str) -> Result<PathBuf, Failure> {
        use std::os::unix::ffi::OsStrExt;
        let reply = self.call(&[b"CONFIG", b"GET", name.as_bytes()])?;
        let value = reply.as_members().and_then(|members| members.get(1)).and_then(Value::as_bytes);
        let value = value.ok_or_else(|| format!("the server has no setting {name}"))?;
        Ok(PathBuf::from(std::ffi::OsStr::from_bytes(value)))
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

fn said(command: &[u8], text: &[u8]) -> Failure {
    format!("the server refuses {}: {}", command.escape_ascii(), String::from_utf8_lossy(text))
}

/// A field of INFO.
fn field<'t>(info: &'t str, name: &str) -> Result<&'t str, Failure> {
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.map(str::trim_end).ok_or_else(|| format!("INFO has no {name}"))
}
