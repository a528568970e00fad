//! When acknowledgements are due: after each read, after several, or adapted to the producer.
//!
//! ```text
//! adaptive
//!               no read for HOLD_NS: acknowledge
//!   holding  ------------------------------------->  quick: each read is acknowledged at once
//!      ^                                               |
//!      +-----------------------------------------------+
//!               after 16 reads; after twice as many each time, up to 4,096
//!
//!   holding for READS_MAX reads: acknowledge, stay; the next quick phase has 16 reads again
//! ```
//!
//! An adaptive connection holds acknowledgements back while reads follow each other. If there is no
//! read for [`HOLD_NS`], the producer probably waits for its acknowledgement, and the connection
//! becomes quick. Only [`READS_MAX`] held reads prove that it does not wait. Fewer do not: a
//! producer that sends sixteen messages one by one and then waits would look the same. Nor does a
//! read that fills the buffer: it may be the first part of all that the producer may send.
//! `tests/adaptive.rs` compares this with the other two.

use crate::v2::{Ack, Acking, write_ack};
use base::MonoNs;

/// The most reads that one acknowledgement covers.
pub const READS_MAX: u32 = 22;
/// The longest time that a message waits for a batched acknowledgement.
pub const BATCH_NS: u64 = 5_000_000;
/// How long after a read an adaptive acknowledgement is held back.
pub const HOLD_NS: u64 = 400_000;
/// Quick reads after the first hold that timed out.
pub const QUICK_FIRST: u32 = 16;
/// The most quick reads, after many such holds.
pub const QUICK_MAX: u32 = 4096;
/// The most messages that wait: together with those of one read an acknowledgement can cover them.
const WAITING_MAX: u64 = crate::COVERED_MAX / 2;

/// One connection's acknowledgements.
#[derive(Clone, Debug)]
pub struct Acks {
    acking: Acking,
    /// Bounds: how many messages wait, and how long the oldest one.
    messages_max: u64,
    wait_ns: u64,
    /// The highest number that is held.
    last: u64,
    /// The highest numbers that are known to be in memory and fsynced, if they are above.
    memory: u64,
    durable: u64,
    /// Messages without an acknowledgement, when the first of them arrived, and reads since then.
    covered: u64,
    oldest: MonoNs,
    reads: u32,
    /// The last read.
    read: MonoNs,
    /// Quick reads that are left, and how many there will be after the next hold that times out.
    quick: u32,
    quick_next: u32,
}

impl Acks {
    /// A connection whose producer asked for `acking` within these bounds (0: only the server's),
    /// and of whose messages those up to `last_id` are held.
    pub const fn new(acking: Acking, ack_messages: u32, ack_micros: u32, last_id: u64) -> Self {
        let ours = match acking {
            Acking::Batched => BATCH_NS,
            Acking::Adaptive | Acking::Synchronous => u64::MAX,
        };
        let theirs = ack_micros as u64 * 1000;
        Self {
            acking,
            messages_max: if ack_messages == 0 { WAITING_MAX } else { ack_messages as u64 },
            wait_ns: if theirs == 0 || theirs > ours { ours } else { theirs },
            last: last_id,
            memory: 0,
            durable: 0,
            covered: 0,
            oldest: MonoNs(0),
            reads: 0,
            read: MonoNs(0),
            quick: 0,
            quick_next: QUICK_FIRST,
        }
    }

    /// Adds `count` messages that are held now, or were already; everything up to `last` is held.
    ///
    /// # Panics
    /// If more wait than an acknowledgement covers: one read brings fewer than 2^31.
    #[inline]
    pub fn add_taken(&mut self, last: u64, count: u64, now: MonoNs) {
        if count == 0 {
            return;
        }
        if self.covered == 0 {
            self.oldest = now;
        }
        self.covered += count;
        self.last = self.last.max(last);
        assert!(self.covered <= crate::COVERED_MAX, "one read brings fewer than 2^31 messages");
    }

    /// What acknowledgements say beside the number that they cover: up to where messages are in
    /// memory and fsynced. Neither falls.
    #[inline]
    pub fn note(&mut self, memory: u64, durable: u64) {
        self.memory = self.memory.max(memory);
        self.durable = self.durable.max(durable);
    }

    /// Called after the messages of a read were taken. Writes the acknowledgement that is due, if
    /// there is one. Returns the number of acknowledgements.
    #[inline]
    pub fn read_done(&mut self, now: MonoNs, out: &mut Vec<u8>) -> u64 {
        if self.covered == 0 {
            return 0;
        }
        self.read = now;
        self.reads += 1;
        let full = self.reads >= READS_MAX || self.covered >= self.messages_max.min(WAITING_MAX);
        let due = match self.acking {
            Acking::Synchronous => true,
            Acking::Batched => full,
            Acking::Adaptive if self.quick > 0 => {
                self.quick -= 1;
                true
            }
            Acking::Adaptive => {
                if full {
                    self.quick_next = QUICK_FIRST; // the producer does not wait
                }
                full
            }
        };
        if due { self.flush(out, false) } else { 0 }
    }

