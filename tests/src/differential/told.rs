//! Compares what connections have received after a step: in order, but for what has none.

use super::family::is;
use super::sequence::Step;
use crate::render;
use crate::wire::Value;

/// Words that begin messages.
const MESSAGES: [&[u8]; 3] = [b"message", b"smessage", b"pmessage"];
/// Words that begin the confirmations of an end.
const ENDS: [&[u8]; 3] = [b"unsubscribe", b"sunsubscribe", b"punsubscribe"];

/// Whether both servers told the connections the same. `is_relaxed`: the messages of the client of
/// the step may stand elsewhere among its replies, but in their order.
pub fn agree(step: &Step, redis: &Value, ours: &Value, is_relaxed: bool) -> bool {
    told(step, redis, is_relaxed) == told(step, ours, is_relaxed)
}

/// What they were told, without what is not determined.
fn told(step: &Step, received: &Value, is_relaxed: bool) -> Vec<(Value, Vec<Value>)> {
    let Value::Map(all) = received else { return vec![(received.clone(), Vec::new())] };
    let of = |(conn, values): &(Value, Value)| {
        let is_own = *conn == Value::Int(step.conn.into());
        let Value::Array(values) = values else { return (conn.clone(), vec![values.clone()]) };
        let mut values = if is_own && is(&step.args, "EXEC") {
            opened(values)
        } else if is_own {
            values.iter().map(determined).collect()
        } else {
            values.clone()
        };
        if is_own && (is(&step.args, "EXEC") || step.args.len() == 1) {
            order_ends(&mut values);
        }
        order_patterns(&mut values);
        order_invalidated(&mut values);
        if is_own && is_relaxed {
            values.sort_by_key(|value| MESSAGES.contains(&kind(value)));
        }
        (conn.clone(), values)
    };
    all.iter().map(of).collect()
}

/// The replies of a transaction one by one, behind their number, with what stands between and
/// behind them: the first confirmation of a command is inside the array, the others behind it, and
/// a message inside takes the place of a reply.
fn opened(values: &[Value]) -> Vec<Value> {
    let (mut flat, mut is_first) = (Vec::new(), true);
    for value in values {
        match value {
            Value::Array(items) if kind(value).is_empty() && is_first => {
                is_first = false;
                flat.push(Value::Simple(format!("*{}", items.len()).into_bytes()));
                for item in items {
                    open(&determined(item), &mut flat);
                }
            }
            other => open(&determined(other), &mut flat),
        }
    }
    flat
}

fn open(value: &Value, flat: &mut Vec<Value>) {
    match value {
        Value::Array(items) if kind(value).is_empty() => {
            flat.push(Value::Simple(format!("*{}", items.len()).into_bytes()));
            for item in items {
                open(item, flat);
            }
        }
        other => flat.push(other.clone()),
    }
}

fn items(value: &Value) -> Option<&Vec<Value>> {
    match value {
        Value::Array(items) | Value::Push(items) => Some(items),
        _ => None,
    }
}

/// The word with which a message or a confirmation begins; empty for everything else.
fn kind(value: &Value) -> &[u8] {
    match items(value).and_then(|items| items.first()) {
        Some(Value::Bulk(word)) if word.ends_with(b"message") || word.ends_with(b"subscribe") => {
            word
        }
        _ => b"",
    }
}

/// Without versions (HELLO), and lists of names in an order of their own (PUBSUB CHANNELS).
fn determined(value: &Value) -> Value {
    match value {
        Value::Map(_) => Value::Map(Vec::new()),
        Value::Array(items) if items.contains(&Value::Bulk(b"proto".to_vec())) => {
            Value::Array(Vec::new())
        }
        Value::Array(items)
            if kind(value).is_empty()
                && items.first() != Some(&Value::Bulk(b"pong".to_vec()))
                && items.iter().all(|item| matches!(item, Value::Bulk(_))) =>
        {
            let mut items = items.clone();
            items.sort_by_cached_key(render::line);
            Value::Array(items)
        }
        other => other.clone(),
    }
}

