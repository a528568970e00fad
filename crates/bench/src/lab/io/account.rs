//! The account that a server keeps itself, and the form that a trace is brought to.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use client::Address;

use crate::lab::subject;

/// Workers that count for themselves publish their counts at least every 100 ms while requests
/// arrive.
const PUBLISHED: Duration = Duration::from_millis(150);

/// How often each value came: `(smallest value of the bucket, count)`, ascending; buckets are
/// powers of two.
pub type Histogram = Vec<(u64, u64)>;

/// What a server did, in total or between two readings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Where it comes from: `INFO io`, `INFO model`, `strace`.
    pub source: String,
    /// Requests executed.
    pub requests: u64,
    /// Calls that wait for any of many sockets.
    pub polls: u64,
    /// Events that they brought.
    pub events: u64,
    /// Polls by their events.
    pub events_per_poll: Histogram,
    /// Calls that receive.
    pub receives: u64,
    /// Calls that send.
    pub sends: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Polls by the nanoseconds that they took; empty where they were not timed.
    pub poll_ns: Histogram,
    /// Nanoseconds in all polls.
    pub poll_total_ns: u64,
    /// All system calls that were seen, where more than those above were looked for.
    pub all_calls: Option<u64>,
}

impl Account {
    /// What happened since an earlier reading.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    /// Adds another run's account of the same source.
    pub fn add(&mut self, other: &Self) {
        *self = other.with(self, |a, b| a + b);
    }

    /// Each figure combined with that of another account.
    fn with(&self, other: &Self, of: fn(u64, u64) -> u64) -> Self {
        let all_calls = self.all_calls.or(other.all_calls);
        Self {
            source: self.source.clone(),
            requests: of(self.requests, other.requests),
            polls: of(self.polls, other.polls),
            events: of(self.events, other.events),
            events_per_poll: combined(&self.events_per_poll, &other.events_per_poll, of),
            receives: of(self.receives, other.receives),
            sends: of(self.sends, other.sends),
            bytes_out: of(self.bytes_out, other.bytes_out),
            poll_ns: combined(&self.poll_ns, &other.poll_ns, of),
            poll_total_ns: of(self.poll_total_ns, other.poll_total_ns),
            all_calls: all_calls
                .map(|_| of(self.all_calls.unwrap_or(0), other.all_calls.unwrap_or(0))),
        }
    }

    /// So many of something per request.
    pub fn per_request(&self, count: u64) -> f64 {
        count as f64 / self.requests.max(1) as f64
    }

    /// Events that a poll brought on average.
    pub fn events_each(&self) -> f64 {
        self.events as f64 / self.polls.max(1) as f64
    }

    /// Half of the polls took at most so long: the upper end of the median's bucket, nanoseconds.
    pub fn poll_ns_median(&self) -> Option<u64> {
        let total: u64 = self.poll_ns.iter().map(|(_, n)| n).sum();
        let mut below = 0;
        self.poll_ns.iter().find_map(|(from, n)| {
            below += n;
            (below * 2 >= total).then_some((from * 2).max(1))
        })
    }

    /// System calls per request: all that were seen, or at least polls, receives and sends.
    pub fn calls_per_request(&self) -> f64 {
        self.per_request(self.all_calls.unwrap_or(self.polls + self.receives + self.sends))
    }
}

/// Asks a server for its account; `None` if it keeps none. Takes [`PUBLISHED`] where workers
/// publish their counts from time to time.
pub fn read(address: &Address) -> Option<Account> {
    let ask = |section: &str| parse(&subject::info(address, section)?);
    if ask("io").is_some() {
        thread::sleep(PUBLISHED);
        return ask("io");
    }
    ask("model")
}

/// The account in a text of INFO: its section `io`, or a model's.
pub fn parse(text: &str) -> Option<Account> {
    let fields: BTreeMap<&str, &str> =
        text.lines().filter_map(|line| line.trim_end().split_once(':')).collect();
    let number = |name: &str| fields.get(name)?.parse::<u64>().ok();
    let pairs = |name: &str| fields.get(name).map(|text| pairs(text)).unwrap_or_default();
    if let Some(polls) = number("io_polls") {
        return Some(Account {
            source: "INFO io".to_owned(),
            requests: number("io_commands")?,
            polls,
            events: number("io_events")?,
            events_per_poll: pairs("io_events_per_poll"),
            receives: number("io_receives")?,
            sends: number("io_sends")?,
            bytes_out: number("io_bytes_sent")?,
            poll_ns: pairs("io_poll_nsec"),
            poll_total_ns: number("io_poll_usec")? * 1000,
            all_calls: None,
        });
    }
    Some(Account {
        source: "INFO model".to_owned(),
        requests: number("requests")?,
        polls: number("polls")?,
        events: number("events")?,
        events_per_poll: pairs("events_per_poll"),
        receives: number("reads")?,
        sends: number("writes")?,
        bytes_out: number("bytes_out")?,
        ..Account::default()
    })
}

