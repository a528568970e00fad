//! Classic acknowledgements: when they are due, by strategy, and their bytes.
//!
//! ```text
//!  request-reply: one per message        the others: one for several messages
//!  0                8                    0                8              12
//!  +----------------+                    +----------------+--------------+
//!  | id, echoed     |                    | id of the last | skipped, u32 | little-endian: messages
//!  +----------------+                    +----------------+--------------+ covered besides it
//!
//!  request-reply    at once, each message
//!  sync             at once, one for each read that completed a message
//!  throttled,       at the next tick of 5 ms since the connection began
//!  head-rest
//!  async            after 22 reads, or 5 ms after the last read
//! ```

use crate::{Frames, Id, Strategy};
use base::MonoNs;

/// The period of timed acknowledgements, and the pause after which an asynchronous one is sent.
pub const TICK_NS: u64 = 5_000_000;
/// After so many blocks an asynchronous acknowledgement is sent.
pub const BLOCKS_MAX: u32 = 22;
/// The most messages that one acknowledgement covers: `skipped` has 32 bits.
pub const COVERED_MAX: u64 = 1 << 32;
/// Bytes of an acknowledgement that covers several messages.
pub const ACK_BYTES: usize = 12;

/// One connection's frames and acknowledgements.
#[derive(Clone, Debug)]
pub struct Policy {
    strategy: Strategy,
    frames: Frames,
    /// When the connection began: the time of its tick 0.
    born: MonoNs,
    /// Whole messages without an acknowledgement, and the last of them.
    covered: u64,
    last: Id,
    /// Blocks since the last acknowledgement.
    blocks: u32,
    due: Option<MonoNs>,
}

/// What a block did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Messages that it completed.
    pub messages: u64,
    /// Acknowledgements that were written.
    pub acks: u64,
    /// The next message is larger than allowed. Whole messages before it are acknowledged; nothing
    /// more is to be read.
    pub oversized: bool,
}

impl Policy {
    /// A connection that begins now.
    pub const fn new(strategy: Strategy, now: MonoNs) -> Self {
        Self {
            strategy,
            frames: Frames::new(strategy.order()),
            born: now,
            covered: 0,
            last: [0; 8],
            blocks: 0,
            due: None,
        }
    }

    /// Takes the bytes of one read, and appends the acknowledgements that are due to `out`.
    /// O(messages).
    #[inline]
    pub fn receive(
        &mut self,
        block: &[u8],
        now: MonoNs,
        payload_max: u32,
        out: &mut Vec<u8>,
    ) -> Report {
        if self.strategy == Strategy::RequestReply {
            let scan = self.frames.each(block, payload_max, |id| out.extend_from_slice(&id));
            return Report { messages: scan.whole, acks: scan.whole, oversized: scan.oversized };
        }
        assert!(
            (block.len() as u64) < COVERED_MAX,
            "a block completes fewer messages than an ack covers"
        );
        let scan = self.frames.count(block, payload_max);
        let mut acks = 0;
        if self.covered + scan.whole > COVERED_MAX {
            acks += self.flush(out);
        }
        self.covered += scan.whole;
        self.last = scan.last.unwrap_or(self.last);
        self.blocks += 1;
        let now_due = match self.strategy {
            Strategy::RequestReply | Strategy::Sync => true,
            Strategy::Throttled | Strategy::HeadRest => {
                if self.due.is_none() && self.covered > 0 {
                    self.due = Some(self.next_tick(now));
                }
                false
            }
            Strategy::Async => {
                self.due = Some(now.plus(TICK_NS));
                self.blocks >= BLOCKS_MAX
            }
        };
        if now_due || scan.oversized {
            acks += self.flush(out);
        }
        Report { messages: scan.whole, acks, oversized: scan.oversized }
    }

    /// When [`Policy::tick`] has an acknowledgement to write; `None` if there is none.
    #[inline]
    pub fn due(&self) -> Option<MonoNs> {
        self.due.filter(|_| self.covered > 0)
    }

    /// Writes the acknowledgement that is due by now, if there is one. Returns how many.
    pub fn tick(&mut self, now: MonoNs, out: &mut Vec<u8>) -> u64 {
        if self.due().is_some_and(|due| due <= now) { self.flush(out) } else { 0 }
    }

    /// Acknowledges all whole messages. Returns the number of acknowledgements, 0 or 1.
    pub fn flush(&mut self, out: &mut Vec<u8>) -> u64 {
        if self.covered == 0 {
            return 0; // blocks without a whole message still count
        }
        out.extend_from_slice(&self.last);
        out.extend_from_slice(&((self.covered - 1) as u32).to_le_bytes());
        self.covered = 0;
        self.blocks = 0;
        self.due = None;
        1
    }

