//! What must be done with each key, so that it is as it was.

use std::collections::BTreeSet;

use base::glob::is_literal;
use client::Value;
use rdb::Owned;

use crate::connection::{Asked, Failure};

/// Keys whose names are asked for at a time.
const SCANNED: &[u8] = b"1000";
/// Keys whose sizes are asked for at a time.
const KEYS_MAX: usize = 256;
/// Bytes of values that are asked for at a time, as far as one key does not have more.
pub const VALUES_BYTES_MAX: u64 = 8 << 20;

/// A value of a key, as DUMP gives it, and when it expires: milliseconds since 1970, or -1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub payload: Vec<u8>,
    pub expires: i64,
}

/// What is done with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It gets its old value, which is another one.
    Change,
    /// The same for its time to live only.
    Expiry,
    /// It gets its old value; it is not there.
    Create,
    /// It is deleted; it was not there.
    Delete,
}

impl Action {
    /// What a user reads.
    pub fn text(self) -> &'static str {
        match self {
            Self::Change => "restore (it has another value)",
            Self::Expiry => "restore (it has another expiry)",
            Self::Create => "restore (it is missing)",
            Self::Delete => "delete (it did not exist)",
        }
    }
}

/// What makes the present state of a key the old one; `None` if it is.
pub fn decide(old: Option<&State>, now: Option<&State>) -> Option<Action> {
    match (old, now) {
        (None, None) => None,
        (None, Some(_)) => Some(Action::Delete),
        (Some(_), None) => Some(Action::Create),
        (Some(old), Some(now)) if !is_same(&old.payload, &now.payload) => Some(Action::Change),
        (Some(old), Some(now)) => (old.expires != now.expires).then_some(Action::Expiry),
    }
}

/// Whether two payloads are of equal values: the order of members and fields, and how they are
/// encoded, do not matter.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    if a == b {
        return true;
    }
    match (Owned::restore(a), Owned::restore(b)) {
        (Ok(mut a), Ok(mut b)) => {
            a.sort();
            b.sort();
            a == b
        }
        _ => false,
    }
}

/// Adds the keys of a server which match the pattern. `between` is called between its requests.
pub fn matching(
    server: &mut Asked,
    pattern: &[u8],
    keys: &mut BTreeSet<Vec<u8>>,
    mut between: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    if is_literal(pattern) {
        keys.insert(pattern.to_vec());
        return Ok(());
    }
    let mut cursor = b"0".to_vec();
    loop {
        let reply = server.call(&[b"SCAN", &cursor, b"MATCH", pattern, b"COUNT", SCANNED])?;
        let Some([next, found]) = reply.as_members() else { return Err(strange("SCAN")) };
        let found = found.as_members().ok_or_else(|| strange("SCAN"))?;
        keys.extend(found.iter().filter_map(Value::as_bytes).map(<[u8]>::to_vec));
        between()?;
        cursor = next.as_bytes().ok_or_else(|| strange("SCAN"))?.to_vec();
        if cursor == b"0" {
            return Ok(());
        }
    }
}

/// Says that a reply has another form than it must have.
pub fn strange(command: &str) -> Failure {
    format!("the server's reply to {command} has an unknown form")
}

/// Splits keys so that the values of each part have about [`VALUES_BYTES_MAX`] at most on each
/// server, unless it is one key.
pub fn parts<'k>(
    servers: &mut [&mut Asked],
    keys: &[&'k [u8]],
) -> Result<Vec<Vec<&'k [u8]>>, Failure> {
    let mut sizes = vec![0_u64; keys.len()];
    for (keys, sizes) in keys.chunks(KEYS_MAX).zip(sizes.chunks_mut(KEYS_MAX)) {
        let asked: Vec<Vec<&[u8]>> =
            keys.iter().map(|key| vec![&b"MEMORY"[..], b"USAGE", key]).collect();
        for server in &mut *servers {
            for (size, reply) in sizes.iter_mut().zip(server.pipeline(&asked)?) {
                *size += reply.as_integer().unwrap_or(0).max(0) as u64;
            }
        }
    }
    let mut all: Vec<Vec<&[u8]>> = Vec::new();
    let mut bytes = 0;
    for (&key, size) in keys.iter().zip(sizes) {
        match all.last_mut() {
            Some(part) if bytes + size <= VALUES_BYTES_MAX && part.len() < KEYS_MAX => {
                part.push(key);
                bytes += size;
            }
            _ => {
                all.push(vec![key]);
                bytes = size;
            }
        }
    }
    Ok(all)
}

