//! Facts about a command belong in its row of the table. Code which compares a command's name holds
//! a fact which is missing in the table.

use std::collections::BTreeSet;

use super::Report;
use super::counts::Found;
use super::list::List;
use super::tree::{Tree, production_lines};

const ALLOWED: &str = "xtask/names.txt";
/// Where commands run. The table itself and the index of names are not among them.
const PLACES: &[&str] = &["crates/server/src/", "crates/command/src/"];
const TABLE: &[&str] = &["crates/command/src/table/", "crates/command/src/registry.rs"];
/// Expressions for the name of a row.
const NAMES: &[&str] = &["full_name", "spec.name", "spec().name"];
/// Operators and functions which compare it.
const COMPARES: &[&str] = &["==", "!=", "match ", "matches!(", "starts_with", "eq_ignore"];
/// Patterns which look a row up by a literal name.
const LOOKS_UP: &[&str] = &["lookup(b\"", "by_full_name(b\""];

/// Refuses comparisons of commands' names, except in the places that the list allows. An entry that
/// is not needed must be removed: the list only shrinks.
pub fn check(tree: &Tree, report: &mut Report) {
    let mut allowed = List::read(tree, ALLOWED, report);
    for (path, text) in tree.rust() {
        let is_meant = PLACES.iter().any(|place| path.starts_with(place))
            && !TABLE.iter().any(|table| path.starts_with(table));
        if !is_meant {
            continue;
        }
        for (at, line) in production_lines(path, text) {
            let compares = NAMES.iter().any(|name| line.contains(name))
                && COMPARES.iter().any(|word| line.contains(word));
            let looks_up = LOOKS_UP.iter().any(|word| line.contains(word));
            if (compares || looks_up) && !allowed.allows(path) {
                let why = "a command is identified by its name; its row in the table can say it";
                report.error(format!("{path}:{at}: {why}"));
            }
        }
    }
    allowed.finish(report);
}

/// The crates which execute requests after the parser has interpreted them.
const BEHIND_THE_PARSER: &[&str] = &["crates/server/src/", "crates/keyspace/src/"];
/// Names that are words of options and sections too: HELLO's AUTH, MIGRATE's KEYS, INFO memory.
const ALSO_OPTIONS: &[&str] = &["auth", "keys", "memory"];
/// Patterns which compare a word with a literal.
const COMPARES_WORDS: &[&str] =
    &["== b\"", "!= b\"", "== \"", "!= \"", "eq_ignore_ascii_case(", "is("];

/// Counts comparisons of a word with the name of a command, such as `args[0] == b"exec"`.
pub fn count(tree: &Tree, found: &mut Found) {
    let places = found.kind("names of commands compared as text");
    let rows = tree.rust().filter(|(path, _)| path.starts_with(TABLE[0]));
    let names: BTreeSet<String> =
        rows.flat_map(|(_, text)| text.lines().filter_map(name)).collect();
    let is_meant = |path: &str| BEHIND_THE_PARSER.iter().any(|place| path.starts_with(place));
    for (path, text) in tree.rust().filter(|(path, _)| is_meant(path)) {
        for (at, line) in production_lines(path, text) {
            let is_arm = line.contains("=>") && line.trim_start().starts_with(['b', '"', '|']);
            let compares = is_arm
                || line.contains("matches!(")
                || COMPARES_WORDS.iter().any(|word| line.contains(word));
            let named = quoted(line).find(|word| names.contains(&word.to_ascii_lowercase()));
            if let Some(word) = named.filter(|_| compares) {
                places.push(format!("{path}:{at}: '{word}'"));
            }
        }
    }
}

/// The name in a row of the table, `name: "append",`. A subcommand's name alone is any word.
fn name(line: &str) -> Option<String> {
    let full = line.trim_start().strip_prefix("full_name: \"")?.split('"').next()?;
    (!full.contains('|') && !ALSO_OPTIONS.contains(&full)).then(|| full.to_owned())
}

/// The text between quotes.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(files: &[(&str, &str)]) -> usize {
        let mut report = Report::default();
        check(&Tree::of(files), &mut report);
        report.errors.len()
    }

    #[test]
    fn a_name_is_not_compared() {
        let path = "crates/server/src/a.rs";
        for line in [
            "if spec.full_name == \"exec\" {",
            "match spec.full_name {",
            "matches!(id.spec().name, \"set\" | \"setex\")",
            "let id = command::lookup(b\"migrate\");",
        ] {
            assert_eq!(errors(&[(path, line)]), 1, "{line}");
            assert_eq!(errors(&[(path, line), (ALLOWED, "crates/server/src/a.rs # why\n")]), 0);
            assert_eq!(errors(&[("crates/command/src/table/a.rs", line)]), 0, "the table: {line}");
        }
        for line in ["Error::Arity { command: spec.full_name }", "counters.by(spec.name)"] {
            assert_eq!(errors(&[(path, line)]), 0, "{line}");
        }
    }

    #[test]
    fn a_word_is_not_compared_with_a_name() {
        let table = ("crates/command/src/table/a.rs", "    full_name: \"exec\",\n");
        let places = |path: &str, line: &str| {
            let mut found = Found::default();
            count(&Tree::of(&[table, (path, line)]), &mut found);
            found.places().count()
        };
        for line in [
            "if args[0] == b\"EXEC\" {",
            "if name.eq_ignore_ascii_case(b\"exec\") {",
            "    b\"exec\" => true,",
            "matches!(word, \"exec\" | \"other\")",
        ] {
            assert_eq!(places("crates/server/src/a.rs", line), 1, "{line}");
            assert_eq!(places("crates/command/src/a.rs", line), 0, "the parser: {line}");
        }
        for line in ["batch.request(&[b\"EXEC\"]);", "if word == b\"default\" {"] {
            assert_eq!(places("crates/server/src/a.rs", line), 0, "{line}");
        }
    }

    #[test]
    fn the_list_only_shrinks() {
        assert_eq!(errors(&[(ALLOWED, "crates/server/src/a.rs # nothing there needs it\n")]), 1);
    }
}