    /// True if no message is incomplete.
    pub const fn is_between(&self) -> bool {
        self.frames.is_between()
    }

    /// The first tick of this connection's clock after `now`.
    fn next_tick(&self, now: MonoNs) -> MonoNs {
        let ticks = now.since(self.born) / TICK_NS;
        self.born.plus((ticks + 1) * TICK_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: MonoNs = MonoNs(1_000);

    fn messages(ids: std::ops::Range<u64>) -> Vec<u8> {
        ids.flat_map(|id| [&id.to_le_bytes()[..], &[0; 4]].concat()).collect()
    }

    fn ack(last: u64, skipped: u32) -> Vec<u8> {
        [&last.to_le_bytes()[..], &skipped.to_le_bytes()].concat()
    }

    #[test]
    fn an_acknowledgement_is_sent_before_its_count_overflows() {
        let mut policy = Policy::new(Strategy::Throttled, T0);
        let mut out = Vec::new();
        policy.receive(&messages(0..1), T0, 0, &mut out);
        policy.covered = COVERED_MAX;
        let report = policy.receive(&messages(1..3), T0, 0, &mut out);
        assert_eq!(report, Report { messages: 2, acks: 1, oversized: false });
        assert_eq!(out, ack(0, u32::MAX));
        out.clear();
        assert_eq!(policy.flush(&mut out), 1);
        assert_eq!(out, ack(2, 1));
    }

    #[test]
    fn ticks_are_aligned_regardless_of_message_times() {
        for strategy in [Strategy::Throttled, Strategy::HeadRest] {
            let mut policy = Policy::new(strategy, T0);
            let mut out = Vec::new();
            assert_eq!(policy.due(), None);
            for (at, due) in [(0, 1), (TICK_NS - 1, 1), (TICK_NS, 2), (10 * TICK_NS + 7, 11)] {
                policy.receive(&messages(0..1), T0.plus(at), 0, &mut out);
                let due = T0.plus(due * TICK_NS);
                assert_eq!(policy.due(), Some(due), "{strategy} at {at}");
                assert_eq!(policy.tick(MonoNs(due.0 - 1), &mut out), 0);
                if at != 0 {
                    assert_eq!(policy.tick(due, &mut out), 1);
                }
            }
            assert_eq!(out, [ack(0, 1), ack(0, 0), ack(0, 0)].concat());
        }
    }

    #[test]
    fn asynchronous_blocks_are_acknowledged_together_or_after_silence() {
        let mut policy = Policy::new(Strategy::Async, T0);
        let mut out = Vec::new();
        for n in 0..u64::from(BLOCKS_MAX) - 1 {
            policy.receive(&messages(n..n + 1), T0.plus(n), 0, &mut out);
        }
        assert!(out.is_empty());
        let n = u64::from(BLOCKS_MAX) - 1;
        policy.receive(&messages(n..n + 1), T0, 0, &mut out);
        assert_eq!(out, ack(n, n as u32));
        assert_eq!(policy.due(), None);
        out.clear();
        // Every block restarts the silence interval.
        for n in 0..3 {
            policy.receive(&messages(n..n + 1), T0.plus(n * (TICK_NS - 1)), 0, &mut out);
            assert_eq!(policy.tick(T0.plus(n * (TICK_NS - 1) + TICK_NS - 1), &mut out), 0);
        }
        assert_eq!(policy.tick(T0.plus(2 * (TICK_NS - 1) + TICK_NS), &mut out), 1);
        assert_eq!(out, ack(2, 2));
    }

    #[test]
    fn blocks_without_a_complete_message_are_not_acknowledged() {
        let mut policy = Policy::new(Strategy::Async, T0);
        let mut out = Vec::new();
        let mut message = messages(9..10);
        message[8] = 100;
        policy.receive(&message, T0, 100, &mut out);
        for _ in 0..99 {
            assert_eq!(policy.receive(b"x", T0, 100, &mut out), Report::default());
            assert_eq!(policy.due(), None);
        }
        let report = policy.receive(b"x", T0, 100, &mut out);
        assert_eq!(report, Report { messages: 1, acks: 1, oversized: false });
        assert_eq!(out, ack(9, 0));
    }

    #[test]
    fn a_read_without_a_complete_message_is_not_acknowledged() {
        let mut policy = Policy::new(Strategy::Sync, T0);
        let mut out = Vec::new();
        let bytes = messages(0..3);
        assert_eq!(policy.receive(&bytes[..11], T0, 0, &mut out).acks, 0);
        assert!(!policy.is_between());
        assert_eq!(policy.receive(&bytes[11..30], T0, 0, &mut out).acks, 1);
        assert_eq!(policy.receive(&bytes[30..], T0, 0, &mut out).acks, 1);
        assert_eq!(out, [ack(1, 1), ack(2, 0)].concat());
    }
}
