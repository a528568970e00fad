//! Glob patterns as KEYS, SCAN, PSUBSCRIBE and CONFIG GET understand them.
//!
//! `*` any bytes, `?` one byte, `[abc]` `[a-z]` `[^x]` one byte of (or not of) a class, `\x` the
//! byte `x` itself. The corner cases, as observed on a real server: a class that is never closed
//! ends with the pattern; a range may be given backwards; `\` escapes inside a class; a `\` that
//! ends the pattern stands for itself.
//!
//! Iterative, no allocation, at most `pattern.len() * text.len()` steps: every item but `*` takes
//! exactly one byte, so after a mismatch only the *last* star passed can match more bytes, and
//! earlier stars never need a retry.

/// Whether letters match regardless of their ASCII case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// `a` and `A` differ.
    Sensitive,
    /// `a` and `A` are the same.
    Insensitive,
}

/// True if `pattern` matches the whole of `text`.
///
/// ```
/// use base::glob::{Case, matches};
/// assert!(matches(b"user:[0-9]*", b"user:42", Case::Sensitive));
/// assert!(!matches(b"user:[^0-9]*", b"user:42", Case::Sensitive));
/// ```
pub fn matches(pattern: &[u8], text: &[u8], case: Case) -> bool {
    count_matches(pattern, text, case, |_| ())
}

/// As [`matches`]; calls `looked_at` with the number of bytes of the pattern that each step has
/// looked at.
#[inline(always)]
fn count_matches(
    pattern: &[u8],
    text: &[u8],
    case: Case,
    mut looked_at: impl FnMut(usize),
) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to resume after a mismatch: behind the last star, one byte further in the text.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            looked_at(1);
            if p == pattern.len() {
                return true;
            }
            retry = Some((p, t));
            continue;
        }
        if t == text.len() {
            // Only stars match no bytes, and the item above is not a star.
            return p == pattern.len();
        }
        if p < pattern.len() {
            let (hit, next) = one(pattern, p, text[t], case);
            looked_at(next - p);
            if hit {
                p = next;
                t += 1;
                continue;
            }
        }
        match &mut retry {
            None => return false,
            Some((after_star, from)) => {
                *from += 1;
                (p, t) = (*after_star, *from);
            }
        }
    }
}

/// True if `pattern` has no special byte, so that it matches only itself.
pub fn is_literal(pattern: &[u8]) -> bool {
    !pattern.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\'))
}

/// Does the item at `pattern[p]`, which is not a star, match `byte`? And where is the next item?
#[inline]
fn one(pattern: &[u8], p: usize, byte: u8, case: Case) -> (bool, usize) {
    match pattern[p] {
        b'?' => (true, p + 1),
        b'[' => class(pattern, p + 1, byte, case),
        b'\\' if p + 1 < pattern.len() => (same(pattern[p + 1], byte, case), p + 2),
        literal => (same(literal, byte, case), p + 1),
    }
}

/// The class whose inside starts at `pattern[p]`.
fn class(pattern: &[u8], mut p: usize, byte: u8, case: Case) -> (bool, usize) {
    let negated = pattern.get(p) == Some(&b'^');
    p += usize::from(negated);
    let mut hit = false;
    loop {
        match pattern[p..] {
            [] => return (hit != negated, p),
            [b']', ..] => return (hit != negated, p + 1),
            [b'\\', escaped, ..] => {
                hit |= same(escaped, byte, case);
                p += 2;
            }
            [low, b'-', high, ..] => {
                hit |= within(low, high, byte, case);
                p += 3;
            }
            [literal, ..] => {
                hit |= same(literal, byte, case);
                p += 1;
            }
        }
    }
}

#[inline]
fn same(a: u8, b: u8, case: Case) -> bool {
    a == b || (case == Case::Insensitive && a.eq_ignore_ascii_case(&b))
}

