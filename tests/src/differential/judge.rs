//! Compares two replies to the same command.

use crate::quote;
use crate::render;
use crate::wire::Value;

/// Tolerance for times, in milliseconds: the servers are asked one after the other.
const TIME_SLACK_MS: i64 = 2_500;

/// How the replies to a command are compared. Errors are exact in every mode.
#[derive(Clone, Copy, Debug)]
pub enum Mode {
    /// Byte by byte.
    Exact,
    /// The same elements in any order.
    Unordered,
    /// The same pairs in any order, as a map or as a flat list.
    Pairs,
    /// A cursor and elements: the same ones in any order if both cursors are 0.
    Scan,
    /// A cursor and a flat list of pairs, likewise.
    ScanPairs,
    /// Random picks: the same number, each a member read by the previous command on the same key;
    /// distinct if the count is positive. `pairs` is the option which adds a value to each.
    Pick {
        /// `WITHVALUES` or `WITHSCORES`.
        pairs: &'static str,
    },
    /// An integer of milliseconds, or of seconds if `unit_ms` is 1000; negative ones are exact.
    Time {
        /// Milliseconds of one unit.
        unit_ms: i64,
    },
    /// A reply about a stream, without times, lags, and the fields that only Redis 7.2 has.
    Stream,
    /// Both are a string, or neither is.
    Kind,
    /// It depends on the arguments.
    By(fn(&[Vec<u8>]) -> Mode),
}

/// One command and its two replies.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    /// The command.
    pub args: &'a [Vec<u8>],
    /// The reply of redis-server.
    pub redis: &'a Value,
    /// The reply of the server under test.
    pub ours: &'a Value,
}

impl Pair<'_> {
    /// Whether the replies agree. `before` is the command before it on the connection; `leaf` tells
    /// whether two elements are the same.
    pub fn agrees(
        &self,
        mode: Mode,
        before: Option<Pair<'_>>,
        leaf: fn(&Value, &Value) -> bool,
    ) -> bool {
        let (a, b) = (self.redis, self.ours);
        match mode {
            Mode::Exact | Mode::By(_) => equal(a, b, leaf),
            Mode::Unordered => equal(&sorted(a), &sorted(b), leaf),
            Mode::Pairs => equal(&sorted(&paired(a)), &sorted(&paired(b)), leaf),
            Mode::Stream => equal(&timeless(a), &timeless(b), leaf),
            Mode::Scan => self.scans_agree(false, leaf),
            Mode::ScanPairs => self.scans_agree(true, leaf),
            Mode::Pick { pairs } => picks_agree(self, before, pairs),
            Mode::Time { unit_ms } => match (a, b) {
                (Value::Int(a), Value::Int(b)) if *a >= 0 && *b >= 0 => {
                    a.abs_diff(*b) <= (TIME_SLACK_MS / unit_ms) as u64
                }
                _ => a == b,
            },
            Mode::Kind => matches!((a, b), (Value::Bulk(_), Value::Bulk(_))) || a == b,
        }
    }

    fn scans_agree(&self, pairs: bool, leaf: fn(&Value, &Value) -> bool) -> bool {
        let done = Value::Bulk(b"0".to_vec());
        let at = if self.args[0].eq_ignore_ascii_case(b"SCAN") { 1 } else { 2 };
        let from_start = self.args.get(at).is_some_and(|cursor| cursor == b"0");
        match (self.redis, self.ours) {
            (Value::Array(a), Value::Array(b)) if a.len() == 2 && b.len() == 2 => {
                if !(from_start && a[0] == done && b[0] == done) {
                    return matches!((&a[1], &b[1]), (Value::Array(_), Value::Array(_)));
                }
                let (a, b) = if pairs {
                    (paired(&a[1]), paired(&b[1]))
                } else {
                    (a[1].clone(), b[1].clone())
                };
                equal(&sorted(&a), &sorted(&b), leaf)
            }
            (a, b) => a == b,
        }
    }
}

/// Whether two elements are the same number. Redis 7.0 writes 17 digits, 7.2 the shortest text
/// which is exact, and for an integer all digits.
pub fn same_number(a: &Value, b: &Value) -> bool {
    let ((Value::Bulk(a), Value::Bulk(b)) | (Value::Double(a), Value::Double(b))) = (a, b) else {
        return a == b;
    };
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<f64>().ok();
    let digits = |text: &[u8]| {
        let digits = text.iter().take_while(|byte| **byte != b'e');
        let digits: Vec<u8> = digits.copied().filter(u8::is_ascii_digit).collect();
        digits.len() - digits.iter().rev().take_while(|digit| **digit == b'0').count()
    };
    // They switch to exponents at different lengths, except for integers.
    let is_fraction = a.contains(&b'.');
    let is_long = digits(a) >= 16 || a.contains(&b'e') || is_fraction && b.contains(&b'e');
    let is_whole = b.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
    let is_brief = digits(b) <= digits(a) || is_whole;
    a == b || (is_long && is_brief && number(a) == number(b))
}

