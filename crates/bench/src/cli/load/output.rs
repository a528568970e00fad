//! What goes to the standard output.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::args::Format;
use crate::analysis::figure::{count, time};
use crate::host::OTHER_CPUS_MAX;
use crate::result::Measurement;

/// Prints measurements one by one.
#[derive(Debug)]
pub struct Printer {
    format: Format,
    quiet: bool,
    begun: bool,
}

/// A column of the table: its title, its width, and its text.
type Column = (&'static str, usize, fn(&Measurement) -> String);

const COLUMNS: &[Column] = &[
    ("requests/s", 12, |m| if_rated(m, || count(m.throughput))),
    ("mean us", 10, |m| if_rated(m, || decimal(m.latency.mean_us))),
    ("p50 us", 10, |m| if_rated(m, || decimal(m.latency.p50_us))),
    ("p99 us", 10, |m| if_rated(m, || decimal(m.latency.p99_us))),
    ("p99.9 us", 10, |m| if_rated(m, || decimal(m.latency.p999_us))),
    ("max us", 10, |m| if_rated(m, || decimal(m.latency.max_us))),
    ("in flight", 10, |m| format!("{:.1}", m.in_flight)),
    ("client us", 10, |m| format!("{:.3}", client_us(m))),
    ("server us", 10, |m| m.server.map_or("-".into(), |s| format!("{:.3}", s.cpu_us_per_request))),
    ("server MB", 10, |m| m.server.map_or("-".into(), |s| decimal(s.resident_bytes as f64 / 1e6))),
    ("other CPUs", 11, |m| format!("{:.2}", m.other_cpus)),
];

/// A column of the CSV form.
type Field = (&'static str, fn(&Measurement) -> String);

/// Columns of the CSV form.
const FIELDS: &[Field] = &[
    ("load", |m| quoted(&m.load)),
    ("target", |m| quoted(&m.target)),
    ("seconds", |m| m.seconds.to_string()),
    ("requests", |m| m.requests.to_string()),
    ("errors", |m| m.failures.errors.to_string()),
    ("lost", |m| m.failures.lost.to_string()),
    ("nil", |m| m.failures.nil.to_string()),
    ("wrong", |m| m.failures.wrong.to_string()),
    ("requests_per_s", |m| rated(m, m.throughput)),
    ("in_flight", |m| m.in_flight.to_string()),
    ("mean_us", |m| rated(m, m.latency.mean_us)),
    ("min_us", |m| rated(m, m.latency.min_us)),
    ("p50_us", |m| rated(m, m.latency.p50_us)),
    ("p90_us", |m| rated(m, m.latency.p90_us)),
    ("p99_us", |m| rated(m, m.latency.p99_us)),
    ("p999_us", |m| rated(m, m.latency.p999_us)),
    ("max_us", |m| rated(m, m.latency.max_us)),
    ("client_cpu_s", |m| m.client_cpu_s.to_string()),
    ("server_cpu_s", |m| m.server.map_or(String::new(), |s| s.cpu_s.to_string())),
    ("server_bytes", |m| m.server.map_or(String::new(), |s| s.resident_bytes.to_string())),
    ("other_cpus", |m| m.other_cpus.to_string()),
    ("unsent", |m| m.unsent.to_string()),
    ("least_per_connection", |m| m.per_connection.least.to_string()),
    ("median_per_connection", |m| m.per_connection.median.to_string()),
    ("most_per_connection", |m| m.per_connection.most.to_string()),
    ("parameters", |m| quoted(&parameters(m))),
];

impl Printer {
    /// A printer that has printed nothing.
    pub fn new(format: Format, quiet: bool) -> Self {
        Self { format, quiet, begun: false }
    }

    /// Prints one.
    pub fn print(&mut self, measured: &Measurement) -> io::Result<()> {
        let mut text = String::new();
        match self.format {
            Format::Json => {
                text = serde_json::to_string(measured).expect("a measurement has no odd keys");
                text.push('\n');
            }
            Format::Csv => {
                if !self.begun {
                    let names: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
                    text = names.join(",") + "\n";
                }
                let values: Vec<String> = FIELDS.iter().map(|(_, value)| value(measured)).collect();
                text += &(values.join(",") + "\n");
            }
            Format::Table if self.quiet => text = quiet(measured),
            Format::Table => {
                text = answer(measured) + "\n" + &over_time(measured);
                if !self.begun {
                    text += &header();
                }
                text += &row(measured);
            }
        }
        self.begun = true;
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

/// The answer in a sentence.
fn answer(measured: &Measurement) -> String {
    let Measurement { load, target, latency, .. } = measured;
    if !measured.has_rate() {
        return format!("{load}: no request to {target} got its right reply.");
    }
    let offered = match measured.offered {
        0.0 => String::new(),
        offered => format!(" of {} offered", count(offered)),
    };
    format!(
        "{load}: {target} answers {} requests/s{offered}; half of them within {}, 99 % within {}.",
        count(measured.throughput),
        time(latency.p50_us),
        time(latency.p99_us)
    )
}

/// A picture of the throughput over time, from nothing to the most; empty for a short run.
fn over_time(measured: &Measurement) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const SAMPLES_MIN: usize = 4;
    const WIDTH: usize = 60;
    let rates: Vec<f64> = measured.series.iter().map(|sample| sample.throughput).collect();
    let most = rates.iter().copied().fold(0.0, f64::max);
    if rates.len() < SAMPLES_MIN || most <= 0.0 {
        return String::new();
    }
    let bar = |rates: &[f64]| {
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        BARS[((mean / most * 8.0) as usize).min(7)]
    };
    let bars: String = rates.chunks(rates.len().div_ceil(WIDTH)).map(bar).collect();
    format!("  {bars} requests/s over time, at most {}\n", count(most))
}

fn header() -> String {
    let mut text = format!("{:<18}", "load");
    for (title, width, _) in COLUMNS {
        let _ = write!(text, "{title:>width$}");
    }
    text + "\n"
}

fn row(measured: &Measurement) -> String {
    let mut text = format!("{:<18}", measured.load);
    for (_, width, value) in COLUMNS {
        let _ = write!(text, "{:>width$}", value(measured));
    }
    text.push('\n');
    for note in notes(measured) {
        let _ = writeln!(text, "  {note}");
    }
    text
}

fn quiet(measured: &Measurement) -> String {
    if !measured.has_rate() {
        return format!("{}: no request got its right reply\n", measured.load.to_uppercase());
    }
    format!(
        "{}: {:.2} requests per second, p50={:.3} msec\n",
        measured.load.to_uppercase(),
        measured.throughput,
        measured.latency.p50_us / 1e3
    )
}

/// What a reader must know to believe the row, or not to.
fn notes(measured: &Measurement) -> Vec<String> {
    let mut notes = Vec::new();
    if measured.unsent > 0 {
        notes.push(format!(
            "behind: {} requests of an offered {}/s were not sent; their wait until the end counts as latency",
            measured.unsent,
            count(measured.offered)
        ));
    }
    let each = measured.per_connection;
    if each.is_uneven() {
        notes.push(format!(
            "uneven: {} to {} replies per connection, median {}",
            each.least, each.most, each.median
        ));
    }
    if measured.other_cpus > OTHER_CPUS_MAX {
        notes.push(format!("noise: something else used {:.2} CPUs meanwhile", measured.other_cpus));
    }
    notes
}

/// One line about a run that failed.
pub fn failed(measured: &Measurement) -> String {
    let failures = &measured.failures;
    let counts = [
        (failures.errors, "error replies"),
        (failures.lost, "without a reply"),
        (failures.nil, "nil where a value must be"),
        (failures.wrong, "wrong values"),
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    format!("{} failed: {} ({})", measured.load, counts.join(", "), failures.first_error)
}

fn parameters(measured: &Measurement) -> String {
    let pairs = measured.parameters.iter().map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join(" ")
}

fn client_us(measured: &Measurement) -> f64 {
    measured.client_cpu_s * 1e6 / (measured.throughput * measured.seconds).max(1.0)
}

/// A figure of the table; `-` where there is no rate.
fn if_rated(measured: &Measurement, text: impl FnOnce() -> String) -> String {
    if measured.has_rate() { text() } else { "-".to_owned() }
}

/// A figure of the CSV form; empty where there is no rate.
fn rated(measured: &Measurement, value: f64) -> String {
    if measured.has_rate() { value.to_string() } else { String::new() }
}

fn decimal(value: f64) -> String {
    format!("{value:.1}")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Failures, Latency, Sample};

    #[test]
    fn the_summary_is_a_sentence_about_the_server() {
        let sample = |throughput| Sample { throughput, ..Sample::default() };
        let latency = Latency { p50_us: 40.0, p99_us: 1200.0, ..Latency::default() };
        let mut measured = Measurement {
            load: "set".to_owned(),
            target: "a:1".to_owned(),
            throughput: 12_345.0,
            requests: 9,
            latency,
            series: [4.0, 8.0, 0.0, 7.9].map(sample).to_vec(),
            ..Measurement::default()
        };
        let text = "answers 12,345 requests/s; half of them within 40.0 us, 99 % within 1.2 ms.";
        assert_eq!(answer(&measured), format!("set: a:1 {text}"));
        assert_eq!(over_time(&measured), "  ▅█▁█ requests/s over time, at most 8\n");
        measured.series.pop();
        assert_eq!(over_time(&measured), "", "too short for a picture");
        (measured.requests, measured.failures.errors) = (0, 1);
        assert_eq!(answer(&measured), "set: no request to a:1 got its right reply.");
        assert_eq!(quoted("a \"b\""), "\"a \"\"b\"\"\"");
    }

    #[test]
    fn a_row_has_its_columns_and_its_notes() {
        let measured = Measurement {
            load: "set".to_owned(),
            throughput: 1e6,
            requests: 1_000_000,
            unsent: 5,
            offered: 2e6,
            other_cpus: 0.5,
            ..Measurement::default()
        };
        let text = row(&measured);
        assert!(text.starts_with("set  ") && text.contains("1,000,000"), "{text}");
        assert!(text.contains("behind: 5 requests of an offered 2,000,000/s"), "{text}");
        assert!(text.contains("noise: something else used 0.50 CPUs"), "{text}");
        let widths: usize = COLUMNS.iter().map(|(_, width, _)| width).sum();
        assert_eq!(header().trim_end_matches('\n').len(), 18 + widths);
        assert_eq!(quiet(&measured), "SET: 1000000.00 requests per second, p50=0.000 msec\n");
    }

    #[test]
    fn a_failed_run_is_reported_in_one_line() {
        let failures =
            Failures { errors: 2, lost: 1, first_error: "ERR x".to_owned(), ..Failures::default() };
        let measured = Measurement { load: "get".to_owned(), failures, ..Measurement::default() };
        assert_eq!(failed(&measured), "get failed: 2 error replies, 1 without a reply (ERR x)");
    }
}
