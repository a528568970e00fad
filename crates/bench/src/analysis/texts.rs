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

    /// A paragraph with its placeholders filled in. Panics if it is not there, or a value for a
    /// placeholder is not.
    pub fn say(self, name: &str, values: &[(&str, &dyn Display)]) -> String {
        let begin = format!("[{name}]\n");
        let (_, behind) = self.0.split_once(&begin).unwrap_or_else(|| panic!("no text {begin}"));
        let paragraph = behind.split("\n\n").next().unwrap_or_default();
        let words: Vec<&str> = paragraph.split_whitespace().collect();
        let line = words.join(" ");
        let mut pieces = line.split('{');
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (key, after) = piece.split_once('}').expect("a placeholder ends");
            let value = values.iter().find(|(known, _)| *known == key);
            let (_, value) = value.unwrap_or_else(|| panic!("{begin}: no value for {key}"));
            text.extend([value.to_string().as_str(), after]);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Texts;

    #[test]
    fn a_paragraph_is_filled_in_and_ends_at_an_empty_line() {
        let texts = Texts("[a]\n{who} asks\n{n} times.\n\n[b]\nNothing.\n");
        assert_eq!(texts.say("a", &[("n", &3), ("who", &"{port}")]), "{port} asks 3 times.");
        assert_eq!(texts.say("b", &[]), "Nothing.");
        assert_eq!(texts.names().collect::<Vec<_>>(), ["a", "b"]);
    }
}
