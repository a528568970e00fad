//! Who is sent messages: the five classic listeners of a server and its listener of protocol 2, and
//! three models to compare them with.

use std::net::SocketAddr;

use client::Address;
use ingest::v2::Acking;
use ingest::{PORTS, Strategy};

use super::options::Plan;
use super::point::{Point, Way};
use super::rows::Seen;
use crate::acks::{self, Outcome, Spec};
use crate::host;
use crate::lab::experiment::Error;
use crate::lab::subject::info;
use crate::lab::target::{Started, Target};
use crate::load;

/// Messages of the first try, on each connection.
const PILOT: u64 = 64;
/// A run that lasted so much of the time that was asked for counts.
const LONG_ENOUGH: f64 = 0.5;
/// The next try has at most so many times the messages: a short run says little about the rate.
const STEP_MAX: f64 = 16.0;
/// Most messages of one run, all connections together.
const MESSAGES_MAX: u64 = 200_000_000;

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

impl Subject {
    /// A server with classic ingest: started here on free ports, or at the first of its five.
    /// Protocol 2 beside it where it has that.
    pub fn server(
        target: &Target,
        plan: &Plan,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, Error> {
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
                progress(&format!("{}: no protocol 2: {why}", target.name()));
                Ok(server)
            }
        }
    }

    /// Starts it with the five, and with protocol 2 on the next port.
    fn start(target: &Target, two: bool) -> Result<Self, Error> {
        let listen = format!("127.0.0.1:{{port+{}}} protocol=2", PORTS + 1);
        let mut args = vec!["--ingest-classic", "yes", "--ingest-classic-port", "{port+1}"];
        if two {
            args.extend(["--ingest-listen", &listen]);
        }
        let started = target.clone().with_args(&args).start().map_err(|why| {
            Error::Machine(format!("{} opens no such listeners: {why}", target.name()))
        })?;
        let Some(tcp) = started.tcp else {
            return Err(Error::Machine(format!("{} does not listen on TCP", target.name())));
        };
        let port = |n| SocketAddr::new(tcp.ip(), tcp.port() + n);
        Self::at(started, port(1), two.then_some(port(PORTS + 1)), Some(tcp))
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
        let mut spec = point.spec(way, self.listener(way), threads);
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
        let before = reads(way);
        let Outcome { mut measurement, acks } = acks::run_at(spec, &self.name, self.pid)?;
        let messages = (measurement.requests as f64).max(1.0);
        let reads = before.zip(reads(way)).map(|(b, a)| a.saturating_sub(b) as f64 / messages);
        way.name().clone_into(&mut measurement.load);
        let total = spec.messages * spec.clients as u64;
        if measurement.failures.is_empty() && measurement.requests != total {
            measurement.failures.lost = total - measurement.requests;
        }
        Ok(Seen { measurement, acks: acks as f64 / messages, reads })
    }

    /// The listener of one of its ways.
    pub fn listener(&self, way: Way) -> SocketAddr {
        self.ways.iter().find(|(own, _)| *own == way).expect("one of its ways").1
    }

    /// Receive calls so far on the listener of this way.
    fn reads(&self, way: Way) -> Option<u64> {
        let begin = match way {
            Way::Strategy(strategy) => format!("strategy={},", strategy.name()),
            Way::Two(_) => "strategy=".to_owned(), // the port decides
            Way::Null | Way::Echo | Way::EachRead => return None,
        };
        let address = Address::Tcp(self.info?.to_string());
        reads_of(&info(&address, "ingest")?, &begin, self.listener(way).port())
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
    fn reads_are_taken_from_the_right_listener() {
        let info = "# Ingest\r\ningest_reads:9\r\n\
            ingest_listener0:strategy=sync,address=127.0.0.1:8104,sink=null,messages=7,acks=2,reads=3,errors=0\r\n\
            ingest_listener1:strategy=sync,address=127.0.0.1:8004,sink=null,messages=7,acks=2,reads=5,errors=0\r\n";
        assert_eq!(reads_of(info, "strategy=sync,", 8004), Some(5));
        assert_eq!(reads_of(info, "strategy=async,", 8004), None);
        assert_eq!(reads_of(info, "strategy=sync,", 8005), None);
    }
}
