//! `docs/ARCHITECTURE.md` may name only existing files and functions. A path matches a whole path
//! or its end. Of `Type::function` the last name must be a word in some Rust source.

use std::collections::BTreeSet;

use super::Report;
use super::tree::Tree;

const MAP: &str = "docs/ARCHITECTURE.md";

/// Paths which the map announces and which do not exist yet.
const PLANNED: &[&str] = &["crates/command/src/table/pubsub.rs"];

/// Reports each name in the map which does not exist.
pub fn check(tree: &Tree, report: &mut Report) {
    let Some(text) = tree.file(MAP) else { return };
    let words = words(tree);
    for (at, line) in text.lines().enumerate() {
        for quoted in line.split('`').skip(1).step_by(2) {
            if !PLANNED.contains(&quoted) && !is_there(tree, &words, quoted) {
                report.error(format!("{MAP}:{}: there is no `{quoted}`", at + 1));
            }
        }
    }
}

/// All words of all Rust sources.
fn words(tree: &Tree) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    tree.rust().flat_map(|(_, text)| text.split(move |c| !is_part(c))).collect()
}

/// Texts which are neither a path to a source nor a name with `::` are not checked.
fn is_there(tree: &Tree, words: &BTreeSet<&str>, quoted: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || "_:".contains(c);
    let is_path = |c: char| c.is_alphanumeric() || "_/.-{},".contains(c);
    if quoted.ends_with(".rs") && quoted.chars().all(is_path) {
        return alternatives(quoted).iter().all(|path| has_path(tree, path));
    }
    if quoted.contains("::") && quoted.chars().all(is_name) {
        let name = quoted.rsplit("::").next().unwrap_or_default();
        return words.contains(name);
    }
    true
}

/// `a/{b,c}.rs` is two paths.
fn alternatives(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let (inside, after) = rest.split_once('}').unwrap_or((rest, ""));
    inside.split(',').flat_map(|one| alternatives(&format!("{before}{one}{after}"))).collect()
}

/// The folder `src` of a crate may be left out, as in `keyspace/table.rs`.
fn has_path(tree: &Tree, path: &str) -> bool {
    let inside = path.split_once('/').map(|(name, rest)| format!("/{name}/src/{rest}"));
    let end = format!("/{path}");
    tree.has(path)
        || tree.rust().any(|(known, _)| {
            known.ends_with(&end) || inside.as_ref().is_some_and(|inside| known.ends_with(inside))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(map: &str) -> Vec<String> {
        let source = ("crates/keyspace/src/table.rs", "impl Table { fn find() {} }");
        let mut report = Report::default();
        check(&Tree::of(&[(MAP, map), source]), &mut report);
        report.errors
    }

    #[test]
    fn existing_names_pass() {
        let map = "`crates/keyspace/src/table.rs`, `keyspace/table.rs`, `table.rs`, `Table::find`, \
                   `SET k v`, `base`";
        assert_eq!(complaints(map), [""; 0]);
    }

    #[test]
    fn missing_names_are_reported() {
        let errors = complaints("`keyspace/{table,bucket}.rs`\nand `Table::search`");
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(errors[0].contains(":1: there is no `keyspace/{table,bucket}.rs`"), "{errors:?}");
        assert!(errors[1].contains(":2: there is no `Table::search`"), "{errors:?}");
    }
}
