//! Manifests: every dependency comes from the workspace and is used, every external one has a
//! documented reason, and every crate inherits the workspace's lints.

use std::collections::BTreeSet;

use super::Report;
use super::tree::Tree;

const REASONS: &str = "docs/dependencies.md";

/// One line of a dependency section.
pub struct Dependency {
    /// The name by which sources call it.
    pub name: String,
    /// The text after the name.
    pub value: String,
    /// Only used when tests are built.
    pub dev: bool,
}

/// All dependencies that a manifest declares, of every kind and target.
pub fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut section = "";
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']);
        } else if section.ends_with("dependencies")
            && !line.starts_with('#')
            && let Some((left, value)) = line.split_once('=')
        {
            let (name, rest) = left.trim().split_once('.').unwrap_or((left.trim(), ""));
            let value = format!("{rest} {}", value.trim());
            let dev = section.ends_with("dev-dependencies");
            found.push(Dependency { name: name.trim_matches('"').to_owned(), value, dev });
        }
    }
    found
}

/// Checks all manifests of the workspace.
pub fn check(tree: &Tree, report: &mut Report) {
    for (path, text) in tree.iter().filter(|(path, _)| path.ends_with("Cargo.toml")) {
        if path == "Cargo.toml" {
            reasons(tree, text, report);
            continue;
        }
        if !text.contains("[lints]\nworkspace = true") {
            report.error(format!("{path}: takes no lints from the workspace"));
        }
        let folder = path.trim_end_matches("Cargo.toml");
        for one in dependencies(text) {
            if !one.value.contains("workspace = true") && !one.value.starts_with("workspace") {
                report.error(format!("{path}: '{}' must come from the workspace", one.name));
            }
            if !is_named(tree, folder, &one.name) {
                let kind = if one.dev { "dev-dependency" } else { "dependency" };
                report.error(format!("{path}: {kind} '{}' is not used", one.name));
            }
        }
    }
}

/// Whether any source of that crate names it.
fn is_named(tree: &Tree, folder: &str, name: &str) -> bool {
    let name = name.replace('-', "_");
    tree.rust().filter(|(path, _)| path.starts_with(folder)).any(|(_, text)| {
        text.match_indices(&name).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = &text[at + name.len()..];
            !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
                && (after.starts_with("::") || after.starts_with(';') || after.starts_with(" as "))
        })
    })
}

/// Each external dependency has one line "- `name`: why" and each line has its dependency.
fn reasons(tree: &Tree, manifest: &str, report: &mut Report) {
    let external: BTreeSet<String> = dependencies(manifest)
        .into_iter()
        .filter(|one| !one.value.contains("path"))
        .map(|one| one.name)
        .collect();
    let document = tree.file(REASONS).unwrap_or_default();
    let explained: BTreeSet<String> = document
        .lines()
        .filter_map(|line| line.strip_prefix("- `")?.split_once("`: "))
        .filter(|(_, why)| !why.trim().is_empty())
        .map(|(name, _)| name.to_owned())
        .collect();
    for name in external.difference(&explained) {
        report.error(format!("{REASONS}: no line \"- `{name}`: why\" for a dependency"));
    }
    for name in explained.difference(&external) {
        report.error(format!("{REASONS}: '{name}' is no dependency"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[dependencies]\nlibc.workspace = true\n[lints]\nworkspace = true\n";

    fn errors(files: &[(&str, &str)]) -> Vec<String> {
        let mut report = Report::default();
        check(&Tree::of(files), &mut report);
        report.errors
    }

    #[test]
    fn a_used_workspace_dependency_passes() {
        let files = [("crates/a/Cargo.toml", GOOD), ("crates/a/src/lib.rs", "use libc::c_int;")];
        assert!(errors(&files).is_empty());
    }

    #[test]
    fn an_unused_dependency_is_refused() {
        let files = [("crates/a/Cargo.toml", GOOD), ("crates/a/src/lib.rs", "use mylibc::x;")];
        assert_eq!(errors(&files), ["crates/a/Cargo.toml: dependency 'libc' is not used"]);
    }

    #[test]
    fn a_version_of_its_own_is_refused() {
        let text = GOOD.replace("libc.workspace = true", "libc = \"0.2\"");
        let files = [("crates/a/Cargo.toml", text.as_str()), ("crates/a/src/lib.rs", "libc::x")];
        assert_eq!(errors(&files), ["crates/a/Cargo.toml: 'libc' must come from the workspace"]);
    }

    #[test]
    fn missing_lints_are_refused() {
        assert_eq!(errors(&[("crates/a/Cargo.toml", "[package]\n")]).len(), 1);
    }

    #[test]
    fn reasons_and_dependencies_match() {
        let root = "[workspace.dependencies]\nbase = { path = \"x\" }\nlibc = \"0.2\"\n";
        let reason_errors = |text| errors(&[("Cargo.toml", root), (REASONS, text)]);
        assert!(reason_errors("- `libc`: system calls\n").is_empty());
        assert_eq!(reason_errors("").len(), 1);
        assert_eq!(reason_errors("- `libc`: system calls\n- `rand`: chance\n").len(), 1);
    }
}
