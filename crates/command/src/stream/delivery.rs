//! The delivery of many entries to a consumer, ahead of XREADGROUP.

use value::stream::{ConsumerId, Pending};
use value::{Stream, StreamId};

use super::consumers::more;
use super::reply::Run;

/// Entries that are delivered in one step.
pub(super) const STEP_ENTRIES: usize = 120;

/// A delivery of many entries.
pub(super) struct Delivery {
    /// The key, as an argument, for which the command asked.
    pub asked: usize,
    pub group: usize,
    pub name: Box<[u8]>,
    pub now: i64,
    /// Entries at most.
    pub count: u64,
    pub no_ack: bool,
    /// New entries, not the consumer's pending ones.
    pub is_new: bool,
    /// The consumer was not there.
    pub makes_consumer: bool,
    /// What it began behind.
    pub behind: StreamId,
    /// Up to where it is done.
    pub last: StreamId,
    /// How many it were.
    pub given: u64,
    /// Of pending ones, which.
    pub ids: Vec<StreamId>,
}

impl Delivery {
    /// New entries.
    pub fn deliver(&mut self, who: ConsumerId, was: &Stream, stream: &mut Stream) -> u64 {
        let run = Run::behind(was, self.last, self.count - self.given);
        let left = run.left.min(STEP_ENTRIES as u64);
        let (now, no_ack) = (self.now, self.no_ack);
        stream.edit_group(self.group, |group| {
            let was_active = group.consumer(who).active_ms;
            group.set_times(who, now, if no_ack { was_active } else { now });
            for item in was.iter_from(run.rank).take(left as usize) {
                group.last = item.id;
                group.read = was.read_with(group.read, item.id);
                if !no_ack {
                    group.put(Pending { id: item.id, at_ms: now, count: 1, consumer: who });
                }
            }
            self.last = group.last;
        });
        left
    }

    /// Pending ones.
    pub fn give_again(&mut self, who: ConsumerId, was: &Stream, stream: &mut Stream) -> u64 {
        let Some(from) = self.last.next() else { return 0 };
        let max = (self.count - self.given).min(STEP_ENTRIES as u64);
        let before = self.ids.len();
        let (ids, group) = (&mut self.ids, was.group(self.group));
        // A consumer that was not there before has nothing pending.
        let Some(had) = group.find(&self.name) else { return 0 };
        ids.extend(group.consumer(had).pending_from(from).take(max as usize));
        stream.edit_group(self.group, |group| {
            group.set_times(who, self.now, self.now);
            for id in &ids[before..] {
                if let Some(row) = group.get(*id)
                    && was.contains(*id)
                {
                    group.put(Pending { at_ms: self.now, count: more(row.count, 1), ..row });
                }
            }
        });
        self.last = ids.last().copied().unwrap_or(self.last);
        (ids.len() - before) as u64
    }
}
