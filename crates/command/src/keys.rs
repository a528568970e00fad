//! Which arguments of a request are keys, by the key specs of its command. Nothing is allocated:
//! the dispatcher walks the keys of every request that has more than one.

use resp::Args;

use crate::error::Error;
use crate::spec::{BeginSearch, CommandSpec, FindKeys, Group, KeyFlags, KeySpec, LockClass};
use crate::{generic, geo};

/// The arguments do not hold the keys that their number or a count among them promises. Such a
/// request touches no data; its handler finds the same fault and says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidKeys;

/// One key of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyAt {
    /// Which argument it is.
    pub arg: usize,
    /// What is done to it.
    pub flags: KeyFlags,
}

/// The keys of a request, in the order of its specs.
#[derive(Clone, Debug)]
pub struct Keys<'a> {
    args: Args<'a>,
    specs: &'static [KeySpec],
    span: Span,
}

/// What is left of the current spec: every `step`-th argument from `next` below `end`.
#[derive(Clone, Copy, Debug)]
struct Span {
    next: usize,
    end: usize,
    step: usize,
    flags: KeyFlags,
}

/// The keys of a request whose arity is right.
#[inline]
pub fn keys<'a>(spec: &'static CommandSpec, args: Args<'a>) -> Result<Keys<'a>, InvalidKeys> {
    let specs = specs(spec, args);
    for key_spec in specs {
        span(key_spec, args)?;
    }
    let none = Span { next: 0, end: 0, step: 1, flags: KeyFlags::of(&[]) };
    Ok(Keys { args, specs, span: none })
}

/// Calls `f` with the argument number of every key of a request whose arity is right. Where one spec
/// finds no keys (`PFMERGE destkey`, without a source), those of the others are told all the same.
#[inline]
pub fn for_each(
    spec: &'static CommandSpec,
    args: Args<'_>,
    mut f: impl FnMut(usize),
) -> Result<(), Error> {
    let mut all = Ok(());
    for key_spec in specs(spec, args) {
        match span(key_spec, args) {
            Ok(span) => (span.next..span.end).step_by(span.step).for_each(&mut f),
            Err(InvalidKeys) => all = Err(Error::InvalidArguments),
        }
    }
    all
}

/// The key specs that tell the keys of a request: all, but MIGRATE has either one key or those behind
/// KEYS, and then the key's place is empty.
#[inline]
fn specs(spec: &'static CommandSpec, args: Args<'_>) -> &'static [KeySpec] {
    match spec.keys {
        [one, behind] if behind.flags.contains(KeyFlags::INCOMPLETE) => {
            let named = args.get(3).is_empty() && begin(behind.begin, args).is_some();
            std::slice::from_ref(if named { behind } else { one })
        }
        specs => specs,
    }
}

/// Whether a command may put a list under a key that holds none: by what is done to its keys, so a few are among them
/// that only change what is there. For those that do, who waits for the key is looked at before they run.
#[inline]
pub fn may_fill(spec: &CommandSpec) -> bool {
    matches!(spec.group, Group::List | Group::Generic) && spec.keys.iter().any(is_filled)
}

fn is_filled(spec: &KeySpec) -> bool {
    spec.flags.contains(KeyFlags::INSERT) || spec.flags.contains(KeyFlags::UPDATE)
}

/// The keys that a request of such a command may fill; none if its keys cannot be told, because then it fails.
pub fn filled<'a>(spec: &'static CommandSpec, args: Args<'a>) -> Vec<&'a [u8]> {
    if !may_fill(spec) {
        return Vec::new();
    }
    let filled = spec.keys.iter().filter(|spec| is_filled(spec));
    let spans = filled.filter_map(|spec| span(spec, args).ok());
    spans.flat_map(|s| (s.next..s.end).step_by(s.step)).map(|at| args.get(at)).collect()
}

/// What a request locks. A command that may come upon further keys is confined to those it names if its
/// arguments say so; one whose last key may be none of those that its specs tell takes everything.
pub fn lock_class(spec: &CommandSpec, args: Args<'_>) -> LockClass {
    match spec.lock {
        LockClass::Keys if is_georadius(spec) && geo::may_store_elsewhere(args) => LockClass::World,
        LockClass::Growing if !generic::sort_grows(args) => LockClass::Keys,
        class => class,
    }
}

/// Whether this is one of the two commands with two words for where to store.
fn is_georadius(spec: &CommandSpec) -> bool {
    spec.keys.len() == 3 && matches!(spec.group, Group::Geo)
}

