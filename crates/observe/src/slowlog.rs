//! The slow log: the last slow commands, one log for all workers. The worker itself decides whether
//! a command is slow, so only slow commands take the lock.

use base::sync::{Mutex, MutexGuard};
use std::collections::VecDeque;

/// Maximum number of arguments of an entry, including the note about omitted ones.
pub const ARGS_MAX: usize = 32;
/// Maximum bytes of an argument, not including the note about omitted bytes.
pub const ARG_BYTES_MAX: usize = 128;

/// One slow command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number; a reset does not restart the numbers.
    pub id: u64,
    /// When it was executed, in seconds since 1970.
    pub unix_s: i64,
    /// The logged quantity: microseconds, or bytes.
    pub value: u64,
    /// How long it waited beside its execution, microseconds; 0 in the logs of sizes.
    pub waited_us: u64,
    /// Its arguments, truncated.
    pub args: Vec<Vec<u8>>,
    /// Address of the client.
    pub client: String,
    /// Name of the client.
    pub name: Vec<u8>,
}

impl Entry {
    /// Bytes that it takes.
    fn bytes(&self) -> usize {
        let args: usize = self.args.iter().map(Vec::capacity).sum();
        let list = self.args.capacity() * size_of::<Vec<u8>>();
        size_of::<Self>() + list + args + self.client.capacity() + self.name.capacity()
    }
}

/// The log.
#[derive(Debug)]
pub struct Slowlog(Mutex<Log>);

#[derive(Debug)]
struct Log {
    entries: VecDeque<Entry>,
    next_id: u64,
    len_max: usize,
    /// Of the entries.
    bytes: usize,
}

impl Log {
    /// Takes out the oldest entries beyond the maximum. They are dropped when nobody waits.
    fn cut(&mut self) -> VecDeque<Entry> {
        let cut = self.entries.split_off(self.len_max.min(self.entries.len()));
        self.bytes -= cut.iter().map(Entry::bytes).sum::<usize>();
        cut
    }
}

impl Slowlog {
    /// A log of at most `len_max` entries.
    pub fn new(len_max: usize) -> Self {
        Slowlog(Mutex::new(Log { entries: VecDeque::new(), next_id: 0, len_max, bytes: 0 }))
    }

    /// Adds a command: the logged quantity, and the time it waited in microseconds. Evicts the
    /// oldest entry if the log is full. Of each argument come its first
    /// bytes, at least [`ARG_BYTES_MAX`] of a longer one, and its length. The name is cut, too.
    pub fn add<'a>(
        &self,
        unix_s: i64,
        (value, waited_us): (u64, u64),
        args: impl ExactSizeIterator<Item = (&'a [u8], usize)>,
        client: &str,
        name: &[u8],
    ) {
        // Copy before taking the lock.
        let (args, client, name) = (cut(args), client.to_owned(), cut_arg((name, name.len())));
        let mut log = self.lock();
        let id = log.next_id;
        log.next_id += 1;
        let entry = Entry { id, unix_s, value, waited_us, args, client, name };
        log.bytes += entry.bytes();
        log.entries.push_front(entry);
        let cut = log.cut();
        drop(log);
        drop(cut);
    }

