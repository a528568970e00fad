//! `tests/known_differences.txt`: intended differences between our replies and the reference's.
//! Any other difference fails.

use base::num::parse_i64;

use crate::quote;

/// One intended difference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Patterns of command lines (`*` is any text); one of them is enough.
    pub command: Vec<String>,
    /// Patterns of the reference's reply, in one line; one of them is enough.
    pub redis: Vec<String>,
    /// Patterns of our reply, in one line; one of them is enough.
    pub ours: Vec<String>,
    /// Where this is documented: a file of the repository, or a URL.
    pub document: String,
    /// The differential family of its commands; `None` if they exist in every version.
    pub family: Option<String>,
    /// The release of the reference it applies to, such as `7.0`; `None`: every release.
    pub oracle: Option<String>,
    /// Whether the state of the servers differs after these replies: nothing after them is
    /// compared.
    pub parts: bool,
    /// Commands which show it, one per line; the replies to the last one must match the patterns.
    pub example: Vec<String>,
}

impl Known {
    /// Whether this entry allows these two replies to this command.
    pub fn explains(&self, args: &[Vec<u8>], redis: &str, ours: &str) -> bool {
        let any = |patterns: &[String], text: &str| {
            patterns.iter().any(|one| match one.as_str() {
                "<same>" => text == redis,
                "<nothing>" => text.is_empty(),
                one => matches(one, text.trim_end()),
            })
        };
        self.is_about(args) && any(&self.redis, redis) && any(&self.ours, ours)
    }

    /// Whether this entry applies to a reference of this release.
    pub fn is_beside(&self, release: &str) -> bool {
        self.oracle.as_deref().is_none_or(|oracle| oracle == release)
    }

    /// Whether this entry applies to this command.
    pub fn is_about(&self, args: &[Vec<u8>]) -> bool {
        let line = quote::line(args);
        self.command.iter().any(|pattern| {
            if CLASSES.iter().any(|(name, _)| pattern.contains(name)) {
                matches_words(pattern, args)
            } else {
                matches(pattern, &line)
            }
        })
    }

    /// Whether this entry allows the messages that a client has caused itself to stand before, in
    /// or behind its replies. Its patterns are then `<messages first>` and `<messages last>`.
    pub fn is_about_order(&self) -> bool {
        self.redis == ["<messages first>"] && self.ours == ["<messages last>"]
    }

    /// Whether this entry allows equal numbers with different digits, anywhere in the reply. Its
    /// patterns are then `<17 digits>` and `<shortest>`.
    pub fn is_about_digits(&self) -> bool {
        self.redis == ["<17 digits>"] && self.ours == ["<shortest>"]
    }
}

/// Reads the list: blocks of `name: value`, separated by blank lines; `#` comments.
pub fn parse(text: &str) -> Result<Vec<Known>, String> {
    let mut all = Vec::new();
    let mut current = Known::default();
    for (at, line) in text.lines().chain([""]).enumerate() {
        if line.starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            if current != Known::default() {
                let done = std::mem::take(&mut current);
                let lists = [&done.command, &done.redis, &done.ours, &done.example];
                if done.document.is_empty() || lists.iter().any(|list| list.is_empty()) {
                    return Err(format!("the entry before line {} is incomplete", at + 1));
                }
                all.push(done);
            }
            continue;
        }
        let fail = || format!("line {}: not 'name: value': {line}", at + 1);
        let (name, value) = line.split_once(": ").ok_or_else(fail)?;
        let value = value.trim().to_owned();
        match name {
            "command" => current.command.push(value),
            "family" => current.family = Some(value),
            "oracle" => current.oracle = Some(value),
            "after" if value == "not compared" => current.parts = true,
            "redis" => current.redis.push(value),
            "ours" => current.ours.push(value),
            "document" => current.document = value,
            "example" => current.example.push(value),
            _ => return Err(fail()),
        }
    }
    Ok(all)
}

/// Whether a word is of a class.
type Class = fn(&[u8]) -> bool;

/// Classes of words in patterns of commands.
const CLASSES: [(&str, Class); 5] = [
    ("<integer>", |word| parse_i64(word).is_some()),
    ("<no-integer>", |word| parse_i64(word).is_none()),
    ("<no-unit>", |word| !word.eq_ignore_ascii_case(b"BYTE") && !word.eq_ignore_ascii_case(b"BIT")),
    ("<no-i32>", |word| parse_i64(word).is_some_and(|n| i32::try_from(n).is_err())),
    ("<past-or-far>", |word| parse_i64(word).is_some_and(|n| n <= 0 || n > FAR_SECONDS)),
];

