//! `sheafdb undo`: keys of a running server get back the values which they had at some point.
//!
//! ```text
//! options.rs    what is wanted
//! private.rs    a temporary folder, and a server of our own with the data of the point
//! compare.rs    which keys differ
//! apply.rs      one transaction which changes these, if nobody else has meanwhile
//! ```

mod apply;
mod compare;
mod options;
mod private;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use apply::{Plan, Undo};
use compare::Action;
use options::{Options, Parsed, parse};
use private::{Private, SERVE};

use crate::connection::{Asked, Failure, field, path};
use crate::restore::point::Point;
use crate::restore::{Source, restore};

/// Longest wait for a reply: EXEC changes everything at once.
const REPLY: Duration = Duration::from_secs(600);
/// Longest wait for the server's last changes to reach its files, and the pause between questions.
const DURABLE: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(50);

const USAGE: &str = "\
Usage: sheafdb undo --keys PATTERN --to TIME|NUMBER [OPTION]...

Gives keys of a running server back the values and expiries which they had at some point,
from its append-only file: old values are put back, keys which did not exist are deleted.
All is one transaction. If others change such a key meanwhile, it is tried again, and
given up behind 5 attempts. The exit status is 0 if it is done, and 1 if nothing is.

  --keys PATTERN   which keys, as in KEYS and SCAN: * ? [a-c] and \\ for a plain one
  --to TIME        2026-11-26T18:00:00Z, 2026-11-26T19:00:00.5+01:00, or @UNIX[.MS]
  --to NUMBER      the number of a record; see: sheafdb restore --help
  --dry-run        print what would be done with each key, and change nothing
  -n, --db NUMBER  the database of the keys (0)

  --host NAME      where the server listens (127.0.0.1)
  -p, --port NUMBER
                   its port (6379)
  -s, --socket PATH
                   its unix socket, in place of host and port
  --user NAME      the user to log in as
  --pass, --password WORD
                   the password; better in the environment: SHEAFDB_PASSWORD (or
                   REDISCLI_AUTH), where other users of the machine cannot see it
  --dir DIR        the data directory, or the folder of the append-only file; without it
                   the server is asked, which must be on this machine
  --appenddirname NAME, --appendfilename NAME
                   these settings, if DIR is given and they have other values than the usual
  --temp DIR       where a temporary folder is made (TMPDIR, or /tmp)

The data of the point is restored to the temporary folder, and loaded by a second server:
disk and memory for all of it are needed. The names of the keys are kept in memory; values
are compared in parts of about 8 MiB, or one by one. Keys which others add meanwhile may be
missed.
";

/// `sheafdb undo`.
pub fn run(arguments: &[Vec<u8>]) -> ExitCode {
    if let Some((first, rest)) = arguments.split_first()
        && first == SERVE.as_bytes()
    {
        return private::serve(rest);
    }
    match parse(arguments) {
        Ok(Parsed::Help) => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        Ok(Parsed::Run(options)) => match undo(&options) {
            Ok(text) => {
                // (That nobody reads it is no failure.)
                let _ = std::io::stdout().write_all(text.as_bytes());
                ExitCode::SUCCESS
            }
            Err(failure) => {
                eprintln!("sheafdb undo: {failure}");
                ExitCode::FAILURE
            }
        },
        Err(failure) => {
            eprint!("sheafdb undo: {failure}\n\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn undo(options: &Options) -> Result<String, Failure> {
    let mut now = Asked::connect(&options.login, REPLY)?;
    let db = options.db.to_string();
    now.call(&[b"SELECT", db.as_bytes()])?;
    let databases = now.setting("databases")?;
    let mut notes = Vec::new();
    let source = source(options, &mut now)?;
    if options.dir.is_none() {
        notes.extend(wait_for_files(&mut now, options.point)?);
    }
    drop(now); // the server may close a connection which is silent for its `timeout`
    let private = Private::new(&options.temporary)?;
    let restored = restore(&source, options.point, &private.data())?;
    let name = Some(source.place()?.name);
    let mut old = private.start(source.folder.as_deref(), name.as_deref(), &databases)?;
    old.call(&[b"SELECT", db.as_bytes()])?;
    let mut now = Asked::connect(&options.login, REPLY)?;
    now.call(&[b"SELECT", db.as_bytes()])?;
    let Options { keys: pattern, is_dry, .. } = options;
    let undo = Undo { old: &mut old, now: &mut now, pattern, is_dry: *is_dry }.run();
    let plan = undo?;
    notes.extend(restored.notes.iter().cloned());
    Ok(text(options, &plan, &restored.last_text(), &notes))
}

/// Where the append-only file is, as the options or the server say.
fn source(options: &Options, server: &mut Asked) -> Result<Source, Failure> {
    let (folder, name) = (options.folder.clone(), options.name.clone());
    if let Some(dir) = &options.dir {
        return Ok(Source { dir: dir.clone(), folder, name });
    }
    let dir: PathBuf = path(&server.setting("dir")?);
    if !dir.is_dir() {
        let dir = dir.display();
        return Err(format!("the server's folder {dir} is not here; is it on this machine?"));
    }
    let folder = path(&server.setting("appenddirname")?).into_os_string();
    Ok(Source { dir, folder: Some(folder), name: Some(server.setting("appendfilename")?) })
}

/// Waits until what the server has done so far is in its files, for a few seconds. Gives a note if
/// it is not.
fn wait_for_files(server: &mut Asked, point: Point) -> Result<Option<String>, Failure> {
    let number = |info: &str, name: &str| field(info, name).ok().and_then(|n| n.parse().ok());
    let begun = Instant::now();
    let info = server.info("persistence")?;
    let Some(last): Option<u64> = number(&info, "journal_last_number") else { return Ok(None) };
    if field(&info, "aof_enabled").is_ok_and(|text| text == "0") {
        return Ok(None);
    }
    // An earlier point is in the files for long.
    let goal = if let Point::Number(wanted) = point { wanted.min(last) } else { last };
    loop {
        let info = server.info("persistence")?;
        let durable: u64 = number(&info, "journal_durable_number").unwrap_or(0);
        if durable >= goal {
            return Ok(None);
        }
        if begun.elapsed() > DURABLE {
            return Ok(Some(format!(
                "the server is at number {last}, of which {durable} is the last one that is \
                 certainly in its files; later changes may be missing"
            )));
        }
        std::thread::sleep(POLL);
    }
}

/// The lines for the user.
fn text(options: &Options, plan: &Plan, last: &str, notes: &[String]) -> String {
    let mut text = format!("data up to {}: {last}\n", options.point);
    if options.is_dry {
        for (key, action) in &plan.actions {
            let _ = writeln!(text, "\"{}\": {}", key.escape_ascii(), action.text());
        }
    }
    let deleted = plan.actions.iter().filter(|(_, action)| *action == Action::Delete).count();
    let restored = plan.actions.len() - deleted;
    let (db, unchanged) = (options.db, plan.unchanged);
    let pattern = options.keys.escape_ascii();
    let would = if options.is_dry { "would be " } else { "" };
    let _ = writeln!(
        text,
        "database {db}, keys \"{pattern}\": {restored} {would}restored, {deleted} {would}deleted, \
         {unchanged} unchanged"
    );
    for note in notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}
