//! What an annotation says about the records behind it.

use base::num::{parse_i64, parse_u64};

/// An annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// `#NUM:number:ms`: the next record has this number. Records up to the next annotation were
    /// made not later than this, in milliseconds since 1970.
    Number(u64, i64),
    /// `#TS:seconds`: the commands behind it were made in this second since 1970.
    Second(i64),
    /// `#BASE:number:ms`: the commands of this base hold the records up to this number, of this
    /// time.
    Base(u64, i64),
    /// Something else.
    Other,
    /// One of those above which cannot be read.
    Wrong,
}

impl Note {
    /// Reads the line of an annotation.
    pub fn parse(line: &[u8]) -> Self {
        if let Some(text) = line.strip_prefix(b"#NUM:") {
            return moment(text).map_or(Self::Wrong, |(number, ms)| Self::Number(number, ms));
        }
        if let Some(text) = line.strip_prefix(b"#BASE:") {
            return moment(text).map_or(Self::Wrong, |(number, ms)| Self::Base(number, ms));
        }
        match line.strip_prefix(b"#TS:") {
            Some(text) => parse_i64(text).map_or(Self::Wrong, Self::Second),
            None => Self::Other,
        }
    }
}

/// `number:ms`, as `#NUM` and the field of a base have it.
pub fn moment(text: &[u8]) -> Option<(u64, i64)> {
    let colon = text.iter().position(|&byte| byte == b':')?;
    let (number, ms) = (parse_u64(&text[..colon])?, parse_i64(&text[colon + 1..])?);
    Some((number, ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_read() {
        for (line, expected) in [
            ("#NUM:7:1000", Note::Number(7, 1000)),
            ("#NUM:18446744073709551615:0", Note::Number(u64::MAX, 0)),
            ("#NUM:7", Note::Wrong),
            ("#NUM:-7:1", Note::Wrong),
            ("#NUM:7:1:2", Note::Wrong),
            ("#NUM::", Note::Wrong),
            ("#BASE:7:1000", Note::Base(7, 1000)),
            ("#BASE:7", Note::Wrong),
            ("#TS:12", Note::Second(12)),
            ("#TS:", Note::Wrong),
            ("#TS:1x", Note::Wrong),
            ("#PRODUCER:1:2", Note::Other),
            ("#", Note::Other),
        ] {
            assert_eq!(Note::parse(line.as_bytes()), expected, "{line}");
        }
    }
}
