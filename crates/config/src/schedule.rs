//! When something recurs: an interval such as `6h`, or the five fields of cron. All times are UTC,
//! so no hour is left out or doubled where clocks are changed.

use base::calendar::{self, DAY_S, Date};
use base::num::parse_u64;

/// Days in which every schedule that is due at all is due: a 29th of February may be eight years
/// away.
const DAYS_MAX: i64 = 8 * 366;
/// The longest interval: with a longer one a date is meant.
const INTERVAL_MAX_S: i64 = 366 * DAY_S;

/// A schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Whenever the seconds since 1970 are a multiple of this: `6h` is due at 0:00, 6:00, 12:00 and
    /// 18:00, also behind a restart.
    Every(i64),
    /// By the calendar.
    Calendar(Calendar),
}

/// The five fields of cron, one bit for each value that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calendar {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Both days are restricted: one of them is enough, as in cron.
    either_day: bool,
}

impl Schedule {
    /// Reads `6h`, `30m`, `45s`, `1d`, or `MINUTE HOUR DAY MONTH WEEKDAY`.
    ///
    /// # Errors
    /// A text for the user.
    pub fn parse(words: &[Vec<u8>]) -> Result<Self, String> {
        let schedule = match words {
            [interval] => Schedule::Every(seconds(interval).ok_or(
                "a schedule is an interval from 1s to 366d, such as 30m, 6h or 1d, \
                 or five fields as in cron",
            )?),
            [minute, hour, day, month, weekday] => {
                Schedule::Calendar(Calendar::parse([minute, hour, day, month, weekday])?)
            }
            _ => return Err("a schedule is one interval, or five fields as in cron".to_owned()),
        };
        schedule.after(0).ok_or("the schedule is never due: there is no such day")?;
        Ok(schedule)
    }

    /// The first time later than `unix_s`, in seconds since 1970. `None` if it is never due, which
    /// [`Schedule::parse`] refuses. O(days until then).
    pub fn after(&self, unix_s: i64) -> Option<i64> {
        match self {
            Schedule::Every(seconds) => Some((unix_s.div_euclid(*seconds) + 1) * seconds),
            Schedule::Calendar(calendar) => calendar.after(unix_s),
        }
    }
}

impl Calendar {
    fn parse([minute, hour, day, month, weekday]: [&Vec<u8>; 5]) -> Result<Self, String> {
        let weekdays = field("weekday", weekday, 0, 7)?;
        Ok(Self {
            minutes: field("minute", minute, 0, 59)?,
            hours: field("hour", hour, 0, 23)?,
            days: field("day", day, 1, 31)?,
            months: field("month", month, 1, 12)?,
            weekdays: weekdays | weekdays >> 7, // Sunday is 0 and 7
            either_day: !day.starts_with(b"*") && !weekday.starts_with(b"*"),
        })
    }

    fn after(&self, unix_s: i64) -> Option<i64> {
        let minute = unix_s.div_euclid(60) + 1;
        let (first, from) = (minute.div_euclid(1440), minute.rem_euclid(1440));
        let due = (first..=first + DAYS_MAX).filter(|day| self.has_day(*day));
        due.into_iter().find_map(|day| {
            let from = if day == first { from } else { 0 };
            let minute = (from..1440)
                .find(|m| has(self.hours, (m / 60) as u8) && has(self.minutes, (m % 60) as u8));
            minute.map(|minute| day * DAY_S + minute * 60)
        })
    }

    fn has_day(&self, day: i64) -> bool {
        let Date { month, day: of_month, .. } = Date::of_day(day);
        let by_month = has(self.days, of_month);
        let by_week = has(self.weekdays, calendar::weekday(day));
        let is_day = if self.either_day { by_month || by_week } else { by_month && by_week };
        is_day && has(self.months, month)
    }
}

fn has(set: u64, value: u8) -> bool {
    set & 1 << value != 0
}

/// `6h` in seconds.
fn seconds(text: &[u8]) -> Option<i64> {
    let (unit, number) = text.split_last()?;
    let unit = match unit.to_ascii_lowercase() {
        b's' => 1,
        b'm' => 60,
        b'h' => 3600,
        b'd' => DAY_S,
        _ => return None,
    };
    let number = parse_u64(number).filter(|n| *n > 0)?;
    let seconds = i64::try_from(number).ok()?.checked_mul(unit)?;
    (seconds <= INTERVAL_MAX_S).then_some(seconds)
}

/// The set of values of one field: `*`, `5`, `1-5`, `*/15`, `0-30/10`, several with commas.
fn field(name: &str, text: &[u8], min: u64, max: u64) -> Result<u64, String> {
    let mut set = 0;
    for part in text.split(|byte| *byte == b',') {
        let (first, last, step) = range(part, min, max).ok_or_else(|| {
            let text = String::from_utf8_lossy(text);
            format!("'{text}' is no {name}: numbers from {min} to {max}, *, ranges 1-5, steps */2")
        })?;
        for value in (first..=last).step_by(step) {
            set |= 1 << value;
        }
    }
    Ok(set)
}