    /// When [`Acks::tick`] has an acknowledgement to write; `None` if no message waits. Becomes
    /// earlier only after a tick.
    #[inline]
    pub fn due(&self) -> Option<MonoNs> {
        (self.covered > 0).then(|| {
            let oldest = self.oldest.plus(self.wait_ns);
            if self.acking == Acking::Adaptive {
                oldest.min(self.read.plus(self.hold_ns()))
            } else {
                oldest
            }
        })
    }

    /// Writes the acknowledgement that is due by now. `now` is the time at which the events of this
    /// turn were fetched, not the present: otherwise a busy server would mistake its own delay for
    /// a pause of the producer. Returns the number of acknowledgements.
    pub fn tick(&mut self, now: MonoNs, out: &mut Vec<u8>) -> u64 {
        if self.due().is_none_or(|due| due > now) {
            return 0;
        }
        if self.acking == Acking::Adaptive && now >= self.read.plus(self.hold_ns()) {
            self.quick = self.quick_next;
            self.quick_next = (self.quick_next * 2).min(QUICK_MAX);
        }
        self.flush(out, false)
    }

    /// Acknowledges all messages that are held; with `always` even if none is new. Returns the
    /// number of acknowledgements.
    pub fn flush(&mut self, out: &mut Vec<u8>, always: bool) -> u64 {
        if self.covered == 0 && !always {
            return 0;
        }
        let nothing_new = self.covered == 0;
        let skipped = self.covered.saturating_sub(1) as u32;
        let (memory, durable) = (self.memory.max(self.last), self.durable);
        let ack = Ack { nothing_new, id: self.last, skipped, memory, durable };
        write_ack(out, &ack);
        self.covered = 0;
        self.reads = 0;
        1
    }

    /// Messages that are held and not acknowledged.
    pub const fn waiting(&self) -> u64 {
        self.covered
    }

