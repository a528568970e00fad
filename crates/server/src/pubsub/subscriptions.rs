//! What one session subscribes to.

use crate::pubsub::names::{Asked, NAME_BYTES, Name, Named};
use crate::sessions::client_memory::Share;
use command::CommandId;
use command::ops::Subject;
use std::collections::BTreeSet;

/// The subscriptions of a session, in an order that follows from hashes.
#[derive(Debug)]
pub struct Subscriptions {
    /// By [`Subject`]. (Trees, because a table of a million grows in one long step.)
    sets: [BTreeSet<Name>; 3],
    /// Their bytes, as those of the client.
    held: Share,
}

impl Subscriptions {
    /// None yet; `held` is a share of no bytes.
    pub fn new(held: Share) -> Self {
        Self { sets: Default::default(), held }
    }

    /// Subscribes, which it did not.
    pub fn add(&mut self, subject: Subject, name: Name) {
        self.held.set(self.held.bytes() + NAME_BYTES + name.text().len() as u64);
        self.sets[subject as usize].insert(name);
    }

    /// Subscribes no more.
    pub fn remove(&mut self, subject: Subject, name: &Name) {
        if self.sets[subject as usize].remove(name as &dyn Named) {
            self.held.set(self.held.bytes() - NAME_BYTES - name.text().len() as u64);
        }
    }

    /// The name that is asked for, if it subscribes to that.
    pub fn get(&self, subject: Subject, asked: Asked<'_>) -> Option<Name> {
        self.sets[subject as usize].get(&asked as &dyn Named).cloned()
    }

    /// Any of this kind.
    pub fn first(&self, subject: Subject) -> Option<Name> {
        self.sets[subject as usize].first().cloned()
    }

    /// The patterns.
    pub fn patterns(&self) -> impl Iterator<Item = &Name> {
        self.sets[Subject::Pattern as usize].iter()
    }

    /// How many of this kind.
    pub fn count(&self, subject: Subject) -> usize {
        self.sets[subject as usize].len()
    }

    /// How many in all.
    pub fn total(&self) -> usize {
        self.sets.iter().map(BTreeSet::len).sum()
    }

    /// The number in a confirmation: channels and patterns together, or shard channels.
    pub fn confirmed(&self, subject: Subject) -> usize {
        match subject {
            Subject::Shard => self.count(subject),
            Subject::Channel | Subject::Pattern => {
                self.count(Subject::Channel) + self.count(Subject::Pattern)
            }
        }
    }

    /// Bytes that are held for them.
    pub fn bytes(&self) -> u64 {
        self.held.bytes()
    }
}

/// Every kind, for whoever ends all of them.
pub const SUBJECTS: [Subject; 3] = [Subject::Channel, Subject::Shard, Subject::Pattern];

/// A command with many names, between its steps.
#[derive(Clone, Copy, Debug)]
pub struct Subscribing {
    /// What its names are of.
    pub subject: Subject,
    /// What it does.
    pub what: What,
    /// The argument that its next step begins with.
    pub next: usize,
    /// The command.
    pub id: Option<CommandId>,
}

/// What a command with many names does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Subscribes to its arguments.
    Subscribe,
    /// Unsubscribes from its arguments.
    Unsubscribe,
    /// Unsubscribes from everything of its kind.
    UnsubscribeAll,
    /// RESET: unsubscribes from everything, then replies.
    Reset,
}
