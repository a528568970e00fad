//! `sheafdb restore`: the data of an append-only file as it was at some point, as a new folder.
//!
//! ```text
//! listing.rs   the files: history, then those of the manifest
//! choice.rs    the newest base which is not behind the point, and what follows it; all are open
//! pass.rs      each file once, in blocks: copied while its records are read
//! cut.rs       which record is the last one; the copy is cut behind it
//! target.rs    the new folder; its manifest is written last
//! ```
//!
//! A server may write the files meanwhile. A rewrite which removes one before it is open begins the
//! choice again.

mod choice;
mod cut;
mod listing;
#[cfg(test)]
mod made;
mod note;
mod options;
mod pass;
pub mod point;
mod report;
mod target;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use journal::manifest::FileKind;

use choice::{Chain, Opened, choose};
use cut::Cut;
use listing::Place;
use options::{Parsed, parse};
pub use options::{Source, plain};
use pass::{End, pass};
use point::Point;
use report::Part;
pub use report::Restored;
use target::Target;
pub use target::about;

/// How often the files are looked for again when one is gone, and the pause between.
const TRIES: usize = 40;
const PAUSE: Duration = Duration::from_millis(50);

const USAGE: &str = "\
Usage: sheafdb restore --until TIME|NUMBER DIR -o NEWDIR [OPTION]...

Makes the new data directory NEWDIR, with an append-only file which holds exactly the data
that the one of DIR had at some point. DIR is a data directory, or the folder of an
append-only file; it is only read, and a server may run on it. The exit status is 0 if
NEWDIR is complete, and 1 if there is none.

  --until TIME      2026-11-26T18:00:00Z, 2026-11-26T19:00:00.5+01:00, or @UNIX[.MS]
  --until NUMBER    the number of the last record to keep, as annotations in the files and
                    journal_last_number of INFO persistence say it
  -o, --output DIR  the directory to make, or an empty one
  --appenddirname NAME, --appendfilename NAME
                    these settings of the server, if they have other values than the usual

How far back is possible: to the oldest base. `aof-history` keeps old files. A time needs
files with annotations: of SheafDB, which are exact to the millisecond, or those of
aof-timestamp-enabled, which are exact to the second: all of that second counts.
";

/// Why there is nothing.
#[derive(Debug)]
pub enum Stop {
    /// A file which was listed is gone: a rewrite may have replaced it meanwhile.
    Gone(PathBuf),
    /// Why, for the user.
    Failed(String),
}

