//! A server while a trace is played to it: what it is set to, and what it says of its memory.

use std::time::Duration;

use client::{Address, Client, Value};

use super::play::{self, Manner, Played};
use super::tally::is_warm_up;
use super::trace::{OVERHEAD, Trace};
use crate::host::Usage;
use crate::lab::subject;
use crate::lab::target::Target;

/// Longest wait for a reply.
const REPLY: Duration = Duration::from_secs(60);
/// The limit is corrected and a look is kept this often in a trace.
const STEPS: usize = 200;

/// What a server is to be.
#[derive(Clone, Debug)]
pub struct Case {
    /// The server.
    pub target: Target,
    /// The policy, for a server that is started.
    pub policy: String,
    /// Its samples, unless they are left alone.
    pub samples: Option<u32>,
    /// The bound of its memory.
    pub bound: Bound,
}

/// What bounds the memory of a server that is started.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// So many bytes.
    Bytes(u64),
    /// What it needs for so many entries.
    Entries(u64),
}

/// What a server said of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Accesses that had begun.
    pub at: usize,
    /// Bytes that it uses.
    pub used: u64,
    /// Its limit at that time, 0 for none.
    pub limit: u64,
    /// Its keys.
    pub entries: u64,
    /// Keys that it has evicted.
    pub evicted: u64,
}

/// One trace played to one server.
#[derive(Clone, Debug)]
pub struct Run {
    /// Reads and hits.
    pub played: Played,
    /// Its policy as it reports it.
    pub policy: Option<String>,
    /// The samples of its policy.
    pub samples: Option<String>,
    /// What it said, in order; empty if it says nothing of its memory.
    pub looks: Vec<Look>,
    /// Its memory at the most over its limit, behind the warm-up.
    pub peak: Option<f64>,
    /// Microseconds of its CPU for a request, where its process can be seen.
    pub cpu_us: Option<f64>,
    /// What could not be done, in sentences.
    pub unseen: Vec<String>,
}

/// Plays a trace to a server. One that is started gets the settings of the case; one that runs
/// already is left as it is.
pub fn run(case: &Case, trace: &Trace, manner: &Manner) -> Result<Run, String> {
    let name = case.target.name();
    run_on(case, trace, manner).map_err(|why| format!("{name}, {}: {why}", trace.name))
}

fn run_on(case: &Case, trace: &Trace, manner: &Manner) -> Result<Run, String> {
    let (target, is_ours) = (&case.target, case.target.is_started_here());
    let mut unseen = Vec::new();
    let limit = match case.bound {
        _ if !is_ours => None,
        Bound::Bytes(bytes) => Some(bytes),
        Bound::Entries(entries) => limit_for(target, trace, entries)?,
    };
    let started = target.start().map_err(|error| error.to_string())?;
    let address = started.address();
    let mut watch = Watch::begin(&address, trace)?;
    match limit {
        Some(limit) => {
            let mut all = settings(case, limit);
            match all.try_for_each(|(setting, value)| watch.set(setting, &value)) {
                Ok(()) => watch.steer(case.bound, limit, trace),
                Err(why) => unseen.push(format!("Its settings are not those wanted: {why}.")),
            }
        }
        None if is_ours => {
            unseen.push("It reports no used_memory, so it was played to without a limit.".into());
        }
        None => {}
    }
    let prefix = if is_ours { String::new() } else { format!("bench:{}:", std::process::id()) };
    let (usage, pid) = (Usage::start(subject::process(&started)), subject::process(&started));
    let manner = Manner { prefix, ..manner.clone() };
    let played = play::play(&address, trace, &manner, &mut |at| watch.look(at))?;
    watch.look(trace.accesses.len())?;
    let requests = 2 * played.tally.reads() - played.tally.hits();
    let (_, server, _) = usage.stop(requests);
    Ok(Run {
        policy: watch.get("maxmemory-policy"),
        samples: watch.get("maxmemory-samples"),
        peak: watch.peak,
        looks: watch.looks,
        cpu_us: pid.and(server).map(|server| server.cpu_us_per_request),
        played,
        unseen,
    })
}

fn settings(case: &Case, limit: u64) -> impl Iterator<Item = (&'static str, String)> {
    let samples = case.samples.map(|samples| ("maxmemory-samples", samples.to_string()));
    let policy = ("maxmemory-policy", case.policy.clone());
    [("maxmemory", limit.to_string()), policy].into_iter().chain(samples)
}

