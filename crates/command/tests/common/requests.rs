//! Requests of every command of the table, generated from its syntax: with values which look like
//! options, and options in any place and order. They are the same in each run.

use base::DbIndex;
use command::CommandSpec;
use command::spec::{Arg, ArgKind, Group};

use super::Value;
use super::session::Session;

/// Names of keys, groups, consumers and members. Any of them may look like an option, a count or an
/// id.
pub const NAMES: [&str; 24] = [
    "a",
    "b",
    "c",
    "STREAMS",
    "streams",
    "KEYS",
    "BLOCK",
    "COUNT",
    "GROUP",
    "STORE",
    "storedist",
    "BY",
    "GET",
    "LIMIT",
    "LEFT",
    "MIN",
    "WEIGHTS",
    "NOACK",
    "AUTH",
    "0",
    "1",
    "2",
    "50",
    "k*",
];
/// Other values.
pub const VALUES: [&str; 10] = ["$", ">", "0-0", "0-1", "*", "-", "+", "#", "left", "max"];
pub const NUMBERS: [&str; 8] = ["0", "1", "2", "3", "1", "2", "10", "-1"];

/// The groups of each stream.
pub const GROUPS: [&str; 5] = ["a", "STREAMS", "streams", "COUNT", "1"];

/// Kinds of values, each in its own database.
pub const STRINGS: u32 = 0;
pub const LISTS: u32 = 1;
pub const SETS: u32 = 2;
pub const ZSETS: u32 = 3;
pub const HASHES: u32 = 4;
pub const STREAMS: u32 = 5;
pub const COUNTERS: u32 = 6;
pub const MIXED: u32 = 7;

/// Pseudorandom numbers, the same in each run.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick(&mut self, from: &[&'static str]) -> String {
        from[self.below(from.len())].to_owned()
    }
}

/// A request under construction.
struct Maker<'a> {
    dice: &'a mut Dice,
    /// How often repeatable arguments are repeated in this request.
    times: usize,
}

impl Maker<'_> {
    fn arg(&mut self, arg: &Arg, words: &mut Vec<String>) {
        let times = if arg.multiple { self.times } else { 1 };
        for i in 0..times {
            if !arg.token.is_empty() && (i == 0 || arg.multiple_token) {
                words.push(arg.token.to_owned());
            }
            match arg.kind {
                ArgKind::PureToken => {}
                ArgKind::OneOf => {
                    let one = self.dice.below(arg.args.len());
                    self.arg(&arg.args[one], words);
                }
                ArgKind::Block => self.all(arg.args, words),
                ArgKind::Integer if arg.name.starts_with("num") => {
                    words.push(self.times.to_string());
                }
                ArgKind::Integer | ArgKind::Double | ArgKind::UnixTime => {
                    words.push(self.dice.pick(&NUMBERS));
                }
                ArgKind::Key => words.push(self.dice.pick(&NAMES)),
                ArgKind::String | ArgKind::Pattern => words.push(self.value(arg.name)),
            }
        }
    }

    /// A text for the argument of this name: mostly a valid one, otherwise any.
    fn value(&mut self, name: &str) -> String {
        if self.dice.one_in(4) {
            return self.dice.pick(&NAMES);
        }
        match name {
            "operation" => self.dice.pick(&["AND", "OR", "XOR"]),
            "subcommand" => self.dice.pick(&["ENCODING", "GETREG", "TODENSE"]),
            "min" | "start" => self.dice.pick(&["-", "[a", "0", "(1", "0-0", "-inf"]),
            "max" | "stop" | "end" => self.dice.pick(&["+", "[k", "3", "(9", "9-0", "+inf"]),
            "min-idle-time" => "0".to_owned(),
            "id" => self.dice.pick(&[">", "0", "0-1", "$", "0-0", "9-9"]),
            "last-id" | "max_deleted_entry_id" => self.dice.pick(&["1-0", "9-9"]),
            "member" => self.dice.pick(&["a", "MIN", "1"]),
            "group" => self.dice.pick(&GROUPS),
            _ if self.dice.one_in(3) => self.dice.pick(&VALUES),
            _ => self.dice.pick(&NAMES),
        }
    }

    fn all(&mut self, args: &[Arg], words: &mut Vec<String>) {
        for arg in args {
            if !arg.optional || self.dice.one_in(2) {
                self.arg(arg, words);
            }
        }
    }
}

