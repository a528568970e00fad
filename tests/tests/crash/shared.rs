//! Keys of all: counters, accounts whose sum stays the same, and elements that go from list to
//! list; and readers, who must not have seen what is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use sheafdb_tests::rng::Rng;
use sheafdb_tests::wire::{Value, Wire, encode};

use super::mirror::{bytes, number};
use super::ops::words;

/// Counters which everybody raises.
const COUNTERS: usize = 4;
/// Accounts in database 0.
const ACCOUNTS: usize = 6;

/// What was sent and answered in one life, by one worker or by all.
#[derive(Default)]
pub struct Ledger {
    /// By counter: what was acknowledged, and what was sent.
    acknowledged: BTreeMap<String, i64>,
    sent: BTreeMap<String, i64>,
    /// By counter: the highest value that was seen.
    seen: BTreeMap<String, i64>,
    /// Elements which were sent, and of these, which were acknowledged.
    pushed: BTreeSet<Vec<u8>>,
    stored: BTreeSet<Vec<u8>>,
    taken: BTreeSet<Vec<u8>>,
    /// Requests in flight which may have taken an element.
    unknown: usize,
}

impl Ledger {
    fn join(&mut self, other: Self) {
        for (mine, theirs) in
            [(&mut self.acknowledged, other.acknowledged), (&mut self.sent, other.sent)]
        {
            for (name, n) in theirs {
                *mine.entry(name).or_default() += n;
            }
        }
        for (name, n) in other.seen {
            let most = self.seen.entry(name).or_default();
            *most = n.max(*most);
        }
        self.pushed.extend(other.pushed);
        self.stored.extend(other.stored);
        self.taken.extend(other.taken);
        self.unknown += other.unknown;
    }
}

/// The shared keys over all lives.
#[derive(Default)]
pub struct Shared {
    /// Values behind the last restart.
    counters: BTreeMap<String, i64>,
    elements: BTreeSet<Vec<u8>>,
    life: Ledger,
}

impl Shared {
    /// Adds what one worker of this life did.
    pub fn add(&mut self, ledger: Ledger) {
        self.life.join(ledger);
    }

    /// Compares with what was restored, from where the next life goes on.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&mut self, wire: &mut Wire, is_whole: bool) -> Result<(), String> {
        let life = std::mem::take(&mut self.life);
        let mut ask = |line: &str| wire.command(&words(line)).expect("an answer");
        ask("SELECT 0");
        for counter in 0..COUNTERS {
            let name = format!("counter{counter}");
            let (begin, found) =
                (self.counters.get(&name).copied(), number(&ask(&format!("GET {name}"))));
            let of = |map: &BTreeMap<String, i64>| map.get(&name).copied().unwrap_or(0);
            let begin = begin.unwrap_or(0);
            let (least, most) = (begin + of(&life.acknowledged), begin + of(&life.sent));
            if found < begin || found > most || (is_whole && found < least.max(of(&life.seen))) {
                let seen = of(&life.seen);
                return Err(format!(
                    "{name} is {found}: not {least} to {most}, it began with {begin}, {seen} was seen"
                ));
            }
            self.counters.insert(name, found);
        }
        let accounts = (0..ACCOUNTS).map(|n| number(&ask(&format!("GET account{n}"))));
        let sum: i64 = accounts.sum();
        let moves = number(&ask("GET moves"));
        ask("SELECT 7");
        let beside = number(&ask("GET moves"));
        ask("SELECT 0");
        if sum != 0 || moves != beside {
            return Err(format!("the sum is {sum}; {moves} and {beside} moves"));
        }
        let mut found = Vec::new();
        for line in ["LRANGE first 0 -1", "LRANGE second 0 -1", "ZRANGE third 0 -1"] {
            let Value::Array(all) = ask(line) else { return Err(line.into()) };
            found.extend(all.iter().map(bytes));
        }
        self.check_elements(&life, &found, is_whole)
    }

    fn check_elements(
        &mut self,
        life: &Ledger,
        found: &[Vec<u8>],
        is_whole: bool,
    ) -> Result<(), String> {
        let there: BTreeSet<Vec<u8>> = found.iter().cloned().collect();
        let show = |elements: Vec<&Vec<u8>>| {
            let texts = elements.into_iter().take(20).map(|e| String::from_utf8_lossy(e));
            texts.collect::<Vec<_>>().join(" ")
        };
        if there.len() != found.len() {
            return Err(format!("elements stand twice: {}", show(found.iter().collect())));
        }
        let is_known = |e: &Vec<u8>| self.elements.contains(e) || life.pushed.contains(e);
        let unknown: Vec<_> = there.iter().filter(|e| !is_known(e)).collect();
        if !unknown.is_empty() {
            return Err(format!("elements which were not sent: {}", show(unknown)));
        }
        let again: Vec<_> = there.intersection(&life.taken).collect();
        if is_whole && !again.is_empty() {
            return Err(format!("elements which were taken: {}", show(again)));
        }
        let stored = self.elements.union(&life.stored);
        let gone: Vec<_> =
            stored.filter(|e| !there.contains(*e) && !life.taken.contains(*e)).collect();
        if is_whole && gone.len() > life.unknown {
            return Err(format!("{} in flight, and missing: {}", life.unknown, show(gone)));
        }
        self.elements = there;
        Ok(())
    }
}

