//! The listen queue while the acceptor stands still: the server is stopped, connections come, it
//! is resumed. A connection that finds the queue full waits a second for the retransmission of its
//! SYN.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::connects::{Burst, Counter, counted};
use crate::analysis::findings::Connects;
use crate::lab::experiment::Error;
use crate::lab::target::{Started, Target};

/// How long the acceptor stands still.
pub const STALL: Duration = Duration::from_millis(300);

/// What happened at one listen queue.
#[derive(Clone, Debug)]
pub struct Row {
    /// Whose queue.
    pub target: String,
    /// Its length as far as it was asked for here.
    pub backlog: Option<u32>,
    /// Connections, and what became of them.
    pub connects: Connects,
    /// Who counted overflows.
    pub counter: Option<Counter>,
}

/// A process that stands still while this lives.
struct Stopped(Pid);

impl Stopped {
    fn new(pid: u32) -> Option<Self> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        kill_process(pid, Signal::STOP).ok().map(|()| Self(pid))
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // It may have ended.
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// A model with a queue of this length, stalled under `count` connections. Waits for `wait` after
/// their begin.
pub fn model(backlog: u32, count: usize, wait: Duration) -> Result<Row, Error> {
    let text = format!("model:event-loop,backlog={backlog}");
    let started = Target::parse(&text)?.start()?;
    let row = stalled(&started, count, wait)?;
    let row = row.ok_or_else(|| Error::Machine(format!("{text} could not be stopped")))?;
    let connects = Connects { backlog: Some(backlog), ..row.connects };
    Ok(Row { target: text, backlog: Some(backlog), connects, ..row })
}

/// A server that the laboratory has started, stalled; `None` for one that is not ours to stop.
pub fn stalled(target: &Started, count: usize, wait: Duration) -> Result<Option<Row>, Error> {
    let (Some(to), Some(pid)) = (target.tcp, target.pid) else { return Ok(None) };
    let seen = counted(target, || burst_while_stopped(to, pid, count, wait))?;
    let row = |(connects, counter)| {
        let target = target.name.clone();
        Row { target, backlog: None, connects, counter }
    };
    Ok(seen.map(row))
}

fn burst_while_stopped(
    to: SocketAddr,
    pid: u32,
    count: usize,
    wait: Duration,
) -> Result<Option<Connects>, Error> {
    let refused = |error| Error::Machine(format!("cannot connect {count} times to {to}: {error}"));
    let Some(stopped) = Stopped::new(pid) else { return Ok(None) };
    let mut burst = Burst::begin(to, count).map_err(refused)?;
    burst.wait(STALL).map_err(refused)?;
    // The queue may have taken all at once: it stands still as long for everybody.
    thread::sleep(STALL.saturating_sub(burst.age()));
    drop(stopped);
    burst.wait(wait).map_err(refused)?;
    Ok(Some(burst.seen()))
}
