//! Random requests on keys that only one client has, and the exact bytes that answer them.

use super::encode;
use base::prng::Prng;
use std::collections::BTreeMap;

const DATABASES: u64 = 16;
const KEYS: u64 = 6;
/// Longer than what is framed in the receive area: such a value is assembled.
const BIG: usize = 40_000;
const NOT_AN_INTEGER: &str = "-ERR value is not an integer or out of range\r\n";

type Data = BTreeMap<(u64, String), String>;

/// A client's requests and the replies that they must have.
#[derive(Default)]
pub struct Script {
    pub requests: Vec<u8>,
    pub replies: Vec<u8>,
    open: Option<Open>,
    data: Data,
    db: u64,
    owner: usize,
}

/// An open transaction: what EXEC will answer, and what DISCARD returns to.
struct Open {
    commands: usize,
    replies: String,
    data: Data,
    db: u64,
}

impl Script {
    /// So many requests (more, if a transaction is open at the end).
    pub fn new(owner: usize, prng: &mut Prng, requests: usize) -> Self {
        let mut script = Self { owner, ..Self::default() };
        for _ in 0..requests {
            script.add(prng);
        }
        script.exec();
        script
    }

    fn add(&mut self, prng: &mut Prng) {
        match (prng.below(40), self.open.is_some()) {
            (0..3, false) => {
                self.requests.extend(encode(&["MULTI"]));
                self.replies.extend(b"+OK\r\n");
                let (data, db) = (self.data.clone(), self.db);
                self.open = Some(Open { commands: 0, replies: String::new(), data, db });
            }
            (0..5, true) => self.exec(),
            (5, true) => self.discard("DISCARD", "+OK\r\n"),
            (6, true) => {
                self.requests.extend(encode(&["GET"]));
                self.replies.extend(b"-ERR wrong number of arguments for 'get' command\r\n");
                let text = "-EXECABORT Transaction discarded because of previous errors.\r\n";
                self.discard("EXEC", text);
            }
            _ => self.add_data(prng),
        }
    }

    fn exec(&mut self) {
        if let Some(open) = self.open.take() {
            self.requests.extend(encode(&["EXEC"]));
            self.replies.extend(format!("*{}\r\n{}", open.commands, open.replies).as_bytes());
        }
    }

    fn discard(&mut self, by: &str, reply: &str) {
        if let Some(open) = self.open.take() {
            self.requests.extend(encode(&[by]));
            self.replies.extend(reply.as_bytes());
            (self.data, self.db) = (open.data, open.db);
        }
    }

    /// A command on data: executed in the model at once, also inside MULTI, as nobody else has
    /// these keys.
    fn add_data(&mut self, prng: &mut Prng) {
        let mut key = || format!("c{}:{}", self.owner, prng.below(KEYS));
        let (a, b, c) = (key(), key(), key());
        let number = prng.below(1000);
        let value = match number {
            0..20 => "b".repeat(BIG + number as usize),
            20..300 => "v".repeat(number as usize),
            _ => number.to_string(),
        };
        let db = (number % DATABASES).to_string();
        let args: Vec<&str> = match prng.below(9) {
            0 | 1 => vec!["SET", &a, &value],
            2 | 3 => vec!["GET", &a],
            4 => vec!["INCR", &a],
            5 => vec!["DEL", &a, &b],
            6 => vec!["MSET", &a, &value, &b, "two"],
            7 => vec!["MGET", &a, &b, &c],
            _ if number.is_multiple_of(2) => vec!["SELECT", &db],
            _ => vec!["EXPIRE", &a, "1000000"],
        };
        if prng.chance(1, 8) && value.len() < BIG && !value.is_empty() {
            self.requests.extend(format!("{}\r\n", args.join(" ")).as_bytes());
        } else {
            self.requests.extend(encode(&args));
        }
        let reply = self.apply(&args);
        match &mut self.open {
            Some(open) => {
                open.commands += 1;
                open.replies.push_str(&reply);
                self.replies.extend(b"+QUEUED\r\n");
            }
            None => self.replies.extend(reply.as_bytes()),
        }
    }

    fn apply(&mut self, args: &[&str]) -> String {
        let at = |key: &str| (self.db, key.to_owned());
        let bulk = |value: Option<&String>| {
            value.map_or("$-1\r\n".into(), |v| format!("${}\r\n{v}\r\n", v.len()))
        };
        match args {
            ["SET", key, value] => {
                self.data.insert(at(key), (*value).into());
                "+OK\r\n".into()
            }
            ["GET", key] => bulk(self.data.get(&at(key))),
            ["INCR", key] => {
                let old = self.data.get(&at(key)).map_or("0", String::as_str);
                let Ok(old) = old.parse::<i64>() else { return NOT_AN_INTEGER.into() };
                self.data.insert(at(key), (old + 1).to_string());
                format!(":{}\r\n", old + 1)
            }
            ["DEL", keys @ ..] => {
                let gone = keys
                    .iter()
                    .filter(|key| self.data.remove(&(self.db, key.to_string())).is_some());
                format!(":{}\r\n", gone.count())
            }
            ["MSET", pairs @ ..] => {
                for pair in pairs.chunks(2) {
                    self.data.insert((self.db, pair[0].into()), pair[1].into());
                }
                "+OK\r\n".into()
            }
            ["MGET", keys @ ..] => {
                let values: String = keys.iter().map(|key| bulk(self.data.get(&at(key)))).collect();
                format!("*{}\r\n{values}", keys.len())
            }
            ["SELECT", db] => {
                self.db = db.parse().expect("a number");
                "+OK\r\n".into()
            }
            ["EXPIRE", key, _] => format!(":{}\r\n", u8::from(self.data.contains_key(&at(key)))),
            other => panic!("{other:?} is not in the model"),
        }
    }
}