/// A request of a command: mostly valid, often with its options in another order, sometimes with a
/// word changed, left out or added.
pub fn request(spec: &CommandSpec, dice: &mut Dice) -> Vec<String> {
    let times = 1 + dice.below(3);
    let mut maker = Maker { dice, times };
    let mut pieces: Vec<(bool, Vec<String>)> = Vec::new();
    for arg in spec.docs.args {
        if !arg.optional || maker.dice.one_in(2) {
            let mut words = Vec::new();
            maker.arg(arg, &mut words);
            pieces.push((!arg.token.is_empty() || arg.optional, words));
        }
    }
    if maker.dice.one_in(2) {
        let options: Vec<usize> = (0..pieces.len()).filter(|i| pieces[*i].0).collect();
        // The last option keeps its place, because that is mostly required.
        let movable = options.len().saturating_sub(usize::from(!maker.dice.one_in(8)));
        for i in 1..movable {
            pieces.swap(options[i], options[maker.dice.below(i + 1)]);
        }
    }
    if !pieces.is_empty() && maker.dice.one_in(6) {
        let again = pieces[maker.dice.below(pieces.len())].clone();
        pieces.insert(maker.dice.below(pieces.len() + 1), again);
    }
    let mut words: Vec<String> = pieces.into_iter().flat_map(|(_, words)| words).collect();
    if maker.dice.one_in(3) && !words.is_empty() {
        let (at, word) = (maker.dice.below(words.len()), maker.dice.pick(&NAMES));
        match maker.dice.below(3) {
            0 => words[at] = word,
            1 => words.insert(at, word),
            _ => drop(words.remove(at)),
        }
    }
    let mut request: Vec<String> = spec.full_name.split('|').map(str::to_owned).collect();
    request.extend(words);
    request
}

/// Resets every name in every database to its initial value. Some names have none.
pub fn populate(session: &mut Session) {
    let fill = |db: u32, name: &str| -> Vec<Vec<String>> {
        let line = |line: String| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let kind = if db == MIXED { name.len() as u32 % MIXED } else { db };
        match kind {
            STRINGS => vec![line(format!("SET {name} 5"))],
            LISTS => vec![line(format!("RPUSH {name} 1 2 3"))],
            SETS => vec![line(format!("SADD {name} 1 2 a LEFT"))],
            ZSETS => vec![line(format!("GEOADD {name} 1 1 a 2 2 MIN 3 3 1"))],
            HASHES => vec![line(format!("HSET {name} a 1 KEYS 2 1 3"))],
            COUNTERS => vec![line(format!("PFADD {name} a b KEYS"))],
            _ => {
                let mut lines = vec![line(format!("XADD {name} 0-1 f v"))];
                lines.push(line(format!("XADD {name} 1-0 f v")));
                for group in GROUPS {
                    lines.push(line(format!("XGROUP CREATE {name} {group} 0")));
                    lines
                        .push(line(format!("XREADGROUP GROUP {group} a COUNT 1 STREAMS {name} >")));
                }
                lines
            }
        }
    };
    let whole = std::mem::replace(&mut session.whole, true);
    for db in 0..=MIXED {
        session.db = DbIndex(db);
        for name in NAMES {
            session.ask_at(&[b"DEL", name.as_bytes()]);
            if ["c", "storedist", "50"].contains(&name) {
                continue;
            }
            for line in fill(db, name) {
                let words: Vec<&[u8]> = line.iter().map(String::as_bytes).collect();
                let reply = session.ask_at(&words);
                assert!(!matches!(reply, Value::Error(_)), "{line:?}: {reply:?}");
            }
        }
    }
    session.whole = whole;
}

/// The database whose keys mostly have the type of the command.
pub fn database(spec: &CommandSpec, dice: &mut Dice) -> u32 {
    if dice.one_in(8) {
        return MIXED;
    }
    match spec.group {
        Group::String | Group::Bitmap => STRINGS,
        Group::Hyperloglog => COUNTERS,
        Group::List => LISTS,
        Group::Set => SETS,
        Group::SortedSet | Group::Geo => ZSETS,
        Group::Hash => HASHES,
        Group::Stream => STREAMS,
        _ => dice.below(MIXED as usize + 1) as u32,
    }
}
