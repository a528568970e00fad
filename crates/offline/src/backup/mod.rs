//! `sheafdb backup` and `sheafdb verify-backup`: a snapshot of a running server beside a manifest,
//! as a folder or as one tar stream.
//!
//! A backup is whole when it has its manifest: this is written last. `docs/backup.md` is for users.
//! The backups which a server makes of itself have the same manifest.

mod archive;
pub mod copy;
mod folder;
pub mod manifest;
mod options;
mod request;
mod verify;

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use crate::connection::Failure;
use crate::report::bytes_text;
use manifest::Manifest;
use options::{Options, Parsed};

const BACKUP_USAGE: &str = "\
Usage: sheafdb backup DIR|- [OPTION]...

Asks the running SheafDB server on this machine for a fresh snapshot, and copies it
to the empty or new folder DIR, or as a tar archive to standard output (-). All of
it is checked while it is copied. A manifest with its SHA-256 is written last. The
exit status is 0 if the backup is whole, and 1 if there is none.

  --host NAME      where the server listens (127.0.0.1)
  --port NUMBER    its port (6379)
  --socket PATH    its unix socket, in place of host and port
  --user NAME      the user to log in as
  --password WORD  his password; better in the environment: SHEAFDB_PASSWORD
                   (or REDISCLI_AUTH), where other users of the machine cannot see it

The server writes the snapshot into its own folder, where this program reads it: run
it as a user who may do that.
";

const VERIFY_USAGE: &str = "\
Usage: sheafdb verify-backup DIR|FILE.tar|-

Checks a backup made by `sheafdb backup`: a folder, an archive, or an archive on
standard input (-). Compares the size, the SHA-256 and the number of keys with the
manifest, and reads every value. No server is started. The exit status is 0 if the
backup is whole, and 1 if it is not.
";

/// `sheafdb backup`.
pub fn run_backup(arguments: &[Vec<u8>]) -> ExitCode {
    match options::parse(arguments) {
        Ok(Parsed::Help) => {
            print!("{BACKUP_USAGE}");
            ExitCode::SUCCESS
        }
        Ok(Parsed::Run(options)) => ended("backup", backup(&options)),
        Err(failure) => {
            eprint!("sheafdb backup: {failure}\n\n{BACKUP_USAGE}");
            ExitCode::FAILURE
        }
    }
}

/// `sheafdb verify-backup`.
pub fn run_verify(arguments: &[Vec<u8>]) -> ExitCode {
    match arguments {
        [only] if only == b"--help" || only == b"-h" => {
            print!("{VERIFY_USAGE}");
            ExitCode::SUCCESS
        }
        [target] if target == b"-" || !target.starts_with(b"-") => {
            ended("verify-backup", verify::verify(Path::new(OsStr::from_bytes(target))))
        }
        _ => {
            eprint!("{VERIFY_USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn ended(name: &str, outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("sheafdb {name}: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn backup(options: &Options) -> Result<(), Failure> {
    if options.is_stream() {
        if io::stdout().is_terminal() {
            return Err("an archive is not written to a terminal; name a folder or a pipe".into());
        }
        let snapshot = request::fresh_snapshot(options)?;
        return archive::write(snapshot, &mut io::stdout().lock());
    }
    let folder = folder::Folder::claim(&options.target)?;
    let snapshot = request::fresh_snapshot(options)?;
    let manifest = folder.fill(snapshot)?;
    say(&summary(&manifest, &options.target));
    Ok(())
}

/// Prints a line; that nobody reads it is no failure of what it is about.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// `12 keys of 2 databases, 310 bytes: BACKUP/dump.rdb`.
fn summary(manifest: &Manifest, target: &Path) -> String {
    let keys: u64 = manifest.keys.values().sum();
    let bytes = bytes_text(manifest.bytes as f64);
    let (databases, place) = (manifest.keys.len(), target.join(&manifest.file));
    format!("{keys} keys of {databases} databases, {bytes}: {}", place.display())
}

/// Says what is wrong with a file.
fn about(path: &Path, error: &io::Error) -> Failure {
    format!("{}: {error}", path.display())
}
