//! The text files of the repository, read once.

use std::collections::BTreeMap;
use std::path::Path;

/// Folders with build output, downloads or private data of tools.
const SKIPPED: [&str; 5] = [".git", ".venv", "node_modules", "target", "__pycache__"];

/// Path from the root, with `/`, to content. Files that are not UTF-8 are left out.
#[derive(Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads all files below `root`, without the skipped folders.
    pub fn read(root: &Path) -> Result<Self, String> {
        let mut tree = Self::default();
        let mut folders = vec![root.to_path_buf()];
        while let Some(folder) = folders.pop() {
            let entries = std::fs::read_dir(&folder)
                .map_err(|e| format!("cannot read {}: {e}", folder.display()))?;
            for entry in entries {
                let entry = entry.map_err(|e| format!("cannot read {}: {e}", folder.display()))?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if SKIPPED.contains(&name.as_str()) || name.starts_with("target-") {
                    continue;
                }
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if let Ok(text) = std::fs::read_to_string(&path) {
                    let inside = path.strip_prefix(root).expect("found below the root");
                    tree.files.insert(inside.to_string_lossy().replace('\\', "/"), text);
                }
            }
        }
        Ok(tree)
    }

    /// A tree made of these files, for tests of the rules.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
        Self { files }
    }

    /// One file.
    pub fn file(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether there is such a file or folder.
    pub fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let folder = format!("{path}/");
        self.files.contains_key(path) || self.files.keys().any(|known| known.starts_with(&folder))
    }

    /// All files, by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// All Rust sources.
    pub fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.iter().filter(|(path, _)| path.ends_with(".rs"))
    }
}

/// The crate which a path belongs to: `crates/NAME/...`.
pub fn crate_name(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split('/').next()
}

/// The lines of production code: without comments, without the test module at the end, and without
/// declarations of test modules. None for a file with only tests. Line numbers start at 1.
pub fn production_lines<'a>(
    path: &str,
    text: &'a str,
) -> impl Iterator<Item = (usize, &'a str)> + 'a {
    let inside = path.split_once("/src/").map(|(_, rest)| rest);
    let only_tests = inside.is_none_or(|rest| {
        rest.split('/').any(|part| part == "tests" || part == "tests.rs")
            || rest.ends_with("_tests.rs")
    });
    let is_for_tests = |line: &str| line.starts_with("#[cfg(") && line.contains("test");
    let mut next = text.lines().skip(1);
    let mut previous = "";
    text.lines()
        .map(move |line| {
            let is_declaration = |line: &str| line.contains("mod ") && line.ends_with(';');
            let is_elsewhere = next.next().is_some_and(is_declaration);
            let begins_tests = is_for_tests(line) && !is_elsewhere;
            let declares_tests = is_for_tests(std::mem::replace(&mut previous, line));
            (line, begins_tests, declares_tests)
        })
        .enumerate()
        .take_while(move |(_, (_, begins_tests, _))| !(only_tests || *begins_tests))
        .filter(|(_, (_, _, declares_tests))| !declares_tests)
        .map(|(at, (line, ..))| (at, line))
        .map(|(at, line)| (at + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(at, line)| (at, line.split_once(" // ").map_or(line, |(code, _)| code)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn production_ends_where_tests_begin() {
        let text = "//! x\nuse a; // b\nfn f() {}\n#[cfg(test)]\nmod tests { use z; }\n";
        let lines: Vec<_> = production_lines("crates/x/src/lib.rs", text).collect();
        assert_eq!(lines, [(2, "use a;"), (3, "fn f() {}")]);
        let text =
            "use a;\n#[cfg(test)]\nmod tests;\nuse b;\n#[cfg(test)]\nmod more {\nuse c;\n}\n";
        let lines: Vec<_> = production_lines("crates/x/src/lib.rs", text).collect();
        assert_eq!(lines, [(1, "use a;"), (2, "#[cfg(test)]"), (4, "use b;")]);
        assert_eq!(production_lines("crates/x/src/list/tests.rs", text).count(), 0);
        assert_eq!(production_lines("crates/x/tests/a.rs", text).count(), 0);
    }
}
