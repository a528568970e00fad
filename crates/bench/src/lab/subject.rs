//! The targets of an experiment while it runs: started, reached, asked.

use std::time::Duration;

use clap::Args;
use client::Client;

use super::experiment::Error;
use super::target::{Started, Target};
use crate::host;
use crate::load::{Address, Amount, Command, Keys, Spec};

/// Longest wait for INFO.
const INFO_WAIT: Duration = Duration::from_secs(2);

/// The servers that an experiment measures of its own accord, where they are there; models come
/// beside them.
const SERVERS: [&str; 4] = ["sheafdb", "redis-server", "valkey-server", "pogocache"];

/// The targets that were asked for; else the known servers and the experiment's models, as far as
/// they are on this machine.
pub fn targets(
    asked: &[Target],
    models: &[&str],
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Target>, Error> {
    let mut targets = asked.to_vec();
    if asked.is_empty() {
        for text in SERVERS.iter().chain(models) {
            let target = Target::parse(text)?;
            if target.is_there() {
                targets.push(target);
            } else {
                progress(&format!("{text} is not on this machine: left out"));
            }
        }
    }
    if targets.is_empty() {
        return Err(Error::Machine("there is no target to measure".to_owned()));
    }
    Ok(targets)
}

/// The same, started.
pub fn start(
    asked: &[Target],
    models: &[&str],
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Started>, Error> {
    let mut started = Vec::new();
    for target in targets(asked, models, progress)? {
        progress(&format!("starting {}", target.name()));
        started.push(target.start()?);
    }
    Ok(started)
}

/// The way to it: TCP if it has that.
pub fn address(target: &Started) -> Address {
    match (target.tcp, &target.unix) {
        (Some(tcp), _) => Address::Tcp(tcp),
        (None, Some(path)) => Address::Unix(path.clone()),
        (None, None) => unreachable!("it was reached when it started"),
    }
}

/// Its process, if it runs on this machine and is not this process, whose threads cannot be
/// distinguished from those of the load generator.
pub fn process(target: &Started) -> Option<u32> {
    let pid = target.pid.or_else(|| host::listening_pid(&address(target)))?;
    (pid != std::process::id()).then_some(pid)
}

/// True if it runs inside this very process.
pub fn is_own_process(target: &Started) -> bool {
    target.pid.or_else(|| host::listening_pid(&address(target))) == Some(std::process::id())
}

/// A section of the INFO of a server, if it answers that.
pub fn info(address: &client::Address, section: &str) -> Option<String> {
    let mut client = Client::connect(address, INFO_WAIT).ok()?;
    let reply = client.call(&[b"INFO", section.as_bytes()]).ok()?;
    reply.as_str().map(str::to_owned)
}

/// A field of a section of its INFO, if it answers that and has it.
pub fn info_field(address: &client::Address, section: &str, field: &str) -> Option<u64> {
    let line = |line: &str| line.strip_prefix(field)?.strip_prefix(':')?.trim().parse().ok();
    info(address, section)?.lines().find_map(line)
}

/// A load of one command at it, one request at a time per connection.
pub fn spec(target: &Started, words: &[&str], connections: usize, seconds: f64) -> Spec {
    Spec {
        target: target.name.clone(),
        address: address(target),
        connections,
        amount: Amount::Seconds(seconds),
        commands: vec![Command::new(words)],
        server_pid: target.pid,
        ..Spec::default()
    }
}

/// So many keys.
pub fn keys(count: u64) -> Keys {
    Keys { prefix: "key:".to_owned(), minimum: 0, maximum: count.max(1) - 1 }
}

/// What is written, and who sends it.
#[derive(Args, Clone, Debug)]
pub struct Data {
    /// Number of keys
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    pub keys: u64,
    /// Size of a value in bytes
    #[arg(long, default_value_t = 16, value_name = "BYTES")]
    pub data_size: usize,
    /// Threads of the load generator
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub threads: usize,
}

impl Default for Data {
    fn default() -> Self {
        crate::cli::defaults()
    }
}

impl Data {
    /// The load with these data.
    pub fn of(&self, spec: Spec) -> Spec {
        let data = (self.data_size, self.data_size);
        Spec { threads: self.threads, keys: keys(self.keys), data, ..spec }
    }
}