/// Reads `from:count,from:count`.
fn pairs(text: &str) -> Histogram {
    let pair = |pair: &str| {
        let (from, count) = pair.split_once(':')?;
        Some((from.parse().ok()?, count.parse().ok()?))
    };
    text.split(',').filter_map(pair).collect()
}

/// Sorts values into buckets of powers of two.
pub fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram {
    let mut buckets = BTreeMap::new();
    for value in values {
        let from = value.checked_ilog2().map_or(0, |power| 1 << power);
        *buckets.entry(from).or_insert(0) += 1;
    }
    buckets.into_iter().collect()
}

/// Each bucket of either combined with that of the other; empty ones are left out.
fn combined(a: &Histogram, b: &Histogram, of: fn(u64, u64) -> u64) -> Histogram {
    let mut pairs: BTreeMap<u64, (u64, u64)> = a.iter().map(|&(from, n)| (from, (n, 0))).collect();
    for &(from, n) in b {
        pairs.entry(from).or_default().1 = n;
    }
    let all = pairs.into_iter().map(|(from, (a, b))| (from, of(a, b)));
    all.filter(|(_, n)| *n > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IO: &str = "# Io\r\nio_backend:epoll\r\nio_commands:100\r\nio_polls:50\r\nio_events:70\r\n\
        io_events_per_poll:0:3,1:40,2:7\r\nio_receives:60\r\nio_sends:55\r\nio_bytes_sent:500\r\n\
        io_poll_usec:9\r\nio_poll_nsec:128:50\r\nworker0_polls:50\r\n";

    #[test]
    fn both_kinds_of_account_are_parsed_and_others_refused() {
        let io = parse(IO).expect("an account");
        assert_eq!(
            (io.source.as_str(), io.requests, io.polls, io.events),
            ("INFO io", 100, 50, 70)
        );
        assert_eq!((io.receives, io.sends, io.bytes_out), (60, 55, 500));
        assert_eq!(io.events_per_poll, [(0, 3), (1, 40), (2, 7)]);
        assert_eq!((io.poll_ns, io.poll_total_ns), (vec![(128, 50)], 9000));
        let model = "# Model\r\nrequests:9\r\nreads:8\r\nwrites:7\r\npolls:6\r\nevents:5\r\n\
            bytes_out:4\r\nevents_per_poll:1:6\r\n";
        let model = parse(model).expect("an account");
        assert_eq!((model.source.as_str(), model.requests), ("INFO model", 9));
        assert_eq!((model.receives, model.sends, model.polls, model.events), (8, 7, 6, 5));
        assert_eq!(parse(""), None);
        assert_eq!(parse("# Server\r\nredis_version:7.0.15\r\n"), None);
    }

    #[test]
    fn the_difference_of_two_accounts_is_computed() {
        let before = parse(IO).expect("an account");
        let mut after = before.clone();
        (after.requests, after.polls, after.events) = (300, 150, 470);
        after.events_per_poll = vec![(0, 3), (1, 60), (4, 80)];
        let between = after.since(&before);
        assert_eq!((between.requests, between.polls, between.events), (200, 100, 400));
        assert_eq!(between.events_per_poll, [(1, 20), (4, 80)]);
        assert!((between.events_each() - 4.0).abs() < 1e-9);
        assert!((between.per_request(between.polls) - 0.5).abs() < 1e-9);
        let mut twice = between.clone();
        twice.add(&between);
        assert_eq!((twice.polls, twice.events_per_poll), (200, vec![(1, 40), (4, 160)]));
    }

    #[test]
    fn the_median_poll_is_found_in_its_bucket() {
        let account = |poll_ns: Histogram| Account { poll_ns, ..Account::default() };
        assert_eq!(account(vec![(1024, 3), (2048, 2), (1 << 27, 1)]).poll_ns_median(), Some(2048));
        assert_eq!(account(vec![(0, 1)]).poll_ns_median(), Some(1));
        assert_eq!(account(vec![]).poll_ns_median(), None);
    }

    #[test]
    fn buckets_are_powers_of_two() {
        assert_eq!(histogram([0, 1, 2, 3, 4, 7, 8, 0]), [(0, 2), (1, 1), (2, 2), (4, 2), (8, 1)]);
    }
}
