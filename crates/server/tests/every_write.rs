//! Every command that writes panics, or fails, at each of its changes in turn, while other clients
//! watch, block and monitor. Afterwards the data, its memory, the counters and the lines for
//! monitors are as if the command had never been sent.

#[path = "every_write/table.rs"]
mod table;

use crate::sim_world::{Reply, Sim};
use command::spec::Flags;
use driver::sim::Faults;
use server::config::{Access, Config, LogLevel};
use std::collections::BTreeSet;
use table::{ABSENT, LEFT_OUT, REFUSED, REQUESTS, SETUP, WAITERS};

/// More changes than any request here makes.
const CHANGES_MAX: u32 = 2000;
/// From this change on, not every change is tried.
const CHANGES_EACH: u32 = 12;
/// The distance between the changes tried from there on.
const CHANGES_STEP: u32 = 97;

/// A rolled back value may take this many bytes more, because its layout differs.
const LAYOUT_BYTES: u64 = 2048;

const ADMIN: usize = 0;
const MONITOR: usize = 1;
const WATCHER: usize = 2;
const FIRST_WAITER: usize = 3;

/// The world of one request.
struct Story {
    sim: Sim,
    request: Vec<Vec<u8>>,
    /// A list, as the payload of DUMP.
    dump: Vec<u8>,
}

/// The state which must be restored.
#[derive(Debug, PartialEq, Eq)]
struct State {
    digest: Reply,
    keys: [(u64, u64); 2],
    counts: Vec<String>,
    waited: u64,
}

fn bytes(request: &[Vec<u8>]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", request.len()).into_bytes();
    for arg in request {
        out.extend(format!("${}\r\n", arg.len()).as_bytes());
        out.extend(arg);
        out.extend(b"\r\n");
    }
    out
}

impl Story {
    fn new() -> Self {
        let mut config = Config::default();
        config.enable_debug_command = Access::Yes;
        let mut story =
            Self { sim: Sim::new(1, Faults::NONE, config), request: Vec::new(), dump: Vec::new() };
        story.sim.connect(FIRST_WAITER + WAITERS.len());
        for line in SETUP {
            let request = story.words(line);
            story.sim.clients[ADMIN].say_bytes(&bytes(&request));
            let reply = story.sim.reply(ADMIN);
            assert!(!matches!(reply, Reply::Error(_)), "{line}: {reply:?}");
        }
        story.dump = story.dump_of("l");
        story.sim.ask(MONITOR, &["MONITOR"]);
        for (n, line) in WAITERS.iter().enumerate() {
            let words: Vec<&str> = line.split(' ').collect();
            story.sim.clients[FIRST_WAITER + n].say(&words);
        }
        story.sim.run_until(|sim| sim.shared.keyspace.waited_keys() == WAITERS.len() as u64);
        story
    }

    fn words(&self, line: &str) -> Vec<Vec<u8>> {
        line.split(' ')
            .flat_map(|word| match word {
                "$many" => (0..600).map(|n| format!("word:{n}").into_bytes()).collect(),
                "$pairs" => {
                    let pair = |n: u32| [n.to_string().into_bytes(), format!("w:{n}").into_bytes()];
                    (0..600).flat_map(pair).collect()
                }
                "$dump" => vec![self.dump.clone()],
                word => vec![word.as_bytes().to_vec()],
            })
            .collect()
    }

    /// The DUMP of a key. Its payload is no text, so `words` cannot read it.
    fn dump_of(&mut self, key: &str) -> Vec<u8> {
        let conn = self.sim.join();
        conn.write(&crate::sim_world::encode(&["DUMP", key]));
        let payload = |got: &[u8]| {
            let line = got.iter().position(|b| *b == b'\n')?;
            let len: usize = std::str::from_utf8(&got[1..line - 1]).ok()?.parse().ok()?;
            got.get(line + 1..line + 1 + len).map(<[u8]>::to_vec)
        };
        let (mut got, mut room) = (Vec::new(), [0; 4096]);
        while payload(&got).is_none() {
            self.sim.step();
            let read = conn.read(&mut room);
            got.extend(&room[..read]);
        }
        let connections = self.sim.shared.registry.len();
        drop(conn);
        self.sim.run_until(|sim| sim.shared.registry.len() < connections);
        payload(&got).expect("it is whole")
    }

