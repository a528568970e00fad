//! One thread and its connections: an epoll loop that never waits while a connection can proceed.

use super::classic::Classic;
use super::connection::{Broken, Connection, Wire};
use super::error::Error;
use super::spec::{Protocol, Spec};
use super::tally::Tally;
use super::two::{self, Two};
use ingest::Strategy;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;
use std::mem::MaybeUninit;
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Ready connections taken per poll.
const EVENTS_MAX: usize = 256;
/// Bytes of acknowledgements taken per read.
const ROOM: usize = 64 << 10;

/// Connects the clients with these numbers, waits until every thread has, sends and checks. `run`
/// names the run.
pub fn run(spec: &Spec, run: &str, clients: Range<usize>, gate: &Barrier) -> Result<Tally, Error> {
    match &spec.protocol {
        Protocol::Classic(strategy) => {
            let waits = spec.waits || (*strategy == Strategy::RequestReply && spec.acknowledged);
            let open =
                |_, stream| Ok(Connection::new(spec, stream, Classic::new(spec, *strategy), waits));
            drive_all(spec, clients, gate, open)
        }
        Protocol::Two(producers) => {
            let body = two::body(spec);
            let open = |number, mut stream| {
                let name = format!("{run}-{number}");
                let wire = Two::greet(&mut stream, spec, producers, &name, &body)?;
                Ok(Connection::new(spec, stream, wire, spec.waits))
            };
            drive_all(spec, clients, gate, open)
        }
    }
}

fn drive_all<W: Wire>(
    spec: &Spec,
    clients: Range<usize>,
    gate: &Barrier,
    open: impl Fn(usize, TcpStream) -> Result<Connection<W>, Error>,
) -> Result<Tally, Error> {
    let connected = connect(spec, clients, open);
    gate.wait(); // also when it failed: the others wait for this thread
    let (set, connections) = connected?;
    let mut tally = Tally::new();
    let cpu = cpu_s();
    let stops = spec.time.map(|time| tally.started + time);
    let mut thread = Thread { spec, set, left: connections.len(), connections, stops };
    thread.drive(&mut tally)?;
    tally.ended = Instant::now();
    tally.cpu_s = cpu_s() - cpu;
    for c in &thread.connections {
        tally.add_connection(c.next, &c.account);
    }
    Ok(tally)
}

fn connect<W: Wire>(
    spec: &Spec,
    clients: Range<usize>,
    open: impl Fn(usize, TcpStream) -> Result<Connection<W>, Error>,
) -> Result<(OwnedFd, Vec<Connection<W>>), Error> {
    let set = epoll::create(CreateFlags::CLOEXEC).map_err(std::io::Error::from)?;
    let mut connections = Vec::with_capacity(clients.len());
    for number in clients {
        let stream =
            TcpStream::connect(spec.address).map_err(|e| Error::Connect(spec.address, e))?;
        stream.set_nodelay(spec.nodelay)?;
        let connection = open(number, stream)?;
        connection.stream.set_nonblocking(true)?;
        let data = EventData::new_u64(connections.len() as u64);
        epoll::add(&set, &connection.stream, data, EventFlags::IN | EventFlags::OUT)
            .map_err(std::io::Error::from)?;
        connections.push(connection);
    }
    Ok((set, connections))
}

/// The connections of a thread while they send.
struct Thread<'a, W> {
    spec: &'a Spec,
    set: OwnedFd,
    connections: Vec<Connection<W>>,
    /// Connections that are not over.
    left: usize,
    /// When no further messages are made.
    stops: Option<Instant>,
}

impl<W: Wire> Thread<'_, W> {
    fn drive(&mut self, tally: &mut Tally) -> Result<(), Error> {
        let mut room = vec![0; ROOM];
        while self.left > 0 {
            let until_stop = self.stops.map(|at| at.saturating_duration_since(Instant::now()));
            if until_stop.is_some_and(|time| time.is_zero()) {
                self.stop(tally)?;
                continue;
            }
            let timeout = until_stop.unwrap_or(self.spec.patience).min(self.spec.patience);
            let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS_MAX];
            let ready = match epoll::wait(&self.set, &mut events, Some(&timespec(timeout))) {
                Ok((ready, _)) => &*ready,
                Err(rustix::io::Errno::INTR) => continue,
                Err(e) => return Err(std::io::Error::from(e).into()),
            };
            if ready.is_empty() && timeout == self.spec.patience {
                tally.failed(format!("no progress for {:?}", self.spec.patience));
                return Ok(());
            }
            for event in ready {
                let n = event.data.u64() as usize;
                self.serve(n, event.flags, &mut room, tally)?;
            }
        }
        Ok(())
    }

    /// Makes no further messages; what each connection had by now is what was fair or not.
    fn stop(&mut self, tally: &mut Tally) -> Result<(), Error> {
        self.stops = None;
        for n in 0..self.connections.len() {
            let c = &mut self.connections[n];
            tally.by_then.push(c.account.acknowledged);
            c.stop();
            if c.is_done() && !c.over {
                self.end(n);
            } else {
                self.watch(n)?;
            }
        }
        Ok(())
    }

    fn serve(
        &mut self,
        n: usize,
        flags: EventFlags,
        room: &mut [u8],
        tally: &mut Tally,
    ) -> Result<(), Error> {
        if self.connections[n].over {
            return Ok(());
        }
        let over = match serve(self.spec, &mut self.connections[n], flags, room, tally) {
            Ok(over) => over,
            Err(why) => {
                tally.broke(why);
                true
            }
        };
        if over {
            self.end(n);
            return Ok(());
        }
        self.watch(n)
    }

    fn end(&mut self, n: usize) {
        let c = &mut self.connections[n];
        c.over = true;
        self.left -= 1;
        c.wire.say_bye(&c.stream);
        // What is left to say was said; the peer may be gone already.
        let _ = epoll::delete(&self.set, &c.stream);
        let _ = c.stream.shutdown(Shutdown::Both);
    }

    /// Asks for room for writes only while there is something to write.
    fn watch(&mut self, n: usize) -> Result<(), Error> {
        let c = &mut self.connections[n];
        let wants_room = c.may_write();
        if wants_room != c.wants_room && !c.over {
            c.wants_room = wants_room;
            let room = if wants_room { EventFlags::OUT } else { EventFlags::empty() };
            let data = EventData::new_u64(n as u64);
            epoll::modify(&self.set, &c.stream, data, EventFlags::IN | room)
                .map_err(std::io::Error::from)?;
        }
        Ok(())
    }
}

/// What one connection can do now. True when it is over.
fn serve<W: Wire>(
    spec: &Spec,
    c: &mut Connection<W>,
    flags: EventFlags,
    room: &mut [u8],
    tally: &mut Tally,
) -> Result<bool, Broken> {
    if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR)
        && c.read(room, &mut tally.latency_ns, &mut tally.latency_sum_s)?
    {
        if !spec.acknowledged && c.has_written() {
            c.assume_acknowledged();
            return Ok(true);
        }
        return Err(Broken::Closed("the server closed the connection".to_owned()));
    }
    if c.is_done() {
        return Ok(true);
    }
    let had_written = c.has_written();
    if c.may_write() {
        c.write()?;
    }
    if !spec.acknowledged && c.has_written() && !had_written {
        // The reader's end of the connection says that it has read everything.
        let _ = c.stream.shutdown(Shutdown::Write);
    }
    Ok(false)
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() }
}

/// CPU seconds of this thread.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).unwrap_or_default() / 1e9
}
