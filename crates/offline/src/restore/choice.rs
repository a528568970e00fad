//! Which base data is restored from, and which files behind it.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use base::num::parse_i64;
use journal::manifest::FileInfo;
use journal::{Item, Reader};
use rdb::file::{Chunk, ScanOptions, Scanned, Scanner};

use super::Stop;
use super::cut::{Last, Made};
use super::listing::{Generation, Place, generations};
use super::note::{Note, moment};
use super::pass::is_rdb;
use super::point::Point;
use crate::aof_file::open;
use crate::check_rdb::BLOCK;

/// Bytes of a base in which its moment is looked for.
const HEAD_BYTES_MAX: usize = 1 << 20;
/// The field of a base with its moment.
const MOMENT: &[u8] = b"sheafdb-moment";

/// A file which is open, so that a rewrite cannot take it away.
#[derive(Debug)]
pub struct Opened {
    pub info: FileInfo,
    pub path: PathBuf,
    pub file: File,
    /// Its length at this moment; what is appended later is left out.
    pub length: u64,
}

/// Files which together hold a point.
#[derive(Debug)]
pub struct Chain {
    pub base: Option<Opened>,
    /// What the base says about its moment.
    pub moment: Last,
    pub incr: Vec<Opened>,
    /// The last file is the one to which a server appends.
    pub is_to_end: bool,
    /// The number of the base behind the last file, if there is one.
    pub next_base: Option<u64>,
}

/// A base, as far as it is known when it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Moment {
    last: Last,
    /// The base itself says it; otherwise the first annotation behind it does.
    is_own: bool,
    /// It says its number, too.
    has_number: bool,
}

impl Moment {
    /// Whether all that the base holds counts; `None` if nobody knows.
    fn is_before(self, point: Point) -> Option<bool> {
        match (point, self.last) {
            (Point::Number(limit), Last { number: Some(number), .. }) => Some(number <= limit),
            (Point::Time(_), Last { made: Some(Made::Until(ms)), .. }) => Some(point.takes_ms(ms)),
            (Point::Time(_), Last { made: Some(Made::Second(unix_s)), .. }) => {
                Some(point.takes_second(unix_s))
            }
            _ => None,
        }
    }
}

/// Chooses the newest base which is not behind the point, and opens it and the files behind it.
pub fn choose(place: &Place, point: Point) -> Result<Chain, Stop> {
    let (files, _) = place.list()?;
    let all = generations(files);
    let mut next: Option<Moment> = None;
    let mut oldest = None;
    for (index, generation) in all.iter().enumerate().rev() {
        let own = own_moment(place, generation)?;
        let moment = complete(place, generation, own, point)?;
        if moment.is_before(point) == Some(true) {
            return open_chain(place, &all, index, moment, next);
        }
        oldest = Some((generation, moment));
        next = Some(moment);
    }
    Err(Stop::Failed(refusal(point, oldest)))
}

/// Why no base will do.
fn refusal(point: Point, oldest: Option<(&Generation, Moment)>) -> String {
    let Some((generation, moment)) = oldest else { return "there are no files".to_owned() };
    let name =
        generation.base.as_ref().or(generation.incr.first()).map(|file| file.name.as_slice());
    let name = name.unwrap_or_default().escape_ascii().to_string();
    match (moment.is_before(point), point) {
        (None, Point::Number(_)) => "the files have no annotations with numbers; only a time may \
                                     be given, if they have annotations with times"
            .to_owned(),
        (None, Point::Time(_)) => format!(
            "nobody knows when {name} was made, nor when its changes were: the files have no \
             annotations"
        ),
        _ => format!(
            "{point} is before the oldest data in the files: {name} has {}",
            text(moment.last)
        ),
    }
}

/// `number 7 of 2026-11-26T18:00:00.000Z`.
pub fn text(last: Last) -> String {
    match (last.number, last.made) {
        (Some(number), Some(made)) => format!("number {number}, {made}"),
        (Some(number), None) => format!("number {number}"),
        (None, Some(made)) => made.to_string(),
        (None, None) => "no known moment".to_owned(),
    }
}

/// Opens the files from this generation on: up to the next base which says a moment by itself. If
/// it is that of another server, that has removed the files which lead to it.
fn open_chain(
    place: &Place,
    all: &[Generation],
    index: usize,
    moment: Moment,
    next: Option<Moment>,
) -> Result<Chain, Stop> {
    let Generation { base, incr } = &all[index];
    let ends = next.is_some_and(|next| next.is_own);
    let last = if ends { index + 1 } else { all.len() };
    let later = all[index + 1..last].iter().flat_map(|generation| &generation.incr);
    let base = base.as_ref().map(|file| open_file(place, file)).transpose()?;
    let incr = incr.iter().chain(later).map(|file| open_file(place, file));
    // What follows from an annotation is no statement about the records before it.
    let number = moment.last.number.filter(|_| moment.has_number);
    let made = moment.last.made.filter(|_| moment.is_own);
    Ok(Chain {
        base,
        moment: Last { number, made },
        incr: incr.collect::<Result<_, _>>()?,
        is_to_end: last == all.len(),
        next_base: next.filter(|next| next.has_number).and_then(|next| next.last.number),
    })
}

