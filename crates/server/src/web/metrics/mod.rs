//! `/metrics`: the figures in Prometheus's text format, version 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).
//!
//! One table of metrics, written twice: for Prometheus and as `docs/metrics.md`. The names in
//! `redis.rs` are those of redis_exporter, seen by running it, so that dashboards and alerts made
//! for it find them; the names in `own.rs` are ours.

mod journal;
mod own;
mod redis;

use crate::figures::Figures;
use crate::shared::Shared;
use std::fmt::Write as _;

/// What Prometheus wants to hear of the content.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, until CONFIG RESETSTAT or a new start.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Buckets with a sum and a count.
    Histogram,
    /// Quantiles with a sum and a count.
    Summary,
}

/// One metric.
#[derive(Clone, Copy)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Its labels, for the document.
    pub labels: &'static [&'static str],
    /// One line: what it tells.
    pub help: &'static str,
    source: Source,
}

/// Where values come from.
#[derive(Clone, Copy)]
enum Source {
    /// One value without labels.
    One(fn(&Figures) -> f64),
    /// Always the same: a part that this version does not have.
    Off(f64),
    /// Any number of samples.
    Many(fn(&Read<'_>, &mut Samples<'_>)),
}

/// What the samples of one metric are written from.
struct Read<'a> {
    figures: &'a Figures,
    shared: &'a Shared,
}

/// Takes the samples of one metric.
struct Samples<'a> {
    name: &'a str,
    out: &'a mut String,
}

const fn one(
    name: &'static str,
    kind: Kind,
    of: fn(&Figures) -> f64,
    help: &'static str,
) -> Metric {
    Metric { name, kind, labels: &[], help, source: Source::One(of) }
}

const fn off(name: &'static str, kind: Kind, value: f64, help: &'static str) -> Metric {
    Metric { name, kind, labels: &[], help, source: Source::Off(value) }
}

const fn many(
    name: &'static str,
    kind: Kind,
    labels: &'static [&'static str],
    of: fn(&Read<'_>, &mut Samples<'_>),
    help: &'static str,
) -> Metric {
    Metric { name, kind, labels, help, source: Source::Many(of) }
}

/// Every metric, in the order in which they are shown.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    redis::METRICS.iter().chain(redis::OFF).chain(journal::METRICS).chain(own::METRICS)
}

/// The text that Prometheus reads. Metrics without a sample are left out.
pub fn text(figures: &Figures, shared: &Shared) -> String {
    let read = Read { figures, shared };
    let mut out = String::with_capacity(16 << 10);
    for metric in all() {
        let before = out.len();
        let (name, kind) = (metric.name, metric.kind.word());
        let off =
            if matches!(metric.source, Source::Off(_)) { "not in this version: " } else { "" };
        let _ = writeln!(out, "# HELP {name} {off}{}\n# TYPE {name} {kind}", metric.help);
        let samples = out.len();
        let mut put = Samples { name, out: &mut out };
        match metric.source {
            Source::One(of) => put.put("", &[], of(figures)),
            Source::Off(value) => put.put("", &[], value),
            Source::Many(of) => of(&read, &mut put),
        }
        if out.len() == samples {
            out.truncate(before);
        }
    }
    out
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Summary => "summary",
        }
    }
}

impl Samples<'_> {
    /// One line: the metric's name and `suffix`, labels, value.
    fn put(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) {
        self.out.push_str(self.name);
        self.out.push_str(suffix);
        for (n, (label, text)) in labels.iter().enumerate() {
            self.out.push(if n == 0 { '{' } else { ',' });
            self.out.push_str(label);
            self.out.push_str("=\"");
            escape(text, self.out);
            self.out.push('"');
        }
        if !labels.is_empty() {
            self.out.push('}');
        }
        let _ = match value {
            f64::INFINITY => writeln!(self.out, " +Inf"),
            f64::NEG_INFINITY => writeln!(self.out, " -Inf"),
            _ => writeln!(self.out, " {value}"),
        };
    }

    /// A histogram: `(largest value, count)` of its buckets in order, without the last, open one.
    fn histogram(&mut self, buckets: impl Iterator<Item = (u64, u64)>, count: u64, sum: f64) {
        let mut below = 0;
        for (max, n) in buckets {
            below += n;
            self.put("_bucket", &[("le", &max.to_string())], below as f64);
        }
        self.put("_bucket", &[("le", "+Inf")], count as f64);
        self.put("_sum", &[], sum);
        self.put("_count", &[], count as f64);
    }
}

impl Samples<'_> {
    /// A histogram whose bounds are no integers: `(bound, how many are not above it)`.
    fn cumulative(&mut self, below: impl Iterator<Item = (f64, u64)>, count: u64, sum: f64) {
        for (bound, n) in below {
            self.put("_bucket", &[("le", &bound.to_string())], n as f64);
        }
        self.put("_bucket", &[("le", "+Inf")], count as f64);
        self.put("_sum", &[], sum);
        self.put("_count", &[], count as f64);
    }
}

/// A label's text: the three characters that would end it are written with a backslash.
fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
}

