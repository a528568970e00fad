//! Lists of exceptions to the rules: one entry per line, `entry  # why`. An entry without a reason
//! and an unused entry are errors.

use std::collections::BTreeSet;

use super::Report;
use super::tree::Tree;

/// The entries of one list file, and which of them were needed.
pub struct List<'a> {
    path: &'a str,
    entries: BTreeSet<&'a str>,
    used: BTreeSet<&'a str>,
}

impl<'a> List<'a> {
    /// Reads the list at `path`; a missing file is an empty list.
    pub fn read(tree: &'a Tree, path: &'a str, report: &mut Report) -> Self {
        let mut entries = BTreeSet::new();
        for line in tree.file(path).unwrap_or_default().lines() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line.split_once('#') {
                Some((entry, why)) if !why.trim().is_empty() => {
                    entries.insert(entry.trim());
                }
                _ => report.error(format!("{path}: '{line}' says no reason after a '#'")),
            }
        }
        Self { path, entries, used: BTreeSet::new() }
    }

    /// Whether it is listed. Marks the entry as used.
    pub fn allows(&mut self, entry: &str) -> bool {
        match self.entries.get(entry) {
            Some(known) => {
                self.used.insert(known);
                true
            }
            None => false,
        }
    }

    /// Reports unused entries.
    pub fn finish(self, report: &mut Report) {
        for stale in self.entries.difference(&self.used) {
            report.error(format!("{}: nothing needs '{stale}' any more: remove it", self.path));
        }
    }
}
