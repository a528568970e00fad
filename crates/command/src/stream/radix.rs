//! The index that Redis keeps of a stream's pages, as far as XINFO tells of it.

use value::StreamId;

/// Bytes of an id in Redis's index.
const ID_BYTES: usize = 16;

/// The keys and nodes of the radix tree in which Redis would keep the pages of a stream: a key is
/// an id of 16 bytes; a node is a run of bytes without a fork, a fork, or an end.
#[derive(Default)]
pub(super) struct Index {
    keys: u64,
    nodes: u64,
    last: Option<[u8; ID_BYTES]>,
    /// How many bytes are before the forks on the way to the last key.
    forks: Vec<usize>,
}

impl Index {
    /// The next page begins with this id. O(1) on average.
    pub fn add(&mut self, id: StreamId) {
        let key = id.to_bytes();
        if let Some(last) = self.last.replace(key) {
            self.end(key.iter().zip(&last).take_while(|(a, b)| a == b).count());
        }
    }

    /// The last key is one; the next one shares so many bytes with it.
    fn end(&mut self, shared: usize) {
        let fork = self.forks.last().map_or(shared, |fork| shared.max(*fork));
        self.count_end(Some(fork));
        while let Some(&fork) = self.forks.last()
            && fork > shared
        {
            self.forks.pop();
            let above = self.forks.last().map_or(shared, |above| shared.max(*above));
            self.nodes += 1 + u64::from(fork > above + 1);
        }
        if self.forks.last() != Some(&shared) {
            self.forks.push(shared);
        }
    }

    /// A key's end, and the run between it and the fork above.
    fn count_end(&mut self, fork: Option<usize>) {
        self.keys += 1;
        self.nodes += 1 + u64::from(fork.is_none_or(|fork| fork + 1 < ID_BYTES));
    }

    /// Keys and nodes.
    pub fn finish(mut self) -> (u64, u64) {
        if self.last.is_none() {
            return (0, 1);
        }
        self.count_end(self.forks.last().copied());
        while let Some(fork) = self.forks.pop() {
            let start = self.forks.last().map_or(0, |above| above + 1);
            self.nodes += 1 + u64::from(fork > start);
        }
        (self.keys, self.nodes)
    }
}