/// The argument that is the first key of every request of a command; 0 if it has no keys, or if
/// they begin behind a word.
pub const fn first_key(spec: &CommandSpec) -> u32 {
    match spec.keys {
        [KeySpec { begin: BeginSearch::Index(at), find: FindKeys::Range { .. }, .. }, ..] => {
            *at as u32
        }
        [
            KeySpec { begin: BeginSearch::Index(at), find: FindKeys::KeyNum { first, .. }, .. },
            ..,
        ] => *at as u32 + *first as u32,
        _ => 0,
    }
}

/// Whether a command has exactly one key, and that at a fixed place.
pub const fn has_single_key(spec: &CommandSpec) -> bool {
    spec.single_key().is_some()
}

impl Iterator for Keys<'_> {
    type Item = KeyAt;

    #[inline]
    fn next(&mut self) -> Option<KeyAt> {
        while self.span.next >= self.span.end {
            let (first, rest) = self.specs.split_first()?;
            self.specs = rest;
            self.span = span(first, self.args).ok()?;
        }
        let arg = self.span.next;
        self.span.next += self.span.step;
        Some(KeyAt { arg, flags: self.span.flags })
    }
}

/// Where the keys of one spec stand.
#[inline]
fn span(spec: &KeySpec, args: Args<'_>) -> Result<Span, InvalidKeys> {
    let len = args.len();
    let begin = match spec.begin {
        // SORT's STORE is the one key of its kind that its arguments tell.
        BeginSearch::Unknown if spec.flags.contains(KeyFlags::OW) => generic::sort_store(args),
        known => begin(known, args),
    };
    let Some(begin) = begin else {
        // Keys that are half of what follows their word are no option: XREAD has none without STREAMS.
        if matches!(spec.find, FindKeys::Range { limit: 2.., .. }) {
            return Err(InvalidKeys);
        }
        return Ok(Span { next: 0, end: 0, step: 1, flags: spec.flags });
    };
    let (next, end, step) = match spec.find {
        // An option without its key: what the handler says of it depends on the other keys.
        FindKeys::Range { last: 0, .. } if is_word(spec) && begin >= len => (0, 0, 1),
        FindKeys::Range { last, step, .. } if last >= 0 => {
            (begin, begin + last as usize + 1, step as usize)
        }
        FindKeys::Range { last, step, limit } => {
            let behind = match limit {
                0 | 1 => len,
                limit => begin + len.saturating_sub(begin) / limit as usize,
            };
            (begin, (behind + 1).saturating_sub(last.unsigned_abs() as usize), step as usize)
        }
        FindKeys::KeyNum { at, first, step } => {
            let text = args.try_get(begin + at as usize).ok_or(InvalidKeys)?;
            let count = base::num::parse_i64(text).filter(|n| *n > 0).ok_or(InvalidKeys)?;
            let count = usize::try_from(count).ok().filter(|n| *n <= len).ok_or(InvalidKeys)?;
            let next = begin + first as usize;
            (next, next + (count - 1) * step as usize + 1, step as usize)
        }
        FindKeys::Unknown => (begin, begin + 1, 1),
    };
    if next >= end && end > 0 || end > len {
        return Err(InvalidKeys);
    }
    Ok(Span { next, end, step, flags: spec.flags })
}

fn is_word(spec: &KeySpec) -> bool {
    matches!(spec.begin, BeginSearch::Keyword { .. })
}

/// Where the search for keys starts; `None` if its keyword is not there.
#[inline]
fn begin(begin: BeginSearch, args: Args<'_>) -> Option<usize> {
    match begin {
        BeginSearch::Index(at) => Some(at as usize),
        BeginSearch::Keyword { word, from } => {
            let is_word = |i: &usize| args.get(*i).eq_ignore_ascii_case(word.as_bytes());
            let at = if from >= 0 {
                (from as usize..args.len()).find(is_word)
            } else {
                let last = args.len().checked_sub(from.unsigned_abs() as usize)?;
                (1..=last).rev().find(is_word)
            };
            at.map(|at| at + 1)
        }
        BeginSearch::Unknown => None,
    }
}