/// Longer times overflow as milliseconds since the epoch.
const FAR_SECONDS: i64 = i64::MAX / 1000 - (1 << 40);

/// Like [`matches`], but word by word: `*` is any word, a class is a word of that class, and `...`
/// at the end is any number of words.
fn matches_words(pattern: &str, args: &[Vec<u8>]) -> bool {
    let mut words = args.iter();
    for part in pattern.split(' ') {
        if part == "..." {
            return true;
        }
        let Some(word) = words.next() else { return false };
        let class = CLASSES.iter().find(|(name, _)| *name == part);
        let fits = match class {
            Some((_, is)) => is(word),
            None => part == "*" || part.as_bytes().eq_ignore_ascii_case(word),
        };
        if !fits {
            return false;
        }
    }
    words.next().is_none()
}

/// Matches a pattern: `*` is any text, everything else is literal; case is ignored.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.to_ascii_lowercase(), text.to_ascii_lowercase());
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str =
        "# why\ncommand: GET *\nredis: :1\nours: :2\ndocument: README.md\nexample: GET k\n";

    #[test]
    fn entries_are_read_and_explain_only_themselves() {
        let all = parse(ENTRY).expect("well formed");
        let args = |text| quote::split(text).expect("a good line");
        assert!(all[0].explains(&args("get k"), ":1", ":2"));
        assert!(!all[0].explains(&args("get k"), ":1", ":3"));
        assert!(!all[0].explains(&args("set k v"), ":1", ":2"));
    }

    #[test]
    fn one_of_several_patterns_is_enough() {
        let all = parse(&format!("{ENTRY}ours: :4\n")).expect("well formed");
        let args = quote::split("get k").expect("a good line");
        for (ours, explained) in [(":2", true), (":4", true), (":3", false)] {
            assert_eq!(all[0].explains(&args, ":1", ours), explained, "{ours}");
        }
    }

    #[test]
    fn an_entry_holds_beside_the_release_that_it_names() {
        let beside = |text: &str, release| parse(text).expect("well formed")[0].is_beside(release);
        assert!(beside(ENTRY, "7.0") && beside(ENTRY, "7.2"));
        let named = format!("oracle: 7.0\n{ENTRY}");
        assert!(beside(&named, "7.0") && !beside(&named, "7.2"));
    }

    #[test]
    fn classes_match_single_words() {
        let is = |pattern, line| matches_words(pattern, &quote::split(line).expect("a good line"));
        let count = "BITCOUNT * <no-integer> ...";
        assert!(is(count, "bitcount k x") && is(count, "bitcount k \"\" 1 BIT"));
        assert!(!is(count, "bitcount k 1 x") && !is(count, "bitcount k"));
        assert!(!is("BITCOUNT * <integer>", "bitcount k 1 2"));
        assert!(is("A <no-unit>", "a bogus") && !is("A <no-unit>", "a bit"));
        assert!(is("A <no-i32>", "a -2147483649") && !is("A <no-i32>", "a 2147483647"));
        assert!(is("A <past-or-far>", "a 0") && !is("A <past-or-far>", "a 1"));
    }

    #[test]
    fn same_and_nothing_patterns() {
        let args = quote::split("get k").expect("a good line");
        let known = |redis: &str, ours: &str| {
            let text = ENTRY.replace("redis: :1", &format!("redis: {redis}"));
            parse(&text.replace("ours: :2", &format!("ours: {ours}")))
                .expect("well formed")
                .remove(0)
        };
        let same = known("*null*", "<same>");
        assert!(same.explains(&args, "*2 null :1", "*2 null :1"));
        assert!(!same.explains(&args, "*2 null :1", "*2 null :2"));
        let absent = known("<nothing>", "a*");
        assert!(absent.explains(&args, "", "ab") && !absent.explains(&args, "x", "ab"));
    }

    #[test]
    fn incomplete_entries_are_refused() {
        for part in ["command: ", "redis: ", "ours: ", "document: ", "example: "] {
            let rest: Vec<&str> = ENTRY.lines().filter(|line| !line.starts_with(part)).collect();
            assert!(parse(&rest.join("\n")).is_err(), "{part}");
        }
        assert!(parse("what is this\n").is_err());
    }

    #[test]
    fn stars_are_any_text() {
        assert!(matches("a*c*", "abxc"));
        assert!(matches("*", ""));
        assert!(!matches("a*c", "abcd"));
        assert!(!matches("abc", "abcd"));
    }
}
