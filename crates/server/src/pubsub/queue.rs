//! Messages that a worker has taken from its inbox and not delivered, and how far it is with those
//! that have many receivers.
//!
//! ```text
//!   number   41   42   43   44
//!   posts   [ a ][ a ][ b ][ a ]
//!           \--run--/              41 and 42 have the same receivers and are delivered together:
//!                                  connections with tokens below `served_below` have both
//! ```

use crate::pubsub::inbox::{Inbox, Post, ROOM_KEPT};
use driver::ConnId;
use std::collections::VecDeque;

/// The most messages that are delivered together.
pub const RUN_MAX: usize = 64;
/// The most bytes of them together; one message may have more.
pub const RUN_BYTES_MAX: usize = 64 << 10;

/// Messages in the order in which they were published.
#[derive(Debug, Default)]
pub struct Queue {
    posts: VecDeque<Post>,
    /// How many were delivered before the first one.
    delivered: u64,
    /// So many, from the first on, are being delivered together; 0 if none is.
    run: usize,
    /// Connections with lower tokens have received these.
    served_below: u64,
}

impl Queue {
    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.posts.is_empty()
    }

    /// Takes everything that is in the inbox.
    pub fn take_from(&mut self, inbox: &Inbox) {
        inbox.take(&mut self.posts);
    }

    /// The number of the last message, 0 before the first one.
    pub fn last_number(&self) -> u64 {
        self.delivered + self.posts.len() as u64
    }

    /// The messages with numbers above `told`, with their numbers, which a connection may not have
    /// received.
    pub fn behind(&self, told: u64, conn: ConnId) -> impl Iterator<Item = (u64, &Post)> {
        let from = told.saturating_sub(self.delivered) as usize;
        let has_run = conn.token() < self.served_below;
        let from = if has_run { from.max(self.run) } else { from };
        let numbered = self.posts.iter().enumerate().skip(from);
        numbered.map(|(at, post)| (self.delivered + 1 + at as u64, post))
    }

    /// Begins or resumes the delivery of the first messages: those of one run, which have the same
    /// receivers. Returns them with the number of the first, and the token from which on
    /// connections have not received them.
    pub fn begin(&mut self) -> (Vec<&Post>, u64, u64) {
        if self.run == 0 {
            self.run = self.alike();
        }
        let run = self.posts.iter().take(self.run).collect();
        (run, self.delivered + 1, self.served_below)
    }

    /// Connections with tokens below this one have received the run.
    pub fn serve(&mut self, below: u64) {
        self.served_below = below;
    }

    /// Everybody has received the run: takes it out.
    pub fn end(&mut self) -> impl Iterator<Item = Post> + '_ {
        let run = std::mem::take(&mut self.run);
        self.served_below = 0;
        self.delivered += run as u64;
        let is_last = run == self.posts.len() && self.posts.capacity() > ROOM_KEPT;
        // (The room goes with the last ones; it has become much under a backlog.)
        let last = if is_last { std::mem::take(&mut self.posts) } else { VecDeque::new() };
        last.into_iter().chain(self.posts.drain(..if is_last { 0 } else { run }))
    }

    /// Room for messages that it has.
    #[cfg(test)]
    pub fn room(&self) -> usize {
        self.posts.capacity()
    }

    /// How many of the first messages go to the same channel or pattern. (Those that a client may
    /// get several times do not leave together: its messages would change places.)
    fn alike(&self) -> usize {
        let Some(first) = self.posts.front() else { return 0 };
        if first.passes() > 1 {
            return 1;
        }
        let mut bytes = first.published.what.len();
        let others = self.posts.iter().take(RUN_MAX).skip(1);
        1 + others
            .take_while(|post| {
                bytes += post.published.what.len();
                bytes <= RUN_BYTES_MAX && post.is_like(first)
            })
            .count()
    }
}
