//! What SORT is asked to do.

use std::ops::Range;

use resp::Args;
use value::keyed::Val;

use crate::error::Error;
use crate::parse::{integer, is};

/// The arguments behind the key.
pub(super) struct Options<'a> {
    /// What is sorted by, if not the elements.
    pub by: Option<Pattern<'a>>,
    /// BY a pattern without a `*`: the order stays.
    pub unsorted: bool,
    /// What is replied, if not the elements.
    pub gets: Vec<Get<'a>>,
    /// From the last to the first.
    pub desc: bool,
    /// By bytes instead of numbers.
    pub alpha: bool,
    /// The argument that names where the result goes.
    pub store: Option<usize>,
    limit: Option<(i64, i64)>,
}

/// What GET asks for.
pub(super) enum Get<'a> {
    /// `#`.
    Element,
    /// What a key holds.
    Value(Pattern<'a>),
    /// A pattern that names no key.
    Nothing,
}

impl<'a> Options<'a> {
    pub fn parse(args: Args<'a>, may_store: bool) -> Result<Self, Error> {
        let mut options = Options {
            by: None,
            unsorted: false,
            gets: Vec::new(),
            desc: false,
            alpha: false,
            store: None,
            limit: None,
        };
        let mut at = 2;
        while at < args.len() {
            let (word, more) = (args.get(at), args.len() - at - 1);
            at += 1;
            if is(word, "ASC") {
                options.desc = false;
            } else if is(word, "DESC") {
                options.desc = true;
            } else if is(word, "ALPHA") {
                options.alpha = true;
            } else if is(word, "LIMIT") && more >= 2 {
                options.limit = Some((integer(args.get(at))?, integer(args.get(at + 1))?));
                at += 2;
            } else if is(word, "STORE") && more >= 1 && may_store {
                options.store = Some(at);
                at += 1;
            } else if is(word, "BY") && more >= 1 {
                options.by = Pattern::parse(args.get(at));
                options.unsorted |= options.by.is_none();
                at += 1;
            } else if is(word, "GET") && more >= 1 {
                options.gets.push(Get::parse(args.get(at)));
                at += 1;
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(options)
    }

    /// Whether keys are read that the arguments do not name.
    pub fn grows(&self) -> bool {
        self.weighs() || self.looks_up()
    }

    /// Whether keys say what the elements are sorted by.
    pub fn weighs(&self) -> bool {
        self.by.is_some() && !self.unsorted
    }

    /// Whether keys say what is shown of the elements.
    pub fn looks_up(&self) -> bool {
        self.gets.iter().any(|get| matches!(get, Get::Value(_)))
    }

    /// Which of so many elements pass the limit.
    pub fn window(&self, len: u64) -> Range<usize> {
        let (offset, count) = self.limit.unwrap_or((0, -1));
        let start = offset.max(0).min(len as i64);
        let end = if count < 0 { len as i64 } else { start.saturating_add(count).min(len as i64) };
        start as usize..end as usize
    }
}

impl<'a> Get<'a> {
    fn parse(pattern: &'a [u8]) -> Self {
        if pattern == b"#" {
            return Get::Element;
        }
        Pattern::parse(pattern).map_or(Get::Nothing, Get::Value)
    }
}

/// A name of keys with an element in the place of its first `*`.
pub(super) struct Pattern<'a> {
    before: &'a [u8],
    after: &'a [u8],
    /// The field, if the key holds a hash.
    pub field: Option<&'a [u8]>,
}

impl<'a> Pattern<'a> {
    /// `None` if there is no `*`.
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        let star = text.iter().position(|byte| *byte == b'*')?;
        let (before, mut after) = (&text[..star], &text[star + 1..]);
        let mut field = None;
        if let Some(arrow) = after.windows(2).position(|two| two == b"->")
            && after.len() > arrow + 2
        {
            field = Some(&after[arrow + 2..]);
            after = &after[..arrow];
        }
        Some(Pattern { before, after, field })
    }

    /// Adds the key's name for an element.
    pub fn name(&self, element: Val<'_>, name: &mut Vec<u8>) {
        name.extend_from_slice(self.before);
        element.runs().for_each(|run| name.extend_from_slice(run));
        name.extend_from_slice(self.after);
    }
}

/// The argument behind the last STORE, as it is found without knowing whether the rest is right.
pub(super) fn store(args: Args<'_>) -> Option<usize> {
    let (mut at, mut found) = (2, None);
    while at + 1 < args.len() {
        let word = args.get(at);
        if is(word, "LIMIT") {
            at += 2;
        } else if is(word, "GET") || is(word, "BY") {
            at += 1;
        } else if is(word, "STORE") {
            at += 1;
            found = Some(at);
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Pattern, Val};

    #[test]
    fn a_pattern_expands_to_keys_and_fields() {
        let named = |text: &'static [u8]| {
            let pattern = Pattern::parse(text)?;
            let mut name = Vec::new();
            pattern.name(Val::Bytes(b"E"), &mut name);
            Some((name, pattern.field))
        };
        assert_eq!(named(b"w_*"), Some((b"w_E".to_vec(), None)));
        assert_eq!(named(b"*->*"), Some((b"E".to_vec(), Some(&b"*"[..]))));
        assert_eq!(named(b"a->b_*_c->f->g"), Some((b"a->b_E_c".to_vec(), Some(&b"f->g"[..]))));
        assert_eq!(named(b"o_*->"), Some((b"o_E->".to_vec(), None)));
        assert_eq!(named(b"nosort"), None);
    }
}
