//! Generated documents. Each has a test which compares it with its source and fails if it is out of
//! date. With `UPDATE_DOCS` set the test writes the document; `docs` runs the tests so.
//!
//! `xtask/generated.txt` holds one line each: `PATH: PACKAGE PROGRAM TEST`. The program is one of
//! the package's test programs, and TEST a part of the test's name.

use std::path::Path;

use crate::run;

const LIST: &str = "xtask/generated.txt";

/// Writes, or with `check` only compares, every generated document.
pub fn run(root: &Path, check: bool) -> Result<(), String> {
    let list =
        std::fs::read_to_string(root.join(LIST)).map_err(|e| format!("cannot read {LIST}: {e}"))?;
    for (path, package, program, test) in entries(&list)? {
        if !root.join(path).exists() && check {
            return Err(format!("{path} is not there: run: cargo xtask docs"));
        }
        let args = ["test", "--quiet", "-p", package, "--test", program, test];
        let mut command = run::cargo(root, &args);
        if !check {
            command.env("UPDATE_DOCS", "1");
        }
        let text = run::output(&mut command).map_err(|e| format!("{path}: {e}"))?;
        if run::passed(&text).iter().all(|count| *count == 0) {
            return Err(format!("{path}: no test '{test}' in {program} of {package}"));
        }
    }
    Ok(())
}

/// Path, package, program and test.
type Entry<'a> = (&'a str, &'a str, &'a str, &'a str);

/// Every line.
fn entries(list: &str) -> Result<Vec<Entry<'_>>, String> {
    let lines = list.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [path, package, program, test] if path.ends_with(':') => {
                    Ok((path.trim_end_matches(':'), package, program, test))
                }
                _ => Err(format!("{LIST}: '{line}' is not 'PATH: PACKAGE PROGRAM TEST'")),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        let text = "# comment\n\ndocs/a.md: package all test\n";
        assert_eq!(entries(text), Ok(vec![("docs/a.md", "package", "all", "test")]));
        assert!(entries("docs/a.md package all test\n").is_err());
        assert!(entries("docs/a.md:\n").is_err());
    }

    #[test]
    fn the_list_names_documents_that_are_there() {
        let root = crate::root();
        let list = std::fs::read_to_string(root.join(LIST)).expect("it is there");
        for (path, ..) in entries(&list).expect("well formed") {
            assert!(root.join(path).exists(), "{path}");
        }
    }
}
