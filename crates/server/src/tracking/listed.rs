//! Connections of each worker that are told of something.

use crate::pubsub::subscribers::Subscriber;
use base::sync::Arc;
use driver::ConnId;

/// Connections of one worker, in the order of their tokens. Shared with the messages that are under
/// way to them, and so replaced when it changes.
pub type Listed = Arc<[Subscriber]>;

/// A list of one connection, or of some in the order of their tokens.
pub fn listed(conns: impl IntoIterator<Item = ConnId>) -> Listed {
    conns.into_iter().map(|conn| Subscriber { conn, since: 0 }).collect::<Vec<_>>().into()
}

/// What a connection takes in a list.
pub const READER_BYTES: u64 = size_of::<Subscriber>() as u64;

/// Connections of one worker.
#[derive(Debug)]
struct OfWorker {
    worker: usize,
    /// In the order of their tokens.
    conns: Vec<ConnId>,
    /// The same, made when they are told of something.
    list: Option<Listed>,
}

/// Connections by their worker.
#[derive(Debug, Default)]
pub struct ByWorker(Vec<OfWorker>);

impl ByWorker {
    /// Adds a connection, which was not there.
    pub fn join(&mut self, worker: usize, conn: ConnId) {
        let Some(of) = self.0.iter_mut().find(|of| of.worker == worker) else {
            return self.0.push(OfWorker { worker, conns: vec![conn], list: None });
        };
        let at = of.conns.partition_point(|other| other.token() < conn.token());
        of.conns.insert(at, conn);
        of.list = None;
    }

    /// Removes a connection.
    pub fn leave(&mut self, worker: usize, conn: ConnId) {
        let Some(at) = self.0.iter().position(|of| of.worker == worker) else { return };
        let of = &mut self.0[at];
        if let Ok(found) = of.conns.binary_search_by_key(&conn.token(), |other| other.token()) {
            of.conns.remove(found);
            of.list = None;
        }
        if of.conns.is_empty() {
            self.0.swap_remove(at);
        }
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lists, none of which is empty.
    pub fn lists(&mut self) -> impl Iterator<Item = (usize, Listed)> {
        self.0.iter_mut().map(|of| {
            let list = of.list.get_or_insert_with(|| listed(of.conns.iter().copied()));
            (of.worker, list.clone())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_come_and_go_in_the_order_of_their_tokens() {
        let conn = |index, generation| ConnId { index, generation };
        let mut all = ByWorker::default();
        let told = |all: &mut ByWorker| -> Vec<(usize, Vec<u64>)> {
            let tokens = |list: Listed| list.iter().map(|s| s.conn.token()).collect();
            all.lists().map(|(worker, list)| (worker, tokens(list))).collect()
        };
        for (worker, conn) in [(1, conn(5, 0)), (0, conn(1, 0)), (1, conn(2, 1)), (1, conn(2, 0))] {
            all.join(worker, conn);
        }
        let second = 1 << 32;
        assert_eq!(told(&mut all), [(1, vec![2, 5, second | 2]), (0, vec![1])]);
        all.leave(1, conn(5, 0));
        all.leave(1, conn(9, 0));
        all.leave(0, conn(1, 0));
        assert_eq!(told(&mut all), [(1, vec![2, second | 2])]);
        all.leave(1, conn(2, 1));
        all.leave(1, conn(2, 0));
        assert!(all.is_empty());
    }
}
