//! `sheafdb-bench ingest send HOST:PORT`: one run against one listener.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::acks::{self, Outcome, Producers, SIZE_BYTES, Spec};
use crate::analysis::figure::{count, time};
use crate::cli::{Done, begin_results, save_results};
use crate::host::{Usage, listening_pid};
use crate::lab::fault;
use crate::load;
use crate::result::{Measurement, Results};
use ingest::v2::{Acking, SinkKind};
use ingest::{HEADER_BYTES, Strategy};

/// The options.
#[derive(clap::Args, Clone, Debug)]
pub struct Send {
    /// Address of the ingest listener
    #[arg(value_name = "HOST:PORT")]
    address: SocketAddr,
    /// Use classic ingest: name of the acknowledgement strategy of the listener
    #[arg(long, value_name = "NAME", conflicts_with_all = ["acking", "sink", "db", "maxlen", "user", "password"],
        value_parser = strategy)]
    classic: Option<Strategy>,
    /// Protocol 2: when to request acknowledgements: adaptive, synchronous or batched
    #[arg(long, default_value = "adaptive", value_parser = acks::acking)]
    acking: Acking,
    /// Protocol 2: where messages go: null (discarded), list:KEY, stream:KEY, or listener (the
    /// sink in the configuration of the listener)
    #[arg(long, default_value = "null", value_parser = sink)]
    sink: (SinkKind, Vec<u8>),
    /// Protocol 2: database of the key
    #[arg(long, default_value_t = 0)]
    db: u32,
    /// Protocol 2: maximum number of entries in the stream; 0: no limit
    #[arg(long, default_value_t = 0)]
    maxlen: u64,
    /// Protocol 2: user to authenticate as
    #[arg(long, default_value = "", requires = "password")]
    user: String,
    /// Protocol 2: password
    #[arg(long, default_value = "")]
    password: String,
    /// Connections; with protocol 2, each is one producer
    #[arg(short = 'c', long, default_value_t = 1, value_name = "N")]
    clients: usize,
    /// Messages per connection
    #[arg(short = 'n', long, default_value_t = 1_000_000, value_name = "N")]
    messages: u64,
    /// Send for this many seconds, instead of a number of messages
    #[arg(long, value_name = "S", conflicts_with = "messages")]
    seconds: Option<f64>,
    /// Bytes of the payload of a message
    #[arg(long, default_value_t = 17, value_name = "BYTES")]
    payload: usize,
    /// Messages per write; with protocol 2, per Data frame
    #[arg(long, default_value_t = 50, value_name = "N")]
    batch: usize,
    /// Bytes per write, instead of messages per write
    #[arg(long, value_name = "BYTES", conflicts_with = "batch")]
    block: Option<usize>,
    /// Wait until a write is acknowledged before the next one
    #[arg(long)]
    waits: bool,
    /// Threads of the load generator, which share the connections
    #[arg(long, default_value_t = 1, value_name = "N")]
    threads: usize,
    /// Also write the measurement to this JSON file, for `compare`
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn strategy(text: &str) -> Result<Strategy, String> {
    let names = Strategy::ALL.map(Strategy::name);
    let found = Strategy::ALL.into_iter().find(|strategy| strategy.name() == text);
    found.ok_or_else(|| names.join(", "))
}

/// `KIND` or `KIND:KEY`.
fn sink(text: &str) -> Result<(SinkKind, Vec<u8>), String> {
    let (kind, key) = text.split_once(':').unwrap_or((text, ""));
    let kind = match (kind, key.is_empty()) {
        ("listener", true) => SinkKind::Listener,
        ("null", true) => SinkKind::Null,
        ("list", false) => SinkKind::List,
        ("stream", false) => SinkKind::Stream,
        _ => return Err("listener, null, list:KEY or stream:KEY".to_owned()),
    };
    Ok((kind, key.as_bytes().to_vec()))
}

