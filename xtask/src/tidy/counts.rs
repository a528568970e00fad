//! Counts of remaining violations: `WHAT: COUNT` in `xtask/counts.txt`. A count may only fall.
//! `cargo xtask tidy --lower` records a lower count; `cargo xtask tidy --list` prints all places.

use std::collections::BTreeMap;

use super::Report;
use super::tree::Tree;

/// Where the counts are kept.
pub const COUNTS: &str = "xtask/counts.txt";

/// The places of each kind, as `path:line: what`.
#[derive(Default, Debug)]
pub struct Found(BTreeMap<&'static str, Vec<String>>);

impl Found {
    /// The places of this kind. Also registers the kind, so that a count of 0 is known.
    pub fn kind(&mut self, kind: &'static str) -> &mut Vec<String> {
        self.0.entry(kind).or_default()
    }

    /// Every place.
    pub fn places(&self) -> impl Iterator<Item = String> {
        self.0
            .iter()
            .flat_map(|(kind, places)| places.iter().map(move |at| format!("{kind}: {at}")))
    }

    /// Compares with the recorded counts.
    pub fn check(&self, tree: &Tree, report: &mut Report) {
        let text = tree.file(COUNTS).unwrap_or_default();
        for (kind, places) in &self.0 {
            let (now, kept) = (places.len(), kept(text, kind));
            if now > kept {
                let last = places.last().map_or("", String::as_str);
                report.error(format!(
                    "{kind}: {now}, more than {kept} ({COUNTS}); all places: \
                     cargo xtask tidy --list; one of them: {last}"
                ));
            } else if now < kept {
                report.error(format!(
                    "{kind}: {now}, fewer than {kept}: keep it with cargo xtask tidy --lower"
                ));
            }
        }
        for line in entries(text).filter(|line| !self.0.keys().any(|kind| names(line, kind))) {
            report.error(format!("{COUNTS}: nothing counts '{line}'"));
        }
    }

    /// The file with every count that has fallen.
    pub fn lowered(&self, text: &str) -> String {
        let line = |line: &str| {
            let kind = self.0.iter().find(|(kind, _)| names(line, kind));
            match kind {
                Some((kind, places)) => {
                    format!("{kind}: {}\n", places.len().min(kept(text, kind)))
                }
                None => format!("{line}\n"),
            }
        };
        text.lines().map(line).collect()
    }
}

fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
}

fn names(line: &str, kind: &str) -> bool {
    line.strip_prefix(kind).is_some_and(|rest| rest.starts_with(':'))
}

/// The recorded count; 0 without a record.
fn kept(text: &str, kind: &str) -> usize {
    let line = entries(text).find(|line| names(line, kind));
    let count = line.and_then(|line| line.rsplit_once(':')?.1.trim().parse().ok());
    count.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(count: usize) -> Found {
        let mut found = Found::default();
        found.kind("long lines").extend((0..count).map(|n| format!("a.rs:{n}")));
        found
    }

    fn errors(count: usize, kept: &str) -> Vec<String> {
        let mut report = Report::default();
        found(count).check(&Tree::of(&[(COUNTS, kept)]), &mut report);
        report.errors
    }

    #[test]
    fn a_count_may_only_fall() {
        assert!(errors(3, "# why\nlong lines: 3\n").is_empty());
        assert!(errors(4, "long lines: 3\n")[0].contains("4, more than 3"));
        assert!(errors(2, "long lines: 3\n")[0].contains("--lower"));
        assert!(errors(0, "").is_empty());
        assert_eq!(errors(1, "").len(), 1);
    }

    #[test]
    fn a_recorded_count_of_an_unknown_kind_is_refused() {
        assert_eq!(errors(0, "short lines: 3\n").len(), 1);
    }

    #[test]
    fn lowering_never_raises() {
        assert_eq!(found(2).lowered("# why\nlong lines: 3\n"), "# why\nlong lines: 2\n");
        assert_eq!(found(4).lowered("long lines: 3\n"), "long lines: 3\n");
    }
}