    /// How long after a read acknowledgements are held back.
    const fn hold_ns(&self) -> u64 {
        if self.wait_ns < HOLD_NS { self.wait_ns } else { HOLD_NS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v2::{Reader, ServerFrame};

    /// One connection with its clock.
    struct Story {
        acks: Acks,
        now: MonoNs,
        last: u64,
    }

    impl Story {
        fn new(acking: Acking, ack_messages: u32, ack_micros: u32) -> Self {
            let acks = Acks::new(acking, ack_messages, ack_micros, 0);
            Self { acks, now: MonoNs(7), last: 0 }
        }

        /// Receives this many messages. Returns the acknowledgement, if any.
        fn read(&mut self, count: u64) -> Option<Ack> {
            self.last += count;
            self.acks.add_taken(self.last, count, self.now);
            let mut out = Vec::new();
            let acks = self.acks.read_done(self.now, &mut out);
            one(acks, &out)
        }

        /// Waits for the next deadline. Returns the nanoseconds until then, and the
        /// acknowledgement.
        fn wait(&mut self) -> (u64, Ack) {
            let due = self.acks.due().expect("something is due");
            let (wait, mut out) = (due.since(self.now), Vec::new());
            self.now = due;
            assert_eq!(self.acks.tick(MonoNs(due.0 - 1), &mut out), 0, "not before");
            let acks = self.acks.tick(due, &mut out);
            (wait, one(acks, &out).expect("it is due"))
        }

        /// Counts the reads which are acknowledged at once, until one is not.
        fn quick(&mut self) -> u32 {
            (0..=QUICK_MAX).find(|_| self.read(1).is_none()).expect("it ends")
        }
    }

    fn one(acks: u64, mut out: &[u8]) -> Option<Ack> {
        let mut reader = Reader::new();
        let ack = match reader.next(&mut out)? {
            Ok(ServerFrame::Ack(ack)) => ack,
            other => panic!("{other:?}"),
        };
        assert_eq!((acks, out.len()), (1, 0));
        Some(ack)
    }

    fn ack(id: u64, covered: u64) -> Ack {
        Ack { id, skipped: (covered - 1) as u32, memory: id, ..Ack::default() }
    }

    #[test]
    fn synchronous_acknowledges_each_read_with_a_complete_message() {
        let mut story = Story::new(Acking::Synchronous, 100, 100);
        assert_eq!(story.read(3), Some(ack(3, 3)));
        assert_eq!(story.read(0), None);
        assert_eq!(story.read(1), Some(ack(4, 1)));
        assert_eq!(story.acks.due(), None);
    }

    #[test]
    fn batched_waits_for_reads_or_time() {
        let mut story = Story::new(Acking::Batched, 0, 0);
        for _ in 1..READS_MAX {
            assert_eq!(story.read(2), None);
        }
        assert_eq!(story.read(2), Some(ack(44, 44)));
        assert_eq!(story.acks.due(), None);
        story.read(1);
        story.now = story.now.plus(BATCH_NS - 1);
        story.read(1);
        assert_eq!(story.wait(), (1, ack(46, 2)), "the oldest counts");
    }

    #[test]
    fn adaptive_doubles_its_quick_phase_after_each_useless_hold() {
        let mut story = Story::new(Acking::Adaptive, 0, 0);
        let mut expected = QUICK_FIRST;
        assert_eq!(story.quick(), 0);
        for _ in 0..9 {
            assert_eq!(story.wait().0, HOLD_NS);
            assert_eq!(story.quick(), expected);
            expected = (expected * 2).min(QUICK_MAX);
        }
        assert_eq!(expected, QUICK_MAX);
        // The last of these reads is held. After 21 more reads the hold was useful.
        for _ in 2..READS_MAX {
            assert_eq!(story.read(1), None);
        }
        assert_eq!(story.read(1).map(|ack| ack.covered()), Some(u64::from(READS_MAX)));
        assert_eq!(story.read(1), None, "and it goes on holding");
        story.wait();
        assert_eq!(story.quick(), QUICK_FIRST);
    }

    #[test]
    fn each_read_restarts_the_hold() {
        let mut story = Story::new(Acking::Adaptive, 0, 0);
        for _ in 0..3 {
            assert_eq!(story.read(1), None);
            story.now = story.now.plus(HOLD_NS - 1);
        }
        assert_eq!(story.wait(), (1, ack(3, 3)));
    }

    #[test]
    fn limits_of_the_producer_shorten_the_hold() {
        for acking in [Acking::Adaptive, Acking::Batched] {
            let mut story = Story::new(acking, 5, 50);
            assert_eq!(story.read(4), None);
            assert_eq!(story.read(1), Some(ack(5, 5)), "{acking}");
            assert_eq!(story.read(1), None);
            story.now = story.now.plus(30_000);
            assert_eq!(story.read(1), None);
            assert_eq!(story.wait(), (20_000, ack(7, 2)), "{acking}");
        }
        let mut story = Story::new(Acking::Batched, 0, u32::MAX);
        story.read(1);
        assert_eq!(story.wait().0, BATCH_NS, "never later");
    }

    #[test]
    fn a_limit_below_the_hold_still_detects_a_waiting_producer() {
        let mut story = Story::new(Acking::Adaptive, 0, 50);
        story.read(1);
        assert_eq!(story.wait().0, 50_000);
        assert_eq!(story.quick(), QUICK_FIRST);
    }

    #[test]
    fn flush_acknowledges_even_without_new_messages() {
        let mut acks = Acks::new(Acking::Batched, 0, 0, 9);
        let mut out = Vec::new();
        assert_eq!(acks.flush(&mut out, false), 0);
        assert_eq!(acks.flush(&mut out, true), 1);
        assert_eq!(
            one(1, &out),
            Some(Ack { nothing_new: true, id: 9, memory: 9, ..Ack::default() })
        );
        // Messages sent again are below the stored number, so the acknowledged number does not
        // decrease.
        acks.add_taken(4, 2, MonoNs(1));
        assert_eq!(acks.waiting(), 2);
        out.clear();
        acks.flush(&mut out, true);
        assert_eq!(one(1, &out), Some(ack(9, 2)));
    }

    #[test]
    fn what_is_in_memory_and_fsynced_never_falls() {
        let mut acks = Acks::new(Acking::Batched, 0, 0, 5);
        acks.add_taken(7, 2, MonoNs(1));
        acks.note(12, 6);
        acks.note(3, 0);
        let mut out = Vec::new();
        acks.flush(&mut out, false);
        let expected = Ack { id: 7, skipped: 1, memory: 12, durable: 6, ..Ack::default() };
        assert_eq!(one(1, &out), Some(expected));
    }

    #[test]
    fn an_acknowledgement_covers_at_most_what_fits_its_field() {
        let mut story = Story::new(Acking::Batched, 0, 0);
        assert_eq!(story.read(WAITING_MAX - 1), None);
        let count = crate::COVERED_MAX - (WAITING_MAX - 1);
        assert_eq!(story.read(count), Some(ack(1 << 32, 1 << 32)));
        assert_eq!(story.read(WAITING_MAX), Some(ack((1 << 32) + WAITING_MAX, WAITING_MAX)));
    }
}
