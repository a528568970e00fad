//! Which crate may import which, checked in the manifests and in the sources.

use super::Report;
use super::manifest::dependencies;
use super::tree::{Tree, crate_name};

/// Each crate and the crates that it may import. A crate without a line is an error.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("resp", &["base"]),
    ("driver", &["base"]),
    ("observe", &["base"]),
    ("ingest", &["base"]),
    ("value", &["base"]),
    ("rdb", &["base", "value"]),
    ("journal", &["base"]),
    ("offline", &["base", "value", "rdb", "journal", "client"]),
    ("keyspace", &["base", "value"]),
    ("config", &["base", "ingest"]),
    ("command", &["base", "config", "resp", "observe", "value", "rdb", "journal", "keyspace"]),
    (
        "server",
        &[
            "base", "resp", "driver", "observe", "ingest", "value", "rdb", "journal", "keyspace",
            "config", "command", "offline",
        ],
    ),
    ("client", &["base", "resp"]),
    (
        "sim",
        &[
            "base", "resp", "driver", "ingest", "value", "keyspace", "journal", "config", "server",
            "client",
        ],
    ),
    ("producer", &["ingest"]),
    ("bench", &["base", "resp", "driver", "observe", "ingest", "client"]),
];

/// Checks the manifest and the sources of every crate.
pub fn check(tree: &Tree, report: &mut Report) {
    for (path, text) in tree.iter() {
        let Some(name) = crate_name(path) else { continue };
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(known, _)| *known == name) else {
            if path.ends_with("/Cargo.toml") {
                report.error(format!("{path}: '{name}' has no line in the import rule"));
            }
            continue;
        };
        let forbidden = |other: &str| other != name && is_crate(other) && !allowed.contains(&other);
        if path == format!("crates/{name}/Cargo.toml") {
            let wanted: Vec<String> = dependencies(text).into_iter().map(|d| d.name).collect();
            for other in wanted.iter().filter(|other| forbidden(other)) {
                report.error(format!("{path}: {name} may not import {other}"));
            }
        } else if path.ends_with(".rs") {
            for (at, other) in imported_crates(text).filter(|(_, other)| forbidden(other)) {
                report.error(format!("{path}:{at}: {name} may not import {other}"));
            }
        }
    }
}

fn is_crate(name: &str) -> bool {
    MAY_IMPORT.iter().any(|(known, _)| *known == name)
}

/// The first names of `use` declarations, with their lines.
fn imported_crates(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter_map(|(at, line)| {
        let line = line.trim_start();
        let line = line.strip_prefix("pub ").unwrap_or(line);
        let path = line.strip_prefix("use ")?.trim_start_matches("::");
        let end = path.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(path.len());
        // `use value::x` may also mean a module of this crate; those are written crate:: or self::.
        Some((at + 1, &path[..end]))
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
    fn a_forbidden_dependency_in_a_manifest_is_refused() {
        let text = "[dependencies]\nbase.workspace = true\ncommand.workspace = true\n";
        let found = errors(&[("crates/value/Cargo.toml", text)]);
        assert_eq!(found, ["crates/value/Cargo.toml: value may not import command"]);
    }

    #[test]
    fn a_forbidden_use_in_a_source_is_refused() {
        let found = errors(&[("crates/command/src/a.rs", "use base::X;\npub use driver::Y;\n")]);
        assert_eq!(found, ["crates/command/src/a.rs:2: command may not import driver"]);
    }

    #[test]
    fn a_crate_without_a_rule_is_refused() {
        let found = errors(&[("crates/attic/Cargo.toml", "[package]\n")]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn allowed_imports_pass() {
        let text = "[dependencies]\nbase.workspace = true\nvalue.workspace = true\n";
        assert!(errors(&[("crates/keyspace/Cargo.toml", text)]).is_empty());
    }
}
