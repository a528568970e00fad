//! MONITOR, the state that all workers share: how many clients monitor at each worker, and how many
//! bytes of lines are on their way to it.
//!
//! Without monitors, a worker reads one word per turn and commands pay nothing. With monitors,
//! every command takes the full path, and its line is posted under the command's locks. So the
//! lines of commands on one key have the order of execution, and what a client does after a reply
//! is shown after the command that was replied to.

use crate::sessions::output::Hold;
use crate::worker::message::Message;
use base::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use base::sync::{Arc, CachePadded};

/// The most bytes of lines on their way to one worker. The monitors of a worker that falls further
/// behind are closed. What a client has not read yet is bounded by
/// `client-output-buffer-limit normal`.
pub const UNDERWAY_MAX: u64 = 64 << 20;

/// The clients in MONITOR, by worker.
#[derive(Debug)]
pub struct Monitors {
    all: AtomicU32,
    workers: Vec<CachePadded<Place>>,
}

#[derive(Debug, Default)]
struct Place {
    sessions: AtomicU32,
    underway: AtomicU64,
    lost: AtomicBool,
}

impl Monitors {
    /// No client monitors at any of `workers` workers.
    pub fn new(workers: usize) -> Self {
        Monitors {
            all: AtomicU32::new(0),
            workers: (0..workers).map(|_| CachePadded(Place::default())).collect(),
        }
    }

    /// True while some client monitors.
    #[inline]
    pub fn any(&self) -> bool {
        self.all.load(Relaxed) > 0
    }

    /// A session of this worker begins to monitor.
    pub fn join(&self, worker: usize) {
        self.workers[worker].sessions.fetch_add(1, AcqRel);
        self.all.fetch_add(1, AcqRel);
    }

    /// A session of this worker stops monitoring.
    pub fn leave(&self, worker: usize) {
        self.workers[worker].sessions.fetch_sub(1, AcqRel);
        self.all.fetch_sub(1, AcqRel);
    }

    /// Posts a line to each worker that has a monitoring session. A worker without room for it
    /// gets [`Message::MonitorLost`] instead, once.
    pub fn publish(&self, line: &Arc<[u8]>, hold: Hold, post: impl Fn(usize, Message)) {
        for (worker, place) in self.workers.iter().enumerate() {
            if place.sessions.load(Acquire) == 0 {
                continue;
            }
            if place.reserve(line.len()) {
                post(worker, Message::Monitor(line.clone(), hold));
            } else if !place.lost.swap(true, AcqRel) {
                post(worker, Message::MonitorLost);
            }
        }
    }

    /// A worker has received a line of so many bytes.
    pub fn received(&self, worker: usize, bytes: usize) {
        self.workers[worker].underway.fetch_sub(bytes as u64, Relaxed);
    }

    /// This worker has closed its monitors because lines to them were dropped. Monitors that begin
    /// after this call receive every line.
    pub fn restart(&self, worker: usize) {
        self.workers[worker].lost.store(false, Relaxed);
    }
}

impl Place {
    /// Reserves room for a line; false if there is none.
    fn reserve(&self, bytes: usize) -> bool {
        let before = self.underway.fetch_add(bytes as u64, Relaxed);
        if before + bytes as u64 <= UNDERWAY_MAX {
            return true;
        }
        self.underway.fetch_sub(bytes as u64, Relaxed);
        false
    }
}

/// A command as MONITOR shows it: `+SECONDS.MICROSECONDS [DB ADDRESS] "ARGUMENT" ...`.
pub fn line(unix_us: i64, db: u32, from: &str, args: &[&[u8]]) -> Arc<[u8]> {
    let (s, us) = (unix_us.div_euclid(1_000_000), unix_us.rem_euclid(1_000_000));
    let mut text = format!("+{s}.{us:06} [{db} {from}]");
    for arg in args {
        text.push(' ');
        text.push_str(&config::parse::quoted(arg));
    }
    text.push_str("\r\n");
    text.into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_quotes_arguments_and_pads_its_microseconds() {
        let shown = line(1_339_518_083_000_412, 9, "127.0.0.1:60866", &[b"keys", b"a\r\n\"\xff"]);
        let text = str::from_utf8(&shown).expect("quoted text is ASCII");
        let expected = "+1339518083.000412 [9 127.0.0.1:60866] \"keys\" \"a\\r\\n\\\"\\xff\"\r\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn queued_lines_are_bounded() {
        let place = Place::default();
        let half = UNDERWAY_MAX as usize / 2;
        assert!(place.reserve(half) && place.reserve(half));
        assert!(!place.reserve(1));
        place.underway.fetch_sub(half as u64, Relaxed);
        assert!(place.reserve(half), "what was refused took no room");
    }
}
