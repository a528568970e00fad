//! Playing a trace to a server as a client with a cache does: GET, and after a miss SET.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use client::{Address, Client, Value};

use super::tally::Tally;
use super::trace::{Access, Trace};

/// Longest wait for a reply.
const REPLY: Duration = Duration::from_secs(60);
/// Shortest and longest pause between two looks at the server.
const LOOK: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Looks in a trace that takes long enough.
const LOOKS: f64 = 400.0;

/// How it is played.
#[derive(Clone, Debug)]
pub struct Manner {
    /// Connections, each of which takes the next reads of the trace.
    pub connections: usize,
    /// Reads that a connection sends together.
    pub pipeline: usize,
    /// Seconds that the whole trace is spread over; 0 for as fast as it goes.
    pub seconds: f64,
    /// What stands in front of each key.
    pub prefix: String,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Played {
    /// Reads and hits.
    pub tally: Tally,
    /// Seconds that it took.
    pub seconds: f64,
    /// Values that the server refused, for lack of memory.
    pub refused: u64,
}

/// Plays it. `look` is called now and then, with the number of accesses that have begun.
pub fn play(
    address: &Address,
    trace: &Trace,
    manner: &Manner,
    look: &mut dyn FnMut(usize) -> Result<(), String>,
) -> Result<Played, String> {
    let (next, ended, began) = (AtomicUsize::new(0), AtomicUsize::new(0), Instant::now());
    let is_over = AtomicBool::new(false);
    let connections = manner.connections.max(1);
    let pause = Duration::from_secs_f64(manner.seconds.max(0.0) / LOOKS).clamp(LOOK.0, LOOK.1);
    let (parts, looked) = thread::scope(|scope| {
        let one = || {
            let player = Player { trace, manner, next: &next, began, is_over: &is_over };
            let part = player.run(address);
            if part.is_err() {
                is_over.store(true, Ordering::Relaxed);
            }
            ended.fetch_add(1, Ordering::Relaxed);
            part
        };
        let players: Vec<_> = (0..connections).map(|_| scope.spawn(one)).collect();
        let mut looked = Ok(());
        while ended.load(Ordering::Relaxed) < connections {
            thread::sleep(pause);
            if looked.is_ok() {
                looked = look(next.load(Ordering::Relaxed).min(trace.accesses.len()));
            }
            if looked.is_err() {
                is_over.store(true, Ordering::Relaxed);
            }
        }
        let joined = players.into_iter().map(|player| player.join().expect("it does not panic"));
        (joined.collect::<Result<Vec<Part>, String>>(), looked)
    });
    looked?;
    let mut all = Part::of(trace);
    for part in parts? {
        all.tally.merge(&part.tally);
        all.refused += part.refused;
    }
    let seconds = began.elapsed().as_secs_f64();
    Ok(Played { tally: all.tally, seconds, refused: all.refused })
}

/// Writes keys until their weights fill `capacity`, without a pause. Returns how many.
pub fn fill(address: &Address, trace: &Trace, capacity: u64) -> Result<u64, String> {
    let mut client = connect(address)?;
    let (mut weight, mut count) = (0, 0);
    let fits = |access: &Access| {
        weight += trace.weight(*access);
        weight <= capacity
    };
    let first: Vec<Access> = trace.firsts().take_while(fits).collect();
    let values = Values::of(trace);
    for batch in first.chunks(64) {
        count += batch.len() as u64;
        let refused = values.write(&mut client, trace, "", batch)?;
        if refused > 0 {
            return Err("the server refuses values while it is filled".to_owned());
        }
    }
    Ok(count)
}

fn connect(address: &Address) -> Result<Client, String> {
    Client::connect(address, REPLY).map_err(|error| format!("cannot connect: {error}"))
}

/// The bytes of all values: a value is a part of them.
struct Values(Vec<u8>);

impl Values {
    fn of(trace: &Trace) -> Self {
        let longest = trace.accesses.iter().map(|access| access.size).max().unwrap_or(0);
        Self(vec![b'x'; longest as usize])
    }