/// What the command really does to its keys, where the spec says that it depends on the arguments.
pub fn flags_of(spec: &CommandSpec, args: Args<'_>, declared: KeyFlags) -> KeyFlags {
    if !declared.contains(KeyFlags::VARIABLE_FLAGS) {
        return declared;
    }
    let has = |from, words: &[&str]| {
        args.from(from)
            .iter()
            .any(|arg| words.iter().any(|word| arg.eq_ignore_ascii_case(word.as_bytes())))
    };
    match spec.full_name {
        "set" if has(3, &["GET", "IFEQ", "IFNE"]) => {
            KeyFlags::of(&[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE])
        }
        "set" => KeyFlags::of(&[KeyFlags::OW, KeyFlags::UPDATE]),
        "delex" if args.len() > 2 => KeyFlags::of(&[KeyFlags::RW, KeyFlags::DELETE]),
        "delex" => KeyFlags::of(&[KeyFlags::RM, KeyFlags::DELETE]),
        "bitfield" if only_gets(args) => KeyFlags::of(&[KeyFlags::RO, KeyFlags::ACCESS]),
        "bitfield" => KeyFlags::of(&[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE]),
        _ => declared,
    }
}

/// Whether a BITFIELD consists of complete GETs, and OVERFLOWs, which then say nothing.
fn only_gets(args: Args<'_>) -> bool {
    let mut i = 2;
    while i < args.len() {
        let left = args.len() - i - 1;
        i += match args.get(i) {
            word if left >= 2 && word.eq_ignore_ascii_case(b"GET") => 3,
            word if left >= 1 && word.eq_ignore_ascii_case(b"OVERFLOW") => 2,
            _ => return false,
        };
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use resp::Span;

    /// The keys of a request by a spec, or `None` if they are invalid.
    fn found(spec: KeySpec, line: &str) -> Option<Vec<usize>> {
        let words: Vec<&str> = line.split(' ').collect();
        let mut spans = Vec::new();
        let mut start = 0;
        for word in &words {
            spans.push(Span { start, len: word.len() as u32 });
            start += word.len() as u32 + 1;
        }
        let keys: &'static [KeySpec] = Box::leak(Box::new([spec]));
        let spec = Box::leak(Box::new(CommandSpec { keys, ..CommandSpec::BASE }));
        let mut found = Vec::new();
        for_each(spec, Args::new(line.as_bytes(), &spans, &[]), |at| found.push(at)).ok()?;
        Some(found)
    }

    #[test]
    fn ranges() {
        let one = KeySpec::at(1, KeyFlags::RO);
        assert_eq!(found(one, "c a b c"), Some(vec![1]));
        assert_eq!(found(one.and_next(1), "c a b c"), Some(vec![1, 2]));
        assert_eq!(found(one.and_next(3), "c a b c"), None);
        assert_eq!(found(one.to_end(1), "c a b c"), Some(vec![1, 2, 3]));
        assert_eq!(found(one.to_end(2), "c a 1 b 2"), Some(vec![1, 3]));
        assert_eq!(found(one.to_end(2), "c a 1 b"), Some(vec![1, 3]));
        assert_eq!(found(one.to_end(1), "c"), None);
        let but_the_last = KeySpec { find: FindKeys::Range { last: -2, step: 1, limit: 0 }, ..one };
        assert_eq!(found(but_the_last, "c a b 0"), Some(vec![1, 2]));
        assert_eq!(found(but_the_last, "c 0"), None);
    }

    #[test]
    fn keywords_and_limits() {
        let find = FindKeys::Range { last: -1, step: 1, limit: 2 };
        let begin = BeginSearch::Keyword { word: "STREAMS", from: 1 };
        let half = KeySpec { begin, find, ..KeySpec::at(0, KeyFlags::RO) };
        assert_eq!(found(half, "c count 1 streams a b 0 0"), Some(vec![4, 5]));
        assert_eq!(found(half, "c Streams a 0"), Some(vec![2]));
        assert_eq!(found(half, "c count 1"), None, "as the oracle says of XREAD without STREAMS");
        assert_eq!(found(half, "c streams"), None);
        let begin = BeginSearch::Keyword { word: "KEYS", from: -2 };
        let rest = KeySpec { begin, ..KeySpec::at(0, KeyFlags::RO).to_end(1) };
        assert_eq!(found(rest, "c h keys x keys a b"), Some(vec![5, 6]));
        assert_eq!(found(rest, "c h p keys"), Some(vec![]));
    }

    #[test]
    fn counts() {
        let spec = KeySpec::at(1, KeyFlags::OW).counted(2);
        assert_eq!(found(spec, "c 2 a 1 b 2"), Some(vec![2, 4]));
        assert_eq!(found(spec, "c 1 a 1 b 2"), Some(vec![2]));
        // The last value may be missing: that is for the handler to see.
        assert_eq!(found(spec, "c 2 a 1 b"), Some(vec![2, 4]));
        for wrong in ["c 3 a 1 b 2", "c 0 a", "c -1 a", "c x a", "c 9223372036854775807 a", "c"] {
            assert_eq!(found(spec, wrong), None, "{wrong}");
        }
    }
}
