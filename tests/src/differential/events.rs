//! Keyspace notifications beside a sequence: every event must come, in the same order.
//!
//! When a key expires by itself is chance, so the events of keys that have expired are left out.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::execute::{Trace, open};
use crate::quote;
use crate::wire::{Value, Wire};

/// The channel of an event, `__keyevent@<db>__:<event>`, and the key.
pub type KeyEvent = (Vec<u8>, Vec<u8>);

const PATTERN: &str = "__keyevent@*__:*";
/// Events that come when a server finds the time.
const AT_ANY_TIME: [&[u8]; 3] = [b":expired", b":hexpired", b":evicted"];

/// A connection which hears of the events of all keys.
pub(super) struct Listener(Wire);

impl Listener {
    pub fn open(server: SocketAddr, judge: &mut Wire, patience: Duration) -> io::Result<Self> {
        judge.command(&["CONFIG", "SET", "notify-keyspace-events", "EAn"])?;
        let mut wire = open(server, 2, patience)?;
        wire.command(&["PSUBSCRIBE", PATTERN])?;
        Ok(Self(wire))
    }

    /// What it has heard until now.
    pub fn heard(mut self, judge: &mut Wire) -> io::Result<Vec<KeyEvent>> {
        const END: &str = "__keyevent@end__:end";
        judge.command(&["PUBLISH", END, ""])?;
        judge.command(&["CONFIG", "SET", "notify-keyspace-events", ""])?;
        let mut heard = Vec::new();
        loop {
            match self.0.receive()? {
                Value::Array(parts) => match &parts[..] {
                    [_, _, Value::Bulk(channel), _] if *channel == END.as_bytes() => {
                        return Ok(heard);
                    }
                    [_, _, Value::Bulk(channel), Value::Bulk(key)] => {
                        heard.push((channel.clone(), key.clone()));
                    }
                    _ => return Err(io::Error::other(format!("no message: {parts:?}"))),
                },
                other => return Err(io::Error::other(format!("no message: {other:?}"))),
            }
        }
    }
}

/// What differs between the events on two servers.
pub(super) fn difference(redis: &Trace, ours: &Trace) -> Option<String> {
    let (Some(left), Some(right)) = (&redis.events, &ours.events) else { return None };
    let comes_late = |event: &&KeyEvent| AT_ANY_TIME.iter().any(|end| event.0.ends_with(end));
    let keys: BTreeSet<&[u8]> =
        left.iter().chain(right).filter(comes_late).map(|(_, key)| &key[..]).collect();
    let kept = |(_, key): &&KeyEvent| !keys.contains(&key[..]);
    let (mut left, mut right) = (left.iter().filter(kept), right.iter().filter(kept));
    for at in 1.. {
        match (left.next(), right.next()) {
            (None, None) => break,
            (a, b) if a == b => {}
            (a, b) => {
                let show = |event: Option<&KeyEvent>| match event {
                    None => "none".to_owned(),
                    Some((channel, key)) => {
                        format!("{} {}", String::from_utf8_lossy(channel), quote::quoted(key))
                    }
                };
                return Some(format!("event {at}\n  redis: {}\n  ours:  {}", show(a), show(b)));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_number_are_compared_but_of_keys_that_expire() {
        let heard = |events: &[(&str, &str)]| {
            let event = |(name, key): &(&str, &str)| {
                (format!("__keyevent@0__:{name}").into_bytes(), key.as_bytes().to_vec())
            };
            Trace { events: Some(events.iter().map(event).collect()), ..Trace::default() }
        };
        let two = heard(&[("set", "a"), ("del", "b")]);
        assert_eq!(difference(&two, &two), None);
        assert!(difference(&two, &heard(&[("del", "b"), ("set", "a")])).is_some());
        assert!(difference(&two, &heard(&[("set", "a")])).is_some());
        let expires = heard(&[("set", "a"), ("set", "c"), ("expired", "c"), ("del", "b")]);
        assert_eq!(difference(&two, &expires), None);
    }
}