    /// The counters of INFO, except those that count all requests.
    fn counts(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for section in ["stats", "persistence", "errorstats", "keyspace"] {
            let Reply::Bulk(text) = self.sim.ask(ADMIN, &["INFO", section]) else {
                panic!("INFO is a text")
            };
            let keeps = |line: &&str| {
                ["expired_", "errorstat", "total_error", "rdb_changes", "db"]
                    .iter()
                    .any(|name| line.starts_with(name))
                    && !line.starts_with("expired_time")
            };
            // The average time to live falls with the clock.
            let cut = |line: &str| line.split(",avg_ttl").next().unwrap_or_default().to_owned();
            lines.extend(text.lines().filter(keeps).map(cut));
        }
        lines
    }

    fn state(&mut self) -> State {
        let counts = self.counts();
        let digest = self.sim.ask(ADMIN, &["DEBUG", "DIGEST"]);
        let keyspace = &self.sim.shared.keyspace;
        let of = |db: u16| {
            let db = base::DbIndex::new(db);
            (keyspace.db_len(db), keyspace.db_expires(db))
        };
        State { digest, keys: [of(0), of(1)], counts, waited: keyspace.waited_keys() }
    }

    /// Bytes of entries and tables. After a rollback a collection's nodes may have another layout,
    /// and an empty table may remain.
    fn memory(&self) -> u64 {
        let memory = self.sim.shared.keyspace.memory();
        memory.places + memory.entries + memory.buckets
    }

    /// With no data left, no memory is counted as data.
    fn assert_no_leak(&mut self, line: &str) {
        assert_eq!(self.sim.ask(ADMIN, &["FLUSHALL", "SYNC"]), Reply::ok());
        let memory = self.sim.shared.keyspace.memory();
        assert_eq!((memory.places, memory.entries), (0, 0), "after '{line}'");
    }

    /// All keys are watched.
    fn watch(&mut self) {
        let words = SETUP.iter().map(|line| line.split(' ').nth(1).expect("a key"));
        let waited = WAITERS.iter().flat_map(|line| line.split(' ')).filter(|w| w.starts_with('w'));
        let keys: BTreeSet<&str> = words.chain(waited).chain(ABSENT.iter().copied()).collect();
        let request: Vec<&str> = std::iter::once("WATCH").chain(keys).collect();
        assert_eq!(self.sim.ask(WATCHER, &request), Reply::ok());
    }

    /// Ends the watch. Returns true if a watched key was changed.
    fn is_dirty(&mut self) -> bool {
        assert_eq!(self.sim.ask(WATCHER, &["MULTI"]), Reply::ok());
        self.sim.ask(WATCHER, &["PING"]);
        self.sim.ask(WATCHER, &["EXEC"]) == Reply::NullArray
    }

    /// The lines which the monitor has received so far.
    fn monitor_lines(&mut self) -> Vec<String> {
        self.sim.ask(ADMIN, &["ECHO", "so far"]);
        let mut lines = Vec::new();
        loop {
            let Reply::Simple(line) = self.sim.reply(MONITOR) else { panic!("a line") };
            if line.contains("\"so far\"") {
                return lines;
            }
            lines.push(line);
        }
    }

    /// A new client sends the request. Returns its reply, or `None` if the connection ended.
    fn send(&mut self, within: Within) -> Option<Vec<u8>> {
        self.sim.connect(1);
        let actor = self.sim.clients.len() - 1;
        let queued = within == Within::Exec;
        if queued {
            assert_eq!(self.sim.ask(actor, &["MULTI"]), Reply::ok());
        }
        let request = bytes(&self.request);
        self.sim.clients[actor].say_bytes(&request);
        if queued {
            assert_eq!(self.sim.reply(actor), Reply::Simple("QUEUED".into()));
            self.sim.clients[actor].say(&["EXEC"]);
            self.sim.clients[actor].forget();
        }
        self.sim.run_until(|sim| {
            let actor = &sim.clients[actor];
            actor.ending.is_some() || !actor.got.is_empty()
        });
        let got = std::mem::take(&mut self.sim.clients[actor].got);
        self.sim.clients[actor].reset();
        (!got.is_empty()).then_some(got)
    }
}

/// How a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    Itself,
    Exec,
}

