//! Generated documents. Each has a test which compares it with its source and fails if it is out of
//! date. With `UPDATE_DOCS` set the test writes the document; `docs` runs the tests so.
//!
//! `xtask/generated.txt` holds one line each: `PATH: PACKAGE TEST`.

use std::path::Path;

use crate::run;

const LIST: &str = "xtask/generated.txt";

/// Writes, or with `check` only compares, every generated document.
pub fn run(root: &Path, check: bool) -> Result<(), String> {
    let list =
        std::fs::read_to_string(root.join(LIST)).map_err(|e| format!("cannot read {LIST}: {e}"))?;
    for (path, package, test) in entries(&list)? {
        if !root.join(path).exists() && check {
            return Err(format!("{path} is not there: run: cargo xtask docs"));
        }
        let mut command = run::cargo(root, &["test", "--quiet", "-p", package, "--test", test]);
        if !check {
            command.env("UPDATE_DOCS", "1");
        }
        run::check(&mut command).map_err(|e| format!("{path}: {e}"))?;
    }
    Ok(())
}

/// Path, package and test of each line.
fn entries(list: &str) -> Result<Vec<(&str, &str, &str)>, String> {
    let lines = list.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [path, package, test] if path.ends_with(':') => {
                    Ok((path.trim_end_matches(':'), package, test))
                }
                _ => Err(format!("{LIST}: '{line}' is not 'PATH: PACKAGE TEST'")),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        let text = "# comment\n\ndocs/a.md: package test\n";
        assert_eq!(entries(text), Ok(vec![("docs/a.md", "package", "test")]));
        assert!(entries("docs/a.md package test\n").is_err());
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
