//! A fact about a command stands in its row of the table. Code that asks for a command's name knows a fact that the table
//! does not.

use super::Report;
use super::list::List;
use super::tree::{Tree, production_lines};

const ALLOWED: &str = "xtask/names.txt";
/// Where commands run. The table itself and the index of names stand apart.
const PLACES: &[&str] = &["crates/server/src/", "crates/command/src/"];
const TABLE: &[&str] = &["crates/command/src/table/", "crates/command/src/registry.rs"];
/// The name of a row.
const NAMES: &[&str] = &["full_name", "spec.name", "spec().name"];
/// What compares it.
const COMPARES: &[&str] = &["==", "!=", "match ", "matches!(", "starts_with", "eq_ignore"];
/// A row that is looked up by a name in the source.
const LOOKS_UP: &[&str] = &["lookup(b\"", "by_full_name(b\""];

/// Refuses comparisons of commands' names, but for those places that the list still allows. A place that needs it no
/// more must leave the list: it only shrinks.
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
                let why = "a command is told by its name; its row in the table can say it";
                report.error(format!("{path}:{at}: {why}"));
            }
        }
    }
    allowed.finish(report);
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
    fn the_list_only_shrinks() {
        assert_eq!(errors(&[(ALLOWED, "crates/server/src/a.rs # nothing there needs it\n")]), 1);
    }
}
