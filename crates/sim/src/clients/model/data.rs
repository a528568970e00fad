//! The model: keys of each type, commands on them, and the replies that must come.

use super::Want;
use crate::session::Question;
use base::prng::Prng;
use client::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

type Bytes = Vec<u8>;

/// Members that one command adds at most.
const MANY: u64 = 60;

/// One key of each type. Keys with nothing in them do not exist.
#[derive(Debug, Default)]
pub struct Data {
    text: Bytes,
    list: VecDeque<Bytes>,
    hash: BTreeMap<Bytes, Bytes>,
    set: BTreeSet<Bytes>,
    scores: BTreeMap<Bytes, i64>,
}

/// A command under construction.
struct Draw<'a> {
    p: &'a mut Prng,
    prefix: &'a str,
    bytes_max: usize,
}

impl Draw<'_> {
    fn key(&self, name: &str) -> Bytes {
        format!("{}{name}", self.prefix).into_bytes()
    }

    fn value(&mut self) -> Bytes {
        let long = self.p.chance(1, 20);
        let len = self.p.below(if long { self.bytes_max as u64 } else { 40 });
        vec![b'a' + self.p.below(26) as u8; 1 + len as usize]
    }

    fn member(&mut self) -> Bytes {
        // Some are numbers: sets of numbers have an encoding of their own.
        let n = self.p.below(120);
        if self.p.chance(1, 4) { format!("m{n}").into_bytes() } else { n.to_string().into_bytes() }
    }

    fn count(&mut self) -> u64 {
        if self.p.chance(1, 8) { 1 + self.p.below(MANY) } else { 1 + self.p.below(3) }
    }
}

fn args(name: &str, key: Bytes, rest: impl IntoIterator<Item = Bytes>) -> Vec<Bytes> {
    let mut all = vec![name.as_bytes().to_vec(), key];
    all.extend(rest);
    all
}

fn integer(n: usize) -> Want {
    Want::Is(Value::Integer(n as i64))
}

fn bulk_or_null(value: Option<&Bytes>) -> Want {
    Want::Is(value.map_or(Value::Null, Value::bulk))
}

/// One command on the keys with this prefix, and its reply; the model has executed it.
pub fn draw(data: &mut Data, p: &mut Prng, prefix: &str, bytes_max: usize) -> (Vec<Bytes>, Want) {
    let kind = p.below(6);
    let mut d = Draw { p, prefix, bytes_max };
    match kind {
        0 => data.text(&mut d),
        1 => data.list(&mut d),
        2 => data.hash(&mut d),
        3 => data.set(&mut d),
        4 => data.scores(&mut d),
        _ => data.any(&mut d),
    }
}

impl Data {
    fn text(&mut self, d: &mut Draw<'_>) -> (Vec<Bytes>, Want) {
        let key = d.key("text");
        match d.p.below(6) {
            0 => {
                self.text = d.value();
                (args("SET", key, [self.text.clone()]), Want::Is(Value::ok()))
            }
            1 if self.text.len() < d.bytes_max => {
                let more = d.value();
                self.text.extend(&more);
                (args("APPEND", key, [more]), integer(self.text.len()))
            }
            2 => {
                let (at, part) = (d.p.below(d.bytes_max as u64) as usize, d.value());
                self.text.resize(self.text.len().max(at + part.len()), 0);
                self.text[at..at + part.len()].copy_from_slice(&part);
                let rest = [at.to_string().into_bytes(), part];
                (args("SETRANGE", key, rest), integer(self.text.len()))
            }
            3 => {
                let (a, b) = (d.p.below(d.bytes_max as u64), d.p.below(d.bytes_max as u64));
                let end = (b as usize + 1).min(self.text.len());
                let part = self.text.get(a as usize..end).unwrap_or_default().to_vec();
                let rest = [a.to_string().into_bytes(), b.to_string().into_bytes()];
                (args("GETRANGE", key, rest), Want::Is(Value::bulk(part)))
            }
            4 => (args("STRLEN", key, []), integer(self.text.len())),
            _ => {
                let whole = (!self.text.is_empty()).then_some(&self.text);
                (args("GET", key, []), bulk_or_null(whole))
            }
        }
    }

    fn list(&mut self, d: &mut Draw<'_>) -> (Vec<Bytes>, Want) {
        let key = d.key("list");
        let at = d.p.below(80) as usize;
        let shown = |n: usize| n.to_string().into_bytes();
        match d.p.below(8) {
            0 | 1 => {
                let more: Vec<Bytes> = (0..d.count()).map(|_| d.value()).collect();
                self.list.extend(more.iter().cloned());
                (args("RPUSH", key, more), integer(self.list.len()))
            }
            2 => {
                let one = d.value();
                self.list.push_front(one.clone());
                (args("LPUSH", key, [one]), integer(self.list.len()))
            }
            3 => (args("LPOP", key, []), bulk_or_null(self.list.pop_front().as_ref())),
            4 => (args("RPOP", key, []), bulk_or_null(self.list.pop_back().as_ref())),
            5 => (args("LINDEX", key, [shown(at)]), bulk_or_null(self.list.get(at))),
            6 => {
                let part = self.list.iter().skip(at).take(20).cloned().collect();
                (args("LRANGE", key, [shown(at), shown(at + 19)]), Want::Elements(part))
            }
            _ => {
                self.list.truncate(at + 1);
                (args("LTRIM", key, [shown(0), shown(at)]), Want::Is(Value::ok()))
            }
        }
    }

