//! Requests of one session whose replies have not left, and when they were received: what service
//! time is computed from (`docs/design/0026-service-time.md`).
//!
//! ```text
//! received   done        answers of an outbox chunk       leaving
//! when the   executed,   held replies: they wait for      handed to the driver, which has not
//! input      replies in  the disk or a fence, and their   sent their last byte: the client
//! arrived    the arena   requests with them               reads slowly
//! ```
//!
//! All requests of one receive share its time, so a session counts requests and keeps one time.

use base::MonoNs;

/// Entries of replies that are leaving. Further requests count with the last entry, from its time,
/// which is earlier than theirs.
pub const LEAVING_MAX: usize = 16;

/// Requests that came with one receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// When it came.
    pub received: MonoNs,
    /// How many requests; 0 for none.
    pub count: u32,
}

/// The requests of one session which are not answered yet.
#[derive(Debug, Default)]
pub struct Unanswered {
    /// When the input arrived that is being executed.
    received: MonoNs,
    /// Requests that wrote their reply, which the driver was not given.
    done: u32,
    /// Complete requests were put back: the next input is the same receive.
    keeps_input: bool,
    /// What waits for the client to read; at most [`LEAVING_MAX`].
    leaving: Vec<Answers>,
}

impl Unanswered {
    /// Nothing was received yet.
    pub fn new(now: MonoNs) -> Self {
        Self { received: now, ..Self::default() }
    }

    /// Input is to be executed. It arrived now, unless it was put back before.
    #[inline]
    pub fn begin_input(&mut self, now: MonoNs) {
        if std::mem::take(&mut self.keeps_input) {
            return;
        }
        if self.done > 0 {
            // Only where a request that was retried has ended in this same turn.
            let done = self.take_done();
            self.leave(done);
        }
        self.received = now;
    }

    /// Complete requests were put back.
    pub fn keep_input(&mut self) {
        self.keeps_input = true;
    }

    /// A wait of the client's own choice ends: what follows counts from now.
    pub fn restart(&mut self, now: MonoNs) {
        self.received = now;
    }

    /// When the input arrived that is being executed.
    pub fn received(&self) -> MonoNs {
        self.received
    }

    /// Requests have written their replies.
    #[inline]
    pub fn add_done(&mut self, count: u32) {
        self.done += count;
    }

    /// Takes the requests whose replies are in the arena.
    pub fn take_done(&mut self) -> Answers {
        Answers { received: self.received, count: std::mem::take(&mut self.done) }
    }

    /// The number of requests whose replies have just left, if all of them came at `now` and
    /// nothing left before them.
    #[inline]
    pub fn take_fresh(&mut self, now: MonoNs) -> Option<u32> {
        let is_fresh = self.received == now && self.leaving.is_empty();
        is_fresh.then(|| std::mem::take(&mut self.done))
    }

    /// The driver has these replies, or gets them in this flush.
    pub fn leave(&mut self, answers: Answers) {
        if answers.count == 0 {
            return;
        }
        let is_full = self.leaving.len() == LEAVING_MAX;
        match self.leaving.last_mut() {
            Some(last) if is_full || last.received == answers.received => {
                last.count += answers.count;
            }
            _ => self.leaving.push(answers),
        }
    }

    /// Everything that the driver had has left. The memory of a slow reader is freed.
    pub fn take_left(&mut self) -> Vec<Answers> {
        std::mem::take(&mut self.leaving)
    }

    /// Forgets what is not answered: service times are not recorded.
    pub fn forget(&mut self) {
        self.done = 0;
        self.leaving = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn answers(received: u64, count: u32) -> Answers {
        Answers { received: MonoNs(received), count }
    }

    #[test]
    fn requests_of_one_receive_share_its_time() {
        let mut session = Unanswered::new(MonoNs(1));
        session.begin_input(MonoNs(5));
        session.add_done(3);
        session.add_done(4);
        assert_eq!(session.take_fresh(MonoNs(6)), None, "they came before this turn");
        assert_eq!(session.take_fresh(MonoNs(5)), Some(7));
        assert_eq!(session.take_fresh(MonoNs(5)), Some(0));
    }

    #[test]
    fn input_that_was_put_back_keeps_its_time_once() {
        let mut session = Unanswered::new(MonoNs(1));
        session.begin_input(MonoNs(5));
        session.keep_input();
        session.begin_input(MonoNs(8));
        assert_eq!(session.received(), MonoNs(5));
        session.begin_input(MonoNs(9));
        assert_eq!(session.received(), MonoNs(9));
    }

    #[test]
    fn requests_beyond_the_bound_count_with_the_last_entry() {
        let mut session = Unanswered::new(MonoNs(1));
        for at in 0..LEAVING_MAX as u64 + 3 {
            session.leave(answers(at, 1));
        }
        session.leave(answers(99, 0));
        let left = session.take_left();
        assert_eq!(left.len(), LEAVING_MAX);
        assert_eq!(left[LEAVING_MAX - 1], answers(LEAVING_MAX as u64 - 1, 4));
        assert_eq!(left.iter().map(|a| a.count).sum::<u32>(), LEAVING_MAX as u32 + 3);
        assert!(session.take_left().is_empty());
    }
}
