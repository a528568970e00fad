//! Error replies counted by their first word, for INFO errorstats. Scripts can invent words, so the
//! number of words is bounded: beyond the bound new words are counted together.

use base::sync::{Mutex, MutexGuard};
use std::collections::BTreeMap;

/// Maximum number of different words.
pub const NAMES_MAX: usize = 128;
/// Maximum length of a word in bytes; longer ones are truncated.
pub const NAME_BYTES_MAX: usize = 64;
/// The name under which words beyond the bound are counted.
pub const OVERFLOW: &str = "ERRORSTATS_OVERFLOW";

/// Counts per word, and their total. Errors are not a hot path, so a lock is fine: only its worker
/// and INFO take it.
#[derive(Debug, Default)]
pub struct ErrorStats(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    by_name: BTreeMap<String, u64>,
    all: u64,
}

impl ErrorStats {
    /// Counts an error reply, given without the leading `-`.
    pub fn count(&self, error: &[u8]) {
        let mut counts = self.lock();
        counts.all += 1;
        counts.add(&name_of(error), 1);
    }

    /// Replies counted.
    pub fn all(&self) -> u64 {
        self.lock().all
    }

    /// Resets all counts.
    pub fn reset(&self) {
        *self.lock() = Counts::default();
    }

    /// Adds what was counted here to `other`.
    pub fn add_to(&self, other: &ErrorStats) {
        let (names, all) = {
            let counts = self.lock();
            (counts.by_name.clone(), counts.all)
        };
        let mut others = other.lock();
        others.all += all;
        for (name, n) in names {
            others.add(&name, n);
        }
    }

    /// The words and their counts, in order.
    pub fn by_name(&self) -> Vec<(String, u64)> {
        self.lock().by_name.iter().map(|(name, n)| (name.clone(), *n)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        // No code panics in the middle of an update under this lock, so poisoned data is
        // consistent.
        match self.0.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

impl Counts {
    fn add(&mut self, name: &str, n: u64) {
        if let Some(count) = self.by_name.get_mut(name) {
            *count += n;
            return;
        }
        // The entry for the overflow does not count against the bound.
        let own = self.by_name.len() - usize::from(self.by_name.contains_key(OVERFLOW));
        let name = if own < NAMES_MAX { name } else { OVERFLOW };
        *self.by_name.entry(name.to_owned()).or_default() += n;
    }
}

/// The first word of an error, cleaned so that it fits into a line of INFO.
fn name_of(error: &[u8]) -> String {
    let word = error.split(|b| *b == b' ').next().unwrap_or_default();
    let word = &word[..word.len().min(NAME_BYTES_MAX)];
    let safe = |c: char| if matches!(c, ':' | '#') || c.is_control() { '_' } else { c };
    String::from_utf8_lossy(word).chars().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_by_their_first_word() {
        let stats = ErrorStats::default();
        for error in ["ERR syntax error", "WRONGTYPE Operation", "ERR x", "A:b,c=d e", "X\r\ny"] {
            stats.count(error.as_bytes());
        }
        let expected = [("A_b,c=d", 1), ("ERR", 2), ("WRONGTYPE", 1), ("X__y", 1)];
        let expected = expected.map(|(name, n)| (name.to_owned(), n));
        assert_eq!(stats.by_name(), expected);
        assert_eq!(stats.all(), 5);
        stats.reset();
        assert!(stats.by_name().is_empty() && stats.all() == 0);
    }

    #[test]
    fn beyond_the_limit_new_words_share_one_counter() {
        let stats = ErrorStats::default();
        for n in 0..NAMES_MAX + 10 {
            stats.count(format!("E{n:04} text").as_bytes());
        }
        stats.count(b"E0000");
        let by_name = stats.by_name();
        assert_eq!(by_name.len(), NAMES_MAX + 1);
        assert_eq!(by_name[0], ("E0000".to_owned(), 2));
        assert_eq!(*by_name.last().expect("not empty"), (OVERFLOW.to_owned(), 10));
        assert_eq!(stats.all(), NAMES_MAX as u64 + 11);
    }

    #[test]
    fn counts_of_workers_are_added_within_the_limit() {
        let (a, b, sum) = (ErrorStats::default(), ErrorStats::default(), ErrorStats::default());
        for n in 0..NAMES_MAX {
            a.count(format!("A{n:04}").as_bytes());
            b.count(format!("B{n:04}").as_bytes());
        }
        a.count(b"A0000");
        a.add_to(&sum);
        b.add_to(&sum);
        assert_eq!(sum.by_name().len(), NAMES_MAX + 1);
        assert_eq!(sum.all(), 2 * NAMES_MAX as u64 + 1);
        let all: u64 = sum.by_name().iter().map(|(_, n)| n).sum();
        assert_eq!(all, sum.all(), "no reply is lost");
    }

    #[test]
    fn a_long_word_is_truncated() {
        let stats = ErrorStats::default();
        stats.count(&[b'x'; NAME_BYTES_MAX + 1]);
        assert_eq!(stats.by_name()[0].0.len(), NAME_BYTES_MAX);
    }
}
