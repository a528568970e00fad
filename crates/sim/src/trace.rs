//! What happened in a run: a digest of all of it, and the text of the last events.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};

/// Events that are kept unless all are.
const KEPT: usize = 400;
/// Bytes of one event's text.
const TEXT_MAX: usize = 160;

/// The events of a run.
#[derive(Debug, Default)]
pub struct Trace {
    /// All are kept, not only the last.
    pub whole: bool,
    events: VecDeque<Event>,
    dropped: u64,
    digest: u64,
}

#[derive(Debug)]
struct Event {
    at_ns: u64,
    who: u32,
    text: String,
}

/// The world itself, as the one who did something.
pub const WORLD: u32 = u32::MAX;

impl Trace {
    /// Adds an event. Text is cut at [`TEXT_MAX`] bytes, in the digest too.
    pub fn add(&mut self, at_ns: u64, who: u32, what: fmt::Arguments<'_>) {
        if self.events.len() == KEPT && !self.whole {
            self.dropped += 1;
            // The text of the oldest event is used again.
            if let Some(mut event) = self.events.pop_front() {
                event.text.clear();
                self.push(event, at_ns, who, what);
            }
            return;
        }
        self.push(Event { at_ns, who, text: String::new() }, at_ns, who, what);
    }

    fn push(&mut self, mut event: Event, at_ns: u64, who: u32, what: fmt::Arguments<'_>) {
        (event.at_ns, event.who) = (at_ns, who);
        // A full text ends the formatting; what fits is kept.
        let _ = write!(Cut(&mut event.text), "{what}");
        self.mix(at_ns ^ u64::from(who) << 40);
        for chunk in event.text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
        self.events.push_back(event);
    }

    fn mix(&mut self, word: u64) {
        let mut state = self.digest ^ word;
        self.digest = base::prng::splitmix64(&mut state);
    }

    /// A number that is the same for two runs only if all their events are.
    pub fn digest(&self) -> u64 {
        self.digest
    }
}

struct Cut<'a>(&'a mut String);

impl fmt::Write for Cut<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let room = TEXT_MAX.saturating_sub(self.0.len());
        if s.len() <= room {
            self.0.push_str(s);
            return Ok(());
        }
        let end = (0..=room).rev().find(|at| s.is_char_boundary(*at)).unwrap_or(0);
        self.0.push_str(&s[..end]);
        Err(fmt::Error)
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dropped > 0 {
            writeln!(f, "... {} earlier events (--trace shows all)", self.dropped)?;
        }
        for event in &self.events {
            let (ms, us) = (event.at_ns / 1_000_000, event.at_ns / 1000 % 1000);
            if event.who == WORLD {
                writeln!(f, "{ms:>6}.{us:03} ms  world    {}", event.text)?;
            } else {
                writeln!(f, "{ms:>6}.{us:03} ms  c{:<7} {}", event.who, event.text)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_events_are_kept_and_all_are_in_the_digest() {
        let run = |first: &str| {
            let mut trace = Trace::default();
            trace.add(0, 1, format_args!("{first}"));
            for n in 0..KEPT as u64 {
                trace.add(n, 1, format_args!("event {n}"));
            }
            trace
        };
        let (a, b) = (run("a"), run("b"));
        assert_eq!(a.to_string(), b.to_string());
        assert!(a.to_string().starts_with("... 1 earlier"));
        assert_eq!(a.digest(), run("a").digest());
        assert_ne!(a.digest(), b.digest());
    }

    #[test]
    fn long_texts_are_cut_between_letters() {
        let mut trace = Trace::default();
        trace.add(0, WORLD, format_args!("x{}", "\u{e9}".repeat(500)));
        assert_eq!(trace.events[0].text.len(), TEXT_MAX - 1);
    }
}
