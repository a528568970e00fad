//! Publish and subscribe at one worker: which of its connections subscribe to what, messages that
//! are being delivered, and whom it has to tell of messages.

use crate::pubsub::inbox::{Inbox, Published};
use crate::pubsub::names::{Name, Named, PARTS, Table, part_of, remove_from};
use crate::pubsub::queue::Queue;
use crate::pubsub::subscribers::Subscriber;
use base::sync::Arc;
use command::ops::Subject;
use driver::ConnId;

/// A worker's part in publish and subscribe.
#[derive(Debug, Default)]
pub struct Local {
    /// Subscribers by name, each list in the order of the connections' tokens; in parts, which are
    /// made when the first client subscribes.
    tables: [Vec<Table<Vec<Subscriber>>>; 3],
    /// Messages taken from the inbox and not delivered.
    pub queue: Queue,
    /// The last message that had come when the request of a client that listens gave up its locks:
    /// what its reply shows is older than all that follow.
    pub cut: u64,
    /// What delivery may still take of this turn, nanoseconds, about.
    pub budget_ns: u64,
    /// Sessions whose pushes wait until they may be written.
    pub queued: Vec<ConnId>,
    /// Workers to be told of messages.
    pub touched: Vec<usize>,
    /// Messages are delivered, and workers told, behind the window.
    pub is_scheduled: bool,
    /// The window is through: messages are delivered before this turn sends.
    pub is_due: bool,
    /// Messages for clients that have moved on.
    pub strays: Vec<Arc<Published>>,
    /// Scratch: who receives a message.
    pub receivers: Vec<u32>,
}

impl Local {
    fn table(&mut self, subject: Subject, hash: u64) -> &mut Table<Vec<Subscriber>> {
        let parts = &mut self.tables[subject as usize];
        if parts.is_empty() {
            parts.resize_with(PARTS, Table::default);
        }
        &mut parts[part_of(hash)]
    }

    /// A connection subscribes.
    pub fn join(&mut self, subject: Subject, name: &Name, subscriber: Subscriber) {
        let table = self.table(subject, name.parts().0);
        // (Most names have one subscriber; a list that grows by itself begins with room for four.)
        let list = table.entry(name.clone()).or_insert_with(|| Vec::with_capacity(1));
        let token = subscriber.conn.token();
        match list.binary_search_by_key(&token, |s| s.conn.token()) {
            Ok(at) => list[at] = subscriber,
            Err(at) => list.insert(at, subscriber),
        }
    }

    /// A connection subscribes no more.
    pub fn leave(&mut self, subject: Subject, name: &Name, conn: ConnId) {
        let table = self.table(subject, name.parts().0);
        let Some(list) = table.get_mut(name as &dyn Named) else { return };
        if let Ok(at) = list.binary_search_by_key(&conn.token(), |s| s.conn.token()) {
            list.remove(at);
        }
        if list.is_empty() {
            remove_from(table, name);
        }
    }

    /// Who subscribes.
    pub fn subscribers(&self, subject: Subject, name: &Name) -> &[Subscriber] {
        let part = self.tables[subject as usize].get(part_of(name.parts().0));
        part.and_then(|table| table.get(name as &dyn Named)).map_or(&[], Vec::as_slice)
    }

    /// True if messages wait here, or in the worker's inbox.
    #[inline]
    pub fn has_posts(&self, inbox: &Inbox) -> bool {
        inbox.has_posts() || !self.queue.is_empty()
    }

    /// A worker is to be told of a message.
    pub fn touch(&mut self, worker: usize) {
        if !self.touched.contains(&worker) {
            self.touched.push(worker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn conn(index: u32, generation: u32) -> ConnId {
        ConnId { index, generation }
    }

    #[test]
    fn a_connection_stands_once_in_a_list_and_its_place_may_be_reused() {
        let (mut local, name) = (Local::default(), Name::new(7, b"a"));
        for (conn, since) in [(conn(5, 1), 1), (conn(2, 1), 2), (conn(5, 1), 3), (conn(5, 2), 4)] {
            local.join(Subject::Channel, &name, Subscriber { conn, since });
        }
        let list = local.subscribers(Subject::Channel, &name).to_vec();
        let all: Vec<_> = list.iter().map(|s| (s.conn.index, s.since)).collect();
        assert_eq!(all, [(2, 2), (5, 3), (5, 4)]);
        local.leave(Subject::Channel, &name, conn(5, 1));
        local.leave(Subject::Channel, &name, conn(9, 1));
        assert_eq!(local.subscribers(Subject::Channel, &name).len(), 2);
        assert!(local.subscribers(Subject::Shard, &name).is_empty());
        local.leave(Subject::Channel, &name, conn(5, 2));
        local.leave(Subject::Channel, &name, conn(2, 1));
        assert!(local.tables[0].iter().all(Table::is_empty));
    }
}
