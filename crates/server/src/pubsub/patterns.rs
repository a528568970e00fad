//! Patterns, found by their literal beginning: those that begin otherwise than a channel's name are
//! not compared with it.

use crate::pubsub::names::{Asked, Name, Named};
use crate::pubsub::subscribers::Subscribers;
use base::glob::{Case, matches};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

/// Patterns by their literal beginning, and who subscribes to them.
#[derive(Debug, Default)]
pub struct Patterns {
    by_beginning: BTreeMap<Box<[u8]>, BTreeMap<Name, Subscribers>>,
    len: usize,
}

/// The bytes of a pattern before the first one that is special.
fn beginning(pattern: &[u8]) -> &[u8] {
    let is_special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
    &pattern[..pattern.iter().position(is_special).unwrap_or(pattern.len())]
}

/// Calls `f` for each entry of a map whose key is a beginning of a text, the longest first. They
/// are found with one search each, and one for each length at which the sorted keys part from the
/// text.
pub fn each_beginning<'a, V>(
    map: &'a BTreeMap<Box<[u8]>, V>,
    text: &[u8],
    mut f: impl FnMut(&'a [u8], &'a V),
) {
    let mut end = Included(text);
    while let Some((begin, value)) = map.range::<[u8], _>((Unbounded, end)).next_back() {
        let common = begin.iter().zip(text).take_while(|(a, b)| a == b).count();
        if common < begin.len() {
            end = Included(&text[..common]);
            continue;
        }
        f(begin, value);
        end = Excluded(&text[..common]);
    }
}

/// Whether a channel's name matches. As in Redis, the empty name matches the empty pattern alone,
/// not even `*`.
pub fn is_match(pattern: &[u8], channel: &[u8]) -> bool {
    if channel.is_empty() { pattern.is_empty() } else { matches(pattern, channel, Case::Sensitive) }
}

impl Patterns {
    /// Different patterns.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The entry of a pattern, made if there is none.
    pub fn entry(&mut self, asked: Asked<'_>) -> (Name, &mut Subscribers) {
        let begin = beginning(asked.text);
        if !self.by_beginning.contains_key(begin) {
            self.by_beginning.insert(begin.into(), BTreeMap::new());
        }
        let same = self.by_beginning.get_mut(begin).expect("it was made");
        let name = match same.get_key_value(&asked as &dyn Named) {
            Some((name, _)) => name.clone(),
            None => asked.to_name(),
        };
        let before = same.len();
        let subscribers = same.entry(name.clone()).or_default();
        let is_new = subscribers.total() == 0;
        debug_assert!(is_new || before > 0, "an entry without subscribers is removed");
        self.len += usize::from(is_new);
        (name, subscribers)
    }

    /// A subscriber of this worker leaves; true if it was the last one.
    pub fn leave(&mut self, name: &Name, worker: usize) -> bool {
        let begin = beginning(name.text());
        let Some(same) = self.by_beginning.get_mut(begin) else { return false };
        let Some(subscribers) = same.get_mut(name as &dyn Named) else { return false };
        subscribers.leave(worker);
        if subscribers.total() > 0 {
            return false;
        }
        same.remove(name as &dyn Named);
        if same.is_empty() {
            self.by_beginning.remove(begin);
        }
        self.len -= 1;
        true
    }

    /// Calls `f` for each pattern that matches. Returns how many were compared: those whose literal
    /// beginning is one of `channel`. They are found with one search for each of these beginnings,
    /// and one for each length at which the sorted beginnings part from the channel.
    pub fn matching<'a>(
        &'a self,
        channel: &[u8],
        mut f: impl FnMut(&'a Name, &'a Subscribers),
    ) -> usize {
        let mut compared = 0;
        each_beginning(&self.by_beginning, channel, |_, same| {
            compared += same.len();
            for (name, subscribers) in same {
                if is_match(name.text(), channel) {
                    f(name, subscribers);
                }
            }
        });
        compared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(patterns: &[&str]) -> Patterns {
        let mut all = Patterns::default();
        for (hash, text) in patterns.iter().enumerate() {
            let asked = Asked { hash: hash as u64, text: text.as_bytes() };
            all.entry(asked).1.join(0);
        }
        all
    }

    fn found(patterns: &Patterns, channel: &str) -> (Vec<String>, usize) {
        let mut names = Vec::new();
        let compared = patterns.matching(channel.as_bytes(), |name, _| {
            names.push(String::from_utf8(name.text().to_vec()).expect("text"));
        });
        names.sort();
        (names, compared)
    }

    #[test]
    fn patterns_that_match_are_found_by_each_beginning() {
        let all = with(&["*", "news.*", "news.[ab]*", "news.art", "n?ws.art", "new", "x*", "nz*"]);
        let (names, compared) = found(&all, "news.art");
        assert_eq!(names, ["*", "n?ws.art", "news.*", "news.[ab]*", "news.art"]);
        assert_eq!(compared, 6, "`new` is a beginning, and does not match");
        assert_eq!(found(&all, "ne").0, ["*"]);
        assert_eq!(found(&all, "").0, Vec::<String>::new());
        assert_eq!(found(&with(&["", "*"]), "").0, [""]);
    }

    #[test]
    fn ten_thousand_patterns_that_begin_otherwise_are_not_compared() {
        let names: Vec<String> = (0..10_000).map(|n| format!("user:{n}:*")).collect();
        let all = with(&names.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(found(&all, "chat:7"), (Vec::new(), 0));
        assert_eq!(found(&all, "user:77:in"), (vec!["user:77:*".to_owned()], 1));
        assert_eq!(all.len(), 10_000);
    }

    #[test]
    fn a_pattern_without_subscribers_is_gone() {
        let mut all = with(&["a*", "a*", "ab*"]);
        assert_eq!(all.len(), 3, "hashes differ here");
        let name = Name::new(0, b"a*");
        assert!(all.leave(&name, 0));
        assert!(!all.leave(&name, 0));
        assert_eq!((all.len(), found(&all, "abc").0.len()), (2, 2));
    }
}
