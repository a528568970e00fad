//! What a rule found. Its sentences are in `rules.txt`: a paragraph for each rule, a line for each
//! sentence, longer ones indented; `but:` begins a caveat. A sentence is said if there is a figure
//! for each of its placeholders.

use std::fmt::Display;

use crate::analysis::texts::{Texts, fill};

const RULES: Texts = Texts(include_str!("rules.txt"));

/// The sentences with figures that show it, and those of what could make it wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proof {
    /// One sentence per figure.
    pub evidence: Vec<String>,
    /// What could make it wrong.
    pub caveats: Vec<String>,
}

/// The figures of a rule, by their placeholders.
pub struct Figures {
    rule: &'static str,
    known: Vec<(&'static str, String)>,
}

impl Figures {
    /// None yet.
    pub fn of(rule: &'static str) -> Self {
        Self { rule, known: Vec::new() }
    }

    /// Adds one.
    pub fn with(self, name: &'static str, figure: impl Display) -> Self {
        self.maybe(name, Some(figure))
    }

    /// Adds one that may not be known.
    pub fn maybe(mut self, name: &'static str, figure: Option<impl Display>) -> Self {
        self.known.extend(figure.map(|figure| (name, figure.to_string())));
        self
    }

    /// A sentence with this placeholder is said only if so.
    pub fn when(self, name: &'static str, so: bool) -> Self {
        self.maybe(name, so.then_some(""))
    }

    /// What is said with these figures.
    pub fn proof(self) -> Proof {
        let mut proof = Proof::default();
        let figure = |name: &str| {
            let known = self.known.iter().find(|(known, _)| *known == name);
            known.map(|(_, figure)| figure.clone())
        };
        for line in RULES.paragraph(self.rule).replace("\n    ", " ").lines() {
            match line.strip_prefix("but: ") {
                Some(caveat) => proof.caveats.extend(fill(caveat, figure)),
                None => proof.evidence.extend(fill(line, figure)),
            }
        }
        proof
    }
}
