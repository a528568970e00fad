//! Text from outside (names of targets, error replies, command lines) on its way into the page.

/// Text as it may stand between tags and in quoted attributes: marks become entities, control
/// characters, which no document may hold, a replacement sign.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(printable(other)),
        }
    }
    safe
}

/// The same without entities, for a writer that makes them itself.
pub fn plain(text: &str) -> String {
    text.chars().map(printable).collect()
}

fn printable(c: char) -> char {
    let allowed =
        c == '\n' || c == '\t' || !(c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'));
    if allowed { c } else { '\u{fffd}' }
}

/// Text in a `data:` link: all but the unreserved characters of RFC 3986 (2.3) as `%XX`.
pub fn percent(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                safe.push(byte as char);
            }
            other => {
                const HEX: &[u8; 16] = b"0123456789ABCDEF";
                safe.push('%');
                safe.push(HEX[usize::from(other >> 4)] as char);
                safe.push(HEX[usize::from(other & 15)] as char);
            }
        }
    }
    safe
}

/// A title as the name of a file or an anchor: `latency-at-50-connections`.
pub fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-");
    if slug.is_empty() { "part".to_owned() } else { slug }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_and_control_characters_are_replaced() {
        assert_eq!(
            escape("<b a='x'>&\"\u{1b}[0m\n"),
            "&lt;b a=&#39;x&#39;&gt;&amp;&quot;\u{fffd}[0m\n"
        );
        assert_eq!(plain("a\0<b>"), "a\u{fffd}<b>");
    }

    #[test]
    fn links_contain_only_unreserved_characters() {
        assert_eq!(percent("a b,\"µ\n"), "a%20b%2C%22%C2%B5%0A");
    }

    #[test]
    fn titles_are_converted_to_anchor_names() {
        assert_eq!(slug("Latency (p99), 50 connections!"), "latency-p99-50-connections");
        assert_eq!(slug("µ"), "part");
    }
}
