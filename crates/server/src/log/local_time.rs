//! Wall-clock times as people read them, in the time zone of this machine.
#![allow(unsafe_code)] // the time zone's rules are in the C library

use std::fmt;

/// A moment in local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    year: i32,
    month: usize,
    day: i32,
    hour: i32,
    minute: i32,
    second: i32,
    millisecond: u32,
    /// Distance from UTC; positive in the east.
    offset_s: i64,
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl LocalTime {
    /// The moment so many milliseconds after 1970.
    pub fn from_unix_ms(ms: i64) -> Self {
        let seconds: libc::time_t = ms.div_euclid(1000);
        // SAFETY: `tm` is plain numbers and a pointer that may be null; all zeros is one.
        let mut tm: libc::tm = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to values of ours that live through the call, and the
        // function writes nothing but the second. It reads the environment, which nothing here
        // changes once threads run. For a year that does not fit it leaves `tm` as it is.
        unsafe { libc::localtime_r(&raw const seconds, &raw mut tm) };
        LocalTime {
            year: tm.tm_year + 1900,
            month: usize::try_from(tm.tm_mon).unwrap_or(0).min(11),
            day: tm.tm_mday,
            hour: tm.tm_hour,
            minute: tm.tm_min,
            second: tm.tm_sec,
            millisecond: ms.rem_euclid(1000) as u32,
            offset_s: tm.tm_gmtoff,
        }
    }

    /// `2026-11-21T01:45:34.234+01:00`.
    pub fn iso8601(&self) -> String {
        let sign = if self.offset_s < 0 { '-' } else { '+' };
        let minutes = self.offset_s.unsigned_abs() / 60;
        format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}{sign}{:02}:{:02}",
            self.year,
            self.month + 1,
            self.day,
            self.hour,
            self.minute,
            self.second,
            self.millisecond,
            minutes / 60,
            minutes % 60
        )
    }
}

/// `21 Nov 2026 01:45:34.234`, as in the log of Redis.
impl fmt::Display for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let month = MONTHS[self.month];
        write!(f, "{:02} {month} {} ", self.day, self.year)?;
        write!(f, "{:02}:{:02}:{:02}", self.hour, self.minute, self.second)?;
        write!(f, ".{:03}", self.millisecond)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_times_use_the_classic_format() {
        let time = LocalTime {
            year: 2026,
            month: 10,
            day: 1,
            hour: 1,
            minute: 5,
            second: 9,
            millisecond: 34,
            offset_s: -12_600,
        };
        assert_eq!(time.iso8601(), "2026-11-01T01:05:09.034-03:30");
        assert_eq!(time.to_string(), "01 Nov 2026 01:05:09.034");
    }

    #[test]
    fn local_times_agree_with_the_date_command() {
        for seconds in [0i64, 951_782_400, 1_795_225_534, 1_783_000_000] {
            let out = std::process::Command::new("date")
                .args(["-d", &format!("@{seconds}"), "+%d %b %Y %H:%M:%S"])
                .env("LC_ALL", "C")
                .output()
                .expect("date is everywhere");
            let expected = String::from_utf8_lossy(&out.stdout).trim().to_owned() + ".007";
            assert_eq!(LocalTime::from_unix_ms(seconds * 1000 + 7).to_string(), expected);
        }
    }

    #[test]
    fn times_outside_the_calendar_do_not_panic() {
        for ms in [i64::MIN, i64::MAX, -1] {
            assert!(LocalTime::from_unix_ms(ms).to_string().contains(':'));
        }
    }
}