/// Raises counters, moves amounts and pushes elements until the server is gone.
pub fn write(addr: SocketAddr, rng: &mut Rng, name: &str) -> Ledger {
    let mut ledger = Ledger::default();
    let _ = try_write(addr, rng, name, &mut ledger);
    ledger
}

fn try_write(addr: SocketAddr, rng: &mut Rng, name: &str, ledger: &mut Ledger) -> io::Result<()> {
    let mut wire = Wire::connect(addr)?;
    for n in 0.. {
        match rng.below(4) {
            0 => {
                let counter = format!("counter{}", rng.below(COUNTERS));
                *ledger.sent.entry(counter.clone()).or_default() += 1;
                if let Value::Int(_) = wire.command(&["INCR", &counter])? {
                    *ledger.acknowledged.entry(counter).or_default() += 1;
                }
            }
            1 => {
                let (from, to, sum) = (rng.below(ACCOUNTS), rng.below(ACCOUNTS), rng.below(90));
                let mut bytes = Vec::new();
                for line in [
                    "MULTI",
                    &format!("DECRBY account{from} {sum}"),
                    "INCR moves",
                    "SELECT 7",
                    "INCR moves",
                    "SELECT 0",
                    &format!("INCRBY account{to} {sum}"),
                    "EXEC",
                ] {
                    bytes.extend(encode(&words(line)));
                }
                wire.send(&bytes)?;
                for _ in 0..8 {
                    wire.receive()?;
                }
            }
            kind => {
                let element = format!("{name}-{n}").into_bytes();
                ledger.pushed.insert(element.clone());
                let text = String::from_utf8_lossy(&element).into_owned();
                let line = match kind {
                    2 => format!("RPUSH first {text}"),
                    _ => format!("ZADD third {n} {text}"),
                };
                if let Value::Int(_) = wire.command(&words(&line))? {
                    ledger.stored.insert(element);
                }
            }
        }
    }
    Ok(())
}

/// Waits for elements, and takes them or moves them on, until the server is gone.
pub fn take(addr: SocketAddr, rng: &mut Rng) -> Ledger {
    let mut ledger = Ledger::default();
    let _ = try_take(addr, rng, &mut ledger);
    ledger
}

fn try_take(addr: SocketAddr, rng: &mut Rng, ledger: &mut Ledger) -> io::Result<()> {
    let mut wire = Wire::connect(addr)?;
    loop {
        let (line, takes) = match rng.below(4) {
            0 => ("BLPOP second 0.02", true),
            1 => ("BZPOPMIN third 0.02", true),
            _ => ("BLMOVE first second LEFT RIGHT 0.02", false),
        };
        ledger.unknown += usize::from(takes);
        let reply = wire.command(&words(line))?;
        ledger.unknown -= usize::from(takes);
        if let (true, Value::Array(parts)) = (takes, &reply) {
            ledger.taken.insert(bytes(&parts[1]));
        }
    }
}

/// Reads counters until the server is gone.
pub fn read(addr: SocketAddr, rng: &mut Rng) -> Ledger {
    let mut ledger = Ledger::default();
    let _ = try_read(addr, rng, &mut ledger);
    ledger
}

fn try_read(addr: SocketAddr, rng: &mut Rng, ledger: &mut Ledger) -> io::Result<()> {
    let mut wire = Wire::connect(addr)?;
    loop {
        let name = format!("counter{}", rng.below(COUNTERS));
        let value = number(&wire.command(&["GET", &name])?);
        let most = ledger.seen.entry(name).or_default();
        *most = value.max(*most);
        std::thread::sleep(Duration::from_micros(300));
    }
}