/// The end of all subscriptions goes in the order of a table: names in an order of their own, the
/// counts as they came.
fn order_ends(values: &mut [Value]) {
    let is_end = |a: &Value, b: &Value| ENDS.contains(&kind(a)) && kind(a) == kind(b);
    for run in values.chunk_by_mut(is_end) {
        if !ENDS.contains(&kind(&run[0])) {
            continue;
        }
        let mut names: Vec<Value> =
            run.iter().filter_map(items).map(|all| all[1].clone()).collect();
        names.sort_by_cached_key(render::line);
        for (value, name) in run.iter_mut().zip(names) {
            if let Value::Array(items) | Value::Push(items) = value {
                items[1] = name;
            }
        }
    }
}

/// A message that matches several patterns comes once for each, in any order.
fn order_patterns(values: &mut [Value]) {
    let text = |value: &Value| items(value).map(|items| items[2..].to_vec());
    let same = |a: &Value, b: &Value| {
        kind(a) == b"pmessage" && kind(b) == b"pmessage" && text(a) == text(b)
    };
    for run in values.chunk_by_mut(same) {
        run.sort_by_cached_key(render::line);
    }
}

/// Keys that are no longer what they were come together or one by one, and those of prefixes in an
/// order of their own, each once.
fn order_invalidated(values: &mut Vec<Value>) {
    let mut ordered: Vec<Value> = Vec::new();
    for run in values.chunk_by(|a, b| is_invalidation(a) && is_invalidation(b)) {
        if !is_invalidation(&run[0]) {
            ordered.extend_from_slice(run);
            continue;
        }
        let mut keys: Vec<Value> = run.iter().flat_map(invalidated).collect();
        keys.sort_by_cached_key(render::line);
        keys.dedup();
        ordered.extend(keys);
    }
    *values = ordered;
}

fn is_invalidation(value: &Value) -> bool {
    let word = Value::Bulk(b"invalidate".to_vec());
    matches!(value, Value::Push(items) if items.first() == Some(&word))
}

/// Its keys, each by itself.
fn invalidated(value: &Value) -> Vec<Value> {
    let Some([word, Value::Array(keys)]) = items(value).map(Vec::as_slice) else {
        return vec![value.clone()];
    };
    let alone = |key: &Value| Value::Push(vec![word.clone(), Value::Array(vec![key.clone()])]);
    keys.iter().map(alone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quote;

    fn list(words: &str) -> Value {
        let word = |word: &str| match word.parse() {
            Ok(number) => Value::Int(number),
            Err(_) => Value::Bulk(word.into()),
        };
        Value::Array(words.split(' ').map(word).collect())
    }

    fn check(line: &str, redis: &[&str], ours: &[&str], is_relaxed: bool) -> bool {
        let args = quote::split(line).expect("a good line");
        let step = Step { conn: 1, args, settle: false, tied: false };
        let of = |lines: &[&str]| {
            let values = Value::Array(lines.iter().map(|line| list(line)).collect());
            Value::Map(vec![(Value::Int(1), values)])
        };
        agree(&step, &of(redis), &of(ours), is_relaxed)
    }

    #[test]
    fn what_has_an_order_keeps_it() {
        let two = ["message a x", "message a y"];
        assert!(check("GET k", &two, &two, false));
        assert!(!check("GET k", &two, &["message a y", "message a x"], true));
        assert!(!check("GET k", &two, &["message a x"], true));
        assert!(!check("UNSUBSCRIBE a", &["unsubscribe a 1"], &["unsubscribe b 1"], true));
        let patterns = ["pmessage a* a x", "pmessage * a x", "pmessage * a y"];
        assert!(check("GET k", &patterns, &[patterns[1], patterns[0], patterns[2]], false));
        assert!(!check("GET k", &patterns, &[patterns[0], patterns[2], patterns[1]], false));
        let ends = ["unsubscribe a 1", "unsubscribe b 0"];
        assert!(check("UNSUBSCRIBE", &ends, &["unsubscribe b 1", "unsubscribe a 0"], false));
        assert!(!check("UNSUBSCRIBE a b", &ends, &["unsubscribe b 1", "unsubscribe a 0"], false));
        assert!(!check("UNSUBSCRIBE", &ends, &["unsubscribe a 0", "unsubscribe b 1"], false));
        assert!(check("PUBSUB CHANNELS", &["a b"], &["b a"], false));
    }

    #[test]
    fn only_where_it_is_relaxed_messages_move() {
        let (early, late) = (["message a x", "reply 1"], ["reply 1", "message a x"]);
        assert!(!check("PUBLISH a x", &early, &late, false));
        assert!(check("PUBLISH a x", &early, &late, true));
    }
}
