//! Messages on their way to one worker: appended by publishers under the lock of the channel's
//! shard, taken all at once by the worker.

use crate::pubsub::names::Name;
use crate::sessions::output::Hold;
use crate::tracking::listed::{Listed, READER_BYTES};
use crate::tracking::touched::{Touched, Wanted};
use base::Blob;
use base::sync::atomic::Ordering::{Relaxed, SeqCst};
use base::sync::atomic::{AtomicBool, AtomicU64};
use base::sync::{Arc, Mutex};
use command::ops::Subject;
use driver::ConnId;
use std::collections::VecDeque;

/// The most bytes of messages on their way to one worker. Publishers to a worker that falls further
/// behind wait, all but those in EXEC. Overshot by one message for each publisher.
pub const UNDERWAY_MAX: u64 = 64 << 20;
/// An inbox or a queue that is empty keeps room for so many messages. What more it had under a
/// backlog, up to tens of megabytes, it gives back.
pub const ROOM_KEPT: usize = 1024;
/// What a message takes beside its bytes.
pub const POST_BYTES: u64 = 160;

/// The publisher of what no client that listens has done.
pub const NOBODY: ConnId = ConnId { index: u32::MAX, generation: u32::MAX };

/// What subscribers, or clients that track keys, are told.
#[derive(Debug)]
pub enum What {
    /// A message.
    Message {
        /// To a channel or a shard channel.
        subject: Subject,
        /// Its name.
        channel: Name,
        /// The message.
        text: Text,
    },
    /// A key has changed.
    Touched(Touched),
}

impl What {
    /// Bytes of it.
    pub fn len(&self) -> usize {
        match self {
            What::Message { text, .. } => text.len(),
            What::Touched(touched) => touched.bytes() as usize,
        }
    }
}

/// What was published.
#[derive(Debug)]
pub struct Published {
    /// A message, or a key.
    pub what: What,
    /// Only older subscriptions receive it.
    pub epoch: u64,
    /// What must have happened before anybody receives it.
    pub hold: Hold,
    /// The publisher: its worker and its connection there.
    pub from: (usize, ConnId),
    /// The publisher has it already, if it subscribes.
    pub skips_publisher: bool,
    /// Its bytes in the sum of its publisher's worker.
    pub held: Held,
}

/// A message's bytes.
#[derive(Debug)]
pub enum Text {
    /// Copied.
    Short(Box<[u8]>),
    /// By reference.
    Long(Blob),
}

impl Text {
    /// Bytes of it.
    pub fn len(&self) -> usize {
        match self {
            Text::Short(bytes) => bytes.len(),
            Text::Long(blob) => blob.len(),
        }
    }
}

/// Bytes of a message, counted once however many workers receive it.
#[derive(Debug)]
pub struct Held {
    sum: Arc<AtomicU64>,
    bytes: u64,
}

impl Held {
    /// Counts so many bytes.
    pub fn new(sum: &Arc<AtomicU64>, bytes: u64) -> Self {
        sum.fetch_add(bytes, Relaxed);
        Self { sum: sum.clone(), bytes }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.sum.fetch_sub(self.bytes, Relaxed);
    }
}

/// Who receives a message at one worker.
#[derive(Debug, PartialEq)]
pub enum To {
    /// Those who subscribe when it is delivered, and did when it was published.
    Subscribers {
        /// Some subscribe to its channel.
        is_direct: bool,
        /// The patterns that match, of those to which some subscribe.
        patterns: Box<[Name]>,
    },
    /// These.
    Listed(Listed),
}

/// A message for clients of one worker.
#[derive(Debug)]
pub struct Post {
    /// The message.
    pub published: Arc<Published>,
    /// Who receives it.
    pub to: To,
}

impl Post {
    /// To its channel and to how many patterns it goes here.
    pub fn passes(&self) -> usize {
        match &self.to {
            To::Subscribers { is_direct, patterns } => usize::from(*is_direct) + patterns.len(),
            To::Listed(_) => 1,
        }
    }

