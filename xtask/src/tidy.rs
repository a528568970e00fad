//! The project rules which the compiler does not check. Every rule is a function from the files of
//! the tree to a list of errors, so its test can pass it a tree which breaks the rule.

mod counts;
mod cycles;
mod imports;
mod length;
mod list;
mod manifest;
mod map;
mod names;
mod programs;
mod prose;
mod restricted;
mod shape;
mod tree;

use std::path::Path;

use counts::{COUNTS, Found};
use tree::Tree;

/// What a rule found.
#[derive(Default, Debug)]
pub struct Report {
    /// Broken rules: tidy fails.
    pub errors: Vec<String>,
    /// Remarks, which are only printed.
    pub notes: Vec<String>,
}

impl Report {
    fn error(&mut self, text: impl Into<String>) {
        self.errors.push(text.into());
    }
}

/// Checks the tree at `root`. `--list` prints every counted place, `--lower` records the counts
/// which have fallen.
pub fn run(root: &Path, args: &[&str]) -> Result<(), String> {
    let tree = Tree::read(root)?;
    let found = count(&tree);
    if args.contains(&"--list") {
        found.places().for_each(|place| println!("{place}"));
    }
    if args.contains(&"--lower") {
        let text = found.lowered(tree.file(COUNTS).unwrap_or_default());
        return std::fs::write(root.join(COUNTS), text)
            .map_err(|e| format!("cannot write {COUNTS}: {e}"));
    }
    let report = check(&tree);
    for note in &report.notes {
        println!("tidy: note: {note}");
    }
    if report.errors.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = report.errors.iter().map(|e| format!("tidy: {e}")).collect();
    Err(lines.join("\n"))
}

fn check(tree: &Tree) -> Report {
    let mut report = Report::default();
    imports::check(tree, &mut report);
    manifest::check(tree, &mut report);
    map::check(tree, &mut report);
    restricted::check(tree, &mut report);
    names::check(tree, &mut report);
    shape::check(tree, &mut report);
    programs::check(tree, &mut report);
    prose::check(tree, &mut report);
    count(tree).check(tree, &mut report);
    report
}

/// The counts which may only fall.
fn count(tree: &Tree) -> Found {
    let mut found = Found::default();
    length::count(tree, &mut found);
    cycles::count(tree, &mut found);
    names::count(tree, &mut found);
    restricted::count(tree, &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let tree = Tree::read(&crate::root()).expect("the tree is readable");
        let report = check(&tree);
        assert!(report.errors.is_empty(), "{}", report.errors.join("\n"));
    }
}
