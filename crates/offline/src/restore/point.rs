//! A point in time: a moment, or the number of a record.

use base::calendar::{DAY_S, Date, split};
use base::num::{parse_i64, parse_u64};

/// How far data is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// All records up to this time, in milliseconds since 1970.
    Time(i64),
    /// All records up to this number.
    Number(u64),
}

const FORMS: &str = "a point is a time such as 2026-11-26T18:00:00Z, 2026-11-26T19:00:00.5+01:00 \
                     or @1795716000.250, or the number of a record such as 1234";

impl Point {
    /// Reads a point as a user gives it.
    ///
    /// # Errors
    /// A text for the user.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let parsed = match text.strip_prefix(b"@") {
            Some(unix) => unix_ms(unix).map(Self::Time),
            None if text.iter().all(u8::is_ascii_digit) => parse_u64(text).map(Self::Number),
            None => rfc3339_ms(text).map(Self::Time),
        };
        parsed.ok_or_else(|| format!("'{}': {FORMS}", text.escape_ascii()))
    }

    /// Whether records of this time count, in milliseconds since 1970.
    pub fn takes_ms(self, ms: i64) -> bool {
        match self {
            Self::Time(limit) => ms <= limit,
            Self::Number(_) => true,
        }
    }

    /// Whether records of this second count. All of the second in which the point lies do.
    pub fn takes_second(self, unix_s: i64) -> bool {
        match self {
            Self::Time(limit) => unix_s <= limit.div_euclid(1000),
            Self::Number(_) => true,
        }
    }
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Time(ms) => f.write_str(&time_text(ms)),
            Self::Number(number) => write!(f, "number {number}"),
        }
    }
}

