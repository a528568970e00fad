//! What the program does when it is no server: it checks and repairs files of data, makes and
//! checks backups, and brings data back as it was at some point.
//!
//! The first argument says what, or the name by which the program is called (a symbolic link).

mod aof_file;
mod backup;
mod check;
mod check_aof;
mod check_rdb;
mod connection;
mod progress;
mod repeats;
mod report;
mod restore;
mod sink;
mod undo;

pub use backup::copy::{Copied, Digest};
pub use backup::manifest::{self, Manifest};
pub use check_aof::{Repair, check_aof};
pub use check_rdb::check_rdb;
pub use rdb::file::ScanOptions;

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

/// Names of the program that stand for `check-rdb`.
const CHECK_RDB: [&str; 2] = ["redis-check-rdb", "sheafdb-check-rdb"];
/// Names of the program that stand for `check-aof`.
const CHECK_AOF: [&str; 2] = ["redis-check-aof", "sheafdb-check-aof"];

const USAGE: &str = "\
Usage: sheafdb check-rdb [--skip-unknown] [--databases N] FILE

Reads an RDB file of Redis, Valkey or SheafDB and checks all of it: its structure,
every value, and the checksum. Prints what is in it. The exit status is 0 if the
file is whole, and 1 if it is not or cannot be read.

  --skip-unknown  leave out values of modules, and count them
  --databases N   the number of databases that the server has, 16 unless given;
                  a server does not load a file with a further one
";

const AOF_USAGE: &str = "\
Usage: sheafdb check-aof [--fix | --truncate-to-timestamp UNIX] MANIFEST|FILE

Reads an append-only file of Redis, Valkey or SheafDB and checks all of it: every file
of the manifest, or a single file of a server before Redis 7. Prints how far each file
is whole. The exit status is 0 if all are, and 1 if not. Stop the server before you
change its files, and copy them.

  --fix           cut off the damaged end of the last file, after a question
  --truncate-to-timestamp UNIX
                  cut off what was written after this second of the year 1970 and later;
                  it needs a file with annotations (aof-timestamp-enabled yes)
";

/// Does what the arguments behind the name of the program ask for, if that is something here;
/// otherwise the program is a server.
pub fn run(program: Option<&OsStr>, arguments: &[Vec<u8>]) -> Option<ExitCode> {
    let called = program.map(Path::new).and_then(Path::file_name);
    let is_any = |names: &[&str]| names.iter().any(|name| called == Some(OsStr::new(name)));
    if is_any(&CHECK_RDB) {
        return Some(run_check_rdb(arguments));
    }
    if is_any(&CHECK_AOF) {
        return Some(run_check_aof(arguments));
    }
    let (first, rest) = arguments.split_first()?;
    match first.as_slice() {
        b"check-rdb" => Some(run_check_rdb(rest)),
        b"check-aof" => Some(run_check_aof(rest)),
        b"backup" => Some(backup::run_backup(rest)),
        b"verify-backup" => Some(backup::run_verify(rest)),
        b"restore" => Some(restore::run(rest)),
        b"undo" => Some(undo::run(rest)),
        _ => None,
    }
}

fn run_check_rdb(arguments: &[Vec<u8>]) -> ExitCode {
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

fn run_check_aof(arguments: &[Vec<u8>]) -> ExitCode {
    let (mut repair, mut file) = (Repair::No, None);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match (argument.as_slice(), repair) {
            (b"-h" | b"--help", _) => {
                print!("{AOF_USAGE}");
                return ExitCode::SUCCESS;
            }
            (b"--fix", Repair::No) => repair = Repair::Damage,
            (b"--truncate-to-timestamp", Repair::No) => {
                let time = arguments.next().and_then(|text| base::num::parse_i64(text));
                let Some(time @ 1..) = time else {
                    println!("Invalid timestamp, aborting...");
                    return ExitCode::FAILURE;
                };
                repair = Repair::After(time);
            }
            (option, _) if option.starts_with(b"--") || file.is_some() => {
                eprint!("{AOF_USAGE}");
                return ExitCode::FAILURE;
            }
            (name, _) => file = Some(Path::new(OsStr::from_bytes(name))),
        }
    }
    let Some(file) = file else {
        eprint!("{AOF_USAGE}");
        return ExitCode::FAILURE;
    };
    let shows_bar = std::io::stderr().is_terminal();
    let (mut answers, mut out) = (std::io::stdin().lock(), std::io::stdout().lock());
    // (An error is that nobody reads what is printed.)
    let is_whole = check_aof(file, repair, &mut answers, &mut out, shows_bar);
    if is_whole.is_ok_and(|is_whole| is_whole) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