    fn hash(&mut self, d: &mut Draw<'_>) -> (Vec<Bytes>, Want) {
        let key = d.key("hash");
        let field = d.member();
        match d.p.below(6) {
            0 | 1 => {
                let (mut rest, mut added) = (Vec::new(), 0);
                for _ in 0..d.count() {
                    let (field, value) = (d.member(), d.value());
                    added += usize::from(self.hash.insert(field.clone(), value.clone()).is_none());
                    rest.extend([field, value]);
                }
                (args("HSET", key, rest), integer(added))
            }
            2 => {
                let gone = self.hash.remove(&field).is_some();
                (args("HDEL", key, [field]), integer(usize::from(gone)))
            }
            3 => {
                let wanted = bulk_or_null(self.hash.get(&field));
                (args("HGET", key, [field]), wanted)
            }
            4 => (args("HLEN", key, []), integer(self.hash.len())),
            _ => (args("HGETALL", key, []), self.pairs()),
        }
    }

    fn pairs(&self) -> Want {
        Want::Pairs(self.hash.iter().map(|(f, v)| (f.clone(), v.clone())).collect())
    }

    fn set(&mut self, d: &mut Draw<'_>) -> (Vec<Bytes>, Want) {
        let key = d.key("set");
        let member = d.member();
        match d.p.below(6) {
            0 | 1 => {
                let more: Vec<Bytes> = (0..d.count()).map(|_| d.member()).collect();
                let before = self.set.len();
                self.set.extend(more.iter().cloned());
                (args("SADD", key, more), integer(self.set.len() - before))
            }
            2 => {
                let gone = self.set.remove(&member);
                (args("SREM", key, [member]), integer(usize::from(gone)))
            }
            3 => {
                let has = self.set.contains(&member);
                (args("SISMEMBER", key, [member]), integer(usize::from(has)))
            }
            4 => (args("SCARD", key, []), integer(self.set.len())),
            _ => (args("SMEMBERS", key, []), Want::Members(self.set.iter().cloned().collect())),
        }
    }

    /// Members by score, and by name among equal scores.
    fn ranked(&self) -> Vec<Bytes> {
        let mut ranked: Vec<(i64, &Bytes)> = self.scores.iter().map(|(m, s)| (*s, m)).collect();
        ranked.sort();
        ranked.into_iter().map(|(_, member)| member.clone()).collect()
    }

    fn scores(&mut self, d: &mut Draw<'_>) -> (Vec<Bytes>, Want) {
        let key = d.key("scores");
        let member = d.member();
        match d.p.below(6) {
            0 | 1 => {
                let (mut rest, mut added) = (Vec::new(), 0);
                for _ in 0..d.count() {
                    let (member, score) = (d.member(), d.p.below(50) as i64);
                    added += usize::from(self.scores.insert(member.clone(), score).is_none());
                    rest.extend([score.to_string().into_bytes(), member]);
                }
                (args("ZADD", key, rest), integer(added))
            }
            2 => {
                let gone = self.scores.remove(&member).is_some();
                (args("ZREM", key, [member]), integer(usize::from(gone)))
            }
            3 => {
                let score = self.scores.get(&member);
                let wanted = score.map_or(Want::Is(Value::Null), |score| Want::Number(*score));
                (args("ZSCORE", key, [member]), wanted)
            }
            4 => (args("ZCARD", key, []), integer(self.scores.len())),
            _ => {
                let rest = [b"0".to_vec(), b"-1".to_vec()];
                (args("ZRANGE", key, rest), Want::Elements(self.ranked()))
            }
        }
    }

    /// Commands on keys of any type.
    fn any(&mut self, d: &mut Draw<'_>) -> (Vec<Bytes>, Want) {
        let name = ["text", "list", "hash", "set", "scores"][d.p.below(5) as usize];
        let key = d.key(name);
        let there = usize::from(self.has(name));
        match d.p.below(10) {
            0 => {
                self.remove(name);
                let command = if d.p.chance(1, 2) { "DEL" } else { "UNLINK" };
                (args(command, key, []), integer(there))
            }
            1 => (args("EXPIRE", key, [b"1000000".to_vec()]), integer(there)),
            2 => (args("SORT_RO", d.key("set"), [b"ALPHA".to_vec()]), self.sorted()),
            _ => (args("EXISTS", key, []), integer(there)),
        }
    }

    fn sorted(&self) -> Want {
        Want::Elements(self.set.iter().cloned().collect())
    }

    fn has(&self, name: &str) -> bool {
        match name {
            "text" => !self.text.is_empty(),
            "list" => !self.list.is_empty(),
            "hash" => !self.hash.is_empty(),
            "set" => !self.set.is_empty(),
            _ => !self.scores.is_empty(),
        }
    }

    fn remove(&mut self, name: &str) {
        match name {
            "text" => self.text.clear(),
            "list" => self.list.clear(),
            "hash" => self.hash.clear(),
            "set" => self.set.clear(),
            _ => self.scores.clear(),
        }
    }

    /// The whole of all keys.
    pub fn questions(&self, prefix: &str) -> Vec<Question> {
        let ask = |name: &str, key: &str, rest: &str| {
            let text = format!("{name} {prefix}{key}{rest}");
            crate::clients::words(&text)
        };
        let whole = (!self.text.is_empty()).then_some(&self.text);
        let pairs = [
            (ask("GET", "text", ""), bulk_or_null(whole)),
            (ask("LRANGE", "list", " 0 -1"), Want::Elements(self.list.iter().cloned().collect())),
            (ask("HGETALL", "hash", ""), self.pairs()),
            (ask("SMEMBERS", "set", ""), Want::Members(self.set.iter().cloned().collect())),
            (ask("ZRANGE", "scores", " 0 -1"), Want::Elements(self.ranked())),
        ];
        pairs.into_iter().map(|(args, want)| Question { args, want }).collect()
    }
}