    /// The newest entries first, `count` of them at most.
    pub fn newest(&self, count: usize) -> Vec<Entry> {
        self.lock().entries.iter().take(count).cloned().collect()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Bytes that the entries take. O(1).
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// True if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all entries.
    pub fn reset(&self) {
        let mut log = self.lock();
        log.bytes = 0;
        let all = std::mem::take(&mut log.entries);
        drop(log);
        drop(all);
    }

    /// Changes the maximum number of entries and drops the oldest ones beyond it.
    pub fn set_len_max(&self, len_max: usize) {
        let mut log = self.lock();
        log.len_max = len_max;
        let cut = log.cut();
        log.entries.shrink_to_fit();
        drop(log);
        drop(cut);
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        // No code panics in the middle of an update under this lock, so poisoned data is
        // consistent.
        match self.0.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

/// At most [`ARGS_MAX`] arguments of at most [`ARG_BYTES_MAX`] bytes; notes say how much is
/// omitted.
fn cut<'a>(args: impl ExactSizeIterator<Item = (&'a [u8], usize)>) -> Vec<Vec<u8>> {
    let count = args.len();
    let kept = if count > ARGS_MAX { ARGS_MAX - 1 } else { count };
    // Not `collect`: it would keep the memory of a vector of all arguments for the few that stay.
    let mut all: Vec<Vec<u8>> = Vec::with_capacity(kept + 1);
    all.extend(args.take(kept).map(cut_arg));
    if kept < count {
        all.push(format!("... ({} more arguments)", count - kept).into_bytes());
    }
    all
}

/// At most [`ARG_BYTES_MAX`] of the bytes of an argument, which is `len` long.
pub(crate) fn cut_arg((start, len): (&[u8], usize)) -> Vec<u8> {
    if len <= ARG_BYTES_MAX {
        return start.to_vec();
    }
    let mut kept = start[..ARG_BYTES_MAX].to_vec();
    kept.extend_from_slice(format!("... ({} more bytes)", len - ARG_BYTES_MAX).as_bytes());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_of(args: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let log = Slowlog::new(1);
        log.add(1, (2, 0), args.iter().map(|arg| (&arg[..], arg.len())), "127.0.0.1:1", b"bob");
        log.newest(1).remove(0).args
    }

    /// DEL with 31, 32 and 40 keys, as redis-server 7.0 logs it.
    #[test]
    fn arguments_beyond_the_limit_are_counted() {
        let args = |keys: usize| -> Vec<Vec<u8>> {
            let keys = (0..keys).map(|n| format!("k{n}").into_bytes());
            std::iter::once(b"del".to_vec()).chain(keys).collect()
        };
        assert_eq!(log_of(&args(31)), args(31));
        let logged = log_of(&args(32));
        assert_eq!(logged.len(), ARGS_MAX);
        assert_eq!(logged[30], b"k29");
        assert_eq!(logged[31], b"... (2 more arguments)");
        assert_eq!(log_of(&args(40))[31], b"... (10 more arguments)");
    }

    /// GET with a key of 128, 129 and 1000 bytes, as redis-server 7.0 logs it.
    #[test]
    fn bytes_beyond_the_limit_are_counted() {
        let logged = |len| log_of(&[b"get".to_vec(), vec![b'x'; len]])[1].clone();
        assert_eq!(logged(128), [b'x'; 128]);
        assert_eq!(logged(129)[128..], *b"... (1 more bytes)");
        assert_eq!(logged(1000)[128..], *b"... (872 more bytes)");
    }

    #[test]
    fn an_entry_of_many_arguments_takes_the_memory_of_those_it_keeps() {
        let args: Vec<(&[u8], usize)> = vec![(b"arg", 3); 50_000];
        assert!(cut(args.into_iter()).capacity() <= ARGS_MAX + 1);
    }

    #[test]
    fn the_newest_entries_come_first_and_the_oldest_are_dropped() {
        let log = Slowlog::new(4);
        for n in 0..6u64 {
            log.add(n as i64, (n, 0), [(&b"ping"[..], 4)].into_iter(), "client", b"");
        }
        let ids = |log: &Slowlog| log.newest(usize::MAX).iter().map(|e| e.id).collect::<Vec<_>>();
        assert_eq!(ids(&log), [5, 4, 3, 2]);
        assert_eq!(log.newest(1).len(), 1);
        log.set_len_max(2);
        assert_eq!(ids(&log), [5, 4]);
        log.reset();
        assert!(log.is_empty());
        log.add(9, (9, 0), [(&b"ping"[..], 4)].into_iter(), "client", b"name");
        assert_eq!(ids(&log), [6], "numbers go on after a reset");
        log.add(9, (9, 0), [(&b"ping"[..], 4)].into_iter(), "client", &vec![b'n'; 1_000_000]);
        let name = log.newest(1).remove(0).name;
        assert!(name.ends_with(b"nnn... (999872 more bytes)") && name.capacity() < 1_000);
        log.set_len_max(0);
        log.add(9, (9, 0), [(&b"ping"[..], 4)].into_iter(), "client", b"");
        assert_eq!(log.len(), 0);
    }

    /// Whatever is added and dropped, it says what its entries take.
    #[test]
    fn the_bytes_are_those_of_the_entries() {
        let log = Slowlog::new(5);
        let says = |log: &Slowlog| (log.bytes(), log.lock().entries.iter().map(Entry::bytes).sum());
        for n in 0..12usize {
            let arg = vec![b'x'; 20 * n];
            log.add(0, (0, 0), vec![(&arg[..], arg.len()); 3 * n].into_iter(), "c", &arg);
            let (said, sum): (_, usize) = says(&log);
            assert!(said == sum && said > n * 20, "{said} instead of {sum}");
        }
        log.set_len_max(2);
        let (said, sum) = says(&log);
        assert!(said == sum && said > 2 * 32 * 128, "{said} instead of {sum}");
        log.reset();
        assert_eq!(log.bytes(), 0);
    }
}
