//! LATENCY GRAPH and LATENCY DOCTOR: a drawing, and advice.

use observe::{Series, SpikeEvent};
use std::fmt::Write;

/// Rows of a drawing.
const ROWS: usize = 4;
/// How high a sample reaches within its row.
const TIPS: [char; 3] = ['_', 'o', '#'];
/// Columns of a drawing; more samples go on below.
const COLUMNS: usize = 80;

/// The samples of an event, oldest on the left, between the lowest and the highest; below each how
/// long ago it was, from top to bottom. The form is that of redis-server 7.0.
pub fn graph(name: &str, series: &Series, now_s: i64) -> String {
    let mut text = String::new();
    let Some(facts) = series.facts(now_s) else { return text };
    let _ = writeln!(
        text,
        "{name} - high {} ms, low {} ms (all time high {} ms)\n{}",
        facts.max_ms,
        facts.min_ms,
        series.max_ms,
        "-".repeat(COLUMNS)
    );
    let (mut heights, mut ages) = (Vec::new(), Vec::new());
    let levels = (ROWS * TIPS.len()) as u64;
    for spike in &series.samples {
        let part = (spike.ms - facts.min_ms) * levels / (facts.max_ms - facts.min_ms).max(1);
        heights.push(part.min(levels - 1) as usize);
        ages.push(age(now_s - spike.unix_s));
    }
    for (at, (heights, ages)) in heights.chunks(COLUMNS).zip(ages.chunks(COLUMNS)).enumerate() {
        if at > 0 {
            text.push('\n');
        }
        strip(&mut text, heights, ages);
    }
    text
}

/// One line of columns, and the ages below it.
fn strip(text: &mut String, heights: &[usize], ages: &[String]) {
    for row in (0..ROWS).rev() {
        text.extend(heights.iter().map(|height| match height / TIPS.len() {
            top if top > row => '|',
            top if top == row => TIPS[height % TIPS.len()],
            _ => ' ',
        }));
        text.push('\n');
    }
    text.push_str(&" ".repeat(heights.len()));
    text.push('\n');
    for at in 0..ages.iter().map(String::len).max().unwrap_or(0) {
        text.extend(ages.iter().map(|age| age.as_bytes().get(at).map_or(' ', |b| char::from(*b))));
        text.push('\n');
    }
}

/// Seconds in the largest unit that fits.
fn age(seconds: i64) -> String {
    let seconds = seconds.max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// What may help where an event takes long.
const fn advice(event: SpikeEvent) -> &'static str {
    match event {
        SpikeEvent::Command => {
            "- command: SLOWLOG GET names the commands and their arguments. Look for ranges over whole \
             collections, SORT, and sets that are combined; ask for parts of them, or for SCAN.\n"
        }
        SpikeEvent::FastCommand => {
            "- fast-command: these take microseconds by themselves, so the machine kept the worker from \
             running, or many waited for one slot. Compare `threads` with the processors that are free, \
             and INFO io with what clients send at once.\n"
        }
        SpikeEvent::CommandUnblocking => {
            "- command-unblocking: somebody who waited took many elements at once. Ask for fewer: \
             BLMPOP and BZMPOP have COUNT.\n"
        }
        SpikeEvent::ExpireCycle => {
            "- expire-cycle: a step is cut short after 0.2 ms, so one key took long to take away, or the \
             machine stopped the worker. Spread the times at which large keys expire.\n"
        }
        SpikeEvent::ActiveDefragCycle => {
            "- active-defrag-cycle: a step is cut short after 0.2 ms, so the machine stopped the worker, or \
             the system took long to take memory back. \"activedefrag no\" ends it, and the memory between \
             entries stays.\n"
        }
        SpikeEvent::AofWrite | SpikeEvent::AofWriteAlone => {
            "- aof-write: the disk took long to take what is appended. Workers do not wait for it, but \
             with \"appendfsync always\" clients do. A faster disk helps, and one that nobody else uses.\n"
        }
        SpikeEvent::AofWritePendingFsync => {
            "- aof-write-pending-fsync: a write waited for the sync before it. A disk with faster syncs \
             helps.\n"
        }
        SpikeEvent::AofWriteActiveChild => {
            "- aof-write-active-child: a save or a rewrite kept the disk busy. With \
             \"no-appendfsync-on-rewrite yes\" nothing is synced meanwhile, which may lose more than a \
             second.\n"
        }
        SpikeEvent::AofFsyncAlways => {
            "- aof-fsync-always: every reply to a write waits for such a sync. A disk with faster syncs \
             helps, or \"appendfsync everysec\".\n"
        }
        SpikeEvent::AofRename => {
            "- aof-rename: the manifest was replaced, for which appending waits. It happens at the \
             beginning and at the end of a rewrite.\n"
        }
    }
}

