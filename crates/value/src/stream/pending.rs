//! Entries that were delivered and not acknowledged.

use super::consumer::ConsumerId;
use super::id::StreamId;
use super::rows::Row;

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The entry, which may be gone.
    pub id: StreamId,
    /// When it was delivered last, in milliseconds since the epoch.
    pub at_ms: i64,
    /// How often.
    pub count: u64,
    /// To whom; [`ConsumerId::NOBODY`] once it was released.
    pub consumer: ConsumerId,
}

impl Row for Pending {
    fn id(&self) -> StreamId {
        self.id
    }
}
