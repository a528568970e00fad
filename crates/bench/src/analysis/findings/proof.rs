//! What a rule found.

/// What a rule found: the figures that show it and what could make it wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proof {
    /// One sentence per figure.
    pub evidence: Vec<String>,
    /// What could make it wrong.
    pub caveats: Vec<String>,
}

impl Proof {
    /// A figure that shows it.
    pub fn of(sentence: String) -> Self {
        Self { evidence: vec![sentence], caveats: Vec::new() }
    }

    /// A further one, if there is one.
    #[must_use]
    pub fn and(mut self, sentence: impl Into<Option<String>>) -> Self {
        self.evidence.extend(sentence.into());
        self
    }

    /// What could make it wrong, if anything could.
    #[must_use]
    pub fn caveat(mut self, sentence: impl Into<Option<String>>) -> Self {
        self.caveats.extend(sentence.into());
        self
    }
}
