//! What groups still refer to when entries are deleted.

use value::stream::Group;
use value::{Stream, StreamId};

use crate::parse::is;

/// What becomes of the pending entries of groups when entries are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum References {
    /// They stay.
    Keep,
    /// They go.
    Delete,
    /// Only what every group has acknowledged is deleted.
    Acked,
}

impl References {
    pub fn parse(word: &[u8]) -> Option<Self> {
        if is(word, "KEEPREF") {
            Some(Self::Keep)
        } else if is(word, "DELREF") {
            Some(Self::Delete)
        } else if is(word, "ACKED") {
            Some(Self::Acked)
        } else {
            None
        }
    }
}

/// Deletes an entry of a stream that was captured: `None` if it is not there, false if a group
/// still needs it.
pub(super) fn delete(stream: &mut Stream, id: StreamId, how: References) -> Option<bool> {
    if how == References::Delete {
        let groups = stream.groups().len();
        for at in 0..groups {
            if stream.group(at).get(id).is_some() {
                stream.edit_group(at, |group| group.take(id));
            }
        }
    }
    if !stream.contains(id) {
        return None;
    }
    if how == References::Acked && !stream.groups().all(|(_, group)| has_acknowledged(group, id)) {
        return Some(false);
    }
    Some(stream.delete(id))
}

/// Whether a group has read an entry, and nobody of it has it pending.
fn has_acknowledged(group: &Group, id: StreamId) -> bool {
    id <= group.last && group.get(id).is_none()
}