/// First value, last value and step of a part of a field.
fn range(part: &[u8], min: u64, max: u64) -> Option<(u64, u64, usize)> {
    let mut halves = part.splitn(2, |byte| *byte == b'/');
    let (range, step) = (halves.next()?, halves.next());
    let mut ends = range.splitn(2, |byte| *byte == b'-');
    let (first, last) = match (ends.next()?, ends.next()) {
        (b"*", None) => (min, max),
        (first, Some(last)) => (parse_u64(first)?, parse_u64(last)?),
        // With a step, a single number is a beginning.
        (first, None) => {
            let first = parse_u64(first)?;
            (first, if step.is_some() { max } else { first })
        }
    };
    let step = step.map_or(Some(1), parse_u64).filter(|step| (1..=max).contains(step))?;
    (min <= first && first <= last && last <= max).then_some((first, last, step as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Schedule, String> {
        let words: Vec<Vec<u8>> = text.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        Schedule::parse(&words)
    }

    /// The next times, as text.
    fn next(text: &str, from: i64, count: usize) -> Vec<String> {
        let schedule = parse(text).expect("it is right");
        let mut at = from;
        let one = |_| {
            at = schedule.after(at).expect("it is due");
            let (Date { year, month, day }, [hour, minute, second]) = calendar::split(at);
            format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
        };
        (0..count).map(one).collect()
    }

    /// 2026-11-23 22:16:00, a Monday.
    const NOW: i64 = 1_795_472_160;

    #[test]
    fn intervals_are_multiples_since_1970() {
        let at = |text| next(text, NOW, 2);
        assert_eq!(at("6h"), ["2026-11-24 00:00:00", "2026-11-24 06:00:00"]);
        assert_eq!(at("30M"), ["2026-11-23 22:30:00", "2026-11-23 23:00:00"]);
        assert_eq!(at("1s"), ["2026-11-23 22:16:01", "2026-11-23 22:16:02"]);
        assert_eq!(at("1d"), ["2026-11-24 00:00:00", "2026-11-25 00:00:00"]);
    }

    #[test]
    fn fields_are_those_of_cron() {
        let at = |text| next(text, NOW, 3);
        let daily = ["2026-11-24 03:00:00", "2026-11-25 03:00:00", "2026-11-26 03:00:00"];
        assert_eq!(at("0 3 * * *"), daily);
        let minutes = ["2026-11-23 22:20:00", "2026-11-23 22:40:00", "2026-11-23 23:00:00"];
        assert_eq!(at("*/20 * * * *"), minutes);
        // The minute which has begun is over.
        assert_eq!(at("16 22 * * *")[0], "2026-11-24 22:16:00");
        let lists = ["2026-11-24 01:05:00", "2026-11-24 01:10:00", "2026-11-24 04:05:00"];
        assert_eq!(at("5,10 1-5/3 * * *"), lists);
        assert_eq!(
            at("50/5 * * * *"),
            [50, 55, 50]
                .iter()
                .enumerate()
                .map(|(i, minute)| { format!("2026-11-23 {}:{minute}:00", 22 + i / 2) })
                .collect::<Vec<_>>()
        );
        // Sunday is 0 and 7.
        assert_eq!(at("0 0 * * 0"), at("0 0 * * 7"));
        assert_eq!(at("0 0 * * 0")[0], "2026-11-29 00:00:00");
        let new_years = ["2027-01-01 00:00:00", "2028-01-01 00:00:00", "2029-01-01 00:00:00"];
        assert_eq!(at("0 0 1 1 *"), new_years);
        assert_eq!(at("0 0 29 2 *")[..2], ["2028-02-29 00:00:00", "2032-02-29 00:00:00"]);
        // 2100 is no leap year.
        assert_eq!(next("0 0 29 2 *", 3_981_312_000, 1), ["2104-02-29 00:00:00"]);
    }

    /// If the day of the month and that of the week are both restricted, one is enough.
    #[test]
    fn either_day_is_enough() {
        let at = |text| next(text, NOW, 3);
        let either = ["2026-11-25 00:00:00", "2026-11-27 00:00:00", "2026-12-04 00:00:00"];
        assert_eq!(at("0 0 25 * 5"), either);
        let both = ["2026-11-25 00:00:00", "2026-12-25 00:00:00", "2027-01-25 00:00:00"];
        assert_eq!(at("0 0 25 * *"), both);
        assert_eq!(at("0 0 25 * */1"), both);
    }

    #[test]
    fn wrong_schedules_are_refused() {
        for text in [
            "",
            "6",
            "h",
            "0h",
            "-1h",
            "6x",
            "367d",
            "99999999999999999999d",
            "daily",
            "0 3 * *",
            "0 3 * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * 32 * *",
            "* * * 13 *",
            "* * * 0 *",
            "* * * * 8",
            "5-1 * * * *",
            "*/0 * * * *",
            "*/99 * * * *",
            "1,,2 * * * *",
            "1- * * * *",
            "a * * * *",
            "*-5 * * * *",
            "0 0 30 2 *",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
