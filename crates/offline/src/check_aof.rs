//! `sheafdb check-aof FILE`: reads an append-only file as a server would, keeps nothing, and can
//! cut off the damaged end of its last file.

use std::io::{self, BufRead, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use journal::manifest::{FileInfo, FileKind};
use journal::{Manifest, ManifestError, Position};

use crate::aof_file::{AofFile, Place, open, shown};

/// Bytes of a manifest, at most: Redis adds and removes lines, and has a few at a time.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// What a check may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repair {
    /// Nothing.
    #[default]
    No,
    /// It cuts off the damaged end of the last file, after it has asked.
    Damage,
    /// It cuts off what was written after this time, in seconds since 1970: all from the first
    /// annotation on which is later.
    After(i64),
}

/// Checks an append-only file: all files of a manifest, or a single file of a server before Redis
/// 7. Prints to `out` what it finds; true if all is whole, or was made so. Lines and exit status
/// are those of `redis-check-aof` as far as its users need them. `answers` is asked whether to
/// change a file. A bar goes to standard error if it is shown.
///
/// # Errors
/// Nothing can be printed.
pub fn check_aof(
    path: &Path,
    repair: Repair,
    answers: &mut impl BufRead,
    out: &mut impl Write,
    shows_bar: bool,
) -> io::Result<bool> {
    let mut check = AofFile { repair, answers, out, shows_bar, position: None };
    let name = shown(path.as_os_str().as_bytes());
    match beginning(path) {
        Err(error) => {
            writeln!(check.out, "Cannot open file {name}: {error}")?;
            Ok(false)
        }
        Ok(text) if is_manifest(path, &text) => {
            writeln!(check.out, "Start checking Multi Part AOF")?;
            match read_manifest(path) {
                Ok(manifest) => check_parts(path, &manifest, &mut check),
                Err(Refusal::Unreadable(error)) => {
                    writeln!(check.out, "Cannot read file {name}: {error}")?;
                    Ok(false)
                }
                Err(Refusal::Wrong(error)) => {
                    refuse(&error, check.out)?;
                    Ok(false)
                }
            }
        }
        Ok(_) => {
            writeln!(check.out, "Start checking Old-Style AOF")?;
            let place = Place { path, name: &name, repairs: path, label: "AOF", is_last: true };
            check.check(&place, true)
        }
    }
}

/// The first bytes of a file.
fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let (_, file) = open(path)?;
    file.take(64 << 10).read_to_end(&mut text)?;
    Ok(text)
}

/// Whether a file is a manifest: by its name, or because its first line that is no comment begins
/// with `file`.
fn is_manifest(path: &Path, text: &[u8]) -> bool {
    let mut lines = text.split(|&byte| byte == b'\n').filter(|line| !line.starts_with(b"#"));
    let has_name = path.as_os_str().as_bytes().ends_with(b".manifest");
    has_name || lines.next().is_some_and(|line| line.starts_with(b"file"))
}

/// Why there is no manifest.
enum Refusal {
    Unreadable(io::Error),
    Wrong(ManifestError),
}

fn read_manifest(path: &Path) -> Result<Manifest, Refusal> {
    let mut text = Vec::new();
    open(path)
        .and_then(|(_, file)| file.take(MANIFEST_BYTES_MAX + 1).read_to_end(&mut text))
        .map_err(Refusal::Unreadable)?;
    if text.len() as u64 > MANIFEST_BYTES_MAX {
        let error = io::Error::other(format!("it is longer than {MANIFEST_BYTES_MAX} bytes"));
        return Err(Refusal::Unreadable(error));
    }
    Manifest::parse(&text).map_err(Refusal::Wrong)
}

fn refuse(error: &ManifestError, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "*** FATAL AOF MANIFEST FILE ERROR ***")?;
    if error.line > 0 {
        writeln!(out, "Reading the manifest file, at line {}", error.line)?;
        writeln!(out, ">>> '{}'", error.text)?;
    }
    writeln!(out, "The manifest is refused: {}", error.fault)
}

/// Checks the files of a manifest, up to the first one which is not whole.
fn check_parts<I: BufRead, O: Write>(
    manifest_path: &Path,
    manifest: &Manifest,
    check: &mut AofFile<'_, I, O>,
) -> io::Result<bool> {
    let folder = manifest_path.parent().unwrap_or(Path::new(""));
    for file in manifest.loaded() {
        let is_first_incr = manifest.incr.first() == Some(file);
        if is_first_incr {
            writeln!(check.out, "Start to check INCR files.")?;
        }
        let is_last = manifest.last() == Some(file);
        if !check_part(folder, manifest_path, file, is_last, check)? {
            return Ok(false);
        }
    }
    writeln!(check.out, "All AOF files and manifest are valid")?;
    if let Some(Position { id, offset }) = check.position {
        writeln!(check.out, "[info] they end at offset {offset} of replication stream {id}")?;
    }
    Ok(true)
}

fn check_part<I: BufRead, O: Write>(
    folder: &Path,
    manifest_path: &Path,
    file: &FileInfo,
    is_last: bool,
    check: &mut AofFile<'_, I, O>,
) -> io::Result<bool> {
    let path = folder.join(std::ffi::OsStr::from_bytes(&file.name));
    let name = shown(&file.name);
    let is_base = file.kind == FileKind::Base;
    let label = if is_base { "BASE AOF" } else { "INCR AOF" };
    let place = Place { path: &path, name: &name, repairs: manifest_path, label, is_last };
    check.check(&place, is_base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_control_the_terminal() {
        assert_eq!(shown("a b\u{fc}\x1b[2J\n".as_bytes()), "a b\u{fc}\\u{1b}[2J\\n");
        assert_eq!(shown(b"\xff"), "\u{fffd}");
    }

    #[test]
    fn a_manifest_is_known_by_its_name_or_its_first_line() {
        let (aof, named) = (Path::new("a.aof"), Path::new("a.aof.manifest"));
        assert!(is_manifest(named, b""));
        assert!(is_manifest(aof, b"# x\nfile a seq 1 type b\n"));
        assert!(!is_manifest(aof, b"#TS:1\r\n*1\r\n$4\r\nPING\r\n"));
        assert!(!is_manifest(aof, b""));
    }
}
