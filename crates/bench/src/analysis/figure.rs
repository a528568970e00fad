//! Figures as people read them, in evidence and in tables.

/// A count or rate with separators between thousands: `33,100`; below 100 with one decimal.
pub fn count(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    if value.abs() < 100.0 && value.fract() != 0.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::from(if value < 0.0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time of `us` microseconds in the unit that suits it: `12.3 us`, `41.2 ms`, `1.05 s`.
pub fn time(us: f64) -> String {
    match us {
        us if !us.is_finite() => "-".to_owned(),
        us if us.abs() >= 1e6 => format!("{:.2} s", us / 1e6),
        us if us.abs() >= 1e3 => format!("{:.1} ms", us / 1e3),
        us => format!("{us:.1} us"),
    }
}

/// A share of one as per cent, with a decimal below ten.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value.abs() < 9.95 && (value - value.round()).abs() >= 0.05 {
        format!("{value:.1} %")
    } else {
        format!("{value:.0} %")
    }
}

/// A figure in a table, or a dash if it is not known.
pub fn cell(value: impl Into<Option<f64>>, show: impl Fn(f64) -> String) -> String {
    let known = value.into().filter(|value| value.is_finite());
    known.map_or_else(|| "-".to_owned(), show)
}

/// The same with an empty cell.
pub fn cell_or_empty(value: impl Into<Option<f64>>, show: impl Fn(f64) -> String) -> String {
    let known = value.into().filter(|value| value.is_finite());
    known.map_or_else(String::new, show)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        let shown = [0.0, 3.25, 99.0, 1_000.0, 33_100.4, 1_234_567.0, -5_000.0].map(count);
        assert_eq!(shown, ["0", "3.2", "99", "1,000", "33,100", "1,234,567", "-5,000"]);
        assert_eq!(count(f64::NAN), "-");
    }

    #[test]
    fn times_are_shown_in_a_suitable_unit() {
        let shown = [0.5, 12.34, 41_200.0, 1_050_000.0].map(time);
        assert_eq!(shown, ["0.5 us", "12.3 us", "41.2 ms", "1.05 s"]);
    }

    #[test]
    fn small_shares_are_shown_with_a_decimal() {
        let shown = [0.0, 1e-9, 0.004, 0.05, 0.123, 1.0].map(percent);
        assert_eq!(shown, ["0 %", "0 %", "0.4 %", "5 %", "12 %", "100 %"]);
    }
}