/// What a fresh server uses when it holds so many entries of the trace, or as many bytes of values
/// if these have different sizes; `None` if it does not say.
fn limit_for(target: &Target, trace: &Trace, entries: u64) -> Result<Option<u64>, String> {
    let started = target.start().map_err(|error| error.to_string())?;
    let address = started.address();
    let count = play::fill(&address, trace, trace.capacity(entries))?;
    if count == trace.firsts().count() as u64 {
        return Err(format!(
            "the trace has {count} keys, so a cache for {entries} holds all of them"
        ));
    }
    Ok(subject::info_field(&address, "memory", "used_memory"))
}

/// Looks at a server and corrects its limit.
struct Watch {
    client: Client,
    accesses: usize,
    looks: Vec<Look>,
    peak: Option<f64>,
    goal: Option<Goal>,
}

/// Entries that a server should hold.
struct Goal {
    entries: u64,
    limit: u64,
    bytes_per_entry: u64,
    /// When the limit may be corrected again.
    next: usize,
}

impl Watch {
    fn begin(address: &Address, trace: &Trace) -> Result<Self, String> {
        let client = Client::connect(address, REPLY).map_err(|e| format!("cannot connect: {e}"))?;
        let (accesses, looks) = (trace.accesses.len(), Vec::new());
        Ok(Self { client, accesses, looks, peak: None, goal: None })
    }

    /// From here on `look` corrects the limit: what a fresh server used for these entries is only
    /// near what one needs that evicts.
    fn steer(&mut self, bound: Bound, limit: u64, trace: &Trace) {
        let Bound::Entries(entries) = bound else { return };
        let (count, bytes) = trace.firsts().fold((0, 0), |(count, bytes), access| {
            (count + 1, bytes + u64::from(access.size) + OVERHEAD)
        });
        let bytes_per_entry = bytes / count.max(1);
        self.goal = Some(Goal { entries, limit, bytes_per_entry, next: 0 });
    }

    fn look(&mut self, at: usize) -> Result<(), String> {
        let Some(seen) = self.ask(at)? else { return Ok(()) };
        let is_warm = !is_warm_up(at, self.accesses);
        if is_warm && seen.limit > 0 {
            let over = seen.used as f64 / seen.limit as f64 - 1.0;
            self.peak = Some(self.peak.map_or(over, |peak| peak.max(over)));
        }
        if self.looks.last().is_none_or(|last| at >= last.at + self.accesses / STEPS) {
            self.looks.push(seen);
        }
        match &mut self.goal {
            Some(goal) if at >= goal.next && seen.evicted > 0 => {
                goal.next = at + self.accesses / STEPS;
                let missing = goal.entries as i64 - seen.entries as i64;
                let more = missing * goal.bytes_per_entry as i64;
                goal.limit = goal.limit.saturating_add_signed(more).max(1);
                let limit = goal.limit.to_string();
                self.set("maxmemory", &limit)
            }
            _ => Ok(()),
        }
    }

    /// What the server says; `None` if it says nothing of its memory.
    fn ask(&mut self, at: usize) -> Result<Option<Look>, String> {
        let memory = self.call(&[b"INFO", b"memory"])?;
        let stats = self.call(&[b"INFO", b"stats"])?;
        let entries = self.call(&[b"DBSIZE"])?;
        let Some(used) = field(&memory, "used_memory") else { return Ok(None) };
        let Value::Integer(entries) = entries else { return Ok(None) };
        Ok(Some(Look {
            at,
            used,
            limit: field(&memory, "maxmemory").unwrap_or(0),
            entries: entries.max(0) as u64,
            evicted: field(&stats, "evicted_keys").unwrap_or(0),
        }))
    }

    fn set(&mut self, setting: &str, value: &str) -> Result<(), String> {
        let words: [&[u8]; 4] = [b"CONFIG", b"SET", setting.as_bytes(), value.as_bytes()];
        match self.call(&words)? {
            Value::Error(text) => Err(format!("{setting} {value}: {}", text.escape_ascii())),
            _ => Ok(()),
        }
    }

    fn get(&mut self, setting: &str) -> Option<String> {
        let reply = self.call(&[b"CONFIG", b"GET", setting.as_bytes()]).ok()?;
        let Value::Array(pair) = reply else { return None };
        pair.get(1)?.as_str().map(str::to_owned)
    }

    fn call(&mut self, words: &[&[u8]]) -> Result<Value, String> {
        self.client.call(words).map_err(|error| error.to_string())
    }
}

/// A figure of a section of INFO.
fn field(info: &Value, name: &str) -> Option<u64> {
    let line = |line: &str| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok();
    info.as_str()?.lines().find_map(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let info = Value::bulk("used_memory_rss:5\r\nused_memory:7\r\nmaxmemory:0\r\n");
        assert_eq!(field(&info, "used_memory"), Some(7));
        assert_eq!((field(&info, "maxmemory"), field(&info, "evicted")), (Some(0), None));
        assert_eq!(field(&Value::error("ERR"), "used_memory"), None);
    }
}