#[inline]
fn within(low: u8, high: u8, byte: u8, case: Case) -> bool {
    let (mut low, mut high) = (low.min(high), low.max(high));
    let mut byte = byte;
    if case == Case::Insensitive {
        (low, high) = (low.to_ascii_lowercase(), high.to_ascii_lowercase());
        byte = byte.to_ascii_lowercase();
    }
    (low..=high).contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check_recording(recording: &str, least: usize) {
        let mut lines = 0;
        for line in recording.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [case, answer, pattern, text] = fields[..] else { panic!("four fields: {line}") };
            let case = if case == "i" { Case::Insensitive } else { Case::Sensitive };
            let (pattern, text) = (crate::golden::unescape(pattern), crate::golden::unescape(text));
            assert_eq!(matches(&pattern, &text, case), answer == "1", "{line}");
            lines += 1;
        }
        assert!(lines >= least, "the recording is there: {lines}");
    }

    /// Recorded from KEYS with one key (`s`) and from FUNCTION LIST, which ignores case (`i`):
    /// `case<TAB>matched<TAB>pattern<TAB>text`.
    #[test]
    fn matches_agree_with_a_recording_of_the_real_server() {
        check_recording(include_str!("../tests/golden/glob.txt"), 500);
    }

    #[test]
    fn empty_patterns_and_texts_are_matched() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("?", "", false),
            ("[^a]", "", false),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes(), Case::Sensitive),
                expected,
                "{pattern:?} on {text:?}"
            );
        }
    }

    /// Naive backtracking would need exponential time for these patterns.
    #[test]
    fn a_match_looks_at_each_byte_of_the_pattern_once_per_byte_of_the_text() {
        let texts = [b"a".repeat(3_000), b"ab".repeat(1_500), b"a".repeat(20)];
        let long = [b"*", b"a".repeat(1_000).as_slice(), b"b"].concat();
        let stars = [b"*a".repeat(500).as_slice(), b"b"].concat();
        let classes = [b"*[^b-z][aaaaaaa]?".repeat(40).as_slice(), b"c"].concat();
        let (mut most, mut least) = (0.0_f64, 1.0_f64);
        for pattern in [b"*a*a*a*a*b".to_vec(), b"*a*b".repeat(7), stars, long, classes] {
            for text in &texts {
                let mut looked_at = 0;
                count_matches(&pattern, text, Case::Sensitive, |bytes| looked_at += bytes);
                let share = looked_at as f64 / (pattern.len() * (text.len() + 1)) as f64;
                (most, least) = (most.max(share), least.min(share));
            }
        }
        assert!(most <= 1.0, "{most} of the bound");
        assert!(most > 0.5 && least < 0.2, "{least} to {most} of it: it is counted");
    }

    #[test]
    fn many_stars_are_matched_in_polynomial_time() {
        let pattern = [b"*a".repeat(500).as_slice(), b"b"].concat();
        assert!(!matches(&pattern, &b"a".repeat(5_000), Case::Sensitive));
        let pattern = [b"a*?".repeat(300).as_slice(), b"[b]"].concat();
        assert!(!matches(&pattern, &b"a".repeat(5_000), Case::Insensitive));
    }

    #[test]
    fn case_folding_affects_letters_only() {
        assert!(matches(b"H[a-c]LL?*", b"hBll{x", Case::Insensitive));
        assert!(!matches(b"H", b"h", Case::Sensitive));
        assert!(!matches(b"[", b"{", Case::Insensitive));
        assert!(!matches(b"@", b"`", Case::Insensitive));
    }

    /// The definition without optimisation: every star tries every length.
    fn slow(pattern: &[u8], text: &[u8], case: Case) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', rest @ ..] => (0..=text.len()).any(|n| slow(rest, &text[n..], case)),
            _ => text.split_first().is_some_and(|(&byte, tail)| {
                let (hit, next) = one(pattern, 0, byte, case);
                hit && slow(&pattern[next..], tail, case)
            }),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn backtracking_to_the_last_star_is_sufficient(
            pattern in "[abB*?\\[\\]^\\\\-]{0,12}", text in "[abB\\]-]{0,10}", fold: bool,
        ) {
            let case = if fold { Case::Insensitive } else { Case::Sensitive };
            prop_assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes(), case),
                slow(pattern.as_bytes(), text.as_bytes(), case)
            );
        }

        #[test]
        fn any_bytes_are_matched_without_a_panic(pattern: Vec<u8>, text: Vec<u8>) {
            matches(&pattern, &text, Case::Insensitive);
            if is_literal(&pattern) {
                prop_assert_eq!(matches(&pattern, &text, Case::Sensitive), pattern == text);
            }
        }

        #[test]
        fn an_escaped_text_matches_itself(text: Vec<u8>) {
            let pattern: Vec<u8> = text.iter().flat_map(|&byte| [b'\\', byte]).collect();
            prop_assert!(matches(&pattern, &text, Case::Sensitive));
        }
    }
}