/// A reply about a stream without its times (deliveries, activity of consumers), and without the
/// lags of groups, which redis-server often gets wrong (`known_differences.txt`).
fn timeless(value: &Value) -> Value {
    const TIMES: [&[u8]; 5] = [b"idle", b"inactive", b"seen-time", b"active-time", b"lag"];
    let is_time = |name: &Value| matches!(name, Value::Bulk(name) if TIMES.contains(&&name[..]));
    match value {
        Value::Array(row) => match &row[..] {
            [Value::Bulk(_), Value::Bulk(_), Value::Int(_), count @ Value::Int(_)] => {
                Value::Array(vec![row[0].clone(), row[1].clone(), count.clone()])
            }
            [Value::Bulk(_), Value::Int(_), count @ Value::Int(_)] => {
                Value::Array(vec![row[0].clone(), count.clone()])
            }
            _ => {
                let mut kept = Vec::new();
                let mut items = row.iter();
                while let Some(item) = items.next() {
                    if is_time(item) {
                        items.next();
                    } else {
                        kept.push(timeless(item));
                    }
                }
                Value::Array(kept)
            }
        },
        Value::Map(pairs) => {
            let pairs = pairs.iter().filter(|(name, _)| !is_time(name));
            Value::Map(pairs.map(|(name, value)| (name.clone(), timeless(value))).collect())
        }
        other => other.clone(),
    }
}

/// Element by element.
fn equal(a: &Value, b: &Value, leaf: fn(&Value, &Value) -> bool) -> bool {
    let all = |a: &[Value], b: &[Value]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b, leaf))
    };
    match (a, b) {
        (Value::Array(a), Value::Array(b))
        | (Value::Set(a), Value::Set(b))
        | (Value::Push(a), Value::Push(b)) => all(a, b),
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|(a, b)| equal(&a.0, &b.0, leaf) && equal(&a.1, &b.1, leaf))
        }
        _ => leaf(a, b),
    }
}

/// With the elements of the outermost list in order.
fn sorted(value: &Value) -> Value {
    let by_text = |items: &[Value]| {
        let mut items = items.to_vec();
        items.sort_by_cached_key(render::line);
        items
    };
    match value {
        Value::Array(items) => Value::Array(by_text(items)),
        Value::Set(items) => Value::Set(by_text(items)),
        Value::Map(pairs) => {
            let mut pairs = pairs.clone();
            pairs.sort_by_cached_key(|(key, value)| (render::line(key), render::line(value)));
            Value::Map(pairs)
        }
        other => other.clone(),
    }
}

/// A flat list as a list of pairs; everything else as it is.
fn paired(value: &Value) -> Value {
    match value {
        Value::Array(items) if items.len() % 2 == 0 => {
            Value::Array(items.chunks(2).map(|pair| Value::Array(pair.to_vec())).collect())
        }
        other => other.clone(),
    }
}

fn picks_agree(pair: &Pair<'_>, before: Option<Pair<'_>>, with: &str) -> bool {
    let (Value::Array(a), Value::Array(b)) = (pair.redis, pair.ours) else {
        // One element, or none, or an error.
        let one = matches!((pair.redis, pair.ours), (Value::Bulk(_), Value::Bulk(_)));
        return one || pair.redis == pair.ours;
    };
    let read = before
        .filter(|before| reads_everything(before.args) && before.args.get(1) == pair.args.get(1));
    let inside = read.is_none_or(|before| {
        let all = leaves(before.ours);
        b.iter().flat_map(leaves).all(|leaf| all.contains(&leaf))
    });
    let positive = pair.args.get(2).is_some_and(|count| !count.starts_with(b"-"));
    let flat = pair.args.iter().any(|arg| arg.eq_ignore_ascii_case(with.as_bytes()))
        && !b.iter().any(|item| matches!(item, Value::Array(_)));
    let mut picked: Vec<String> = b
        .iter()
        .step_by(if flat { 2 } else { 1 })
        .map(|item| leaves(item).first().map(|leaf| quote::quoted(leaf)).unwrap_or_default())
        .collect();
    let count = picked.len();
    picked.sort();
    picked.dedup();
    a.len() == b.len() && inside && (!positive || picked.len() == count)
}