    /// Sets keys. Returns how many the server refused for lack of memory.
    fn write(
        &self,
        client: &mut Client,
        trace: &Trace,
        prefix: &str,
        accesses: &[Access],
    ) -> Result<u64, String> {
        let keys: Vec<Vec<u8>> = accesses.iter().map(|one| key(trace, prefix, *one)).collect();
        let value = |one: &Access| &self.0[..one.size as usize];
        let requests: Vec<[&[u8]; 3]> =
            accesses.iter().zip(&keys).map(|(one, key)| [b"SET", &key[..], value(one)]).collect();
        let replies = client.pipeline(requests.iter().map(|request| &request[..]));
        let mut refused = 0;
        for reply in replies.map_err(|error| error.to_string())? {
            match reply {
                Value::Error(text) if text.starts_with(b"OOM") => refused += 1,
                Value::Error(text) => return Err(format!("SET: {}", text.escape_ascii())),
                _ => {}
            }
        }
        Ok(refused)
    }
}

fn key(trace: &Trace, prefix: &str, access: Access) -> Vec<u8> {
    format!("{prefix}{}", trace.keys[access.key as usize]).into_bytes()
}

/// What one connection saw.
struct Part {
    tally: Tally,
    refused: u64,
}

impl Part {
    fn of(trace: &Trace) -> Self {
        Self { tally: Tally::of(trace.accesses.len()), refused: 0 }
    }
}

/// One connection.
struct Player<'a> {
    trace: &'a Trace,
    manner: &'a Manner,
    /// The first access that no connection has taken.
    next: &'a AtomicUsize,
    began: Instant,
    is_over: &'a AtomicBool,
}

impl Player<'_> {
    fn run(&self, address: &Address) -> Result<Part, String> {
        let (mut client, values) = (connect(address)?, Values::of(self.trace));
        let (mut part, step) = (Part::of(self.trace), self.manner.pipeline.max(1));
        while !self.is_over.load(Ordering::Relaxed) {
            let from = self.next.fetch_add(step, Ordering::Relaxed);
            let to = (from + step).min(self.trace.accesses.len());
            if from >= to {
                break;
            }
            self.pace(from);
            self.batch(&mut client, &values, from..to, &mut part)?;
        }
        Ok(part)
    }

    /// Waits until the access number `at` is due.
    fn pace(&self, at: usize) {
        let share = at as f64 / self.trace.accesses.len() as f64;
        let due = Duration::from_secs_f64(self.manner.seconds.max(0.0) * share);
        thread::sleep(due.saturating_sub(self.began.elapsed()));
    }

    /// Reads keys together, then writes those that were missing. A key that is read twice in one
    /// batch is missing once: the first read would have brought it.
    fn batch(
        &self,
        client: &mut Client,
        values: &Values,
        range: Range<usize>,
        part: &mut Part,
    ) -> Result<(), String> {
        let (trace, prefix) = (self.trace, self.manner.prefix.as_str());
        let accesses = &trace.accesses[range.clone()];
        let keys: Vec<Vec<u8>> = accesses.iter().map(|one| key(trace, prefix, *one)).collect();
        let requests: Vec<[&[u8]; 2]> = keys.iter().map(|key| [b"GET", &key[..]]).collect();
        let replies = client.pipeline(requests.iter().map(|request| &request[..]));
        let mut missing: Vec<Access> = Vec::new();
        for ((at, access), reply) in
            range.zip(accesses).zip(replies.map_err(|error| error.to_string())?)
        {
            if let Value::Error(text) = reply {
                return Err(format!("GET: {}", text.escape_ascii()));
            }
            let is_missing = reply.is_null() && missing.iter().all(|other| other.key != access.key);
            if is_missing {
                missing.push(*access);
            }
            part.tally.add(at, !is_missing);
        }
        if !missing.is_empty() {
            part.refused += values.write(client, trace, prefix, &missing)?;
        }
        Ok(())
    }
}
