//! Limits on length: comment and Markdown lines above 100 columns, and functions above 70 lines.
//! `cargo fmt` checks the width of code.

use super::counts::Found;
use super::tree::Tree;

const COLUMNS_MAX: usize = 100;
const FUNCTION_MAX: usize = 70;
/// Documents that a program writes.
const GENERATED: &str = "xtask/generated.txt";

/// Collects all places.
pub fn count(tree: &Tree, found: &mut Found) {
    let comments = found.kind("comments above 100 columns");
    for (path, text) in tree.rust() {
        let wide = |line: &str| line.trim_start().starts_with("//") && is_wide(line);
        comments.extend(numbered(path, text, wide));
    }
    let functions = found.kind("functions above 70 lines");
    for (path, text) in tree.rust() {
        for (at, name, lines) in long_functions(text) {
            functions.push(format!("{path}:{at}: {name}, {lines} lines"));
        }
    }
    let pages = found.kind("Markdown above 100 columns");
    for (path, text) in tree.iter().filter(|(path, _)| is_prose(tree, path)) {
        let mut is_code = false;
        let wide = |line: &str| {
            is_code ^= line.trim_start().starts_with("```");
            let is_table = line.trim_start().starts_with('|');
            !is_code && !is_table && !line.contains("](") && is_wide(line)
        };
        pages.extend(numbered(path, text, wide));
    }
}

fn is_wide(line: &str) -> bool {
    line.chars().count() > COLUMNS_MAX
}

/// Whether this is a Markdown page written by hand.
fn is_prose(tree: &Tree, path: &str) -> bool {
    let generated = tree.file(GENERATED).unwrap_or_default();
    let is_generated = generated.lines().any(|line| line.split(':').next() == Some(path));
    path.ends_with(".md") && !is_generated
}

/// The lines of a file for which `is_wrong` holds.
fn numbered(
    path: &str,
    text: &str,
    mut is_wrong: impl FnMut(&str) -> bool,
) -> impl Iterator<Item = String> {
    let wrong = text.lines().enumerate().filter(move |(_, line)| is_wrong(line));
    wrong.map(move |(at, line)| format!("{path}:{}: {} columns", at + 1, line.chars().count()))
}

/// Functions which are too long, from the line with `fn` to the closing brace: the first line, the
/// name and the number of lines.
fn long_functions(text: &str) -> Vec<(usize, &str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function(line) else { continue };
        // As rustfmt indents, the first brace with the same indentation ends it.
        let indent = &line[..line.len() - line.trim_start().len()];
        let ends = |line: &&str| {
            line.strip_prefix(indent).is_some_and(|rest| rest == "}" || rest == ";" || rest == ");")
        };
        if line.ends_with('}') || line.ends_with(';') {
            continue;
        }
        let Some(more) = lines[at + 1..].iter().position(ends) else { continue };
        if more + 2 > FUNCTION_MAX {
            found.push((at + 1, name, more + 2));
        }
    }
    found
}

/// The name of the function that begins on this line.
fn function(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    loop {
        if let Some(name) = rest.strip_prefix("fn ") {
            let end = name.find(|c: char| !c.is_alphanumeric() && c != '_')?;
            return Some(&name[..end]);
        }
        let (word, after) = rest.split_once(' ')?;
        let is_before = matches!(word, "pub" | "const" | "unsafe" | "async" | "extern" | "\"C\"");
        if !is_before && !word.starts_with("pub(") {
            return None;
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count_in(path: &str, text: &str) -> Vec<String> {
        let mut found = Found::default();
        count(&Tree::of(&[(path, text)]), &mut found);
        found.places().collect()
    }

    #[test]
    fn wide_comments_are_found() {
        let wide = format!("    // {}", "x".repeat(94));
        assert_eq!(count_in("a.rs", &format!("// short\n{wide}\n")).len(), 1);
        let code = format!("let a = \"{}\";\n", "x".repeat(94));
        assert!(count_in("a.rs", &code).is_empty());
        let wide = format!("// {}", "\u{e9}".repeat(97));
        assert!(count_in("a.rs", &wide).is_empty(), "columns, not bytes");
    }

    #[test]
    fn tables_links_and_code_may_be_wide() {
        let long = "x ".repeat(60);
        assert_eq!(count_in("a.md", &long).len(), 1);
        for free in
            [format!("| {long} |"), format!("[{long}](a)"), format!("```text\n{long}\n```\n")]
        {
            assert!(count_in("a.md", &free).is_empty(), "{free}");
        }
        assert_eq!(count_in("a.md", &format!("```\n```\n{long}")).len(), 1);
        let mut found = Found::default();
        count(&Tree::of(&[("a.md", &long), (GENERATED, "a.md: package test\n")]), &mut found);
        assert_eq!(found.places().count(), 0, "a generated one");
    }

    #[test]
    fn long_functions_are_found() {
        let body = |lines: usize| "        x();\n".repeat(lines);
        for head in ["pub(super) const unsafe fn f()", "fn f<T>(", "async fn f()"] {
            let text = |lines| format!("impl A {{\n    {head} {{\n{}    }}\n}}\n", body(lines));
            assert!(count_in("a.rs", &text(68)).is_empty(), "{head}");
            let found = count_in("a.rs", &text(69));
            assert_eq!(found, ["functions above 70 lines: a.rs:2: f, 71 lines"], "{head}");
        }
        let without = format!("trait A {{\n    fn f();\n}}\n{}", body(80));
        assert!(count_in("a.rs", &without).is_empty());
    }
}
