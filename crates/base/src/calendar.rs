//! The calendar, in UTC: days since 1970 as years, months and days.

/// Seconds of a day.
pub const DAY_S: i64 = 86_400;

/// A day of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    /// The year, such as 2026.
    pub year: i64,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

impl Date {
    /// The day which begins so many days after the first of January 1970. O(1).
    pub fn of_day(days: i64) -> Self {
        // Years begin in March here, so that leap days come last; 146,097 days are 400 years.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        Self { year, month: month as u8, day: day as u8 }
    }

    /// So many days after the first of January 1970 this day begins. `None` if there is no such
    /// day. O(1).
    pub fn days(self) -> Option<i64> {
        let Self { year, month, day } = self;
        if !(0..=9999).contains(&year) {
            return None;
        }
        // As in `of_day`, years begin in March.
        let from_march = (i64::from(month) + 9) % 12;
        let year = year - i64::from(month <= 2);
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let day_of_year = (153 * from_march + 2) / 5 + i64::from(day) - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = era * 146_097 + day_of_era - 719_468;
        // (A day which the month does not have is one of the next month.)
        (Self::of_day(days) == self).then_some(days)
    }
}

/// The day of the week, 0 for Sunday, of a day that begins so many days after 1970 began.
pub fn weekday(days: i64) -> u8 {
    (days + 4).rem_euclid(7) as u8 // the first one was a Thursday
}

/// A time of day, in hours, minutes and seconds, with its day; `unix_s` is in seconds since 1970.
pub fn split(unix_s: i64) -> (Date, [u8; 3]) {
    let (days, second) = (unix_s.div_euclid(DAY_S), unix_s.rem_euclid(DAY_S));
    let time = [second / 3600, second % 3600 / 60, second % 60].map(|part| part as u8);
    (Date::of_day(days), time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_which_no_month_has_is_none() {
        for (year, month, day) in
            [(2026, 2, 29), (2026, 0, 1), (2026, 13, 1), (2026, 4, 31), (2026, 1, 0), (-1, 1, 1)]
        {
            assert_eq!(Date { year, month, day }.days(), None, "{year}-{month}-{day}");
        }
        assert!(Date { year: 2024, month: 2, day: 29 }.days().is_some());
    }

    /// Each day follows the one before by the rules of the calendar.
    #[test]
    fn days_follow_each_other() {
        let mut expected = Date { year: 1970, month: 1, day: 1 };
        for day in 0..400 * 366 {
            assert_eq!(Date::of_day(day), expected, "day {day}");
            assert_eq!(expected.days(), Some(day), "day {day}");
            let year = expected.year;
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let days = match expected.month {
                2 => 28 + u8::from(is_leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            expected.day += 1;
            if expected.day > days {
                (expected.month, expected.day) = (expected.month + 1, 1);
            }
            if expected.month > 12 {
                (expected.year, expected.month) = (year + 1, 1);
            }
        }
    }

    #[test]
    fn known_times() {
        let at = |unix_s| {
            let (Date { year, month, day }, [hour, minute, second]) = split(unix_s);
            format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
        };
        assert_eq!(at(-1), "1969-12-31 23:59:59");
        assert_eq!(at(951_782_400 + 3661), "2000-02-29 01:01:01");
        assert_eq!(at(1_795_472_160), "2026-11-23 22:16:00");
        assert_eq!(weekday(20_780), 1, "2026-11-23 is a Monday");
        assert_eq!((weekday(0), weekday(-1), weekday(3)), (4, 3, 0));
    }
}
