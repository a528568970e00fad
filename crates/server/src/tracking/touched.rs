//! A key that has changed, on its way to those who track it.

use crate::pubsub::names::Name;
use crate::sessions::card::ClientCard;
use base::sync::Arc;

/// A key that has changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Touched {
    /// The key; none if any may have changed.
    pub key: Option<Name>,
    /// Why those who are listed want to be told.
    pub wanted: Wanted,
    /// NOLOOP: whoever has made the change knows of it. (Nobody has made it if the key was due, or
    /// is only forgotten here.)
    pub is_made: bool,
    /// The message is for this client, as another one has wished.
    pub target: Option<Target>,
}

/// Why a client wants to be told of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// It has read it.
    Read,
    /// The key begins with a prefix of its.
    Prefix,
    /// It tracks whatever it be.
    Always,
}

/// The client of a redirection.
#[derive(Clone, Debug)]
pub struct Target(pub Arc<ClientCard>);

impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Touched {
    /// A key has changed, or is forgotten.
    pub fn key(name: Name, wanted: Wanted, is_made: bool) -> Self {
        Self { key: Some(name), wanted, is_made, target: None }
    }

    /// Bytes of it.
    pub fn bytes(&self) -> u64 {
        self.key.as_ref().map_or(0, |key| key.text().len() as u64)
    }
}
