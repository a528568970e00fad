//! Who is sent messages: the five classic listeners of a server and its listener of protocol 2, and
//! three models to compare them with.

use std::net::{IpAddr, SocketAddr};

use client::Address;
use ingest::v2::Acking;
use ingest::{HEADER_BYTES, PORTS, Strategy};

use super::{Plan, Point};
use crate::acks::{self, Outcome, Producers, Protocol, SIZE_BYTES, Spec};
use crate::host::{self, Usage};
use crate::lab::Error;
use crate::lab::target::{Started, Target, free_ports};
use crate::load;
use crate::result::Measurement;

/// Free ports may be taken before the server takes them: so many tries.
const TRIES: usize = 3;
/// Messages of the first try, on each connection.
const PILOT: u64 = 64;
/// A run that lasted so much of the time that was asked for counts.
const LONG_ENOUGH: f64 = 0.5;
/// The next try has at most so many times the messages: a short run says little about the rate.
const STEP_MAX: f64 = 16.0;
/// Most messages of one run, all connections together.
const MESSAGES_MAX: u64 = 200_000_000;

/// Whether and how messages are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A strategy of classic ingest.
    Strategy(Strategy),
    /// Protocol 2.
    Two(Acking),
    /// Nothing is acknowledged; the end of the connection says that all was read.
    Null,
    /// Request-reply by a loop that sleeps.
    Echo,
    /// Protocol 2 by a thread per connection that acknowledges each read.
    EachRead,
}

impl Way {
    /// What it is called in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Strategy(strategy) => strategy.name(),
            Self::Two(acking) => acking.name(),
            Self::Null => "null reader",
            Self::Echo => "echo-ack",
            Self::EachRead => "ack each read",
        }
    }

    /// Who never acknowledges cannot be waited for.
    pub fn takes(self, point: &Point) -> bool {
        !(point.waits && self == Self::Null)
    }

    /// A client with payloads of 5 bytes: messages of 17 with classic's header.
    pub fn spec(self, address: SocketAddr) -> Spec {
        let classic = |strategy| Spec::new(address, strategy);
        let two = |acking| Spec {
            message_size: two_size(classic(Strategy::Sync).message_size),
            ..Spec::two(address, Producers::new(acking))
        };
        match self {
            Self::Strategy(strategy) => classic(strategy),
            Self::Two(acking) => two(acking),
            Self::Null => Spec { acknowledged: false, ..classic(Strategy::Sync) },
            Self::Echo => classic(Strategy::RequestReply),
            Self::EachRead => two(Acking::Synchronous),
        }
    }
}

/// Bytes of the message of protocol 2 that has the payload of a classic one.
fn two_size(classic: usize) -> usize {
    classic - HEADER_BYTES + SIZE_BYTES
}

/// One of them while the experiment runs.
pub struct Subject {
    pub name: String,
    /// The ways it can be sent messages, with the listener of each.
    pub ways: Vec<(Way, SocketAddr)>,
    /// Its process, if it is on this machine and not this process.
    pid: Option<u32>,
    /// Where it answers INFO.
    info: Option<SocketAddr>,
    _started: Started,
}

/// One run of one way at one point.
#[derive(Clone, Debug)]
pub struct Seen {
    pub measurement: Measurement,
    /// Acknowledgements per message.
    pub acks: f64,
    /// Receive calls of the server per message, where INFO ingest tells.
    pub reads: Option<f64>,
}

impl Subject {
    /// A server with classic ingest: started here on free ports, or at the first of its five.
    /// Protocol 2 beside it where it has that.
    pub fn server(target: &Target, plan: &Plan, say: &mut dyn FnMut(&str)) -> Result<Self, Error> {
        if !target.is_started_here() {
            let started = target.start()?;
            let Some(base) = started.tcp else {
                return Err(Error::Machine(format!(
                    "{}: classic ingest listens on TCP; name the HOST:PORT of its first listener",
                    target.name()
                )));
            };
            return Self::at(started, base, plan.protocol2, plan.info);
        }
        match Self::start(target, true) {
            Ok(server) => Ok(server),
            Err(why) => {
                let server = Self::start(target, false)?;
                say(&format!("{}: no protocol 2: {why}", target.name()));
                Ok(server)
            }
        }
    }

    /// Starts it with the five, and with protocol 2 on the next port.
    fn start(target: &Target, two: bool) -> Result<Self, Error> {
        let mut last = None;
        for _ in 0..TRIES {
            let base = free_ports(PORTS + 1).map_err(|e| Error::Machine(e.to_string()))?;
            let port = base.to_string();
            let local = SocketAddr::from(([127, 0, 0, 1], base + PORTS));
            let listen = format!("{local} protocol=2");
            let mut args = vec!["--ingest-classic", "yes", "--ingest-classic-port", &port];
            if two {
                args.extend(["--ingest-listen", &listen]);
            }
            match target.clone().with_args(&args).start() {
                Ok(started) => {
                    let info = started.tcp;
                    let ip = info.map_or(IpAddr::from([127, 0, 0, 1]), |address| address.ip());
                    let base = SocketAddr::new(ip, base);
                    return Self::at(started, base, two.then_some(local), info);
                }
                Err(error) => last = Some(error),
            }
        }
        let why = last.map(|error| error.to_string()).unwrap_or_default();
        Err(Error::Machine(format!("{} opens no such listeners: {why}", target.name())))
    }

