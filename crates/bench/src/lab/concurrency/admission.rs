//! How many connections are served at all: they are opened and kept, and each sends one PING. A
//! connection without a reply counts as not served once no other has received one for some time.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use crate::analysis::findings::Admission;
use crate::load::{Address, Stream};

/// Pause between two reads of the connections that wait.
const LOOK: Duration = Duration::from_millis(2);
/// Replies may trickle in for this many times the quiet time. After that the result is unknown.
const PATIENCE: u32 = 10;
const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

/// Opens up to `count` connections, asks, and waits until `quiet` went by without any answer.
/// `None` if answers still trickled in at the end, or the first connection failed: then nothing is
/// known.
///
/// Ends after 12 `quiet` at most, however the server hangs.
pub fn probe(address: &Address, count: usize, quiet: Duration) -> Option<Admission> {
    driver::raise_file_limit(u32::try_from(count).unwrap_or(u32::MAX));
    let mut asked = open(address, count, quiet);
    let opened = asked.len();
    if opened == 0 {
        return None;
    }
    let settled = wait(&mut asked, quiet);
    let tally = |asked: &[Asked], what: State| asked.iter().filter(|a| a.state == what).count();
    let (served, refused) = (tally(&asked, State::Served), tally(&asked, State::Refused));
    let hangs = served + refused < opened;
    if hangs && !settled {
        return None;
    }
    let mut admission = Admission {
        opened,
        served,
        refused,
        waited_s: quiet.as_secs_f64(),
        ..Admission::default()
    };
    if hangs && served > 0 {
        let first = asked.iter().position(|a| a.state == State::Served)?;
        // Dropping it closes it.
        drop(asked.swap_remove(first));
        wait_for(&mut asked, quiet, served);
        admission.served_after_close = Some(tally(&asked, State::Served) + 1 - served);
    }
    Some(admission)
}

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waits,
    Served,
    /// It received an error or was closed: the client knows that it is not served.
    Refused,
}

struct Asked {
    stream: Stream,
    state: State,
}

/// What a connection has answered so far.
fn answer(mut stream: &mut Stream) -> State {
    let mut bytes = [0; 64];
    match stream.read(&mut bytes) {
        Ok(0) => State::Refused,
        // A server that asks for a password serves.
        Ok(n) if bytes[0] == b'-' && !bytes[..n].starts_with(b"-NOAUTH") => State::Refused,
        Ok(_) => State::Served,
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            State::Waits
        }
        Err(_) => State::Refused,
    }
}

/// Connections until one is not taken in time.
fn open(address: &Address, count: usize, timeout: Duration) -> Vec<Asked> {
    let mut asked = Vec::new();
    for _ in 0..count {
        let Ok(mut stream) = Stream::to(address, timeout) else { break };
        let asked_it = stream.set_nonblocking().and_then(|()| stream.write_all(PING));
        let state = if asked_it.is_ok() { State::Waits } else { State::Refused };
        asked.push(Asked { stream, state });
    }
    asked
}

/// Waits until all are answered, or none was for `quiet`; false if the time ran out before.
fn wait(asked: &mut [Asked], quiet: Duration) -> bool {
    let (since, mut last) = (Instant::now(), Instant::now());
    while asked.iter().any(|a| a.state == State::Waits) {
        if read_waiting(asked) > 0 {
            last = Instant::now();
        } else if last.elapsed() >= quiet {
            return true;
        }
        if since.elapsed() >= quiet * PATIENCE {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}

/// Waits until as many are served as before one was closed, and a moment for more.
fn wait_for(asked: &mut [Asked], quiet: Duration, served: usize) {
    let since = Instant::now();
    let all = |asked: &[Asked]| asked.iter().filter(|a| a.state == State::Served).count();
    let mut enough: Option<Instant> = None;
    while since.elapsed() < quiet && enough.is_none_or(|at| at.elapsed() < quiet / 10) {
        read_waiting(asked);
        if all(asked) >= served && enough.is_none() {
            enough = Some(Instant::now());
        }
        std::thread::sleep(LOOK);
    }
}

/// Reads from all that wait; returns how many no longer do.
fn read_waiting(asked: &mut [Asked]) -> usize {
    let mut changed = 0;
    for one in asked.iter_mut().filter(|a| a.state == State::Waits) {
        one.state = answer(&mut one.stream);
        changed += usize::from(one.state != State::Waits);
    }
    changed
}