impl Send {
    fn spec(&self) -> Result<Spec, String> {
        let (base, header) = if let Some(strategy) = self.classic {
            (Spec::new(self.address, strategy), HEADER_BYTES)
        } else {
            let producers = Producers {
                acking: self.acking,
                sink: self.sink.0,
                key: self.sink.1.clone(),
                db: self.db,
                maxlen: self.maxlen,
                user: self.user.clone(),
                password: self.password.clone(),
            };
            (Spec::two(self.address, producers), SIZE_BYTES)
        };
        let seconds = |s: f64| {
            let time = Duration::try_from_secs_f64(s).ok().filter(|time| !time.is_zero());
            time.ok_or_else(|| "seconds are above 0".to_owned())
        };
        Ok(Spec {
            clients: self.clients,
            messages: self.messages,
            time: self.seconds.map(seconds).transpose()?,
            message_size: self.payload.saturating_add(header),
            batch: self.batch,
            waits: self.waits,
            block: self.block,
            threads: self.threads,
            ..base
        })
    }
}

/// Sends, and says what came of it.
pub fn run(args: &Send) -> Done {
    let spec = args.spec()?;
    let results = begin_results();
    let usage = Usage::start(listening_pid(&load::Address::Tcp(args.address)));
    let outcome = acks::run(&spec).map_err(|error| error.to_string())?;
    let Outcome { mut measurement, acks } = outcome;
    let (_, server, other_cpus) = usage.stop(measurement.requests);
    (measurement.server, measurement.other_cpus) = (server, other_cpus);
    print!("{}", text(&measurement, acks));
    let failed = fault(&measurement);
    let results = Results { measurements: vec![measurement], ..results };
    save_results(args.json.as_deref(), &results)?;
    failed.map_or(Ok(true), Err)
}

fn text(m: &Measurement, acks: u64) -> String {
    let messages = (m.requests as f64).max(1.0);
    let mut lines = vec![
        format!("{} at {}: {} messages acknowledged", m.load, m.target, count(m.requests as f64)),
        format!("messages/s   {}", count(m.throughput)),
        format!("acks         {} ({:.3} per 1,000)", acks, acks as f64 * 1000.0 / messages),
        format!("latency      p50 {}, p99 {}", time(m.latency.p50_us), time(m.latency.p99_us)),
        format!("client us    {:.4} per message", m.client_cpu_s * 1e6 / messages),
    ];
    if let Some(server) = m.server {
        lines.push(format!("server us    {:.4} per message", server.cpu_us_per_request));
    }
    lines.push(format!("other CPUs   {:.2}", m.other_cpus));
    if m.per_connection.most > 0 {
        let (least, most) = (m.per_connection.least as f64, m.per_connection.most as f64);
        lines.push(format!("a connection {} to {} messages", count(least), count(most)));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Whole {
        #[command(flatten)]
        send: Send,
    }

    fn parse(words: &[&str]) -> Result<Send, String> {
        let words = ["send", "127.0.0.1:9000"].iter().chain(words);
        Whole::try_parse_from(words).map(|whole| whole.send).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_parsed_into_a_specification() {
        let send = parse(&["--sink", "stream:a:b", "--seconds", "0.5", "-c", "3", "--waits"]);
        let spec = send.expect("they fit together").spec().expect("it can be");
        assert_eq!((spec.clients, spec.message_size, spec.waits), (3, 21, true));
        assert_eq!(spec.time, Some(Duration::from_millis(500)));
        let acks::Protocol::Two(producers) = spec.protocol else { panic!("{spec:?}") };
        assert_eq!((producers.sink, &producers.key[..]), (SinkKind::Stream, &b"a:b"[..]));
        let classic = parse(&["--classic", "sync", "--payload", "5"]).expect("they fit together");
        assert_eq!(classic.spec().expect("it can be").message_size, 17);
    }

    #[test]
    fn inconsistent_options_are_refused() {
        for words in [
            &["--sink", "stream"][..],
            &["--sink", "null:k"],
            &["--classic", "quick"],
            &["--classic", "sync", "--sink", "null"],
            &["--acking", "never"],
            &["--batch", "1", "--block", "100"],
        ] {
            assert!(parse(words).is_err(), "{words:?}");
        }
        assert!(parse(&["--seconds", "0"]).expect("a figure").spec().is_err());
    }
}
