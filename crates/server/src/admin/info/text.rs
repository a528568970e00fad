//! Lines of INFO.

use std::fmt::Write;

/// A line as it stands.
pub fn line(t: &mut String, head: &str, rest: &str) {
    t.push_str(head);
    t.push_str(rest);
    t.push('\n');
}

/// `name:value`.
pub fn field(t: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(t, "{name}:{value}");
}