/// `sheafdb restore`.
pub fn run(arguments: &[Vec<u8>]) -> ExitCode {
    match parse(arguments) {
        Ok(Parsed::Help) => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        Ok(Parsed::Run { source, point, output }) => match restore(&source, point, &output) {
            Ok(restored) => {
                // (That nobody reads it is no failure.)
                let _ = std::io::stdout().write_all(restored.text(point).as_bytes());
                ExitCode::SUCCESS
            }
            Err(failure) => {
                eprintln!("sheafdb restore: {failure}");
                ExitCode::FAILURE
            }
        },
        Err(failure) => {
            eprint!("sheafdb restore: {failure}\n\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

/// Makes the directory `output` with the data of `source` up to a point.
///
/// # Errors
/// A text for the user; nothing is left of the directory.
pub fn restore(source: &Source, point: Point, output: &Path) -> Result<Restored, String> {
    let place = source.place()?;
    let target = Target::claim(output, source.folder.as_deref(), &place.name)?;
    let chain = patiently(&place, || choose(&place, point))?;
    let manifest = place.manifest();
    let start = target::start_line(output, source.folder.as_deref(), &place.name);
    Run { point, target, manifest, parts: Vec::new(), notes: Vec::new() }.run(chain, start)
}

/// Tries again while files vanish, which a rewrite does once.
fn patiently<T>(place: &Place, look: impl Fn() -> Result<T, Stop>) -> Result<T, String> {
    let mut missing = PathBuf::new();
    for attempt in 0..TRIES {
        if attempt > 0 {
            std::thread::sleep(PAUSE);
        }
        match look() {
            Ok(found) => return Ok(found),
            Err(Stop::Failed(failure)) => return Err(failure),
            Err(Stop::Gone(path)) => missing = path,
        }
    }
    let list = if missing == place.manifest() { "" } else { ", though it is listed" };
    Err(format!("{} is missing{list}", missing.display()))
}

/// A restore under way.
struct Run {
    point: Point,
    target: Target,
    /// The manifest of the source, for who repairs it.
    manifest: PathBuf,
    parts: Vec<Part>,
    notes: Vec<String>,
}

impl Run {
    fn run(mut self, chain: Chain, start: String) -> Result<Restored, String> {
        let Chain { base, moment, incr, is_to_end, next_base } = chain;
        let mut cut = Cut::new(self.point, moment);
        let mut is_reached = false;
        let files: Vec<Opened> = base.into_iter().chain(incr).collect();
        let count = files.len();
        for (index, file) in files.into_iter().enumerate() {
            let is_last = is_to_end && index + 1 == count;
            let is_end = index + 1 == count;
            is_reached = self.copy(file, is_last, is_end, &mut cut)?;
            if is_reached {
                break;
            }
        }
        self.conclude(&cut, is_reached, next_base)?;
        self.target.complete()?;
        let (parts, notes) = (self.parts, self.notes);
        Ok(Restored { moment, parts, notes, last: cut.last, start })
    }

    /// Copies a file up to the last record of it that counts. True if no later file counts.
    fn copy(
        &mut self,
        mut source: Opened,
        is_last: bool,
        is_end: bool,
        cut: &mut Cut,
    ) -> Result<bool, String> {
        let is_base = source.info.kind == FileKind::Base;
        let is_rdb = is_base && begins_as_rdb(&source.file);
        let mut copy = self.target.add(source.info.kind, is_rdb, &source.file)?;
        let length = source.length;
        let passed =
            pass(&mut source.file, length, is_base, cut, &mut |block| copy.write_all(block));
        let end = match passed {
            Ok(End::Truncated(damage)) if !is_last => Err(pass::Wrong::Commands(damage)),
            passed => passed,
        };
        let end = end.map_err(|wrong| {
            let (path, manifest) = (source.path.display(), self.manifest.display());
            format!("{path} {wrong}; look at all files with: sheafdb check-aof {manifest}")
        })?;
        if let End::Truncated(damage) = end {
            let name = source.info.name.escape_ascii();
            let left = length - damage.valid_up_to;
            self.notes.push(format!(
                "{name} ends within a command or transaction, as a server which writes or has \
                 crashed leaves it; its last {left} bytes are left out"
            ));
        }
        let is_cut = is_end || end != End::Whole;
        let bytes = if is_cut { cut.end } else { length };
        let finished = copy.set_len(bytes).and_then(|()| copy.sync_all());
        finished.map_err(|error| format!("the copy of {}: {error}", source.path.display()))?;
        self.parts.push(Part {
            name: source.info.name,
            is_base,
            bytes,
            length,
            records: cut.records,
        });
        Ok(end == End::Reached)
    }

    /// Whether the point is in the files.
    fn conclude(
        &mut self,
        cut: &Cut,
        is_reached: bool,
        next_base: Option<u64>,
    ) -> Result<(), String> {
        if cut.is_untimed {
            return Err("nobody knows when the changes were made: the files have no annotations \
                        (SheafDB writes them; redis-server does with aof-timestamp-enabled)"
                .to_owned());
        }
        let last = cut.last;
        match (self.point, last.number) {
            (Point::Number(number), Some(last)) if number > last => {
                // Every number up to that of the next base, or of the next annotation, is known to
                // have no command.
                if !is_reached && next_base.is_none() {
                    return Err(format!(
                        "there is no record {number}: the last one in the files is {}",
                        choice::text(cut.last)
                    ));
                }
                let first = last + 1;
                self.notes.push(format!(
                    "the files have no commands for the numbers {first} to {number}: nothing was \
                     changed, or appendonly was off"
                ));
            }
            (Point::Number(number), None) if !is_reached => {
                return Err(format!("there is no record {number}: the files have no such numbers"));
            }
            (Point::Time(_), _) if !is_reached && next_base.is_none() => {
                self.notes
                    .push(format!("the files have nothing later than {}", choice::text(last)));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Whether a file begins as an RDB file, without moving in it.
fn begins_as_rdb(file: &File) -> bool {
    use std::os::unix::fs::FileExt;
    let mut magic = [0; 6];
    let count = file.read_at(&mut magic, 0).unwrap_or(0);
    pass::is_rdb(&magic[..count])
}

#[cfg(test)]
mod tests;
