//! Replies as text which shows the type of each item, for golden files and failure messages.

use crate::quote::{escaped, quoted};
use crate::wire::Value;

/// Several lines; nested items are indented by two spaces.
pub fn lines(value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    write(value, 0, &mut out);
    out
}

/// The same in one line.
pub fn line(value: &Value) -> String {
    let parts: Vec<String> = lines(value).iter().map(|part| part.trim_start().into()).collect();
    parts.join(" ")
}

fn write(value: &Value, depth: usize, out: &mut Vec<String>) {
    let mut put = |text: String| out.push(format!("{}{text}", "  ".repeat(depth)));
    let items = |mark: &str, items: &[Value], out: &mut Vec<String>| {
        out.push(format!("{}{mark}{}", "  ".repeat(depth), items.len()));
        for item in items {
            write(item, depth + 1, out);
        }
    };
    match value {
        Value::Simple(text) => put(format!("+{}", escaped(text))),
        Value::Error(text) => put(format!("-{}", escaped(text))),
        Value::Int(n) => put(format!(":{n}")),
        Value::Bulk(bytes) => put(quoted(bytes)),
        Value::NullBulk => put("null-bulk".into()),
        Value::NullArray => put("null-array".into()),
        Value::Null => put("null".into()),
        Value::Double(text) => put(format!(",{}", escaped(text))),
        Value::Bool(value) => put(format!("#{value}")),
        Value::BigNumber(text) => put(format!("({}", escaped(text))),
        Value::Verbatim(text) => put(format!("={}", quoted(text))),
        Value::Array(list) => items("*", list, out),
        Value::Set(list) => items("~", list, out),
        Value::Push(list) => items("push ", list, out),
        Value::Map(pairs) => {
            put(format!("%{}", pairs.len()));
            for (key, value) in pairs {
                write(key, depth + 1, out);
                write(value, depth + 1, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_visible() {
        let inner = Value::Set(vec![Value::Int(1), Value::Null]);
        let value = Value::Array(vec![inner, Value::Bulk(b"a\"\xff".to_vec())]);
        assert_eq!(lines(&value), ["*2", "  ~2", "    :1", "    null", r#"  "a\"\xff""#]);
        assert_eq!(line(&value), r#"*2 ~2 :1 null "a\"\xff""#);
    }
}
