//! Which arguments of a request are keys. Two questions, with two answers:
//!
//! - Which keys does it touch ([`for_each`])? What is locked follows from this. A row whose key
//!   specs tell all keys by position is answered from them. Every other row is answered by its
//!   handler's own reading of the arguments ([`CommandSpec::touched`], or the
//!   [`WaitFn`](crate::spec::WaitFn) of a command that may block), so that it never touches a key
//!   that is not locked. A check of who may touch which key must ask this question.
//! - Which keys does `COMMAND GETKEYS` answer ([`keys`])? Those that Redis answers: it searches by
//!   the key specs, also where they take an option's value for a keyword (`XREADGROUP COUNT 1 GROUP
//!   g STREAMS STREAMS s >`). SORT and MIGRATE have a search of their own there
//!   ([`CommandSpec::getkeys`]).
//!
//! [`for_each`] allocates nothing: the dispatcher walks the keys of every request that has more
//! than one.

use resp::Args;

use crate::error::Error;
use crate::generic::{sort, walk};
use crate::server::debug;
use crate::spec::{
    BeginSearch, CommandSpec, FindKeys, Group, Handler, KeyAt, KeyFlags, KeyRuns, KeySpec,
    LockClass, Traits,
};
use crate::transactions::WATCHED_TOGETHER;

/// The arguments are fewer than the keys that one of them announces. Such a request touches no
/// data: its handler finds the same fault and replies the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidKeys;

/// Calls `f` with every key that a request touches. The caller has checked the arity. On `Err` the
/// handler finds the same fault, and touches no other keys than `f` was called with. If one key
/// spec finds no keys (`PFMERGE destkey`, without a source), the keys of the others still count.
#[inline]
pub fn for_each(
    spec: &'static CommandSpec,
    args: Args<'_>,
    mut f: impl FnMut(KeyAt),
) -> Result<(), Error> {
    if let Some(touched) = spec.touched {
        touched(args)?.for_each(spec.keys, f);
        return Ok(());
    }
    if let Handler::Blocking(wait, _) = spec.handler {
        let wait = wait(args)?;
        KeyRuns::of(wait.keys).and_one(wait.further, 1).for_each(spec.keys, f);
        return Ok(());
    }
    let mut all = Ok(());
    for key_spec in spec.keys {
        match span(key_spec, args) {
            Ok(Span { next, end, step, flags }) => {
                (next..end).step_by(step).for_each(|arg| f(KeyAt { arg, flags }));
            }
            Err(InvalidKeys) => all = Err(Error::InvalidArguments),
        }
    }
    all
}

/// What is left of the current spec: every `step`-th argument from `next` below `end`.
#[derive(Clone, Copy, Debug)]
struct Span {
    next: usize,
    end: usize,
    step: usize,
    flags: KeyFlags,
}

/// The keys of a request whose arity is right, as `COMMAND GETKEYS` answers them. Those that it
/// touches are told by [`for_each`].
pub fn keys(spec: &'static CommandSpec, args: Args<'_>) -> Result<Vec<KeyAt>, InvalidKeys> {
    let mut keys = Vec::new();
    if let Some(getkeys) = spec.getkeys {
        getkeys(args).map_err(|_| InvalidKeys)?.for_each(spec.keys, |key| keys.push(key));
        return Ok(keys);
    }
    for key_spec in spec.keys {
        let Span { next, end, step, flags } = span(key_spec, args)?;
        keys.extend((next..end).step_by(step).map(|arg| KeyAt { arg, flags }));
    }
    Ok(keys)
}

/// Whether a command may put a list under a key that holds none. The flags of its keys decide, so
/// some commands count that only change a list. Before such a command runs, the server looks for
/// clients that wait for the key.
#[inline]
pub fn may_fill(spec: &CommandSpec) -> bool {
    matches!(spec.group, Group::List | Group::Generic)
        && spec.keys.iter().any(|keys| fills(keys.flags))
}

fn fills(flags: KeyFlags) -> bool {
    flags.contains(KeyFlags::INSERT) || flags.contains(KeyFlags::UPDATE)
}

/// The keys that a request of such a command may fill; none if its keys cannot be told, because
/// then it fails.
pub fn filled<'a>(spec: &'static CommandSpec, args: Args<'a>) -> Vec<&'a [u8]> {
    let mut filled = Vec::new();
    if may_fill(spec) {
        let _ = for_each(spec, args, |key| {
            if fills(key.flags) {
                filled.push(args.get(key.arg));
            }
        });
    }
    filled
}

/// What a request locks. A command that may come upon further keys is confined to those it names if
/// its arguments say so.
pub fn lock_class(spec: &CommandSpec, args: Args<'_>) -> LockClass {
    match spec.lock {
        LockClass::World if debug::spares_world(args) => LockClass::Each,
        LockClass::Growing if !sort::sort_grows(args) => LockClass::Keys,
        LockClass::Keys if watches_in_steps(spec, args) => LockClass::None,
        class => class,
    }
}

/// Whether a request is a WATCH of so many keys that it locks them one after the other.
fn watches_in_steps(spec: &CommandSpec, args: Args<'_>) -> bool {
    args.len() > 1 + WATCHED_TOGETHER && spec.traits.contains(Traits::WATCHES)
}

/// Whether a request sees a database of so many keys at one moment, for which it needs World.
pub fn sees_one_moment(spec: &CommandSpec, args: Args<'_>, keys: impl FnOnce() -> u64) -> bool {
    spec.traits.contains(Traits::ONE_MOMENT)
        && walk::is_walk(args)
        && keys() <= walk::ONE_MOMENT_KEYS_MAX
}

/// Whether a request has changes told to its client from here on.
pub fn begins_tracking(spec: &CommandSpec, args: Args<'_>) -> bool {
    spec.traits.contains(Traits::TRACKS) && args.get(2).eq_ignore_ascii_case(b"on")
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

/// Where the keys of one spec stand.
#[inline]
fn span(spec: &KeySpec, args: Args<'_>) -> Result<Span, InvalidKeys> {
    let len = args.len();
    let Some(begin) = begin(spec.begin, args) else {
        // Keys that are half of what follows their word are no option: XREAD has none without
        // STREAMS.
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
    match spec.key_flags {
        Some(flags) if declared.contains(KeyFlags::VARIABLE_FLAGS) => flags(args),
        _ => declared,
    }
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
        for_each(spec, Args::new(line.as_bytes(), &spans, &[]), |key| found.push(key.arg)).ok()?;
        Some(found)
    }

    #[test]
    fn ranges_of_keys_are_found() {
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
    fn keys_behind_keywords_and_limits_are_found() {
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
    fn counted_keys_are_found() {
        let spec = KeySpec::at(1, KeyFlags::OW).counted(2);
        assert_eq!(found(spec, "c 2 a 1 b 2"), Some(vec![2, 4]));
        assert_eq!(found(spec, "c 1 a 1 b 2"), Some(vec![2]));
        // The last value may be missing: the handler reports that.
        assert_eq!(found(spec, "c 2 a 1 b"), Some(vec![2, 4]));
        for wrong in ["c 3 a 1 b 2", "c 0 a", "c -1 a", "c x a", "c 9223372036854775807 a", "c"] {
            assert_eq!(found(spec, wrong), None, "{wrong}");
        }
    }
}
