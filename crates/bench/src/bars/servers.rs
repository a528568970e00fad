//! The two servers: started, sent messages, asked.

use std::net::SocketAddr;
use std::time::Duration;

use client::{Client, Value};
use ingest::v2::SinkKind;

use super::options::{MESSAGE, Options, PAYLOAD, PIPELINE};
use crate::acks::{self, Producers, Spec};
use crate::lab::subject;
use crate::lab::target::{Started, Target};
use crate::load::{self, Amount, Command, Keys, Pattern, Populate};
use crate::result::Measurement;

/// Longest wait for a reply: a big stream may be deleted meanwhile.
const REPLY: Duration = Duration::from_secs(60);
/// The stream.
pub const KEY: &str = "bars:stream";

/// A server that takes protocol 2.
pub struct Ours {
    pub started: Started,
    listener: SocketAddr,
}

impl Ours {
    /// Starts it with a listener for any sink.
    pub fn start(target: &Target) -> Result<Self, String> {
        let listen = "127.0.0.1:{port+1} protocol=2";
        let target = target.clone().with_args(&["--ingest-listen", listen]);
        let started = target.start().map_err(|error| error.to_string())?;
        let tcp = started.tcp.ok_or_else(|| format!("{} has no TCP", started.name))?;
        Ok(Self { started, listener: SocketAddr::new(tcp.ip(), tcp.port() + 1) })
    }

    /// Producers with frames of `block` bytes.
    pub fn spec(&self, options: &Options, sink: SinkKind) -> Spec {
        let key = if sink == SinkKind::Stream { KEY.as_bytes().to_vec() } else { Vec::new() };
        let producers = Producers { sink, key, ..Producers::new(options.acking) };
        Spec {
            block: Some(options.block),
            message_size: MESSAGE,
            ..Spec::two(self.listener, producers)
        }
    }

    /// Sends, with the server's CPU; what failed as an error.
    pub fn send(&self, spec: &Spec) -> Result<Measurement, String> {
        let outcome = acks::run_at(spec, &self.started.name, self.started.pid);
        faultless(outcome.map_err(|error| error.to_string())?.measurement)
    }
}

/// XADD of the same messages, numbered as producers do, in batches.
pub fn xadd(started: &Started, options: &Options, messages: u64) -> Result<Measurement, String> {
    let words = ["XADD", KEY, "*", "id", "__int__", "data", "__data__"];
    let spec = load::Spec {
        target: started.name.clone(),
        address: subject::address(started),
        connections: options.beside_clients,
        pipeline: PIPELINE,
        amount: Amount::Requests(messages),
        commands: vec![Command { pattern: Pattern::Sequential, ..Command::new(&words) }],
        keys: Keys { prefix: String::new(), minimum: 1, maximum: messages },
        data: (PAYLOAD, PAYLOAD),
        populate: Populate::No,
        server_pid: started.pid,
        ..load::Spec::default()
    };
    faultless(load::run(&spec).map_err(|error| error.to_string())?)
}

fn faultless(measurement: Measurement) -> Result<Measurement, String> {
    match crate::lab::fault(&measurement) {
        None => Ok(measurement),
        Some(why) => Err(format!("{}, {}: {why}", measurement.target, measurement.load)),
    }
}

/// Entries of the stream, which must be so many; then it is deleted.
pub fn count_and_delete(started: &Started, messages: u64) -> Result<(), String> {
    let mut client = Client::connect(&started.address(), REPLY)
        .map_err(|error| format!("{}: {error}", started.name))?;
    let mut ask = |words: &[&[u8]]| match client.call(words) {
        Ok(Value::Integer(n)) => Ok(n),
        other => Err(format!("{}: {} answers {other:?}", started.name, words[0].escape_ascii())),
    };
    let entries = ask(&[b"XLEN", KEY.as_bytes()])?;
    if u64::try_from(entries) != Ok(messages) {
        return Err(format!(
            "{}: the stream has {entries} entries of {messages} acknowledged messages",
            started.name
        ));
    }
    ask(&[b"DEL", KEY.as_bytes()]).map(drop)
}

/// What the server says that it uses.
pub fn used_memory(started: &Started) -> Result<u64, String> {
    subject::info_field(&started.address(), "memory", "used_memory")
        .ok_or_else(|| format!("{}: no used_memory in INFO memory", started.name))
}
