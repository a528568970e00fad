//! Documents: decisions are numbered without gaps, and links inside the repository have a target.

use super::Report;
use super::tree::Tree;

const DESIGN: &str = "docs/design/";

/// Checks all Markdown files.
pub fn check(tree: &Tree, report: &mut Report) {
    numbered(tree, report);
    for (path, text) in tree.iter().filter(|(path, _)| path.ends_with(".md")) {
        for target in links(text) {
            let file = target.split('#').next().unwrap_or_default();
            if !file.is_empty() && !tree.has(&beside(path, file)) {
                report.error(format!("{path}: the link to '{target}' leads nowhere"));
            }
        }
    }
}

/// `docs/design/0001-name.md` and so on, each number once, none left out.
fn numbered(tree: &Tree, report: &mut Report) {
    let mut expected = 1;
    for (path, _) in tree.iter().filter(|(path, _)| path.starts_with(DESIGN)) {
        let name = &path[DESIGN.len()..];
        let number = name.split_once('-').filter(|(digits, _)| digits.len() == 4);
        match number.and_then(|(digits, _)| digits.parse::<u32>().ok()) {
            Some(n) if n == expected && name.ends_with(".md") => expected += 1,
            Some(n) => report.error(format!("{path}: number {n} where {expected:04} is next")),
            None => report.error(format!("{path}: a decision is named NNNN-name.md")),
        }
    }
}

/// Targets of `[text](target)` that are files of this repository.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| {
        let target = &rest[..rest.find(')')?];
        let local = !target.contains("://") && !target.starts_with("mailto:");
        (local && !target.contains(char::is_whitespace)).then_some(target)
    })
}

/// The path which `link` refers to in the document `path`.
fn beside(path: &str, link: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts.join("/")
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
    fn decisions_are_numbered() {
        let (first, second) = ("docs/design/0001-a.md", "docs/design/0002-b.md");
        assert!(errors(&[(first, ""), (second, "")]).is_empty());
        assert_eq!(errors(&[(second, "")]).len(), 1);
        assert_eq!(errors(&[("docs/design/idea.md", "")]).len(), 1);
    }

    #[test]
    fn links_to_missing_files_are_refused() {
        let page = |link: &str| format!("see [it]({link}) and [that](https://example.org/x)");
        let found = |link| errors(&[("docs/a.md", page(link).as_str()), ("README.md", "")]);
        assert!(found("../README.md#part").is_empty());
        assert!(found("a.md").is_empty());
        assert_eq!(found("b.md").len(), 1);
    }
}