/// What `docs/metrics.md` says before its tables.
const METRICS_MD_HEAD: &str = "# Metrics\n\
     \n\
     <!-- Made from the tables in crates/server/src/web/metrics; a test compares. -->\n\
     \n\
     `http://127.0.0.1:9379/metrics` shows the server's figures in Prometheus's text format; the port is the\n\
     setting `admin-port`. A scrape needs no exporter beside the server:\n\
     \n\
     ```yaml\n\
     scrape_configs:\n\
     \x20 - job_name: sheafdb\n\
     \x20   static_configs:\n\
     \x20     - targets: ['127.0.0.1:9379']\n\
     \x20   # with admin-token:\n\
     \x20   # authorization: { credentials: the-token }\n\
     ```\n\
     \n\
     The first two groups have the names, types and labels of redis_exporter, so that Grafana dashboard 763 and\n\
     alerts made for it work as they are. Figures are those of INFO, gathered by the same code; figures of sockets\n\
     (bytes, receives, sends, polls) are up to a tenth of a second old. CONFIG RESETSTAT resets what it resets in\n\
     INFO. A metric that has nothing to tell is left out.\n\
     \n\
     The other paths of the port:\n\
     \n\
     | path | what it answers |\n\
     |---|---|\n\
     | `/` | the live page |\n\
     | `/live.json` | what the page reads each second; its form may change with every version |\n\
     | `/heat.json` | service times of the last 24 hours: `row_max_ns` is the largest time of each row but the last, \
     `columns` are `[minute since 1970, counts by row]`, for minutes with requests |\n\
     | `/healthz` | 200 if every worker answers within two seconds, otherwise 503 |\n\
     | `/readyz` | 200 while requests are taken, 503 once the server was told to end |\n\
     \n\
     Who may read what:\n\
     \n\
     | `admin-bind` | `admin-token` | page and its figures | `/metrics` | `/healthz`, `/readyz` |\n\
     |---|---|---|---|---|\n\
     | any | set | with the token | with the token | everybody |\n\
     | a loopback address | none | everybody on this machine | everybody on this machine | everybody on this machine |\n\
     | any other | none | nobody (403) | everybody | everybody |\n\
     \n\
     The token comes as `Authorization: Bearer TOKEN` or as `?token=TOKEN`. There is no TLS: the network must be trusted.\n\
     The page shows arguments of slow commands. With `requirepass` and no token it leaves them out.\n\
     On a loopback address without a token, requests under a host name other than localhost are refused, so that no page of\n\
     another site can read the figures.\n\
     \n\
     With `port 0` the admin port is opened only if `admin-port` or `admin-bind` is set.\n\
     \n\
     64 connections are served at a time. A further one takes the place of the one on which nothing has moved for longest.\n\
     A request must be complete within 5 seconds of its first byte, the first one within 5 seconds of the connection. A\n\
     connection that has had its answer is closed after 130 seconds without a further request.\n";

/// The text of `docs/metrics.md`.
pub fn metrics_md() -> String {
    let mut out = String::from(METRICS_MD_HEAD);
    let groups: [(&str, &[Metric]); 4] = [
        ("Names of redis_exporter", redis::METRICS),
        ("Names of redis_exporter for parts that this version does not have", redis::OFF),
        ("The append-only file", journal::METRICS),
        ("Our own", own::METRICS),
    ];
    for (title, metrics) in groups {
        let _ = write!(out, "\n## {title}\n\n| metric | type | labels | what it tells |\n");
        out.push_str("|---|---|---|---|\n");
        for m in metrics {
            let labels: Vec<String> = m.labels.iter().map(|l| format!("`{l}`")).collect();
            let (name, kind, labels) = (m.name, m.kind.word(), labels.join(", "));
            let always = match m.source {
                Source::Off(value) => format!(" (always {value})"),
                _ => String::new(),
            };
            let _ = writeln!(out, "| `{name}` | {kind} | {labels} | {}{always} |", m.help);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn metric_names_are_unique_and_valid_for_prometheus() {
        let mut seen = BTreeSet::new();
        for metric in all() {
            assert!(seen.insert(metric.name), "{} stands twice", metric.name);
            let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(metric.name.chars().all(word), "{}", metric.name);
            let own = metric.name.starts_with("sheafdb_");
            assert!(own || metric.name.starts_with("redis_"), "{}", metric.name);
            let total = metric.name.ends_with("_total");
            assert!(!own || total == (metric.kind == Kind::Counter), "{}", metric.name);
            assert!(!metric.help.is_empty() && !metric.help.contains(['\n', '|', '\\']));
        }
    }

    #[test]
    fn labels_and_values_follow_the_exposition_format() {
        let mut out = String::new();
        let mut put = Samples { name: "m", out: &mut out };
        put.put("", &[("a", "x\"y\\z\nw"), ("b", "")], 4096.0);
        put.put("_sum", &[], -0.5);
        put.put("", &[], f64::INFINITY);
        put.histogram([(0, 2), (1, 3)].into_iter(), 6, 9.0);
        let expected = "m{a=\"x\\\"y\\\\z\\nw\",b=\"\"} 4096\nm_sum -0.5\nm +Inf\n\
            m_bucket{le=\"0\"} 2\nm_bucket{le=\"1\"} 5\nm_bucket{le=\"+Inf\"} 6\nm_sum 9\nm_count 6\n";
        assert_eq!(out, expected);
    }
}