/// How a request ends at the armed change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// It panics, and its connection ends.
    Panics,
    /// It replies with an error.
    Fails,
}

impl Ends {
    fn subcommand(self) -> &'static str {
        match self {
            Self::Panics => "PANIC-IN-COMMAND",
            Self::Fails => "FAIL-IN-COMMAND",
        }
    }

    /// Whether the request ended this way: by a closed connection, or by its reply or one inside an
    /// EXEC's reply.
    fn is_seen(self, reply: Option<&[u8]>) -> bool {
        const ERROR: &[u8] = b"-ERR an error was asked for";
        match (self, reply) {
            (Self::Panics, reply) => reply.is_none(),
            (Self::Fails, None) => false,
            (Self::Fails, Some(reply)) => {
                reply.strip_prefix(b"*1\r\n").unwrap_or(reply).starts_with(ERROR)
            }
        }
    }
}

/// Fails the request at each of its changes. Returns how many changes it makes when it succeeds.
fn try_every_change(line: &str, within: Within, ends: Ends) -> u32 {
    let mut story = Story::new();
    story.request = story.words(line);
    let name = String::from_utf8_lossy(&story.request[0]).into_owned();
    let full = match &name[..] {
        "xgroup" => format!("xgroup|{}", String::from_utf8_lossy(&story.request[1])),
        _ => name.clone(),
    };
    story.monitor_lines();
    let (before, memory) = (story.state(), story.memory());
    let (mut changes, mut tried) = (1, 0);
    loop {
        story.sim.forget_steps();
        story.watch();
        let armed =
            story.sim.ask(ADMIN, &["DEBUG", ends.subcommand(), &full, &changes.to_string()]);
        assert_eq!(armed, Reply::ok(), "{full}");
        story.monitor_lines();
        let reply = story.send(within);
        if !ends.is_seen(reply.as_deref()) {
            let reply = reply.unwrap_or_else(|| panic!("{line}: the connection ended"));
            assert!(!reply.starts_with(b"-"), "{line}: {}", String::from_utf8_lossy(&reply));
            assert!(!reply.starts_with(b"*1\r\n-"), "{line}: {}", String::from_utf8_lossy(&reply));
            story.assert_no_leak(line);
            return tried;
        }
        tried += 1;
        assert!(changes < CHANGES_MAX, "{line}");
        let at = format!("'{line}' ended at its change {changes}");
        let lines = story.monitor_lines();
        // A command which fails was executed: monitors may receive its line, and its error is
        // counted.
        let is_shown = lines.iter().any(|l| l.contains(&format!("\"{name}\"")));
        assert!(!is_shown || ends == Ends::Fails, "{at}: lines for monitors {lines:?}");
        match ends {
            Ends::Panics => assert_eq!(story.state(), before, "{at}"),
            Ends::Fails => {
                let without = |state: &State| State {
                    digest: state.digest.clone(),
                    counts: not_errors(&state.counts),
                    ..*state
                };
                assert_eq!(without(&story.state()), without(&before), "{at}");
            }
        }
        let grown = story.memory().saturating_sub(memory);
        assert!(grown <= LAYOUT_BYTES, "{at}: {grown} bytes more");
        assert!(!story.is_dirty(), "{at}: a watched key counts as changed");
        for waiter in FIRST_WAITER..FIRST_WAITER + WAITERS.len() {
            let got = &story.sim.clients[waiter].got;
            assert!(got.is_empty(), "{at}: {} got something", WAITERS[waiter - FIRST_WAITER]);
        }
        changes += if changes < CHANGES_EACH { 1 } else { CHANGES_STEP };
    }
}

/// The lines of INFO without those that count errors.
fn not_errors(lines: &[String]) -> Vec<String> {
    lines.iter().filter(|line| !line.contains("error")).cloned().collect()
}

/// Silences the log and the messages of the panics which this test causes.
fn silence_panics() {
    let mut config = Config::default();
    config.loglevel = LogLevel::Nothing;
    server::log::start(&config);
    let shown = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload().downcast_ref::<&str>();
        if !text.is_some_and(|text| text.starts_with("a panic was asked for")) {
            shown(panic);
        }
    }));
}