    /// True if both go to the same clients. (Through patterns whatever the channels are.)
    pub fn is_like(&self, other: &Self) -> bool {
        let is_direct = matches!(self.to, To::Subscribers { is_direct: true, .. });
        let is_same = match (&self.published.what, &other.published.what) {
            (
                What::Message { subject, channel, .. },
                What::Message { subject: other_subject, channel: other_channel, .. },
            ) => !is_direct || subject == other_subject && channel == other_channel,
            (What::Touched(_), What::Touched(_)) => true,
            _ => false,
        };
        is_same && self.to == other.to
    }

    /// What it takes.
    fn bytes(&self) -> u64 {
        let more = match (&self.published.what, &self.to) {
            (What::Message { channel, .. }, _) => channel.text().len() as u64,
            // (A list of those with a prefix is shared by all its keys.)
            (What::Touched(touched), To::Listed(list)) if touched.wanted == Wanted::Read => {
                list.len() as u64 * READER_BYTES
            }
            (What::Touched(_), _) => 0,
        };
        POST_BYTES + self.published.what.len() as u64 + more
    }
}

/// The messages on their way to one worker.
#[derive(Debug, Default)]
pub struct Inbox {
    posts: Mutex<VecDeque<Post>>,
    /// Something is in it.
    has_posts: AtomicBool,
    /// The worker was told, and has not taken since.
    is_announced: AtomicBool,
    /// Bytes of what is not delivered yet.
    underway: AtomicU64,
    /// Publishers that wait for room: their workers and connections.
    waiting: Mutex<Vec<(usize, ConnId)>>,
}

impl Inbox {
    /// Appends a message. Called under the lock of its channel's shard.
    pub fn push(&self, post: Post) {
        self.underway.fetch_add(post.bytes(), Relaxed);
        let mut posts = self.posts.lock().expect("no panic while an inbox is held");
        posts.push_back(post);
        self.has_posts.store(true, Relaxed);
    }

    /// True if something is in it. Whoever knows of a change that followed a PUBLISH, such as a
    /// reader that has locked the slot since, sees the message here.
    #[inline]
    pub fn has_posts(&self) -> bool {
        self.has_posts.load(Relaxed)
    }

    /// True if its worker must be told that something is in it.
    pub fn announce(&self) -> bool {
        !self.is_announced.swap(true, SeqCst)
    }

    /// Moves everything to the end of `into`. What is appended from here on is announced again.
    pub fn take(&self, into: &mut VecDeque<Post>) {
        self.is_announced.store(false, SeqCst);
        let mut posts = self.posts.lock().expect("no panic while an inbox is held");
        into.append(&mut posts);
        posts.shrink_to(ROOM_KEPT);
        self.has_posts.store(false, Relaxed);
    }

    /// A message was delivered, or nobody wants it any more. Returns who has waited for room, if
    /// there is some now.
    pub fn delivered(&self, post: &Post) -> Vec<(usize, ConnId)> {
        let before = self.underway.fetch_sub(post.bytes(), SeqCst);
        if before < UNDERWAY_MAX || before - post.bytes() >= UNDERWAY_MAX {
            return Vec::new();
        }
        std::mem::take(&mut self.waiting.lock().expect("no panic while an inbox is held"))
    }

    /// True if publishers wait for room.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.underway.load(Relaxed) >= UNDERWAY_MAX
    }

    /// A publisher waits for room. False if there is some.
    pub fn wait(&self, worker: usize, conn: ConnId) -> bool {
        let mut waiting = self.waiting.lock().expect("no panic while an inbox is held");
        if self.underway.load(SeqCst) < UNDERWAY_MAX {
            return false;
        }
        waiting.push((worker, conn));
        true
    }

    /// Room for messages that it has.
    #[cfg(test)]
    pub fn room(&self) -> usize {
        self.posts.lock().expect("no panic while an inbox is held").capacity()
    }

    /// Bytes of what is not delivered yet.
    pub fn underway(&self) -> u64 {
        self.underway.load(Relaxed)
    }
}
