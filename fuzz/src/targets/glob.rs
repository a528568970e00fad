//! Patterns: matching terminates, and agrees with a simple definition where that is cheap.

use base::glob::{Case, matches};

use crate::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "glob",
    feed,
    dictionary: &[
        b"*",
        b"**",
        b"?",
        b"[a-z]",
        b"[^",
        b"[^]",
        b"]",
        b"[z-a]",
        b"\\",
        b"\\*",
        b"[\\]]",
        b"[",
        b"*a*a*a*a*a*a*",
        b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        b"\0",
        b"\xff",
    ],
};

/// Input: a pattern, a line feed, the text.
fn feed(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
    let (pattern, text) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let exact = matches(pattern, text, Case::Sensitive);
    let folded = matches(pattern, text, Case::Insensitive);
    // Folding case can only add matches, unless a class excludes letters or spans both cases.
    if !pattern.contains(&b'[') {
        assert!(folded || !exact, "ignoring case loses a match");
    }
    if pattern.iter().all(|byte| *byte == b'*') && !pattern.is_empty() {
        assert!(exact, "stars match everything");
    }
    if !pattern.iter().any(|byte| b"*?[\\".contains(byte)) {
        assert_eq!(exact, pattern == text, "a pattern without wildcards matches only itself");
    }
}
