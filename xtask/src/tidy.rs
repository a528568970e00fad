//! The house rules that the compiler does not know. Every rule is a function from the files of the
//! tree to a list of complaints, so that its test can hand it a tree that breaks it.

mod doors;
mod imports;
mod list;
mod manifest;
mod names;
mod prose;
mod shape;
mod tree;

use std::path::Path;

use tree::Tree;

/// What a rule found.
#[derive(Default, Debug)]
pub struct Report {
    /// Broken rules: tidy fails.
    pub errors: Vec<String>,
    /// Things to look at: printed, nothing more.
    pub notes: Vec<String>,
}

impl Report {
    fn error(&mut self, text: impl Into<String>) {
        self.errors.push(text.into());
    }
}

/// Checks the tree at `root`.
pub fn run(root: &Path) -> Result<(), String> {
    let report = check(&Tree::read(root)?);
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
    doors::check(tree, &mut report);
    names::check(tree, &mut report);
    shape::check(tree, &mut report);
    prose::check(tree, &mut report);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_tree_is_tidy() {
        let tree = Tree::read(&crate::root()).expect("the tree is readable");
        let report = check(&tree);
        assert!(report.errors.is_empty(), "{}", report.errors.join("\n"));
    }
}
