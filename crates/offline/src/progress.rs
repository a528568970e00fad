//! A bar on a terminal.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::report::bytes_text;

/// How often the bar is drawn.
const PERIOD: Duration = Duration::from_millis(100);
/// Characters of the bar.
const WIDTH: u64 = 30;

/// The bar of a file that is being read. It goes to standard error, where it is in nobody's way.
pub struct Progress {
    shown: bool,
    begun: Instant,
    drawn: Option<Instant>,
    length: u64,
    /// What is counted.
    items: &'static str,
}

impl Progress {
    /// Of a file of so many bytes; never drawn if it is not `shown`.
    pub fn new(length: u64, shown: bool) -> Self {
        Self { shown, begun: Instant::now(), drawn: None, length, items: "keys" }
    }

    /// The same for a file of other things than keys.
    pub fn counting(self, items: &'static str) -> Self {
        Self { items, ..self }
    }

    /// Draws the bar if that was some time ago.
    pub fn at(&mut self, offset: u64, count: u64) {
        let now = Instant::now();
        if !self.shown || self.drawn.is_some_and(|drawn| now - drawn < PERIOD) {
            return;
        }
        self.drawn = Some(now);
        let line = line(offset, self.length, &format!("{count} {}", self.items), now - self.begun);
        let _ = write!(std::io::stderr(), "\r{line}\x1b[K");
    }

    /// Removes the bar, so that a line can be printed.
    pub fn clear(&mut self) {
        if self.drawn.take().is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// `[=====>     ]  45 %  1.2 of 2.6 GB, 8234 keys, 310 MB/s`.
fn line(offset: u64, length: u64, items: &str, passed: Duration) -> String {
    let length = length.max(1);
    let full = (u128::from(offset) * u128::from(WIDTH) / u128::from(length)) as usize;
    let percent = u128::from(offset) * 100 / u128::from(length);
    let bar = format!("{}>", "=".repeat(full));
    let rate = offset as f64 / passed.as_secs_f64().max(0.001);
    format!(
        "[{bar:width$}] {percent:>3} %  {} of {}, {items}, {}/s",
        bytes_text(offset as f64),
        bytes_text(length as f64),
        bytes_text(rate),
        width = WIDTH as usize + 1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_as_full_as_the_file_is_read() {
        let second = Duration::from_secs(1);
        let text = line(450_000_000, 1_000_000_000, "7 keys", second);
        let expected =
            "[=============>                 ]  45 %  450.0 MB of 1.0 GB, 7 keys, 450.0 MB/s";
        assert_eq!(text, expected);
        assert!(line(10, 10, "", second).starts_with("[==============================>] 100 %"));
        assert!(line(0, 0, "", Duration::ZERO).contains("  0 %"));
    }
}
