//! Latency spikes by event, for the command LATENCY: one series per event for all workers. The
//! caller decides what is slow; only slow events take the lock.

use base::sync::{Mutex, MutexGuard, PoisonError};
use std::collections::VecDeque;

/// Spikes that a series keeps: `LATENCY HISTORY` is documented to return up to 160.
pub const SAMPLES_MAX: usize = 160;

/// An event whose spikes are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpikeEvent {
    /// A command.
    Command,
    /// The reply to a client that was blocked.
    CommandUnblocking,
    /// A command of constant or logarithmic time.
    FastCommand,
    /// A step of the removal of expired keys.
    ExpireCycle,
    /// A step of defragmentation.
    ActiveDefragCycle,
    /// A write to the append-only file.
    AofWrite,
    /// The same, while nothing else kept the disk busy.
    AofWriteAlone,
    /// The same, while a sync was under way.
    AofWritePendingFsync,
    /// The same, while the data was saved or the file rewritten.
    AofWriteActiveChild,
    /// A sync of the append-only file with `appendfsync always`.
    AofFsyncAlways,
    /// The manifest of the append-only file was put in its place.
    AofRename,
}

impl SpikeEvent {
    /// All of them, in the order of LATENCY LATEST.
    pub const ALL: [SpikeEvent; 11] = [
        SpikeEvent::Command,
        SpikeEvent::CommandUnblocking,
        SpikeEvent::FastCommand,
        SpikeEvent::ExpireCycle,
        SpikeEvent::ActiveDefragCycle,
        SpikeEvent::AofWrite,
        SpikeEvent::AofWriteAlone,
        SpikeEvent::AofWritePendingFsync,
        SpikeEvent::AofWriteActiveChild,
        SpikeEvent::AofFsyncAlways,
        SpikeEvent::AofRename,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            SpikeEvent::Command => "command",
            SpikeEvent::FastCommand => "fast-command",
            SpikeEvent::CommandUnblocking => "command-unblocking",
            SpikeEvent::ExpireCycle => "expire-cycle",
            SpikeEvent::ActiveDefragCycle => "active-defrag-cycle",
            SpikeEvent::AofWrite => "aof-write",
            SpikeEvent::AofWriteAlone => "aof-write-alone",
            SpikeEvent::AofWritePendingFsync => "aof-write-pending-fsync",
            SpikeEvent::AofWriteActiveChild => "aof-write-active-child",
            SpikeEvent::AofFsyncAlways => "aof-fsync-always",
            SpikeEvent::AofRename => "aof-rename",
        }
    }

    /// The event of this name, in lower case.
    pub fn by_name(name: &[u8]) -> Option<SpikeEvent> {
        Self::ALL.into_iter().find(|event| name == event.name().as_bytes())
    }
}

/// The longest spike of one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spike {
    /// When, in seconds since 1970.
    pub unix_s: i64,
    /// How long, in milliseconds.
    pub ms: u64,
}

/// The spikes of one event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// The last spikes, oldest first.
    pub samples: VecDeque<Spike>,
    /// The longest since the start or a reset.
    pub max_ms: u64,
}

/// Numbers about a series that is not empty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesFacts {
    /// Shortest of the kept spikes, milliseconds.
    pub min_ms: u64,
    /// Longest of the kept spikes, milliseconds.
    pub max_ms: u64,
    /// Their mean, milliseconds.
    pub mean_ms: u64,
    /// How far they are from the mean on average, milliseconds.
    pub deviation_ms: u64,
    /// Seconds from one spike to the next, on average.
    pub period_s: f64,
}

impl Series {
    /// Adds a spike. Of several within a second the longest is kept.
    fn add(&mut self, spike: Spike) {
        self.max_ms = self.max_ms.max(spike.ms);
        if let Some(last) = self.samples.back_mut().filter(|last| last.unix_s == spike.unix_s) {
            last.ms = last.ms.max(spike.ms);
            return;
        }
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(spike);
    }

