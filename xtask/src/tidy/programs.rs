//! Test programs: of a crate without `autotests`, each file in its folder `tests` is a program
//! which the manifest names, or a module of one. Any other file would be built by nobody.

use super::Report;
use super::tree::Tree;

/// Reports each file of tests that belongs to no program.
pub fn check(tree: &Tree, report: &mut Report) {
    for (path, manifest) in tree.iter().filter(|(path, _)| path.ends_with("Cargo.toml")) {
        if !manifest.lines().any(|line| line == "autotests = false") {
            continue;
        }
        let folder = path.trim_end_matches("Cargo.toml");
        let tests = format!("{folder}tests/");
        let paths = manifest.lines().filter_map(|line| {
            line.strip_prefix("path = \"tests/").map(|rest| rest.trim_end_matches('"'))
        });
        let programs: Vec<&str> = paths.collect();
        for (file, _) in tree.rust() {
            let Some(name) = file.strip_prefix(&tests) else { continue };
            if name.contains('/') || programs.contains(&name) {
                continue;
            }
            let line = format!("mod {};", name.trim_end_matches(".rs"));
            let has_it = |program: &&str| {
                let text = tree.file(&format!("{tests}{program}")).unwrap_or_default();
                text.lines().any(|l| l.trim() == line)
            };
            if !programs.iter().any(has_it) {
                report.error(format!("{file}: no test program of {path} has '{line}'"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "autotests = false\n[[test]]\npath = \"tests/all.rs\"\n";

    fn errors(manifest: &str, all: &str) -> Vec<String> {
        let mut report = Report::default();
        let files = [
            ("crates/a/Cargo.toml", manifest),
            ("crates/a/tests/all.rs", all),
            ("crates/a/tests/one.rs", "mod inner;"),
            ("crates/a/tests/one/inner.rs", ""),
        ];
        check(&Tree::of(&files), &mut report);
        report.errors
    }

    #[test]
    fn a_module_of_a_program_passes() {
        assert!(errors(MANIFEST, "mod one;\n").is_empty());
        assert!(errors(MANIFEST, "mod suite {\n    mod one;\n}\n").is_empty());
    }

    #[test]
    fn a_program_passes() {
        let manifest = format!("{MANIFEST}[[test]]\npath = \"tests/one.rs\"\n");
        assert!(errors(&manifest, "").is_empty());
    }

    #[test]
    fn a_file_of_no_program_is_refused() {
        let expected =
            "crates/a/tests/one.rs: no test program of crates/a/Cargo.toml has 'mod one;'";
        assert_eq!(errors(MANIFEST, "// mod one;\n"), [expected]);
    }

    #[test]
    fn cargo_finds_what_it_looks_for() {
        assert!(errors("", "").is_empty());
    }
}
