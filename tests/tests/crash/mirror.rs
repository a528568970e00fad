//! What a client's databases have to hold: its history is repeated on a server that is never
//! killed, up to the change that the restored server shows last.

use sheafdb_tests::rdb_state::databases;
use sheafdb_tests::server_process::ServerProcess;
use sheafdb_tests::wire::{Value, Wire, encode};

use super::client::History;
use super::ops::{Atom, Repeat, Words, words};

/// Requests that are sent together.
const TOGETHER: usize = 64;

/// What was found of a history.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kept {
    /// Atoms that are there.
    pub atoms: usize,
    /// Atoms which were acknowledged and are gone.
    pub lost: usize,
}

/// A server which repeats, and the restored one, both at the databases of one client.
pub struct Mirror<'a> {
    /// Repeats; the database it has selected is a part of what was sent.
    wire: Wire,
    reader: Wire,
    seen: &'a mut Wire,
    db: u32,
}

impl<'a> Mirror<'a> {
    pub fn new(server: &ServerProcess, seen: &'a mut Wire, db: u32) -> Self {
        Self { wire: server.connect(), reader: server.connect(), seen, db }
    }

    /// Compares. With `is_whole` everything acknowledged is there.
    ///
    /// # Errors
    /// What differs.
    pub fn check(&mut self, history: &History, is_whole: bool) -> Result<Kept, String> {
        let atoms = &history.atoms;
        let acknowledged = atoms.iter().take_while(|(_, reply)| reply.is_some()).count();
        self.ask(&words(&format!("SELECT {}", self.db)));
        let mut at = if is_whole { acknowledged } else { self.before_version(history)? };
        self.repeat(&atoms[..at]);
        let seen = known(&self.state_seen());
        let mut closest = None;
        loop {
            let state = known(&databases(&mut self.reader, [self.db, self.db + 8]));
            if state == seen {
                return Ok(Kept { atoms: at, lost: acknowledged.saturating_sub(at) });
            }
            let differs = difference(&state, &seen);
            if closest.as_ref().is_none_or(|(_, text): &(usize, String)| differs.len() < text.len())
            {
                closest = Some((at, differs));
            }
            if at == atoms.len() || (!is_whole && at > 0 && self.is_beyond(atoms, at)) {
                let tail = &atoms[at.saturating_sub(12)..];
                let shown: Vec<String> = tail.iter().map(shown).collect();
                let (place, differs) = closest.expect("it was just set");
                return Err(format!(
                    "database {}: {acknowledged} of {} changes were acknowledged; behind {place}, \
                     where least differs, expected (-), found (+)\n{differs}\nthe last of {at}:\n{}",
                    self.db,
                    atoms.len(),
                    shown.join("\n")
                ));
            }
            let (atom, reply) = &atoms[at];
            let again = self.again(atom, reply.as_ref());
            self.send(&again);
            at += 1;
        }
    }

    /// The next change would lead behind what was found.
    fn is_beyond(&mut self, atoms: &[(Atom, Option<Value>)], at: usize) -> bool {
        let select = words(&format!("SELECT {}", self.db));
        self.reader.command(&select).expect("the mirror answers");
        let version = self.reader.command(&words("GET v")).expect("the mirror answers");
        atoms[at].0.is_version() && number(&version) == self.version_seen()
    }

    /// How many atoms there are up to the version that was found.
    fn before_version(&mut self, history: &History) -> Result<usize, String> {
        let (begin, found) = (number(&self.ask(&words("GET v"))), self.version_seen());
        let mut versions = begin;
        let mut at = 0;
        while versions < found {
            let next = history.atoms[at..].iter().position(|(atom, _)| atom.is_version());
            let Some(next) = next else {
                return Err(format!("database {}: v is {found}, not {versions}", self.db));
            };
            (at, versions) = (at + next + 1, versions + 1);
        }
        if versions > found {
            return Err(format!("database {}: v is {found} and was {versions}", self.db));
        }
        Ok(at)
    }

