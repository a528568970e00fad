//! Axes: where they begin and end, where their ticks are, and the labels of those.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// How values lie on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their ratio.
    Log,
}

/// One axis with its ticks.
#[derive(Clone, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
    scale: Scale,
    ticks: Vec<f64>,
    names: Vec<String>,
    /// Groups one below the other: the first one is at the upper end.
    is_downward: bool,
}

/// A logarithmic axis from its lowest tick shows values at least so far apart.
const LOG_RATIO: f64 = 4.0;
/// Space around data that do not start at 0, as a share of the axis.
const PADDING: f64 = 0.03;

impl Axis {
    /// An axis that shows all `values` with about `count` ticks. With `from_zero` a linear axis
    /// begins at 0, or ends there if all values are negative; a logarithmic one is linear instead
    /// if its values are close together, because it would make their differences look large.
    /// Values that cannot be shown are ignored; without any the axis runs from 0 (or 1) on.
    pub fn over(values: &[f64], scale: Scale, from_zero: bool, count: usize) -> Self {
        let shown = |v: &&f64| v.is_finite() && (scale == Scale::Linear || **v > 0.0);
        let bound = |of: fn(f64, f64) -> f64| values.iter().filter(shown).copied().reduce(of);
        let (low, high) = (bound(f64::min).unwrap_or(1.0), bound(f64::max).unwrap_or(1.0));
        match scale {
            Scale::Log if from_zero && high < LOG_RATIO * low => {
                Self::linear(low, high, true, count)
            }
            Scale::Linear => Self::linear(low, high, from_zero, count),
            Scale::Log => Self::log(low, high, from_zero, count),
        }
    }

