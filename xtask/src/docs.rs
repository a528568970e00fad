//! Generated documents. `xtask/generated.txt` holds one line each: `PATH: PROGRAM ARG...`, where the
//! program prints the document. `docs` writes them, `docs --check` complains about stale ones.

use std::path::Path;
use std::process::Command;

use crate::run;

const LIST: &str = "xtask/generated.txt";

/// Writes, or with `check` only compares, every generated document.
pub fn run(root: &Path, check: bool) -> Result<(), String> {
    let list =
        std::fs::read_to_string(root.join(LIST)).map_err(|e| format!("cannot read {LIST}: {e}"))?;
    let mut stale = Vec::new();
    for (path, words) in entries(&list)? {
        let fresh = run::output(&mut command(root, &words))?;
        let file = root.join(path);
        if std::fs::read(&file).is_ok_and(|old| old == fresh) {
            continue;
        }
        if check {
            stale.push(path);
        } else {
            std::fs::write(&file, fresh).map_err(|e| format!("cannot write {path}: {e}"))?;
            println!("wrote {path}");
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!("not what the program prints now: {}\nrun: cargo xtask docs", stale.join(" ")))
}

fn command(root: &Path, words: &[&str]) -> Command {
    if words[0] == "cargo" {
        return run::cargo(root, &words[1..]);
    }
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(root);
    command
}

/// The paths and command lines of the list.
fn entries(list: &str) -> Result<Vec<(&str, Vec<&str>)>, String> {
    let lines = list.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines
        .map(|line| {
            let (path, rest) = line.split_once(':').ok_or(format!("{LIST}: no ':' in '{line}'"))?;
            let words: Vec<&str> = rest.split_whitespace().collect();
            if words.is_empty() {
                return Err(format!("{LIST}: no program in '{line}'"));
            }
            Ok((path.trim(), words))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        let text = "# comment\n\ndocs/a.md: cargo run -q\n";
        assert_eq!(
            entries(text).expect("a good list"),
            [("docs/a.md", vec!["cargo", "run", "-q"])]
        );
        assert!(entries("docs/a.md\n").is_err());
        assert!(entries("docs/a.md:\n").is_err());
    }

    #[test]
    fn a_stale_document_is_told_and_then_written() {
        let root = std::env::temp_dir().join(format!("xtask-docs-{}", std::process::id()));
        std::fs::create_dir_all(root.join("xtask")).expect("a temporary folder");
        std::fs::write(root.join(LIST), "a.md: echo fresh\n").expect("writable");
        std::fs::write(root.join("a.md"), "old\n").expect("writable");
        assert!(run(&root, true).is_err_and(|e| e.contains("a.md")));
        run(&root, false).expect("written");
        assert_eq!(std::fs::read_to_string(root.join("a.md")).expect("written"), "fresh\n");
        run(&root, true).expect("current now");
        std::fs::remove_dir_all(root).expect("ours");
    }
}
