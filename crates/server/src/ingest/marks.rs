//! Which message numbers wait for which number of the journal: those of blocks that are written
//! and not durable.

use base::SeqNo;
use std::collections::VecDeque;

/// Marks at most. Behind that each two neighbours become one, and a new mark takes twice as many
/// blocks: so marks are spread evenly over all that waits, however much that is.
const MARKS_MAX: usize = 32;

/// Messages up to `id` are durable once everything up to `seq` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The number of the journal.
    pub seq: SeqNo,
    /// The highest message number.
    pub id: u64,
    /// Messages since the mark before.
    pub count: u64,
}

/// Marks, the oldest first.
#[derive(Debug, Default)]
pub struct Marks {
    waiting: VecDeque<Mark>,
    /// A new mark takes so many blocks, and the last one has room for so many more.
    blocks: u32,
    room: u32,
}

impl Marks {
    /// Messages have come. Numbers of the journal never fall.
    pub fn push(&mut self, mark: Mark) {
        if let Some(last) = self.waiting.back_mut()
            && (self.room > 0 || last.seq >= mark.seq)
        {
            let seq = last.seq.max(mark.seq);
            *last = Mark { seq, id: last.id.max(mark.id), count: last.count + mark.count };
            self.room = self.room.saturating_sub(1);
            return;
        }
        if self.waiting.is_empty() {
            self.blocks = 1;
        } else if self.waiting.len() == MARKS_MAX {
            self.halve();
            self.blocks = self.blocks.saturating_mul(2);
        }
        self.waiting.push_back(mark);
        self.room = self.blocks - 1;
    }

    /// The oldest mark, if everything up to this number meets it.
    pub fn pop(&mut self, durable: u64) -> Option<Mark> {
        if self.awaits().is_some_and(|seq| seq.0 <= durable) {
            return self.waiting.pop_front();
        }
        // What comes now does not delay what waits.
        self.room = 0;
        self.blocks = (self.blocks / 2).max(1);
        None
    }

    /// The number of the journal which the oldest mark waits for.
    pub fn awaits(&self) -> Option<SeqNo> {
        self.waiting.front().map(|mark| mark.seq)
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes everything that waits, as one mark.
    pub fn take_all(&mut self) -> Option<Mark> {
        let last = *self.waiting.back()?;
        let count = self.waiting.drain(..).map(|mark| mark.count).sum();
        Some(Mark { count, ..last })
    }

    /// Each two neighbours become one, which waits for the later of both numbers.
    fn halve(&mut self) {
        let pairs = self.waiting.len() / 2;
        for at in 0..pairs {
            let (first, second) = (self.waiting[2 * at], self.waiting[2 * at + 1]);
            self.waiting[at] = Mark { count: first.count + second.count, ..second };
        }
        self.waiting.truncate(pairs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(seq: u64, id: u64) -> Mark {
        Mark { seq: SeqNo(seq), id, count: 1 }
    }

    #[test]
    fn messages_come_out_once_their_number_is_durable() {
        let mut marks = Marks::default();
        assert_eq!((marks.awaits(), marks.pop(u64::MAX)), (None, None));
        marks.push(mark(4, 10));
        marks.push(mark(7, 20));
        marks.push(mark(7, 20)); // sent again
        assert_eq!(marks.pop(3), None);
        assert_eq!(marks.pop(5), Some(mark(4, 10)));
        assert_eq!(marks.awaits(), Some(SeqNo(7)));
        assert_eq!(marks.pop(7), Some(Mark { count: 2, ..mark(7, 20) }));
        assert!(marks.is_empty());
    }

    #[test]
    fn the_marks_are_bounded_and_none_is_met_early() {
        let mut marks = Marks::default();
        for n in 1..=10_000 {
            marks.push(mark(n, 2 * n));
            assert!(marks.waiting.len() <= MARKS_MAX);
        }
        let steps: Vec<u64> = marks.waiting.iter().map(|mark| mark.count).collect();
        assert!(steps.iter().all(|count| *count <= 10_000 / 12), "{steps:?}");
        let mut total = 0;
        while let Some(front) = marks.awaits() {
            assert_eq!(marks.pop(front.0 - 1), None);
            let mark = marks.pop(front.0).expect("it is met");
            assert_eq!(mark.id, 2 * mark.seq.0);
            total += mark.count;
            assert_eq!(total, mark.seq.0, "every message is counted once");
        }
        assert_eq!(total, 10_000);
        marks.push(mark(1, 1));
        marks.push(mark(2, 2));
        assert_eq!(marks.take_all(), Some(Mark { count: 2, ..mark(2, 2) }));
        assert!(marks.is_empty() && marks.take_all().is_none());
    }

    #[test]
    fn what_comes_later_does_not_delay_what_waits() {
        let mut marks = Marks::default();
        (1..=1_000).for_each(|n| marks.push(mark(n, n)));
        for n in 1_000..2_000 {
            // Each sync makes durable what was there when it began.
            while marks.pop(n).is_some() {}
            assert!(marks.awaits().is_none_or(|seq| seq.0 > n));
            marks.push(mark(n + 1, n + 1));
            assert_eq!(marks.awaits(), Some(SeqNo(n + 1)));
        }
    }
}
