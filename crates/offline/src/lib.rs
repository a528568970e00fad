//! What the program does when it is no server: it checks files of data, and makes and checks
//! backups.
//!
//! The first argument says what, or the name by which the program is called (a symbolic link).

mod backup;
mod check;
mod check_rdb;
mod progress;
mod repeats;
mod report;
mod sink;

pub use backup::copy::{Copied, Digest};
pub use backup::manifest::{self, Manifest};
pub use check_rdb::check_rdb;
pub use rdb::file::ScanOptions;

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

/// Names of the program that stand for `check-rdb`.
const CHECK_RDB: [&str; 2] = ["redis-check-rdb", "sheafdb-check-rdb"];

const USAGE: &str = "\
Usage: sheafdb check-rdb [--skip-unknown] [--databases N] FILE

Reads an RDB file of Redis, Valkey or SheafDB and checks all of it: its structure,
every value, and the checksum. Prints what is in it. The exit status is 0 if the
file is whole, and 1 if it is not or cannot be read.

  --skip-unknown  leave out values of modules, and count them
  --databases N   the number of databases that the server has, 16 unless given;
                  a server does not load a file with a further one
";

/// Does what the arguments behind the name of the program ask for, if that is something here;
/// otherwise the program is a server.
pub fn run(program: Option<&OsStr>, arguments: &[Vec<u8>]) -> Option<ExitCode> {
    let called = program.map(Path::new).and_then(Path::file_name);
    let is_link = CHECK_RDB.iter().any(|name| called == Some(OsStr::new(name)));
    let rest = match arguments.split_first() {
        _ if is_link => arguments,
        Some((first, rest)) if first == b"check-rdb" => rest,
        Some((first, rest)) if first == b"backup" => return Some(backup::run_backup(rest)),
        Some((first, rest)) if first == b"verify-backup" => return Some(backup::run_verify(rest)),
        _ => return None,
    };
    Some(run_check_rdb(rest))
}

fn run_check_rdb(arguments: &[Vec<u8>]) -> ExitCode {
    use std::os::unix::ffi::OsStrExt;
    let mut options = ScanOptions { verify: true, databases: Some(16), ..ScanOptions::default() };
    let mut file = None;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_slice() {
            b"-h" | b"--help" => {
                print!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            b"--skip-unknown" => options.skip_unknown = true,
            b"--databases" => {
                let number = arguments.next().and_then(|text| std::str::from_utf8(text).ok());
                let Some(count) = number.and_then(|number| number.parse().ok()) else {
                    eprint!("{USAGE}");
                    return ExitCode::FAILURE;
                };
                options.databases = Some(count);
            }
            option if option.starts_with(b"--") || file.is_some() => {
                eprint!("{USAGE}");
                return ExitCode::FAILURE;
            }
            name => file = Some(Path::new(OsStr::from_bytes(name))),
        }
    }
    let Some(file) = file else {
        eprint!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let shows_bar = std::io::stderr().is_terminal();
    // (An error is that nobody reads what is printed.)
    let is_whole = check_rdb(file, options, &mut std::io::stdout().lock(), shows_bar);
    if is_whole.is_ok_and(|is_whole| is_whole) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