fn reads_everything(args: &[Vec<u8>]) -> bool {
    const WHOLE: [&str; 3] = ["SMEMBERS *", "HGETALL *", "ZRANGE * 0 -1 WITHSCORES"];
    WHOLE.iter().any(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let same = |(word, arg): (&&str, &Vec<u8>)| {
            *word == "*" || arg.eq_ignore_ascii_case(word.as_bytes())
        };
        words.len() == args.len() && words.iter().zip(args).all(same)
    })
}

/// The texts in a reply.
fn leaves(value: &Value) -> Vec<Vec<u8>> {
    match value {
        Value::Bulk(text) | Value::Double(text) => vec![text.clone()],
        Value::Array(items) | Value::Set(items) => items.iter().flat_map(leaves).collect(),
        Value::Map(pairs) => {
            pairs.iter().flat_map(|(key, value)| [leaves(key), leaves(value)].concat()).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::family::mode;
    use super::*;

    fn text(text: &str) -> Value {
        Value::Bulk(text.into())
    }

    fn list(items: &[&str]) -> Value {
        Value::Array(items.iter().map(|item| text(item)).collect())
    }

    fn agree(command: &str, redis: &Value, ours: &Value, before: Option<(&str, &Value)>) -> bool {
        let args = quote::split(command).expect("a good line");
        let earlier = before.map(|(line, value)| (quote::split(line).expect("a good line"), value));
        let before = earlier.as_ref().map(|(args, value)| Pair { args, redis: value, ours: value });
        Pair { args: &args, redis, ours }.agrees(mode(&args), before, Value::eq)
    }

    #[test]
    fn replies_are_exact_unless_they_cannot_be() {
        let int = Value::Int;
        assert!(!agree("GET k", &int(1), &int(2), None));
        assert!(!agree("GET k", &Value::Null, &Value::NullBulk, None));
        assert!(agree("PTTL k", &int(5000), &int(4990), None));
        assert!(!agree("PTTL k", &int(5000), &int(1), None));
        assert!(!agree("PTTL k", &int(-1), &int(-2), None));
        assert!(!agree("TTL k", &int(100), &int(104), None));
        assert!(agree("KEYS *", &list(&["1", "2"]), &list(&["2", "1"]), None));
        assert!(!agree("KEYS *", &list(&["1", "2"]), &list(&["1", "1"]), None));
        assert!(!agree("MGET *", &list(&["1", "2"]), &list(&["2", "1"]), None));
    }

    #[test]
    fn pairs_stay_together() {
        let redis = list(&["f", "1", "g", "2"]);
        assert!(agree("HGETALL k", &redis, &list(&["g", "2", "f", "1"]), None));
        assert!(!agree("HGETALL k", &redis, &list(&["g", "1", "f", "2"]), None));
        let scan = |items: Value| Value::Array(vec![text("0"), items]);
        let other = |pairs: &[&str]| scan(list(pairs));
        let command = "HSCAN k 0 COUNT 100000";
        assert!(agree(command, &scan(redis.clone()), &other(&["g", "2", "f", "1"]), None));
        assert!(!agree(command, &scan(redis), &other(&["g", "1", "f", "2"]), None));
    }

    #[test]
    fn random_picks_must_be_members() {
        let there = list(&["a", "b", "c"]);
        let before = Some(("SMEMBERS k", &there));
        let check =
            |command, ours: &[&str]| agree(command, &list(&["a", "b"]), &list(ours), before);
        assert!(check("SRANDMEMBER k 2", &["c", "a"]));
        assert!(!check("SRANDMEMBER k 2", &["c", "x"]), "not a member");
        assert!(!check("SRANDMEMBER k 2", &["c"]), "one too few");
        assert!(!check("SRANDMEMBER k 2", &["c", "c"]), "twice the same");
        assert!(check("SRANDMEMBER k -2", &["c", "c"]));
    }

    #[test]
    fn numbers_may_have_fewer_digits_but_not_another_value() {
        assert!(same_number(&text("0.10000000000000001"), &text("0.1")));
        assert!(!same_number(&text("0.10000000000000001"), &text("0.2")));
        assert!(!same_number(&text("0.5"), &text("0.50")));
        assert!(!same_number(&text("10000000000"), &text("1e10")));
        assert!(same_number(&text("15358.9171993074"), &text("1.53589171993074e+4")));
    }
}