/// Runs all requests and reports every failure.
fn for_each(
    lines: &[&str],
    check: impl Fn(&str) -> Result<(), String> + std::panic::RefUnwindSafe,
) {
    silence_panics();
    let only = std::env::var("EVERY_WRITE").unwrap_or_default();
    let mut wrong = Vec::new();
    for line in lines.iter().filter(|line| line.starts_with(&only)) {
        match std::panic::catch_unwind(|| check(line)) {
            Ok(result) => wrong.extend(result.err()),
            Err(why) => wrong.push(why.downcast_ref::<String>().cloned().unwrap_or_default()),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), lines.len(), wrong.join("\n"));
}

fn changes_something(line: &str, within: Within, ends: Ends) -> Result<(), String> {
    match try_every_change(line, within, ends) {
        0 => Err(format!("'{line}' makes no change")),
        _ => Ok(()),
    }
}

#[test]
fn a_panic_at_any_change_is_rolled_back() {
    for_each(REQUESTS, |line| changes_something(line, Within::Itself, Ends::Panics));
}

#[test]
fn an_error_at_any_change_is_rolled_back() {
    for_each(REQUESTS, |line| changes_something(line, Within::Itself, Ends::Fails));
}

#[test]
fn an_error_inside_exec_is_rolled_back() {
    for_each(REQUESTS, |line| changes_something(line, Within::Exec, Ends::Fails));
}

#[test]
fn a_panic_inside_exec_is_rolled_back() {
    for_each(REQUESTS, |line| changes_something(line, Within::Exec, Ends::Panics));
}

/// Many panics at the same change leak no more memory than one.
#[test]
fn repeated_panics_do_not_accumulate_memory() {
    for_each(REQUESTS, |line| {
        let mut story = Story::new();
        story.request = story.words(line);
        let name = String::from_utf8_lossy(&story.request[0]).into_owned();
        if name == "xgroup" {
            return Ok(());
        }
        let mut memory = Vec::new();
        for _ in 0..12 {
            story.sim.forget_steps();
            story.sim.ask(ADMIN, &["DEBUG", "PANIC-IN-COMMAND", &name, "1"]);
            assert_eq!(story.send(Within::Itself), None, "{line}");
            memory.push(story.memory());
        }
        // A rolled back value may get another layout, for example where members are chosen at
        // random. So it may grow once or twice.
        let takes_more = |n: &usize| memory[..*n].iter().all(|before| *before < memory[*n]);
        let adds_up = (4..memory.len()).filter(takes_more).count() > 2;
        if adds_up { Err(format!("'{line}' takes more each time: {memory:?}")) } else { Ok(()) }
    });
}

/// A request which is refused has changed nothing, even if it had already made changes.
#[test]
fn a_refused_request_changes_nothing() {
    for_each(REFUSED, |line| {
        let mut story = Story::new();
        story.request = story.words(line);
        let errors = |state: State| State { counts: Vec::new(), ..state };
        let (before, memory) = (errors(story.state()), story.memory());
        story.watch();
        let reply = story.send(Within::Itself).expect("a reply");
        assert!(reply.starts_with(b"-"), "{line}: {}", String::from_utf8_lossy(&reply));
        assert_eq!(errors(story.state()), before, "{line}");
        assert_eq!(story.memory(), memory, "{line}");
        assert!(!story.is_dirty(), "{line}: a watched key counts as changed");
        story.assert_no_leak(line);
        Ok(())
    });
}

#[test]
fn every_command_that_writes_has_a_request() {
    let with_requests: BTreeSet<String> = REQUESTS
        .iter()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let args: Vec<&[u8]> = words.iter().map(|w| w.as_bytes()).collect();
            let name = if args[0] == b"xgroup" {
                format!("xgroup|{}", words[1].to_lowercase())
            } else {
                words[0].to_owned()
            };
            assert!(command::by_full_name(name.as_bytes()).is_some(), "{name}");
            name
        })
        .collect();
    let left_out: BTreeSet<String> = LEFT_OUT.iter().map(|(name, _)| (*name).to_owned()).collect();
    let writes: BTreeSet<String> = command::all()
        .map(command::CommandId::spec)
        .filter(|spec| spec.flags.contains(Flags::WRITE))
        .map(|spec| spec.full_name.to_owned())
        .collect();
    let here: BTreeSet<String> = with_requests.union(&left_out).cloned().collect();
    assert_eq!(here, writes);
    assert!(with_requests.is_disjoint(&left_out));
}