/// Opens a file of a list. It may have been removed since.
fn open_file(place: &Place, info: &FileInfo) -> Result<Opened, Stop> {
    let path = place.file(&info.name);
    match open(&path) {
        Ok((length, file)) => Ok(Opened { info: info.clone(), path, file, length }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Stop::Gone(path)),
        Err(error) => Err(Stop::Failed(format!("{}: {error}", path.display()))),
    }
}

/// What a base says about its moment.
fn own_moment(place: &Place, generation: &Generation) -> Result<Moment, Stop> {
    let Some(base) = &generation.base else { return Ok(Moment::default()) };
    let mut opened = open_file(place, base)?;
    let mut head = Vec::new();
    let read = (&mut opened.file).take(HEAD_BYTES_MAX as u64).read_to_end(&mut head);
    read.map_err(|error| Stop::Failed(format!("{}: {error}", opened.path.display())))?;
    Ok(if is_rdb(&head) { rdb_moment(&head) } else { commands_moment(&head) })
}

/// The moment which the first line of a base of commands says, if that is an annotation.
fn commands_moment(head: &[u8]) -> Moment {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    match Note::parse(line.strip_suffix(b"\r").unwrap_or(line)) {
        Note::Base(number, ms) => {
            let last = Last { number: Some(number), made: Some(Made::Until(ms)) };
            Moment { last, is_own: true, has_number: true }
        }
        _ => Moment::default(),
    }
}

/// The moment which the fields at the beginning of an RDB file say. (What is wrong in it is found
/// when it is copied.)
fn rdb_moment(head: &[u8]) -> Moment {
    let mut found = Moment::default();
    let mut scanner = Scanner::with_chunks(ScanOptions::default(), 1);
    scanner.feed(head);
    while let Ok(Scanned::Chunk(Chunk::Aux(name, value))) = scanner.next() {
        if name == MOMENT
            && let Some((number, ms)) = moment(&value)
        {
            let last = Last { number: Some(number), made: Some(Made::Until(ms)) };
            return Moment { last, is_own: true, has_number: true };
        }
        if name == b"ctime"
            && let Some(unix_s) = parse_i64(&value)
        {
            found = Moment {
                last: Last { number: None, made: Some(Made::Second(unix_s)) },
                is_own: true,
                has_number: false,
            };
        }
    }
    found
}

/// Adds what the first annotation behind the base says, if the base does not say what `point`
/// needs.
fn complete(
    place: &Place,
    generation: &Generation,
    own: Moment,
    point: Point,
) -> Result<Moment, Stop> {
    if own.is_before(point).is_some() {
        return Ok(own);
    }
    for file in generation.base.iter().chain(&generation.incr) {
        let opened = open_file(place, file)?;
        let path = opened.path.clone();
        let noted = first_note(opened, point)
            .map_err(|error| Stop::Failed(format!("{}: {error}", path.display())))?;
        match noted {
            Some(Note::Number(number, ms)) => {
                let before = Last {
                    number: Some(number.saturating_sub(1)),
                    made: own.last.made.or(Some(Made::Until(ms))),
                };
                return Ok(Moment { last: before, ..own });
            }
            Some(Note::Second(unix_s)) => {
                let before = Last { number: None, made: Some(Made::Second(unix_s)) };
                return Ok(Moment { last: before, ..own });
            }
            _ => {}
        }
    }
    Ok(own)
}

/// The first annotation of a file which tells what `point` needs. O(bytes before it). Damage before
/// it ends the search: who copies the file reports it.
fn first_note(mut opened: Opened, point: Point) -> io::Result<Option<Note>> {
    let mut block = vec![0; BLOCK];
    let mut source = (&mut opened.file).take(opened.length);
    let mut count = source.read(&mut block)?;
    if is_rdb(&block[..count]) {
        return Ok(None);
    }
    let mut reader = Reader::new(0);
    while count > 0 {
        reader.feed(&block[..count]);
        while let Ok(Some(item)) = reader.next() {
            let Item::Annotation { text, .. } = item else { continue };
            match (Note::parse(text), point) {
                (note @ Note::Number(..), _) | (note @ Note::Second(_), Point::Time(_)) => {
                    return Ok(Some(note));
                }
                _ => {}
            }
        }
        count = source.read(&mut block)?;
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
