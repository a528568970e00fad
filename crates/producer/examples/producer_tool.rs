//! The producer as the tests drive it; tests/clients/producers/tool.py tells the commands.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sheafdb_producer::{Acking, Error, Level, Options, Producer, SinkKind};

fn error_line(error: &Error) -> String {
    let kind = match error {
        Error::Timeout(_) => "timeout",
        Error::WouldBlock => "would-block",
        Error::TooLarge { .. } => "too-large",
        Error::Closed => "closed",
        Error::Protocol(_) => "protocol",
        Error::NumbersDisagree { .. } => "disagree",
        Error::Server(error) => return format!("error server {} {}", error.code, error.text),
        _ => "other",
    };
    format!("error {kind} 0 {error}")
}

fn place(value: &str, names: &[&str]) -> usize {
    names.iter().position(|name| *name == value).expect("a known name")
}

fn set(options: &mut Options, name: &str, value: &str) {
    let number = || value.parse::<u64>().expect("a number");
    let time = || Duration::from_millis(number());
    match name {
        "key" => options.key = value.into(),
        "user" => options.user = value.into(),
        "password" => options.password = value.into(),
        "sink" => {
            options.sink = SinkKind::ALL[place(value, &["listener", "null", "list", "stream"])];
        }
        "level" => options.level = Level::ALL[place(value, &["received", "memory", "fsynced"])],
        "strategy" => options.strategy = Acking::from_name(value).expect("a known name"),
        "exact" => options.exact = number() != 0,
        "resume" => options.resume = number() != 0,
        "ack_messages" => options.ack_messages = number() as u32,
        "ack_micros" => options.ack_micros = number() as u32,
        "db" => options.db = number() as u32,
        "maxlen" => options.maxlen = number(),
        "buffer_bytes" => options.buffer_bytes = number() as usize,
        "buffer_messages" => options.buffer_messages = number(),
        "frame_bytes" => options.frame_bytes = number() as usize,
        "connect_timeout_ms" => options.connect_timeout = time(),
        "attempt_timeout_ms" => options.attempt_timeout = time(),
        "backoff_min_ms" => options.backoff_min = time(),
        "backoff_max_ms" => options.backoff_max = time(),
        "stall_timeout_ms" => options.stall_timeout = time(),
        _ => panic!("no option {name}"),
    }
}

struct Tool {
    producer: Producer,
    made: u64,
}

impl Tool {
    fn send(&mut self, prefix: &str, size: usize, limit: Duration) -> Result<(), Error> {
        let mut payload = format!("{prefix}{}", self.made).into_bytes();
        payload.resize(payload.len().max(size), b'.');
        let sent = self.producer.send_within(&payload, limit);
        self.made += u64::from(sent != Err(Error::WouldBlock));
        sent.map(|_| ())
    }

    fn fill(&mut self, size: usize) -> Result<String, Error> {
        loop {
            match self.send("", size, Duration::ZERO) {
                Ok(()) => {}
                Err(Error::WouldBlock) => return Ok(format!("full {}", self.producer.last())),
                Err(error) => return Err(error),
            }
        }
    }

    fn poll(&self, limit: Duration) -> Result<(), Error> {
        let since = Instant::now();
        while since.elapsed() < limit {
            self.producer.check()?;
            std::thread::sleep(Duration::from_millis(2));
        }
        self.producer.check()
    }

    fn left(&self) -> String {
        let left = self.producer.unacknowledged();
        match left.first() {
            Some((id, payload)) => {
                format!("left {} {id} {}", left.len(), String::from_utf8_lossy(payload))
            }
            None => "left 0 0 -".into(),
        }
    }

    fn command(&mut self, line: &str) -> Result<String, Error> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        let time = |at| Duration::from_millis(number(at));
        let producer = &self.producer;
        match words[0] {
            "send" => {
                for _ in 0..number(1) {
                    self.send(words[3], number(2) as usize, time(4))?;
                }
                return Ok(format!("sent {}", self.producer.last()));
            }
            "try" => return self.fill(number(1) as usize),
            "state" => {
                let (last, acknowledged) = (producer.last(), producer.acknowledged());
                return Ok(format!("state {last} {acknowledged} {}", producer.reconnects()));
            }
            "left" => return Ok(self.left()),
            "flush" => drop(producer.flush_within(time(1))?),
            "close" => producer.close_within(time(1))?,
            "poll" => self.poll(time(1))?,
            other => panic!("no command {other}"),
        }
        Ok(format!("ok {}", self.producer.acknowledged()))
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut options = Options::new(format!("{}:{}", words[0], words[1]), words[2].as_str());
    for word in &words[3..] {
        let (name, value) = word.split_once('=').expect("OPTION=VALUE");
        set(&mut options, name, value);
    }
    let mut out = std::io::stdout();
    let mut say = |text: &str| writeln!(out, "{text}").and_then(|()| out.flush());
    let mut tool = match Producer::connect(options) {
        Ok(producer) => Tool { producer, made: 0 },
        Err(error) => {
            say(&error_line(&error)).expect("somebody listens");
            return ExitCode::FAILURE;
        }
    };
    say(&format!("open {}", tool.producer.last())).expect("somebody listens");
    for line in std::io::stdin().lock().lines() {
        let answer = tool.command(&line.expect("text")).unwrap_or_else(|error| error_line(&error));
        if say(&answer).is_err() {
            break; // the test has ended
        }
    }
    ExitCode::SUCCESS
}