    fn linear(low: f64, high: f64, from_zero: bool, count: usize) -> Self {
        let near_zero = low >= 0.0 && low < 0.3 * high;
        let (mut low, mut high) =
            if from_zero || near_zero { (low.min(0.0), high.max(0.0)) } else { (low, high) };
        if high - low <= f64::EPSILON * high.abs().max(1.0) {
            high = low + low.abs().max(1.0);
        }
        let step = nice_step((high - low) / count as f64);
        if from_zero {
            // Whole steps: the highest bar ends below a tick.
            (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        } else if low != 0.0 {
            let space = (high - low) * PADDING;
            (low, high) = (low - space, high + space);
        }
        Self::new((low, high), Scale::Linear, steps(low, high, step))
    }

    /// A whole axis (`to_ticks`) begins and ends at ticks.
    fn log(low: f64, high: f64, to_ticks: bool, count: usize) -> Self {
        let (mut low, mut high) = if low < high { (low, high) } else { (low / 2.0, high * 2.0) };
        let decades = (high / low).log10();
        let digits: &[f64] = if decades * 3.0 <= count as f64 + 1.0 {
            &[1.0, 2.0, 5.0]
        } else if decades * 2.0 <= count as f64 + 1.0 {
            &[1.0, 3.0]
        } else {
            &[1.0]
        };
        let mut every = (decades / count as f64).ceil().max(1.0) as i32;
        let exponents = low.log10().floor() as i32 - 1..=high.log10().ceil() as i32 + 1;
        let within = |e: &i32, every: i32| {
            e.rem_euclid(every) == 0 && (low..=high).contains(&power_of_ten(1.0, *e))
        };
        while every > 1 && exponents.clone().filter(|e| within(e, every)).count() < 3 {
            every -= 1;
        }
        let candidates: Vec<f64> = exponents
            .filter(|e| e.rem_euclid(every) == 0)
            .flat_map(|e| digits.iter().map(move |d| power_of_ten(*d, e)))
            .collect();
        if to_ticks && decades > 0.4 {
            low = candidates.iter().copied().filter(|t| *t <= low).fold(low / 10.0, f64::max);
            high = candidates.iter().copied().filter(|t| *t >= high).fold(high * 10.0, f64::min);
        } else {
            let space = (high / low).powf(PADDING);
            (low, high) = (low / space, high * space);
        }
        let within = |t: &f64| *t >= low && *t <= high;
        let mut ticks: Vec<f64> = candidates.into_iter().filter(within).collect();
        if ticks.len() < 3 {
            ticks = steps(low, high, nice_step((high - low) / count as f64));
        }
        Self::new((low, high), Scale::Log, ticks)
    }

    fn new((low, high): (f64, f64), scale: Scale, ticks: Vec<f64>) -> Self {
        Self { low, high, scale, ticks, names: Vec::new(), is_downward: false }
    }

    /// An axis of groups: group `i` covers `i` to `i + 1`. Every name is shown, in lines of
    /// `chars`, to which its words are shortened.
    pub fn groups(names: &[String], chars: usize) -> Self {
        let ticks = (0..names.len()).map(|at| at as f64 + 0.5).collect();
        let names: Vec<String> = names.iter().map(|name| in_lines(name, chars)).collect();
        let ends = (0.0, names.len().max(1) as f64);
        Self { names, ..Self::new(ends, Scale::Linear, ticks) }
    }

    /// The same axis from top to bottom: the first group is at the upper end.
    pub fn downward(self) -> Self {
        Self { is_downward: true, ..self }
    }

    /// An axis of groups whose names are figures: each n-th is shown, so that each has room for
    /// `chars`.
    pub fn figures(names: &[String], chars: usize) -> Self {
        let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(1) + 1;
        let every = longest.div_ceil(chars.max(1)).max(1);
        let all = Self::groups(names, usize::MAX);
        Self { ticks: all.ticks.iter().copied().step_by(every).collect(), ..all }
    }

    /// The lower end.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// Where `value` lies between the ends, 0 to 1.
    pub fn fraction(&self, value: f64) -> f64 {
        let fraction = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        if self.is_downward { 1.0 - fraction } else { fraction }
    }

    /// Can the axis show it?
    pub fn shows(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }

    /// Where its names stand, if one of them has more than one line.
    pub fn names_in_lines(&self) -> Option<Vec<(f64, String)>> {
        let names = || self.ticks.iter().map(|at| (*at, self.format_ext(at))).collect();
        (self.label_lines() > 1).then(names)
    }

    /// Characters of the longest line of a label.
    pub fn label_chars(&self) -> usize {
        let labels: Vec<String> = self.ticks.iter().map(|tick| self.format_ext(tick)).collect();
        let lines = labels.iter().flat_map(|label| label.lines());
        lines.map(|line| line.chars().count()).max().unwrap_or(1)
    }

    /// Lines of the longest label.
    pub fn label_lines(&self) -> i32 {
        let lines = |tick| self.format_ext(tick).lines().count();
        self.ticks.iter().map(lines).max().unwrap_or(1).max(1) as i32
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let length = f64::from(limit.1 - limit.0);
        limit.0 + (length * self.fraction(*value).clamp(-1.0, 2.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // There are no lighter lines between the ticks.
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        if self.names.is_empty() {
            return tick_label(*value);
        }
        self.names.get(*value as usize).cloned().unwrap_or_default()
    }
}

/// The name in lines of `chars` at most, broken between words. A longer word is shortened.
fn in_lines(name: &str, chars: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in name.split(' ') {
        let word = match word.chars().count() {
            count if count <= chars => word.to_owned(),
            _ => word.chars().take(chars.saturating_sub(1)).chain(['…']).collect(),
        };
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= chars => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines.join("\n")
}

/// The next of 1, 2, 2.5, 5 times a power of ten at or above `rough`.
fn nice_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    let nice = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|n| n * power >= rough * 0.999_999);
    nice.unwrap_or(10.0) * power
}

fn steps(low: f64, high: f64, step: f64) -> Vec<f64> {
    let (from, to) = ((low / step - 1e-6).ceil() as i64, (high / step + 1e-6).floor() as i64);
    (from..=to).map(|at| at as f64 * step).collect()
}

/// `digit` times ten to the `exponent`, exact where a double can be.
fn power_of_ten(digit: f64, exponent: i32) -> f64 {
    if exponent >= 0 { digit * 10_f64.powi(exponent) } else { digit / 10_f64.powi(-exponent) }
}

/// A value as short as it can be read: `0.5`, `250`, `1.5k`, `2M`.
pub fn tick_label(value: f64) -> String {
    let (divisor, unit) = match value.abs() {
        v if v >= 0.999_95e9 => (1e9, "G"),
        v if v >= 0.999_95e6 => (1e6, "M"),
        v if v >= 0.999_95e3 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let scaled = value / divisor;
    // Four significant digits, without the noise of binary fractions.
    let digits = (3 - scaled.abs().max(1e-9).log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{scaled:.digits$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    match text {
        "-0" | "" => "0".to_owned(),
        text => format!("{text}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks.iter().map(|tick| axis.format_ext(tick)).collect()
    }

    #[test]
    fn a_linear_axis_starts_at_zero_and_ends_at_a_tick() {
        let axis = Axis::over(&[12_000.0, 130_000.0], Scale::Linear, true, 6);
        assert_eq!(labels(&axis), ["0", "25k", "50k", "75k", "100k", "125k", "150k"]);
        let flat = Axis::over(&[0.0, 0.0], Scale::Linear, true, 5);
        assert!(flat.fraction(0.0).abs() < 1e-9 && labels(&flat).len() > 2);
    }

    #[test]
    fn a_logarithmic_axis_has_ticks_at_round_numbers() {
        let wide = Axis::over(&[1.0, 10_000.0], Scale::Log, false, 8);
        assert_eq!(labels(&wide), ["1", "3", "10", "30", "100", "300", "1k", "3k", "10k"]);
        let narrow = Axis::over(&[60.0, 110.0], Scale::Log, false, 6);
        assert!(labels(&narrow).len() >= 3, "{:?}", labels(&narrow));
        let close = Axis::over(&[60.0, 110.0], Scale::Log, true, 6);
        assert_eq!(labels(&close)[..2], ["0", "20"], "it is linear");
        let huge = Axis::over(&[0.001, 1e9], Scale::Log, true, 6);
        assert!((3..=8).contains(&labels(&huge).len()), "{:?}", labels(&huge));
        let narrow = Axis::over(&[1.5, 60_000.0], Scale::Log, false, 4);
        assert_eq!(labels(&narrow), ["10", "100", "1k", "10k"], "not two of them");
        assert!(!wide.shows(0.0) && wide.shows(0.5));
        assert!((wide.fraction(100.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn ticks_are_on_the_axis() {
        for (low, high) in [(0.0, 1.0), (3.0, 3.1), (-5.0, 7.0), (1e-3, 5e7), (999.0, 1001.0)] {
            for scale in [Scale::Linear, Scale::Log] {
                for from_zero in [true, false] {
                    let axis = Axis::over(&[low, high], scale, from_zero, 6);
                    let off = axis
                        .ticks
                        .iter()
                        .find(|t| !(-1e-6..=1.000_001).contains(&axis.fraction(**t)));
                    assert_eq!(off, None, "{low} {high} {scale:?} {axis:?}");
                    assert!((2..=12).contains(&axis.ticks.len()), "{low} {high} {axis:?}");
                }
            }
        }
    }

    #[test]
    fn numbers_of_groups_are_thinned_out() {
        let names: Vec<String> = (0..40).map(|i| (i * 100).to_string()).collect();
        assert_eq!(labels(&Axis::figures(&names, 2))[..3], ["0", "300", "600"]);
        assert_eq!(labels(&Axis::figures(&names, 5)).len(), 40);
    }

    #[test]
    fn names_of_groups_are_broken_into_lines() {
        let names = ["thread-per-connection".to_owned(), "loop".to_owned()];
        assert_eq!(labels(&Axis::groups(&names, 8)), ["thread-…", "loop"]);
        let names = ["16 clients look".to_owned(), "base".to_owned()];
        let axis = Axis::groups(&names, 8);
        assert_eq!(labels(&axis), ["16\nclients\nlook", "base"]);
        assert_eq!((axis.label_lines(), axis.label_chars()), (3, 7));
        let placed = axis.names_in_lines().expect("one has more than one line");
        assert_eq!(placed[1], (1.5, "base".to_owned()));
        assert_eq!(Axis::groups(&names, 15).names_in_lines(), None);
    }

    #[test]
    fn a_downward_axis_starts_at_the_top() {
        let axis = Axis::groups(&["a".to_owned(), "b".to_owned()], 5);
        let places = |axis: &Axis| [0.5, 1.5].map(|at| (100.0 * axis.fraction(at)).round() as u32);
        assert_eq!(places(&axis), [25, 75]);
        assert_eq!(places(&axis.downward()), [75, 25]);
    }

    #[test]
    fn labels_are_short() {
        let shown = [0.0, 0.5, 0.001, 250.0, 1000.0, 1500.0, 2e6, 12_250.0, 3e9, 0.1 + 0.2, -5.0];
        let want = ["0", "0.5", "0.001", "250", "1k", "1.5k", "2M", "12.25k", "3G", "0.3", "-5"];
        assert_eq!(shown.map(tick_label), want);
    }
}
