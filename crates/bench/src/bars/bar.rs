//! A figure beside what it must be.

use std::fmt::Write as _;

use crate::analysis::figure::count;
use crate::analysis::spread::median;
use crate::result::Measurement;

/// Whether a figure must be at least or at most so much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Not less.
    AtLeast(f64),
    /// Not more.
    AtMost(f64),
    /// No bar: shown for comparison.
    None,
}

/// One figure beside its bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What it is.
    pub what: String,
    /// The figure.
    pub value: f64,
    /// Decimals that it is shown with.
    pub decimals: usize,
    /// What it must be.
    pub bound: Bound,
    /// CPUs that other programs used meanwhile, at most.
    pub other_cpus: f64,
}

impl Bar {
    /// Is it as it must be?
    pub fn holds(&self) -> bool {
        match self.bound {
            Bound::AtLeast(bound) => self.value >= bound,
            Bound::AtMost(bound) => self.value <= bound,
            Bound::None => true,
        }
    }

    fn shown(&self, value: f64) -> String {
        let decimals = self.decimals;
        if decimals == 0 { count(value) } else { format!("{value:.decimals$}") }
    }
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The figures.
    pub bars: Vec<Bar>,
    /// What they come from.
    pub measurements: Vec<Measurement>,
    /// What must not be: a lost message, a wrong acknowledgement, a sentence each.
    pub failed: Vec<String>,
}

impl Measured {
    /// Adds a figure that comes from these measurements.
    pub fn add(
        &mut self,
        what: &str,
        value: f64,
        decimals: usize,
        bound: Bound,
        seen: &[Measurement],
    ) {
        let other_cpus = seen.iter().map(|one| one.other_cpus).fold(0.0, f64::max);
        let what = what.to_owned();
        self.bars.push(Bar { what, value, decimals, bound, other_cpus });
    }
}

/// Messages per second.
pub fn rate(seen: &[Measurement]) -> f64 {
    median(&seen.iter().map(|one| one.throughput).collect::<Vec<_>>())
}

/// CPU of the server per message, microseconds.
pub fn server_us(seen: &[Measurement]) -> Result<f64, String> {
    let us = |one: &Measurement| {
        let server = one.server.ok_or_else(|| format!("{}: its CPU cannot be seen", one.target))?;
        Ok(server.cpu_us_per_request)
    };
    Ok(median(&seen.iter().map(us).collect::<Result<Vec<_>, String>>()?))
}

/// The table in Markdown.
pub fn table(bars: &[Bar]) -> String {
    let mut text =
        String::from("| what | measured | bar | | other CPUs |\n|---|---|---|---|---|\n");
    for bar in bars {
        let bound = match bar.bound {
            Bound::AtLeast(bound) => format!("at least {}", bar.shown(bound)),
            Bound::AtMost(bound) => format!("at most {}", bar.shown(bound)),
            Bound::None => String::new(),
        };
        let verdict = match bar.bound {
            Bound::None => "",
            _ if bar.holds() => "holds",
            _ => "missed",
        };
        let (what, value, others) = (&bar.what, bar.shown(bar.value), bar.other_cpus);
        let _ = writeln!(text, "| {what} | {value} | {bound} | {verdict} | {others:.2} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_meets_or_misses_its_bar() {
        let bar = |value, decimals, bound| Bar {
            what: "x".to_owned(),
            value,
            decimals,
            bound,
            other_cpus: 0.0,
        };
        let bars = [
            bar(30_000_000.0, 0, Bound::AtLeast(30e6)),
            bar(29_999_999.0, 0, Bound::AtLeast(30e6)),
            bar(0.031, 3, Bound::AtMost(0.03)),
            bar(1.0, 1, Bound::None),
        ];
        assert_eq!(bars.each_ref().map(Bar::holds), [true, false, false, true]);
        let text = table(&bars);
        assert!(text.contains("| x | 30,000,000 | at least 30,000,000 | holds | 0.00 |"), "{text}");
        assert!(text.contains("| x | 0.031 | at most 0.030 | missed |"), "{text}");
        assert!(text.contains("| x | 1.0 |  |  |"), "{text}");
    }
}
