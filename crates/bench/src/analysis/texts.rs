//! The sentences of an experiment or of the findings: an embedded file of paragraphs, each below
//! its `[name]`, with placeholders in braces. An empty line ends a paragraph.

use std::fmt::Display;

/// The paragraphs of a file.
#[derive(Clone, Copy, Debug)]
pub struct Texts(pub &'static str);

impl Texts {
    /// The names of all paragraphs, in order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.0.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'))
    }

    /// A paragraph as it stands there. Panics if it does not.
    pub fn paragraph(self, name: &str) -> &'static str {
        let begin = format!("[{name}]\n");
        let (_, behind) = self.0.split_once(&begin).unwrap_or_else(|| panic!("no text {begin}"));
        behind.split("\n\n").next().unwrap_or_default()
    }

    /// A paragraph as one line, with its placeholders filled in. Panics if it is not there, or a
    /// value for a placeholder is not.
    pub fn sentence(self, name: &str, values: &[(&str, &dyn Display)]) -> String {
        let words: Vec<&str> = self.paragraph(name).split_whitespace().collect();
        let value = |key: &str| {
            let value = values.iter().find(|(known, _)| *known == key);
            value.map(|(_, value)| value.to_string())
        };
        fill(&words.join(" "), value).unwrap_or_else(|| panic!("{name}: a value is missing"))
    }
}

/// A line with its placeholders filled in; `None` if there is no value for one of them.
pub fn fill(line: &str, value: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut pieces = line.split('{');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (key, after) = piece.split_once('}').expect("a placeholder ends");
        text.extend([value(key)?.as_str(), after]);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::Texts;

    #[test]
    fn a_paragraph_is_filled_in_and_ends_at_an_empty_line() {
        let texts = Texts("[a]\n{who} asks\n{n} times.\n\n[b]\nNothing.\n");
        assert_eq!(texts.sentence("a", &[("n", &3), ("who", &"{port}")]), "{port} asks 3 times.");
        assert_eq!(texts.sentence("b", &[]), "Nothing.");
        assert_eq!(texts.names().collect::<Vec<_>>(), ["a", "b"]);
    }
}
