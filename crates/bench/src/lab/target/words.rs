//! A command line, split into words as a shell does it: blanks separate, `'...'` is taken as it is,
//! and in `"..."` and outside a backslash takes the next character as it is. Nothing is expanded.

/// The words of `text`.
pub fn split(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None | Some('"'), '\\') => {
                let next = rest.next().ok_or("a backslash at the end of a command line")?;
                word.get_or_insert_default().push(next);
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err(format!("a quote in '{text}' is not closed"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn words_are_split_as_in_a_shell() {
        let words = split(r#" a  "b c" '' d"e"f 'g\h' i\ j "k\"l" "#).expect("well formed");
        assert_eq!(words, ["a", "b c", "", "def", r"g\h", "i j", "k\"l"]);
        assert_eq!(split("").expect("nothing is well formed"), [""; 0]);
        assert!(split("'a").is_err() && split("a\"").is_err() && split("a\\").is_err());
    }
}
