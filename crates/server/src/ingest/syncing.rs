//! The connections of a worker which wait for syncs.

use driver::ConnId;

/// The connections of a worker whose acknowledgements mean *fsynced*.
pub(crate) struct Syncing {
    pub conns: Vec<ConnId>,
    /// The lowest number of the journal that one of them waits for, or more; `u64::MAX` for none.
    pub lowest: u64,
}

impl Default for Syncing {
    fn default() -> Self {
        Self { conns: Vec::new(), lowest: u64::MAX }
    }
}

impl Syncing {
    /// There is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.conns.is_empty()
    }

    /// A producer has asked for this level.
    pub fn add(&mut self, conn: ConnId) {
        self.conns.push(conn);
    }

    /// The connection has ended.
    pub fn remove(&mut self, conn: ConnId) {
        self.conns.retain(|other| *other != conn);
    }
}