/// A report on what was slow, and what to do about it.
pub fn doctor(
    events: &[(SpikeEvent, Series)],
    threshold_ms: u64,
    slower_than_us: i64,
    now_s: i64,
) -> String {
    if threshold_ms == 0 {
        return "Nothing is watched: latency-monitor-threshold is 0. \
                \"CONFIG SET latency-monitor-threshold <milliseconds>\" begins to watch.\n"
            .to_owned();
    }
    if events.is_empty() {
        return format!("Nothing took {threshold_ms} ms or longer since the watch began.\n");
    }
    let mut text = "What took long:\n\n".to_owned();
    for (number, (event, series)) in (1..).zip(events) {
        let Some(facts) = series.facts(now_s) else { continue };
        let _ = writeln!(
            text,
            "{number}. {}: {} latency spikes (average {}ms, mean deviation {}ms, period {:.2} sec). \
             Worst all time event {}ms.",
            event.name(),
            series.samples.len(),
            facts.mean_ms,
            facts.deviation_ms,
            facts.period_s,
            series.max_ms
        );
    }
    text.push_str("\nWhat may help:\n\n");
    for (event, _) in events {
        text.push_str(advice(*event));
    }
    let logged_ms = slower_than_us.max(0) as u64 / 1000;
    if slower_than_us < 0 {
        text.push_str("- SLOWLOG is off. \"CONFIG SET slowlog-log-slower-than <microseconds>\" turns it on.\n");
    } else if logged_ms > threshold_ms {
        let _ = writeln!(
            text,
            "- SLOWLOG keeps commands from {logged_ms} ms on, which is more than is watched here. \
             \"CONFIG SET slowlog-log-slower-than {}\" keeps them all.",
            threshold_ms * 1000
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use observe::{Spike, Spikes};

    fn series(samples: &[(i64, u64)]) -> Series {
        let spikes = Spikes::default();
        for (unix_s, ms) in samples {
            spikes.add(SpikeEvent::Command, Spike { unix_s: *unix_s, ms: *ms });
        }
        spikes.series(SpikeEvent::Command)
    }

    /// The answer of redis-server 7.0 to the same samples.
    #[test]
    fn the_graph_of_thirteen_samples_fits_one_row() {
        let ms = [11, 20, 30, 40, 50, 60, 70, 83, 90, 100, 110, 120, 130];
        let at = [92, 93, 94, 95, 96, 97, 98, 99, 100, 102, 103, 104, 105];
        let samples: Vec<_> = at.into_iter().zip(ms).collect();
        let expected = "command - high 130 ms, low 11 ms (all time high 130 ms)\n\
            --------------------------------------------------------------------------------\n\
            \x20         _o#\n\
            \x20      oo#|||\n\
            \x20   _o#||||||\n\
            __o#|||||||||\n\
            \x20            \n\
            1111198764321\n\
            43210ssssssss\n\
            sssss        \n";
        assert_eq!(graph("command", &series(&samples), 106), expected);
    }

    #[test]
    fn the_graph_of_one_sample_has_one_column() {
        let text = graph("command", &series(&[(7, 30)]), 7);
        assert!(text.ends_with("-\n \n \n \n_\n \n0\ns\n"), "{text}");
    }

    #[test]
    fn a_graph_wider_than_one_row_is_wrapped() {
        let samples: Vec<_> = (0..90).map(|at| (at, 2 + at as u64 * 7 % 50)).collect();
        let text = graph("command", &series(&samples), 90);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[2].len(), lines[6]), (80, &*" ".repeat(80)));
        let second = [12, 13, 14, 15].map(|at| lines[at].len());
        assert_eq!((lines[10], second), ("", [10; 4]), "{text}");
    }

    #[test]
    fn ages_are_rounded_down_to_one_unit() {
        let ages = [-1, 59, 60, 3_599, 3_600, 86_399, 86_400, 900_000].map(age);
        assert_eq!(ages, ["0s", "59s", "1m", "59m", "1h", "23h", "1d", "10d"]);
    }

    #[test]
    fn the_doctor_reports_unsuitable_settings() {
        let events = [(SpikeEvent::Command, series(&[(1, 100)]))];
        assert!(doctor(&events, 0, 10_000, 2).contains("latency-monitor-threshold is 0"));
        assert!(doctor(&[], 5, 10_000, 2).starts_with("Nothing took 5 ms"));
        let text = doctor(&events, 5, 10_000, 2);
        let line = "1. command: 1 latency spikes (average 100ms, mean deviation 0ms, period 1.00 sec). \
                    Worst all time event 100ms.\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("slowlog-log-slower-than 5000"), "{text}");
        assert!(!doctor(&events, 10, 10_000, 2).contains("slowlog-log-slower-than"));
        assert!(doctor(&events, 5, -1, 2).contains("SLOWLOG is off"));
    }
}
