//! The form of sources: purpose in the first line, length, and which files may use unsafe code.

use super::Report;
use super::list::List;
use super::tree::Tree;

const TABLES: &str = "xtask/tables.txt";
const UNSAFE: &str = "xtask/unsafe.txt";

/// Files above this length are only listed.
const LINES_AIM: usize = 400;
/// Files above this length are errors, unless they are listed as tables.
const LINES_MAX: usize = 800;

/// Checks all Rust sources.
pub fn check(tree: &Tree, report: &mut Report) {
    let mut tables = List::read(tree, TABLES, report);
    let mut unsafe_files = List::read(tree, UNSAFE, report);
    for (path, text) in tree.rust() {
        if !purpose_first(text) {
            report.error(format!("{path}: does not open with its purpose (//! ...)"));
        }
        let lines = text.lines().count();
        if lines > LINES_MAX && !tables.allows(path) {
            report.error(format!("{path}: {lines} lines, more than {LINES_MAX}"));
        } else if lines > LINES_AIM && lines <= LINES_MAX {
            report.notes.push(format!("{path}: {lines} lines, aim at {LINES_AIM}"));
        }
        if allows_unsafe(text) && !unsafe_files.allows(path) {
            report.error(format!("{path}: may not use unsafe code ({UNSAFE})"));
        }
    }
    tables.finish(report);
    unsafe_files.finish(report);
}

/// The first line that is neither blank nor an attribute of the file is its purpose.
fn purpose_first(text: &str) -> bool {
    text.lines()
        .find(|line| !line.trim().is_empty() && !line.starts_with("#!["))
        .is_some_and(|line| line.starts_with("//! "))
}

/// Whether an attribute allows unsafe code, which the workspace denies.
fn allows_unsafe(text: &str) -> bool {
    text.lines().map(str::trim).any(|line| {
        line.starts_with('#')
            && ["allow", "expect", "warn"].iter().any(|level| line.contains(&format!("{level}(")))
            && line.contains("unsafe_code")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(files: &[(&str, &str)]) -> Vec<String> {
        let mut report = Report::default();
        check(&Tree::of(files), &mut report);
        report.errors
    }

    #[test]
    fn purpose_comes_first() {
        assert!(errors(&[("a.rs", "//! Why.\n")]).is_empty());
        assert!(errors(&[("a.rs", "#![allow(dead_code)]\n\n//! Why.\n")]).is_empty());
        assert_eq!(errors(&[("a.rs", "use x;\n//! Why.\n")]).len(), 1);
    }

    #[test]
    fn only_tables_are_long() {
        let text = format!("//! Why.\n{}", "\n".repeat(LINES_MAX - 1));
        assert!(errors(&[("a.rs", &text)]).is_empty());
        let text = format!("{text}\n");
        assert_eq!(errors(&[("a.rs", &text)]).len(), 1);
        assert!(errors(&[("a.rs", &text), (TABLES, "a.rs # data\n")]).is_empty());
        assert_eq!(errors(&[("a.rs", "//! Why.\n"), (TABLES, "a.rs # data\n")]).len(), 1);
    }

    #[test]
    fn unsafe_code_only_in_listed_files() {
        let text = format!("//! Why.\n#![allow({}_code)]\n", "unsafe");
        assert_eq!(errors(&[("a.rs", &text)]).len(), 1);
        assert!(errors(&[("a.rs", &text), (UNSAFE, "a.rs # system calls\n")]).is_empty());
    }
}