    fn version_seen(&mut self) -> i64 {
        self.ask_seen(&words("SELECT 0"));
        self.ask_seen(&words(&format!("SELECT {}", self.db)));
        number(&self.ask_seen(&words("GET v")))
    }

    fn state_seen(&mut self) -> String {
        databases(self.seen, [self.db, self.db + 8])
    }

    /// Repeats acknowledged atoms; several at a time where the reply says how.
    fn repeat(&mut self, atoms: &[(Atom, Option<Value>)]) {
        let mut pending = Vec::new();
        for (atom, reply) in atoms {
            if atom.repeat == Repeat::Trim && !pending.is_empty() {
                self.send(&std::mem::take(&mut pending));
            }
            pending.extend(self.again(atom, reply.as_ref()));
        }
        self.send(&pending);
    }

    /// Requests that do what the atom did. Without a reply the restored server shows it, if it did.
    fn again(&mut self, atom: &Atom, reply: Option<&Value>) -> Vec<Words> {
        if matches!(reply, Some(Value::Error(_))) && atom.commands.len() == 1 {
            return Vec::new();
        }
        let command = &atom.commands[0];
        let key = command.get(1).cloned().unwrap_or_default();
        match (&atom.repeat, reply) {
            (Repeat::Same, _) | (Repeat::Float, None) => atom.requests(),
            (Repeat::Member, Some(Value::Bulk(member))) => vec![with(&["SREM"], &key, &[member])],
            (Repeat::Member, Some(_)) => Vec::new(),
            (Repeat::Member, None) => self.missing_member(&key),
            (Repeat::NewId, Some(Value::Bulk(id))) => vec![with_id(command, id)],
            (Repeat::NewId, _) => vec![with_id(command, &self.id_seen(&key, command))],
            (Repeat::Float, Some(Value::Bulk(value))) => {
                vec![with(&["HSET"], &key, &[&command[2], value])]
            }
            (Repeat::Float, Some(other)) => panic!("no number: {other:?}"),
            (Repeat::Trim, reply) => {
                let xlen = with(&["XLEN"], &key, &[]);
                let len = if let Some(Value::Int(n)) = reply {
                    number(&self.ask(&xlen)) - n
                } else {
                    self.version_seen();
                    number(&self.ask_seen(&xlen))
                };
                vec![with(&["XTRIM"], &key, &[b"MAXLEN", len.to_string().as_bytes()])]
            }
            (Repeat::Dump(key), Some(Value::Array(replies))) => {
                let [.., at, dump] = replies.as_slice() else { panic!("{replies:?}") };
                restore(key, at, dump)
            }
            (Repeat::Dump(key), _) => {
                self.version_seen();
                let at = self.ask_seen(&words(&format!("PEXPIRETIME {key}")));
                let dump = self.ask_seen(&words(&format!("DUMP {key}")));
                restore(key, &at, &dump)
            }
        }
    }

    /// SPOP without a reply: what is here and not there.
    fn missing_member(&mut self, key: &[u8]) -> Vec<Words> {
        self.version_seen();
        let there = self.ask_seen(&with(&["SMEMBERS"], key, &[]));
        let (Value::Array(there), Value::Array(here)) =
            (there, self.ask(&with(&["SMEMBERS"], key, &[])))
        else {
            return Vec::new();
        };
        let gone = here.iter().find(|member| !there.contains(member));
        let gone = gone.map(|member| with(&["SREM"], key, &[&bytes(member)]));
        gone.into_iter().collect()
    }

    /// The id which the restored server shows for what this XADD has added: several of them may
    /// have no reply. If it shows none, that of its last entry.
    fn id_seen(&mut self, key: &[u8], command: &Words) -> Vec<u8> {
        self.version_seen();
        let from = command.iter().position(|word| word == b"*").map_or(0, |at| at + 1);
        let fields: Vec<Value> = command[from..].iter().cloned().map(Value::Bulk).collect();
        let Value::Array(entries) = self.ask_seen(&with(&["XREVRANGE"], key, &[b"+", b"-"])) else {
            return b"1-1".to_vec();
        };
        let is_it = |entry: &&Value| matches!(entry, Value::Array(of) if of[1..] == [Value::Array(fields.clone())]);
        match entries.iter().find(is_it).or(entries.first()) {
            Some(Value::Array(entry)) => bytes(&entry[0]),
            _ => b"1-1".to_vec(),
        }
    }