/// The states of keys. They expire meanwhile, but are not changed.
pub fn states(server: &mut Asked, keys: &[&[u8]]) -> Result<Vec<Option<State>>, Failure> {
    let asked: Vec<Vec<&[u8]>> =
        keys.iter().flat_map(|key| [vec![&b"DUMP"[..], key], vec![b"PEXPIRETIME", key]]).collect();
    let replies = server.pipeline(&asked)?;
    let mut replies = replies.into_iter();
    let mut states = Vec::with_capacity(keys.len());
    while let (Some(payload), Some(expires)) = (replies.next(), replies.next()) {
        states.push(match (payload, expires.as_integer()) {
            (Value::Bulk(payload), Some(expires @ -1..)) => Some(State { payload, expires }),
            (Value::Bulk(_) | Value::Null, Some(_)) => None,
            _ => return Err(strange("DUMP")),
        });
    }
    Ok(states)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdb::{Options, Saver, Shape, VERSION};

    fn dumped(value: &Owned, shape: Shape) -> Vec<u8> {
        let options = Options { compress: false, version: VERSION };
        Saver::new(options).dump(&value.shaped(shape))
    }

    fn state(value: &Owned, shape: Shape, expires: i64) -> State {
        State { payload: dumped(value, shape), expires }
    }

    fn members(names: &[&str]) -> Vec<Vec<u8>> {
        names.iter().map(|name| name.as_bytes().to_vec()).collect()
    }

    #[test]
    fn only_what_differs_is_changed() {
        let one = state(&Owned::String(b"1".to_vec()), Shape::Plain, -1);
        let two = state(&Owned::String(b"2".to_vec()), Shape::Plain, -1);
        let later = State { expires: 99, ..one.clone() };
        for (old, now, expected) in [
            (None, None, None),
            (None, Some(&one), Some(Action::Delete)),
            (Some(&one), None, Some(Action::Create)),
            (Some(&one), Some(&one), None),
            (Some(&one), Some(&two), Some(Action::Change)),
            (Some(&one), Some(&later), Some(Action::Expiry)),
        ] {
            assert_eq!(decide(old, now), expected, "{old:?} {now:?}");
        }
    }

    #[test]
    fn encoding_and_order_do_not_matter() {
        let hash = |names: &[&str]| {
            let field = |name: &Vec<u8>| rdb::Field {
                name: name.clone(),
                value: b"v".to_vec(),
                expires: None,
            };
            Owned::Hash(members(names).iter().map(field).collect())
        };
        let (packed, plain) =
            (dumped(&hash(&["a", "b"]), Shape::Packed), dumped(&hash(&["b", "a"]), Shape::Plain));
        assert!(packed != plain && is_same(&packed, &plain));
        assert!(!is_same(&packed, &dumped(&hash(&["a", "c"]), Shape::Packed)));
        let set = |names: &[&str]| dumped(&Owned::Set(members(names)), Shape::Plain);
        assert!(is_same(&set(&["a", "b"]), &set(&["b", "a"])));
        let list = |names: &[&str]| dumped(&Owned::List(members(names)), Shape::Plain);
        assert!(!is_same(&list(&["a", "b"]), &list(&["b", "a"])));
        assert!(!is_same(b"no payload", b"at all"));
    }
}
