//! Kept history: the files which rewrites have replaced and which are not removed yet, as the list
//! in the folder says, and how many of them `aof-history` allows.

use config::Retention;
use journal::history::Generation;
use journal::manifest::{FileInfo, FileKind};
use journal::{History, Manifest, Moment};
use std::collections::HashSet;

/// What a new base replaces.
#[derive(Debug)]
pub(crate) struct Replaced {
    /// The old base; without it nothing can be kept.
    pub base: Option<FileInfo>,
    /// The changes since.
    pub incr: Vec<FileInfo>,
    /// Bytes of all these files.
    pub bytes: u64,
}

/// The history of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Oldest first.
    history: History,
    /// Bytes of the files of each generation.
    bytes: Vec<u64>,
    /// There is a list in the folder which can be read.
    is_listed: bool,
    /// Why the list in the folder cannot be read. Its files are left alone.
    damage: Option<String>,
    /// Files which the list names and which are not there.
    missing: usize,
}

impl Kept {
    /// What a list in the folder says. A crash may leave files in it which the manifest names, too:
    /// those which are the data are no history yet, and those which are to be removed are none any
    /// more.
    pub(crate) fn of_list(text: &[u8], manifest: Option<&Manifest>) -> Self {
        let mut history = match History::parse(text) {
            Ok(history) => history,
            Err(error) => return Self::damaged(error.to_string()),
        };
        if let Some(manifest) = manifest {
            let named = manifest.loaded().chain(&manifest.history);
            let named: HashSet<_> = named.map(|file| &file.name[..]).collect();
            let is_kept =
                |g: &Generation| !g.files().any(|file| named.contains(file.name.as_slice()));
            history.generations.retain(is_kept);
        }
        let bytes = vec![0; history.generations.len()];
        Self { history, bytes, is_listed: true, ..Self::default() }
    }

    /// The list cannot be read.
    pub(crate) fn damaged(why: String) -> Self {
        Self { damage: Some(why), ..Self::default() }
    }

    /// The file with this number, of all that are listed, and the generation to which it belongs.
    pub(crate) fn file(&self, number: usize) -> Option<(usize, &FileInfo)> {
        let all = self.history.generations.iter().enumerate();
        all.flat_map(|(at, g)| g.files().map(move |file| (at, file))).nth(number)
    }

    /// The length of a file of this generation, or that it is not there.
    pub(crate) fn set_length(&mut self, generation: usize, len: Option<u64>) {
        match len {
            Some(len) => self.bytes[generation] += len,
            None => self.missing += 1,
        }
    }

    /// What is wrong with the history, for the log.
    pub(crate) fn trouble(&self) -> Option<String> {
        match (&self.damage, self.missing) {
            (Some(why), _) => {
                Some(format!("it cannot be read, and its files are not touched: {why}"))
            }
            (None, 0) => None,
            (None, missing) => Some(format!("{missing} of its files are not there")),
        }
    }

    /// There is a list in the folder which can be read.
    pub(crate) fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// True once if there is a list which cannot be read, and which another one replaces.
    pub(crate) fn take_damage(&mut self) -> bool {
        self.damage.take().is_some()
    }