    fn at(
        started: Started,
        base: SocketAddr,
        two: Option<SocketAddr>,
        info: Option<SocketAddr>,
    ) -> Result<Self, Error> {
        let port = |n: u16| {
            base.port()
                .checked_add(n)
                .map(|port| SocketAddr::new(base.ip(), port))
                .ok_or_else(|| Error::Machine(format!("there are no five ports from {base} on")))
        };
        let mut ways: Vec<(Way, SocketAddr)> = (0..)
            .zip(Strategy::ALL)
            .map(|(n, strategy)| Ok((Way::Strategy(strategy), port(n)?)))
            .collect::<Result<_, Error>>()?;
        ways.extend(two.iter().flat_map(|two| Acking::ALL.map(|acking| (Way::Two(acking), *two))));
        Ok(Self {
            name: started.name.clone(),
            ways,
            pid: pid(&started, base),
            info,
            _started: started,
        })
    }

    /// A model.
    pub fn model(text: &str, way: Way) -> Result<Self, Error> {
        let started = Target::parse(text)?.start()?;
        let address = started.tcp.expect("models listen on TCP");
        let pid = pid(&started, address);
        let name = started.name.clone();
        Ok(Self { name, ways: vec![(way, address)], pid, info: None, _started: started })
    }

    /// Sends for about `seconds`: with more and more messages until it lasts; only the last run
    /// counts, unless one fails.
    pub fn run(
        &self,
        way: Way,
        point: &Point,
        seconds: f64,
        threads: usize,
    ) -> Result<Seen, Error> {
        let mut spec = self.spec(way, point, threads);
        spec.messages = PILOT;
        let most = (MESSAGES_MAX / spec.clients as u64).max(PILOT);
        loop {
            let seen = self.measure(way, &spec)?;
            let took = seen.measurement.seconds;
            let long_enough = took >= seconds * LONG_ENOUGH || spec.messages >= most;
            if long_enough || !seen.measurement.failures.is_empty() {
                return Ok(seen);
            }
            let scale = (seconds / took.max(1e-9)).clamp(2.0, STEP_MAX);
            spec.messages = ((spec.messages as f64 * scale) as u64).min(most);
        }
    }

    /// One run as it is specified, with the server's CPU and counters.
    pub fn measure(&self, way: Way, spec: &Spec) -> Result<Seen, Error> {
        let reads = |way| self.reads(way);
        let (before, usage) = (reads(way), Usage::start(self.pid));
        let Outcome { mut measurement, acks } = acks::run(spec)?;
        let (_, server, other_cpus) = usage.stop(measurement.requests);
        let messages = (measurement.requests as f64).max(1.0);
        let reads = before.zip(reads(way)).map(|(b, a)| a.saturating_sub(b) as f64 / messages);
        measurement.target.clone_from(&self.name);
        way.name().clone_into(&mut measurement.load);
        (measurement.server, measurement.other_cpus) = (server, other_cpus);
        let total = spec.messages * spec.clients as u64;
        if measurement.failures.is_empty() && measurement.requests != total {
            measurement.failures.lost = total - measurement.requests;
        }
        Ok(Seen { measurement, acks: acks as f64 / messages, reads })
    }

    /// What a way is sent at a point.
    fn spec(&self, way: Way, point: &Point, threads: usize) -> Spec {
        let (_, address) = self.ways.iter().find(|(w, _)| *w == way).expect("one of its ways");
        let spec = way.spec(*address);
        let message_size = match spec.protocol {
            Protocol::Classic(_) => point.message_size,
            Protocol::Two(_) => two_size(point.message_size),
        };
        Spec {
            clients: point.clients,
            message_size,
            batch: point.batch,
            waits: point.waits,
            nodelay: point.nodelay,
            writes: if point.looks { 1 } else { spec.writes },
            block: point.block,
            threads,
            ..spec
        }
    }

    /// Receive calls so far on the listener of this way.
    fn reads(&self, way: Way) -> Option<u64> {
        let begin = match way {
            Way::Strategy(strategy) => format!("strategy={},", strategy.name()),
            Way::Two(_) => "strategy=".to_owned(), // the port decides
            Way::Null | Way::Echo | Way::EachRead => return None,
        };
        let (_, listener) = self.ways.iter().find(|(w, _)| *w == way)?;
        let address = Address::Tcp(self.info?.to_string());
        reads_of(&crate::lab::subject::info(&address, "ingest")?, &begin, listener.port())
    }
}

/// The `reads` of the listener whose line begins so, on a port, in the text of INFO ingest.
fn reads_of(info: &str, begin: &str, port: u16) -> Option<u64> {
    let port = format!(":{port}");
    info.lines().find_map(|line| {
        let fields = line.split_once(':')?.1.strip_prefix(begin)?;
        let value = |name: &str| fields.split(',').find_map(|f| f.strip_prefix(name));
        value("address=")?.ends_with(&port).then(|| value("reads=")?.trim().parse().ok())?
    })
}

fn pid(started: &Started, address: SocketAddr) -> Option<u32> {
    let pid = started.pid.or_else(|| host::listening_pid(&load::Address::Tcp(address)))?;
    (pid != std::process::id()).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_those_of_the_listener() {
        let info = "# Ingest\r\ningest_reads:9\r\n\
            ingest_listener0:strategy=sync,address=127.0.0.1:8104,sink=null,messages=7,acks=2,reads=3,errors=0\r\n\
            ingest_listener1:strategy=sync,address=127.0.0.1:8004,sink=null,messages=7,acks=2,reads=5,errors=0\r\n";
        assert_eq!(reads_of(info, "strategy=sync,", 8004), Some(5));
        assert_eq!(reads_of(info, "strategy=async,", 8004), None);
        assert_eq!(reads_of(info, "strategy=sync,", 8005), None);
    }
}
