//! The list of kept history: files which rewrites have replaced, and which nobody removes yet.
//!
//! ```text
//! file appendonly.aof.1.base.rdb seq 1 type b until 16:1700000000123   a generation
//! file appendonly.aof.1.incr.aof seq 1 type i
//! file appendonly.aof.2.incr.aof seq 2 type i
//! file appendonly.aof.2.base.rdb seq 2 type b until 40:1700000900456   the next one
//! file appendonly.aof.3.incr.aof seq 3 type i
//! ```
//!
//! A generation is the data at some moment and the changes until the next base. Lines are those of
//! a manifest. Behind the last generation follow the files of the manifest.

use crate::manifest::{Fault, FileInfo, FileKind, ManifestError, parse_lines};
use crate::moment::Moment;
use base::words;

/// A base and the changes since, up to the moment of the base which has replaced it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// The data at its beginning.
    pub base: FileInfo,
    /// The changes since, oldest first.
    pub incr: Vec<FileInfo>,
    /// The moment of the base which has replaced it; `None` if the list does not say it.
    pub until: Option<Moment>,
}

/// Generations, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The generations.
    pub generations: Vec<Generation>,
}

/// The name of the list.
pub fn history_name(appendfilename: &[u8]) -> Vec<u8> {
    [appendfilename, b".history"].concat()
}

impl Generation {
    /// Its files, in the order in which they are loaded.
    pub fn files(&self) -> impl Iterator<Item = &FileInfo> {
        std::iter::once(&self.base).chain(&self.incr)
    }
}

impl History {
    /// Reads a list, O(its bytes). An empty one is whole, too.
    ///
    /// # Errors
    /// It is not one, or not all of one.
    pub fn parse(text: &[u8]) -> Result<Self, ManifestError> {
        let mut history = Self::default();
        parse_lines(text, |file, line| history.add(file, until(line)))?;
        Ok(history)
    }

    fn add(&mut self, file: FileInfo, until: Option<Moment>) -> Result<(), Fault> {
        let incr = match (file.kind, self.generations.last_mut()) {
            (FileKind::Base, _) => {
                let incr = Vec::new();
                self.generations.push(Generation { base: file, incr, until });
                return Ok(());
            }
            (FileKind::Incr, Some(last)) => &mut last.incr,
            (FileKind::Incr, None) => return Err(Fault::NoBase),
            (FileKind::History, _) => return Err(Fault::Type),
        };
        if incr.last().is_some_and(|last| last.seq >= file.seq) {
            return Err(Fault::Order);
        }
        incr.push(file);
        Ok(())
    }

    /// The text of the file.
    pub fn text(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for generation in &self.generations {
            generation.base.print(&mut out);
            if let Some(until) = generation.until {
                out.extend_from_slice(b" until ");
                out.extend_from_slice(until.text().as_bytes());
            }
            out.push(b'\n');
            for file in &generation.incr {
                file.print(&mut out);
                out.push(b'\n');
            }
        }
        out
    }
}

/// The moment which a line says.
fn until(line: &[u8]) -> Option<Moment> {
    let words = words::split(line)?;
    let (pairs, _) = words.as_chunks::<2>();
    let pair = pairs.iter().find(|[key, _]| key.eq_ignore_ascii_case(b"until"))?;
    Moment::parse(&pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[u8] = b"file a.1.base.rdb seq 1 type b until 16:1700000000123\n\
        file a.1.incr.aof seq 1 type i\n\
        file a.2.incr.aof seq 2 type i\n\
        file \"b c.base.rdb\" seq 2 type b\n";

    #[test]
    fn what_is_written_is_read() {
        let history = History::parse(LIST).expect("a list");
        let [first, second] = &history.generations[..] else { panic!("{history:?}") };
        let until = Moment { number: 16, unix_ms: 1_700_000_000_123 };
        assert_eq!((first.until, first.incr.len()), (Some(until), 2));
        assert_eq!((second.until, second.files().count()), (None, 1));
        assert_eq!(second.base.name, b"b c.base.rdb");
        assert_eq!(history.text(), LIST);
        assert_eq!(History::parse(b""), Ok(History::default()));
        assert_eq!(History::parse(b"# a comment\n"), Ok(History::default()));
        assert_eq!(History::default().text(), b"");
    }

    #[test]
    fn what_is_not_a_list_is_refused() {
        let refused = |text: &[u8]| History::parse(text).expect_err("not a list").fault;
        assert_eq!(refused(&LIST[..LIST.len() - 1]), Fault::Unended);
        assert_eq!(refused(b"file a seq 1 type i\n"), Fault::NoBase);
        assert_eq!(refused(b"file a seq 1 type h\n"), Fault::Type);
        assert_eq!(refused(&[LIST, LIST].concat()), Fault::SameName);
        let (base, incr) = (&b"file a seq 1 type b\n"[..], &b"file b seq 2 type i\n"[..]);
        assert_eq!(refused(&[base, incr, b"file c seq 2 type i\n"].concat()), Fault::Order);
        assert_eq!(refused(b"\0\0\0\0\n"), Fault::Format);
    }
}
