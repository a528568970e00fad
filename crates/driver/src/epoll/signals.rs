//! SIGINT and SIGTERM as readable descriptors, and signals which must not end a server.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::low_level::{pipe, unregister};
use std::io::{Read, Result};
use std::os::unix::net::UnixStream;

/// They would end the process at once, without a save: a terminal has closed; a file has reached
/// the limit of its size (the write fails all the same).
const IGNORED: [i32; 2] = [SIGHUP, SIGXFSZ];

struct Watched {
    signal: i32,
    stream: UnixStream,
    id: signal_hook::SigId,
}

/// The signals a driver reports.
pub struct Signals(Vec<Watched>);

impl Signals {
    /// Watches the signals if `watch` is true, else none. From then on the process ignores those
    /// of [`IGNORED`].
    pub fn new(watch: bool) -> Result<Self> {
        for signal in if watch { &IGNORED[..] } else { &[] } {
            signal_hook::flag::register(*signal, <_>::default())?; // nobody reads the flag
        }
        let mut watched = Vec::new();
        for signal in if watch { &[SIGINT, SIGTERM][..] } else { &[] } {
            let (stream, write) = UnixStream::pair()?;
            stream.set_nonblocking(true)?;
            let id = pipe::register(*signal, write)?;
            watched.push(Watched { signal: *signal, stream, id });
        }
        Ok(Self(watched))
    }

    /// The descriptors that become readable.
    pub fn streams(&self) -> impl Iterator<Item = &UnixStream> {
        self.0.iter().map(|w| &w.stream)
    }

    /// Takes the signal of a readable stream; several that came together are one.
    pub fn take(&mut self, place: usize) -> Option<i32> {
        let watched = self.0.get_mut(place)?;
        let mut bytes = [0u8; 64];
        matches!(watched.stream.read(&mut bytes), Ok(n) if n > 0).then_some(watched.signal)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for watched in &self.0 {
            unregister(watched.id);
        }
    }
}