    /// The number of the last record; 0 if the list does not say it.
    pub(crate) fn last_number(&self) -> u64 {
        let until = self.history.generations.iter().filter_map(|generation| generation.until);
        until.map(|moment| moment.number).max().unwrap_or(0)
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// The text of the list; `None` for an empty one.
    pub(crate) fn text(&self) -> Option<Vec<u8>> {
        (!self.history.generations.is_empty()).then(|| self.history.text())
    }

    /// Adds what a base of this moment has replaced.
    pub(crate) fn add(&mut self, base: FileInfo, replaced: Replaced, until: Moment) {
        let Replaced { incr, bytes, .. } = replaced;
        self.history.generations.push(Generation { base, incr, until: Some(until) });
        self.bytes.push(bytes);
        self.is_listed = true;
    }

    /// Takes out what is not to be kept at this time. Returns its files.
    pub(crate) fn expel(&mut self, keep: Retention, now_ms: i64) -> Vec<FileInfo> {
        let mut expelled = Vec::new();
        while let Some(oldest) = self.history.generations.first_mut() {
            let goes = match keep {
                Retention::Nothing => true,
                Retention::Bytes(bytes_max) => self.bytes() > bytes_max,
                Retention::Ms(ms_max) => {
                    // The next base shows every moment from its own on.
                    let unknown = Moment { number: 0, unix_ms: now_ms };
                    let until = *oldest.until.get_or_insert(unknown);
                    now_ms.saturating_sub(until.unix_ms) > i64::try_from(ms_max).unwrap_or(i64::MAX)
                }
            };
            if !goes {
                break;
            }
            let oldest = self.history.generations.remove(0);
            self.bytes.remove(0);
            let as_history = |file: &FileInfo| FileInfo { kind: FileKind::History, ..file.clone() };
            expelled.extend(oldest.files().map(as_history));
        }
        expelled
    }

    /// The list is removed.
    pub(crate) fn forget_list(&mut self) {
        self.is_listed = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[u8] = b"file a.1.base.rdb seq 1 type b until 7:1000\n\
        file a.1.incr.aof seq 1 type i\n\
        file a.2.base.rdb seq 2 type b until 9:5000\n\
        file a.3.base.rdb seq 3 type b\n";

    fn kept(lens: [u64; 4]) -> Kept {
        let mut kept = Kept::of_list(LIST, None);
        for (number, len) in lens.into_iter().enumerate() {
            let (generation, _) = kept.file(number).expect("it is listed");
            kept.set_length(generation, Some(len));
        }
        assert!(kept.file(4).is_none() && kept.trouble().is_none());
        kept
    }

    fn names(files: &[FileInfo]) -> Vec<&str> {
        assert!(files.iter().all(|file| file.kind == FileKind::History));
        files.iter().filter_map(|file| std::str::from_utf8(&file.name).ok()).collect()
    }

    #[test]
    fn the_oldest_go_first_until_the_bound_is_kept() {
        let mut all = kept([10, 20, 30, 40]);
        assert_eq!((all.bytes(), all.last_number()), (100, 9));
        assert!(all.expel(Retention::Bytes(100), 0).is_empty());
        let gone = all.expel(Retention::Bytes(99), 0);
        assert_eq!(names(&gone), ["a.1.base.rdb", "a.1.incr.aof"]);
        assert_eq!(names(&all.expel(Retention::Bytes(40), 0)), ["a.2.base.rdb"]);
        assert_eq!((names(&all.expel(Retention::Bytes(39), 0)).len(), all.bytes()), (1, 0));
        assert_eq!(all.text(), None);
        assert_eq!(kept([1, 1, 1, 1]).expel(Retention::Nothing, 0).len(), 4);
    }

    #[test]
    fn a_generation_is_kept_while_its_end_is_not_too_long_ago() {
        let mut all = kept([1; 4]);
        assert!(all.expel(Retention::Ms(500), 1500).is_empty());
        assert_eq!(names(&all.expel(Retention::Ms(500), 1501)), ["a.1.base.rdb", "a.1.incr.aof"]);
        assert_eq!(names(&all.expel(Retention::Ms(500), 9000)), ["a.2.base.rdb"]);
        let text = String::from_utf8(all.text().expect("one is left")).expect("text");
        assert!(text.contains("until 0:9000"), "its end was not known: {text}");
        assert_eq!(names(&all.expel(Retention::Ms(500), 9501)), ["a.3.base.rdb"]);
        let mut all = kept([1; 4]);
        assert!(all.expel(Retention::Ms(u64::MAX), i64::MAX).is_empty());
    }

    #[test]
    fn what_the_manifest_names_is_no_history() {
        let left = |manifest: &[u8]| {
            let manifest = Manifest::parse(manifest).expect("a manifest");
            let kept = Kept::of_list(LIST, Some(&manifest));
            assert!(kept.is_listed());
            (0..).map_while(|number| kept.file(number)).count()
        };
        assert_eq!(left(b"file a.4.base.rdb seq 4 type b\n"), 4);
        assert_eq!(left(b"file a.3.base.rdb seq 3 type b\n"), 3, "it was not replaced yet");
        assert_eq!(left(b"file a.1.incr.aof seq 1 type h\n"), 2, "it is to be removed");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let mut damaged = Kept::of_list(b"file a\n", None);
        assert!(damaged.trouble().expect("damaged").contains("line 1"), "{:?}", damaged.trouble());
        assert!(!damaged.is_listed() && damaged.take_damage() && !damaged.take_damage());
        let mut missing = Kept::of_list(LIST, None);
        missing.set_length(1, None);
        assert_eq!(missing.trouble().expect("missing"), "1 of its files are not there");
    }
}
