//! `COMMAND GETKEYS` and `GETKEYSANDFLAGS` compared with a live redis-server: requests of every
//! command which has keys, made of words known to its options, with valid and slightly wrong
//! numbers of arguments.

use crate::common::{Oracle, Value, reply_of, with_args, words};
use command::introspect;
use command::registry;
use resp::Proto;

/// The number of requests for each command.
const REQUESTS: usize = 60;

/// Words which look like options and counts. Any other word is a key.
const WORDS: [&str; 38] = [
    "a",
    "b",
    "c",
    "a",
    "b",
    "0",
    "1",
    "2",
    "3",
    "2",
    "-1",
    "9223372036854775807",
    "STORE",
    "storedist",
    "GET",
    "BY",
    "LIMIT",
    "LEFT",
    "right",
    "MIN",
    "WEIGHTS",
    "AGGREGATE",
    "COUNT",
    "SAMPLES",
    "SET",
    "INCRBY",
    "u8",
    "NX",
    "EX",
    "IDX",
    "ASC",
    "DB",
    "STREAMS",
    "streams",
    "KEYS",
    "AUTH",
    "auth2",
    "\"\"",
];

/// Commands which take other numbers of arguments than in Redis 7.0, and the reason.
const DIFFERENT: [(&str, &str); 2] =
    [("zrank", "since 7.2 there is WITHSCORE"), ("zrevrank", "since 7.2 there is WITHSCORE")];

/// Pseudorandom numbers, the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

fn ours(kind: &str, request: &str) -> Value {
    let words = words(request);
    let bytes = reply_of(Proto::Resp2, |reply| {
        with_args(&words, |args| match kind {
            "GETKEYS" => introspect::reply_keys(reply, args),
            _ => introspect::reply_keys_and_flags(reply, args),
        })
    });
    Value::parse(&bytes)
}

#[test]
fn keys_of_every_command_match_redis() {
    let mut oracle = Oracle::start();
    let mut dice = Dice(7);
    let (mut told, mut commands, mut wrong) = (0, 0, Vec::new());
    for spec in registry::all().map(command::CommandId::spec).filter(|s| !s.keys.is_empty()) {
        let name = spec.full_name.replace('|', " ");
        let known = oracle.ask_line(&format!("COMMAND INFO {}", spec.full_name));
        if matches!(&known, Value::Array(entries) if entries == &[Value::Null]) {
            continue; // newer than the reference server
        }
        commands += 1;
        let own = name.split(' ').count();
        let least = usize::from(spec.arity.unsigned_abs()) - own;
        for _ in 0..REQUESTS {
            let count = (least + dice.below(6)).saturating_sub(1).max(1);
            let mut request = name.clone();
            for _ in 0..count {
                request.push(' ');
                request.push_str(WORDS[dice.below(WORDS.len())]);
            }
            for kind in ["GETKEYS", "GETKEYSANDFLAGS"] {
                let (mine, theirs) =
                    (ours(kind, &request), oracle.ask_line(&format!("COMMAND {kind} {request}")));
                told += usize::from(matches!(&theirs, Value::Array(_)));
                if mine != theirs && !DIFFERENT.iter().any(|(n, _)| *n == spec.full_name) {
                    wrong.push(format!("{kind} {request}\n  ours: {mine:?}\n  theirs: {theirs:?}"));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(30)].join("\n")
    );
    assert!(commands > 150 && told > 6_000, "{commands} commands, {told} answers with keys");
}