    fn ask(&mut self, request: &Words) -> Value {
        self.wire.command(request).expect("the mirror answers")
    }

    fn ask_seen(&mut self, request: &Words) -> Value {
        self.seen.command(request).expect("the restored server answers")
    }

    fn send(&mut self, requests: &[Words]) {
        for some in requests.chunks(TOGETHER) {
            let bytes: Vec<u8> = some.iter().flat_map(|one| encode(one)).collect();
            self.wire.send(&bytes).expect("sent");
            for one in some {
                let reply = self.wire.receive().expect("the mirror answers");
                let refused = matches!(&reply, Value::Error(text) if text.starts_with(b"ERR DUMP"));
                assert!(!refused, "{reply:?}: {}", String::from_utf8_lossy(&one[0]));
            }
        }
    }
}

fn with(head: &[&str], key: &[u8], tail: &[&[u8]]) -> Words {
    let head = head.iter().map(|word| word.as_bytes().to_vec());
    head.chain([key.to_vec()]).chain(tail.iter().map(|word| word.to_vec())).collect()
}

fn with_id(command: &Words, id: &[u8]) -> Words {
    let of = |word: &Vec<u8>| if word == b"*" { id.to_vec() } else { word.clone() };
    command.iter().map(of).collect()
}

fn restore(key: &str, at: &Value, dump: &Value) -> Vec<Words> {
    let Value::Bulk(dump) = dump else { return vec![words(&format!("DEL {key}"))] };
    let at = number(at).max(0).to_string();
    let tail: [&[u8]; 4] = [at.as_bytes(), dump, b"REPLACE", b"ABSTTL"];
    vec![with(&["RESTORE"], key.as_bytes(), &tail)]
}

pub fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::Bulk(bytes) | Value::Simple(bytes) => bytes.clone(),
        other => panic!("no text: {other:?}"),
    }
}

/// An integer, or the text of one; none is 0.
pub fn number(value: &Value) -> i64 {
    match value {
        Value::Int(n) => *n,
        Value::Bulk(text) => String::from_utf8_lossy(text).parse().expect("a number"),
        _ => 0,
    }
}

/// The state without the times at which a stream was read.
pub fn plain(state: &str) -> String {
    let line = |line: &str| {
        let is_time = |word: &str| ["delivered", "seen", "active"].contains(&word);
        let is_read = line.starts_with("  pending ") || line.starts_with("  consumer ");
        let mut out = Vec::new();
        let mut words = line.split(' ');
        while let Some(word) = words.next() {
            if is_read && is_time(word) {
                words.next();
            } else {
                out.push(word);
            }
        }
        out.join(" ")
    };
    state.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The state without consumers, which redis-server 7.0 creates only when they are given something.
fn known(state: &str) -> String {
    let state = plain(state);
    let lines = state.lines().filter(|line| !line.starts_with("  consumer "));
    lines.collect::<Vec<_>>().join("\n")
}

/// The lines that differ.
pub fn difference(expected: &str, found: &str) -> String {
    let (expected, found): (Vec<_>, Vec<_>) = (expected.lines().collect(), found.lines().collect());
    let only = |mark: &str, these: &[&str], others: &[&str]| {
        let lines = these.iter().filter(|line| !others.contains(line)).take(30);
        lines.map(|line| format!("{mark} {line}")).collect::<Vec<_>>()
    };
    [only("-", &expected, &found), only("+", &found, &expected)].concat().join("\n")
}

fn shown((atom, reply): &(Atom, Option<Value>)) -> String {
    let command = |words: &Words| {
        let words: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
        words.join(" ").chars().take(60).collect::<String>()
    };
    let commands: Vec<String> = atom.commands.iter().map(command).collect();
    let reply: String = format!("{reply:?}").chars().take(80).collect();
    format!("  {} -> {reply}", commands.join("; "))
}
