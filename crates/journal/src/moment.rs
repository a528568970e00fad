//! Numbers and times of records.
//!
//! ```text
//! #NUM:17:1700000000123\r\n         an annotation: the record behind it has the number 17; it and
//!                                   those up to the next one were made not later than this
//! sheafdb-moment 16:1700000000099   a field of a base: it holds the records up to the number 16
//! #BASE:16:1700000000099\r\n        the same, as the first line of a base of commands, which are
//!                                   no records
//! ```
//!
//! A record is a command outside of a transaction, other than SELECT, or a whole transaction.

use base::num;

/// The name of the field in a base.
pub const AUX: &str = "sheafdb-moment";
/// The largest number that is believed: nobody has made so many changes, and there is room above.
const NUMBER_MAX: u64 = u64::MAX / 2;
/// How an annotation begins.
const PREFIX: &[u8] = b"#NUM:";
/// How the annotation of a base of commands begins.
const BASE_PREFIX: &[u8] = b"#BASE:";

/// A number, and a time in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The number of a record.
    pub number: u64,
    /// The time.
    pub unix_ms: i64,
}

impl Moment {
    /// What an annotation without its line end says; `None` if it is another one.
    pub fn of_annotation(text: &[u8]) -> Option<Self> {
        Self::parse(text.strip_prefix(PREFIX)?)
    }

    /// What the annotation of a base says, without its line end; `None` if it is another one.
    pub fn of_base(text: &[u8]) -> Option<Self> {
        Self::parse(text.strip_prefix(BASE_PREFIX)?)
    }

    /// Reads `NUMBER:MS`, the value of the field of a base.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let colon = text.iter().position(|byte| *byte == b':')?;
        let unix_ms = num::parse_i64(&text[colon + 1..])?;
        let number = num::parse_u64(&text[..colon])?;
        (number <= NUMBER_MAX).then_some(Self { number, unix_ms })
    }

    /// The value of the field of a base.
    pub fn text(self) -> String {
        format!("{}:{}", self.number, self.unix_ms)
    }

    /// Appends the annotation of the record which follows.
    pub fn annotate(self, out: &mut Vec<u8>) {
        self.write_line(PREFIX, out);
    }

    /// Appends the annotation of a base, which holds the records up to this one.
    pub fn annotate_base(self, out: &mut Vec<u8>) {
        self.write_line(BASE_PREFIX, out);
    }

    fn write_line(self, prefix: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(prefix);
        num::write_u64(out, self.number);
        out.push(b':');
        num::write_i64(out, self.unix_ms);
        out.extend_from_slice(b"\r\n");
    }
}

/// Counts the records of files, in the order in which they are loaded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbering {
    /// The number of the last record; `None` until something says a number.
    last: Option<u64>,
    highest: u64,
    /// What the base of commands says which is being read: its commands are no records.
    base: Option<u64>,
}

impl Numbering {
    /// Behind a base which says its number, or of one which does not.
    pub fn behind(base: Option<u64>) -> Self {
        Self { last: base, highest: base.unwrap_or(0), base: None }
    }

    /// The next file begins.
    #[must_use]
    pub fn next_file(self) -> Self {
        Self { last: self.base.or(self.last), base: None, ..self }
    }

    /// An annotation was read.
    pub fn annotation(&mut self, text: &[u8]) {
        if let Some(moment) = Moment::of_annotation(text) {
            self.highest = self.highest();
            self.last = Some(moment.number.saturating_sub(1));
        } else if let Some(moment) = Moment::of_base(text) {
            self.highest = self.highest().max(moment.number);
            (self.last, self.base) = (None, Some(moment.number));
        }
    }

    /// A whole record was read.
    #[inline]
    pub fn record(&mut self) {
        self.last = self.last.map(|last| last.saturating_add(1));
    }

    /// The number of the last record; `None` if nothing has said a number.
    pub fn last(&self) -> Option<u64> {
        self.last
    }

    /// The highest number so far; 0 if nothing has said one.
    pub fn highest(&self) -> u64 {
        self.highest.max(self.last.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_all_else_is_no_moment() {
        for (number, unix_ms) in [(0, 0), (17, 1_700_000_000_123), (NUMBER_MAX, i64::MIN)] {
            let moment = Moment { number, unix_ms };
            let mut line = Vec::new();
            moment.annotate(&mut line);
            let text = line.strip_suffix(b"\r\n").expect("a line");
            assert_eq!(Moment::of_annotation(text), Some(moment));
            assert_eq!(Moment::parse(moment.text().as_bytes()), Some(moment));
        }
        let others: [&[u8]; 8] =
            [b"", b"#TS:5", b"#NUM:", b"#NUM:5", b"#NUM:5:", b"#NUM::5", b"#NUM:-1:5", b"#num:5:5"];
        for other in others {
            assert_eq!(Moment::of_annotation(other), None, "{}", other.escape_ascii());
        }
        assert_eq!(Moment::parse(b"18446744073709551616:5"), None);
    }

    #[test]
    fn the_commands_of_a_base_are_no_records() {
        let mut line = Vec::new();
        Moment { number: 30, unix_ms: -5 }.annotate_base(&mut line);
        assert_eq!(line, b"#BASE:30:-5\r\n");
        let mut numbering = Numbering::default();
        numbering.annotation(b"#BASE:30:-5");
        numbering.record();
        numbering.record();
        assert_eq!((numbering.last(), numbering.highest()), (None, 30));
        let mut numbering = numbering.next_file();
        numbering.record();
        assert_eq!((numbering.last(), numbering.highest()), (Some(31), 31));
        assert_eq!(numbering.next_file().last(), Some(31));
        assert_eq!(Numbering::behind(Some(3)).next_file().last(), Some(3));
        for other in ["#BASE:", "#BASE:3", "#NUM:3:3", "#base:3:3"] {
            assert_eq!(Moment::of_base(other.as_bytes()), None);
        }
    }

    #[test]
    fn records_are_counted_behind_what_says_a_number() {
        let mut old = Numbering::behind(None);
        old.record();
        assert_eq!((old.last(), old.highest()), (None, 0), "an old file has no numbers");
        let mut numbering = Numbering::behind(Some(7));
        numbering.record();
        numbering.record();
        assert_eq!((numbering.last(), numbering.highest()), (Some(9), 9));
        numbering.annotation(b"#TS:5");
        numbering.annotation(b"#NUM:15:1");
        assert_eq!((numbering.last(), numbering.highest()), (Some(14), 14));
        numbering.record();
        numbering.annotation(b"#NUM:3:1");
        numbering.record();
        assert_eq!((numbering.last(), numbering.highest()), (Some(3), 15), "what nobody writes");
        let mut end = Numbering::behind(Some(u64::MAX));
        end.record();
        assert_eq!(end.highest(), u64::MAX);
    }
}
