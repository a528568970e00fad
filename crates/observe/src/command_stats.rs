//! Calls, time, rejections, failures and longest runs per command. One set per worker; a command is
//! its index in the command table, so counting is four additions at most on cache lines that only
//! this worker writes.

use crate::{Counter, Latency, LatencyTotals};

/// The counts of one worker.
#[derive(Debug)]
pub struct CommandStats {
    rows: Box<[Row]>,
    latencies: Box<[Latency]>,
    longest: Box<[LongestRow]>,
}

/// The longest times of one command.
#[derive(Debug, Default)]
struct LongestRow {
    hold_ns: Counter,
    run_ns: Counter,
}

/// The counts of one command: half a cache line.
#[derive(Debug, Default)]
struct Row {
    calls: Counter,
    ns: Counter,
    rejected: Counter,
    failed: Counter,
}

/// Counts of one command over several workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandTotals {
    /// Executions.
    pub calls: u64,
    /// Nanoseconds in them.
    pub ns: u64,
    /// Refused before execution: arity, rights, memory, a wrong state.
    pub rejected: u64,
    /// Executions that answered an error.
    pub failed: u64,
}

/// The longest times of one command over several workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Longest {
    /// Under its locks, nanoseconds. The time until it got them is included.
    pub hold_ns: u64,
    /// Without a pause in which its worker serves others, nanoseconds: a whole command, or one step
    /// of it.
    pub run_ns: u64,
}

impl CommandStats {
    /// Counts for a table of so many commands.
    pub fn new(commands: usize) -> Self {
        CommandStats {
            rows: (0..commands).map(|_| Row::default()).collect(),
            latencies: (0..commands).map(|_| Latency::default()).collect(),
            longest: (0..commands).map(|_| LongestRow::default()).collect(),
        }
    }

    /// Counts one execution.
    #[inline]
    pub fn executed(&self, command: usize, ns: u64) {
        let row = &self.rows[command];
        row.calls.add(1);
        row.ns.add(ns);
    }

    /// Adds time to an execution that was counted before.
    pub fn add_time(&self, command: usize, ns: u64) {
        self.rows[command].ns.add(ns);
    }

    /// Counts `n` executions of `ns` each.
    #[inline]
    pub fn executed_times(&self, command: usize, n: u64, ns: u64) {
        let row = &self.rows[command];
        row.calls.add(n);
        row.ns.add(n * ns);
    }

    /// Records the latency of `n` executions of `ns` each.
    #[inline]
    pub fn latency_times(&self, command: usize, n: u64, ns: u64) {
        self.latencies[command].record_times(n, ns);
    }

    /// Records the latency of one execution, where latencies are tracked.
    #[inline]
    pub fn latency(&self, command: usize, ns: u64) {
        self.latencies[command].record(ns);
    }

    /// A command held its locks for so long.
    pub fn held(&self, command: usize, ns: u64) {
        self.longest[command].hold_ns.raise(ns);
    }

    /// A command, or a step of it, ran for so long.
    pub fn ran(&self, command: usize, ns: u64) {
        self.longest[command].run_ns.raise(ns);
    }

    /// Counts one refusal before execution.
    #[inline]
    pub fn rejected(&self, command: usize) {
        self.rows[command].rejected.add(1);
    }

    /// Counts one execution that replied an error; [`Self::executed`] counts the call.
    #[inline]
    pub fn failed(&self, command: usize) {
        self.rows[command].failed.add(1);
    }

    /// Resets all counts. Only the writing worker may call it; otherwise old counts may reappear.
    pub fn reset(&self) {
        for row in &self.rows {
            for counter in [&row.calls, &row.ns, &row.rejected, &row.failed] {
                counter.set(0);
            }
        }
        self.latencies.iter().for_each(Latency::reset);
        for row in &self.longest {
            row.hold_ns.set(0);
            row.run_ns.set(0);
        }
    }

    /// Adds the counts of a command to `totals`.
    pub fn add_to(&self, command: usize, totals: &mut CommandTotals) {
        let row = &self.rows[command];
        totals.calls += row.calls.get();
        totals.ns += row.ns.get();
        totals.rejected += row.rejected.get();
        totals.failed += row.failed.get();
    }

    /// Adds the longest times of a command to `longest`.
    pub fn add_longest_to(&self, command: usize, longest: &mut Longest) {
        let row = &self.longest[command];
        longest.hold_ns = longest.hold_ns.max(row.hold_ns.get());
        longest.run_ns = longest.run_ns.max(row.run_ns.get());
    }

    /// Adds the latencies of a command to `totals`.
    pub fn add_latency_to(&self, command: usize, totals: &mut LatencyTotals) {
        self.latencies[command].add_to(totals);
    }
}

impl CommandTotals {
    /// True if nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.calls == 0 && self.rejected == 0 && self.failed == 0
    }

    /// Microseconds in executions.
    pub fn us(&self) -> u64 {
        self.ns / 1000
    }

    /// Microseconds per execution.
    pub fn us_per_call(&self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.ns as f64 / 1000.0 / self.calls as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_workers_are_added_per_command() {
        let workers = [CommandStats::new(3), CommandStats::new(3)];
        workers[0].executed(1, 1_500);
        workers[0].failed(1);
        workers[1].executed(1, 2_500);
        workers[1].executed(1, 1_000);
        workers[1].executed(1, 3_000);
        workers[1].rejected(2);
        workers[0].latency(1, 1_500);
        workers[1].latency(1, 63);
        let totals = |command| {
            let mut totals = CommandTotals::default();
            for w in &workers {
                w.add_to(command, &mut totals);
            }
            totals
        };
        assert!(totals(0).is_empty());
        let one = totals(1);
        assert_eq!(one, CommandTotals { calls: 4, ns: 8_000, rejected: 0, failed: 1 });
        assert_eq!(one.us(), 8);
        assert!((one.us_per_call() - 2.0).abs() < f64::EPSILON);
        assert_eq!(totals(2), CommandTotals { rejected: 1, ..CommandTotals::default() });
        assert!(!totals(2).is_empty());
        let mut latency = LatencyTotals::default();
        for w in &workers {
            w.add_latency_to(1, &mut latency);
        }
        assert_eq!((latency.count(), latency.percentile(50.0)), (2, 63));
        workers.iter().for_each(CommandStats::reset);
        assert!(totals(1).is_empty() && totals(2).is_empty());
    }

    #[test]
    fn the_longest_of_all_workers_is_shown() {
        let workers = [CommandStats::new(2), CommandStats::new(2)];
        workers[0].held(1, 70);
        workers[0].ran(1, 200);
        workers[1].held(1, 90);
        workers[1].held(1, 80);
        let longest = || {
            let mut longest = Longest::default();
            for w in &workers {
                w.add_longest_to(1, &mut longest);
            }
            longest
        };
        assert_eq!(longest(), Longest { hold_ns: 90, run_ns: 200 });
        workers[1].reset();
        assert_eq!(longest(), Longest { hold_ns: 70, run_ns: 200 });
    }

    #[test]
    fn a_row_is_half_a_cache_line() {
        assert_eq!(size_of::<Row>(), 32);
    }
}