    /// Numbers about it as of `now_s`; `None` without spikes.
    pub fn facts(&self, now_s: i64) -> Option<SeriesFacts> {
        let first = self.samples.front()?;
        let count = self.samples.len() as u64;
        let all = || self.samples.iter().map(|spike| spike.ms);
        let mean_ms = all().sum::<u64>() / count;
        let deviation_ms = all().map(|ms| ms.abs_diff(mean_ms)).sum::<u64>() / count;
        let seconds = (now_s - first.unix_s).max(1);
        Some(SeriesFacts {
            min_ms: all().min()?,
            max_ms: all().max()?,
            mean_ms,
            deviation_ms,
            period_s: seconds as f64 / count as f64,
        })
    }
}

/// One series per event.
#[derive(Debug, Default)]
pub struct Spikes(Mutex<[Series; SpikeEvent::ALL.len()]>);

impl Spikes {
    /// Adds a spike.
    pub fn add(&self, event: SpikeEvent, spike: Spike) {
        self.lock()[event as usize].add(spike);
    }

    /// A copy of an event's series.
    pub fn series(&self, event: SpikeEvent) -> Series {
        self.lock()[event as usize].clone()
    }

    /// Clears the series of an event; true if it was not empty.
    pub fn reset(&self, event: SpikeEvent) -> bool {
        let forgotten = std::mem::take(&mut self.lock()[event as usize]);
        !forgotten.samples.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, [Series; SpikeEvent::ALL.len()]> {
        // No code panics in the middle of an update under this lock, so poisoned data is
        // consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_spike_of_a_second_is_kept_and_the_oldest_dropped() {
        let spikes = Spikes::default();
        let add = |unix_s, ms| spikes.add(SpikeEvent::Command, Spike { unix_s, ms });
        for (at, ms) in [(7, 20), (7, 30), (7, 10), (9, 15)] {
            add(at, ms);
        }
        let series = spikes.series(SpikeEvent::Command);
        let expected = [Spike { unix_s: 7, ms: 30 }, Spike { unix_s: 9, ms: 15 }];
        assert_eq!((Vec::from(series.samples.clone()), series.max_ms), (expected.to_vec(), 30));
        let facts = series.facts(11).expect("there are spikes");
        assert_eq!(
            (facts.min_ms, facts.max_ms, facts.mean_ms, facts.deviation_ms),
            (15, 30, 22, 7)
        );
        assert!((facts.period_s - 2.0).abs() < f64::EPSILON);
        for at in 10..10 + SAMPLES_MAX as i64 {
            add(at, 5);
        }
        let series = spikes.series(SpikeEvent::Command);
        assert_eq!((series.samples.len(), series.samples[0].unix_s), (SAMPLES_MAX, 10));
        assert_eq!(series.max_ms, 30, "what was longest is remembered");
        assert_eq!(spikes.series(SpikeEvent::FastCommand), Series::default());
        assert_eq!(Series::default().facts(1), None);
    }

    #[test]
    fn a_reset_reports_whether_it_removed_spikes() {
        let spikes = Spikes::default();
        spikes.add(SpikeEvent::ExpireCycle, Spike { unix_s: 1, ms: 1 });
        assert!(spikes.reset(SpikeEvent::ExpireCycle));
        assert!(!spikes.reset(SpikeEvent::ExpireCycle));
        assert_eq!(spikes.series(SpikeEvent::ExpireCycle).max_ms, 0);
    }

    #[test]
    fn events_are_found_by_name() {
        for (index, event) in SpikeEvent::ALL.into_iter().enumerate() {
            assert_eq!(event as usize, index);
            assert_eq!(SpikeEvent::by_name(event.name().as_bytes()), Some(event));
        }
        assert_eq!(SpikeEvent::by_name(b"Fast-Command"), None);
        assert_eq!(SpikeEvent::by_name(b"fork"), None);
    }
}