/// `2026-11-26T18:00:00.123Z`.
pub fn time_text(ms: i64) -> String {
    let (Date { year, month, day }, [hour, minute, second]) = split(ms.div_euclid(1000));
    let millis = ms.rem_euclid(1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Seconds since 1970 with a fraction.
fn unix_ms(text: &[u8]) -> Option<i64> {
    let dot = text.iter().position(|&byte| byte == b'.');
    let (seconds, fraction) = text.split_at(dot.unwrap_or(text.len()));
    let is_number = seconds.iter().all(u8::is_ascii_digit);
    let seconds = parse_i64(seconds).filter(|_| is_number)?;
    seconds.checked_mul(1000)?.checked_add(fraction_ms(fraction)?)
}

/// A fraction of a second with its dot, in whole milliseconds; none is 0.
fn fraction_ms(text: &[u8]) -> Option<i64> {
    let Some((&dot, digits)) = text.split_first() else { return Some(0) };
    if dot != b'.' || digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let shown = digits.iter().chain(b"00").take(3);
    Some(shown.fold(0, |ms, digit| ms * 10 + i64::from(digit - b'0')))
}

/// `YYYY-MM-DDTHH:MM:SS[.fraction](Z|+HH:MM|-HH:MM)`.
fn rfc3339_ms(text: &[u8]) -> Option<i64> {
    let (moment, rest) = text.split_at_checked(19)?;
    let marks = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    let is_split = marks.iter().all(|&(at, mark)| moment[at] == mark);
    if !is_split || !matches!(moment[10], b'T' | b't' | b' ') {
        return None;
    }
    let part = |from: usize, to: usize| digits(&moment[from..to]);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (month, day) = (part(5, 7)? as u8, part(8, 10)? as u8);
    let days = Date { year: part(0, 4)?, month, day }.days()?;
    let zone = rest.iter().position(|byte| matches!(byte, b'Z' | b'z' | b'+' | b'-'))?;
    let (fraction, zone) = rest.split_at(zone);
    let unix_s = days * DAY_S + hour * 3600 + minute * 60 + second - zone_s(zone)?;
    Some(unix_s * 1000 + fraction_ms(fraction)?)
}

/// How many seconds a zone is ahead of UTC.
fn zone_s(zone: &[u8]) -> Option<i64> {
    let sign = match zone {
        b"Z" | b"z" => return Some(0),
        [b'+', ..] => 1,
        _ => -1,
    };
    if zone.len() != 6 || zone[3] != b':' {
        return None;
    }
    let (hour, minute) = (digits(&zone[1..3])?, digits(&zone[4..6])?);
    (hour <= 23 && minute <= 59).then_some(sign * (hour * 3600 + minute * 60))
}

/// A few digits and nothing else.
fn digits(text: &[u8]) -> Option<i64> {
    let is_number = text.iter().all(u8::is_ascii_digit);
    is_number.then(|| text.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_read() {
        let time = |text: &str| Point::parse(text.as_bytes());
        // (`date -u -d 2026-11-26T18:00:00Z +%s` says 1795716000.)
        let at = 1_795_716_000_000;
        for (text, ms) in [
            ("2026-11-26T18:00:00Z", at),
            ("2026-11-26t18:00:00z", at),
            ("2026-11-26 18:00:00Z", at),
            ("2026-11-26T19:30:00+01:30", at),
            ("2026-11-26T13:00:00-05:00", at),
            ("2026-11-26T18:00:00.5Z", at + 500),
            ("2026-11-26T18:00:00.1239999Z", at + 123),
            ("2026-11-26T18:00:00.02+00:00", at + 20),
            ("1970-01-01T00:00:00Z", 0),
            ("2024-02-29T00:00:00Z", 1_709_164_800_000),
            ("@1795716000", at),
            ("@1795716000.25", at + 250),
            ("@0", 0),
        ] {
            assert_eq!(time(text), Ok(Point::Time(ms)), "{text}");
        }
        assert_eq!(time("1795716000"), Ok(Point::Number(1_795_716_000)));
        assert_eq!(time("0"), Ok(Point::Number(0)));
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            "@",
            "@-1",
            "@1.",
            "@1.x",
            "@99999999999999999999",
            "-1",
            "1.5",
            "18446744073709551616",
            "yesterday",
            "2026-11-26",
            "2026-11-26T18:00:00",
            "2026-11-26T18:00Z",
            "2026-02-30T18:00:00Z",
            "2026-13-01T18:00:00Z",
            "2026-11-26T24:00:00Z",
            "2026-11-26T18:60:00Z",
            "2026-11-26T18:00:60Z",
            "2026-11-26T18:00:00.Z",
            "2026-11-26T18:00:00Zx",
            "2026-11-26T18:00:00+0100",
            "2026-11-26T18:00:00+24:00",
            "2026-11-26X18:00:00Z",
            "2026-11-26T18:00:0\u{fc}Z",
        ] {
            let refused = Point::parse(text.as_bytes()).expect_err(text);
            assert!(refused.contains("2026-11-26T18:00:00Z"), "{refused}");
        }
    }

    #[test]
    fn random_text_never_panics() {
        let mut state = 1_u64;
        for _ in 0..200_000 {
            let mut text = b"2026-11-26T18:00:00.5+01:00".to_vec();
            for _ in 0..3 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (state >> 33) as usize % text.len();
                text[at] = (state >> 56) as u8;
            }
            text.truncate((state >> 40) as usize % 28);
            let _ = Point::parse(&text);
        }
    }

    #[test]
    fn a_time_is_written_as_it_is_read() {
        for ms in [0, 1_795_716_000_123, 1_709_164_799_999] {
            assert_eq!(Point::parse(time_text(ms).as_bytes()), Ok(Point::Time(ms)));
        }
    }

    #[test]
    fn all_of_its_second_counts() {
        let point = Point::Time(5_400);
        assert!(point.takes_second(5) && !point.takes_second(6));
        assert!(point.takes_ms(5_400) && !point.takes_ms(5_401));
        assert!(Point::Number(0).takes_second(i64::MAX));
    }
}
