//! The stream of replication, as INFO shows it: its id, and how many bytes it has.
//!
//! An id and an offset name the same data wherever they are met. So there is a new id whenever that
//! could end: when counting begins, because changes before it were not counted; when it ends; and
//! at each start, because what was counted may be lost, and a copy of the files may have gone on,
//! too. At a start the files say up to where the old id still counts (`second`).

use base::sync::atomic::{AtomicU64, Ordering::Relaxed};
use base::sync::{Mutex, MutexGuard, PoisonError};
use journal::{Position, ReplId};

/// The stream of this server.
#[derive(Debug)]
pub struct Stream {
    ids: Mutex<Ids>,
    offset: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
struct Ids {
    id: ReplId,
    second: Option<Position>,
}

/// What INFO shows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The stream, and its bytes so far.
    pub position: Position,
    /// The id before, and up to where the data is the same.
    pub second: Option<Position>,
}

impl Shown {
    /// `master_replid2`.
    pub fn second_id(&self) -> String {
        self.second.map_or_else(|| "0".repeat(40), |second| second.id.to_string())
    }

    /// `second_repl_offset`: the first byte which the id before does not count for, from 1; -1
    /// without one.
    pub fn second_offset(&self) -> i64 {
        self.second.map_or(-1, |second| second.offset.saturating_add(1) as i64)
    }
}

impl Stream {
    /// A stream of this id, which has no bytes.
    pub fn new(id: ReplId) -> Self {
        Self { ids: Mutex::new(Ids { id, second: None }), offset: AtomicU64::new(0) }
    }

    fn ids(&self) -> MutexGuard<'_, Ids> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What INFO shows.
    pub fn shown(&self) -> Shown {
        let ids = self.ids();
        let offset = self.offset.load(Relaxed);
        Shown { position: Position { id: ids.id, offset }, second: ids.second }
    }

    /// It has so many bytes. For worker 0, while it counts them.
    pub(crate) fn publish(&self, offset: u64) {
        self.offset.store(offset, Relaxed);
    }

    /// It goes on under its id behind what was loaded, which ends at this position. For the start
    /// of the server. Returns where the first record stands.
    pub(crate) fn resume(&self, loaded: Option<Position>) -> Position {
        let mut ids = self.ids();
        ids.second = loaded;
        let offset = loaded.map_or(0, |position| position.offset);
        self.offset.store(offset, Relaxed);
        Position { id: ids.id, offset }
    }

    /// Counting begins or ends, or somebody wants another id: nothing of before has this one.
    /// Offsets never fall. Returns where the next record stands.
    pub(crate) fn rename(&self, id: ReplId) -> Position {
        let mut ids = self.ids();
        *ids = Ids { id, second: None };
        Position { id, offset: self.offset.load(Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digit: char) -> ReplId {
        ReplId::parse(digit.to_string().repeat(40).as_bytes()).expect("40 digits")
    }

    #[test]
    fn the_old_id_counts_up_to_what_was_loaded() {
        let (stream, old) = (Stream::new(id('a')), Position { id: id('9'), offset: 50 });
        assert_eq!(
            (stream.shown().second_id(), stream.shown().second_offset()),
            ("0".repeat(40), -1)
        );
        assert_eq!(stream.resume(Some(old)), Position { id: id('a'), offset: 50 });
        stream.publish(70);
        let shown = stream.shown();
        assert_eq!(shown.position, Position { id: id('a'), offset: 70 });
        assert_eq!((shown.second_id(), shown.second_offset()), ("9".repeat(40), 51));
        assert_eq!(stream.rename(id('b')), Position { id: id('b'), offset: 70 });
        assert_eq!(stream.shown().second, None);
        assert_eq!(Stream::new(id('a')).resume(None), Position { id: id('a'), offset: 0 });
    }
}
