//! What the whole server knows of loading: whether it goes on, how far it is, how it ended.

use crate::ingest::kept::{Kept, Unread};
use crate::ingest::producers::Name;
use crate::persist::load::folder::{Found, Place};
use crate::persist::load::functions::{self, Functions};
use base::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use base::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};
use base::sync::thread::JoinHandle;
use base::sync::{Arc, Mutex, MutexGuard, PoisonError};
use base::{MonoNs, UnixMs};
use driver::ConnId;
use journal::Position;
use std::path::{Path, PathBuf};

/// What whoever started the server is told.
#[derive(Debug)]
pub enum News<'a> {
    /// A file is being loaded: it will take longer, and this is how far it is.
    Loading(&'a Progress),
    /// The server serves its clients.
    Ready,
}

/// Told of [`News`]. An error ends the start.
pub type Listener = Box<dyn FnMut(News<'_>) -> Result<(), String> + Send>;

/// What is loaded, and why.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The file; of an append-only file its manifest.
    pub path: PathBuf,
    /// It is an append-only file, which is here.
    pub place: Option<Place>,
    /// DEBUG RELOAD or DEBUG LOADAOF; nothing at the start.
    pub reload: Option<Reload>,
}

/// A file is loaded by a server which has data.
#[derive(Clone, Copy, Debug)]
pub struct Reload {
    /// All keys are removed before.
    pub flushes: bool,
    /// The worker and the session which wait for the end.
    pub asker: (usize, ConnId),
}

/// Loading, at the start and later. Without a file everything stays zero.
#[derive(Default)]
pub struct Load {
    /// A file is being loaded: commands which need the data are refused.
    is_on: AtomicBool,
    plan: Mutex<Plan>,
    started_ns: AtomicU64,
    started_ms: AtomicI64,
    total_bytes: AtomicU64,
    bytes: AtomicU64,
    keys: AtomicU64,
    expired: AtomicU64,
    empty: AtomicU64,
    /// Commands of an append-only file which have failed.
    failed: AtomicU64,
    /// `used-mem` of the file.
    used_memory: AtomicU64,
    /// The number of the last record in the base of an append-only file; 0 if it says none.
    base_number: AtomicU64,
    /// What it says about the stream of replication: the id, and the offset.
    base_position: Mutex<(Vec<u8>, Vec<u8>)>,
    /// Libraries of functions, which this version keeps and does not run.
    functions: Mutex<Functions>,
    /// The numbers of producers, until all files are loaded.
    producers: Mutex<Kept>,
    /// What of the file at hand should say such a number, and cannot be read.
    unread: Mutex<Unread>,
    /// The append-only file that was loaded.
    found: Mutex<Option<Found>>,
    /// Why the start has failed.
    failure: Mutex<Option<String>>,
    listener: Mutex<Option<Listener>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// How far loading is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Since when, Unix milliseconds.
    pub started_ms: i64,
    /// Length of the file.
    pub total_bytes: u64,
    /// Bytes of it whose keys are in the keyspace.
    pub bytes: u64,
    /// Keys loaded.
    pub keys: u64,
    /// Memory of the server that wrote the file, as the file says; 0 if it does not.
    pub used_memory: u64,
    /// Seconds that the rest takes at this pace; at least 1.
    pub seconds_left: u64,
}

impl Progress {
    /// How much of the file is loaded, 0 to 100.
    pub fn percent(&self) -> f64 {
        if self.total_bytes == 0 {
            return 0.0;
        }
        self.bytes as f64 * 100.0 / self.total_bytes as f64
    }
}

/// What the last loading did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loaded {
    /// Keys that were loaded.
    pub keys: u64,
    /// Keys that were left out because their time had come.
    pub expired: u64,
    /// Keys that were left out because they had no elements: old servers have written such.
    pub empty: u64,
}

impl Plan {
    /// A snapshot file is loaded at the start.
    pub fn of_snapshot(path: PathBuf) -> Self {
        Self { path, ..Self::default() }
    }

    /// An append-only file is loaded at the start.
    pub fn of_append_only(place: Place) -> Self {
        Self { path: place.manifest(), place: Some(place), reload: None }
    }
}

impl Load {
    /// A file is to be loaded: from now on clients are refused. Called before the workers run, or
    /// while nothing is loaded; worker 0 then gets [`Message::Load`].
    ///
    /// [`Message::Load`]: crate::worker::message::Message::Load
    pub fn plan(&self, plan: Plan) {
        *held(&self.plan) = plan;
        self.is_on.store(true, Release);
    }

    /// Nothing is loaded, and the server serves its clients: the data is what it was.
    pub(crate) fn give_up(&self) {
        self.is_on.store(false, Release);
    }

    /// True while a file is being loaded, and after that has failed.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Acquire)
    }

    /// True while the server starts, or has failed to.
    pub(crate) fn is_starting(&self) -> bool {
        self.is_on() && held(&self.plan).reload.is_none()
    }

    /// What is loaded, or was.
    pub fn planned(&self) -> Plan {
        held(&self.plan).clone()
    }

    /// Who is told of progress and readiness.
    pub fn set_listener(&self, listener: Listener) {
        *held(&self.listener) = Some(listener);
    }

    /// The server serves its clients from here on.
    ///
    /// # Errors
    /// The listener could not do what it does then: one line.
    pub fn become_ready(&self) -> Result<(), String> {
        self.is_on.store(false, Release);
        self.tell(News::Ready)
    }

    pub(crate) fn tell(&self, news: News<'_>) -> Result<(), String> {
        match &mut *held(&self.listener) {
            Some(listener) => listener(news),
            None => Ok(()),
        }
    }

    /// Begins.
    pub(crate) fn begin(&self, now: MonoNs, unix_ms: UnixMs) {
        self.started_ns.store(now.0, Relaxed);
        self.started_ms.store(unix_ms.0, Relaxed);
        self.take_unread();
        self.take_base_position();
        let keys = [&self.keys, &self.expired, &self.empty, &self.failed];
        for count in keys.into_iter().chain([
            &self.total_bytes,
            &self.bytes,
            &self.used_memory,
            &self.base_number,
        ]) {
            count.store(0, Relaxed);
        }
    }

    /// The data is removed, and so are the libraries of functions.
    pub(crate) fn forget_functions(&self) {
        held(&self.functions).clear();
    }

    pub(crate) fn set_total(&self, bytes: u64) {
        self.total_bytes.store(bytes, Relaxed);
    }

    pub(crate) fn set_used_memory(&self, bytes: u64) {
        self.used_memory.store(bytes, Relaxed);
    }

    /// The file says that it holds the records up to this number.
    pub(crate) fn set_base_number(&self, number: u64) {
        self.base_number.store(number, Relaxed);
    }

    /// That number, if the file says one.
    pub(crate) fn base_number(&self) -> Option<u64> {
        Some(self.base_number.load(Relaxed)).filter(|number| *number > 0)
    }

    /// The file says which stream of replication it is of.
    pub(crate) fn set_base_id(&self, id: &[u8]) {
        held(&self.base_position).0 = id.to_vec();
    }

    /// The file says how far it is in that stream.
    pub(crate) fn set_base_offset(&self, offset: &[u8]) {
        held(&self.base_position).1 = offset.to_vec();
    }

    /// What the file said about the stream of replication.
    pub(crate) fn take_base_position(&self) -> Option<Position> {
        let (id, offset) = std::mem::take(&mut *held(&self.base_position));
        Position::of_fields(&id, &offset)
    }

    /// Counts a part of the file whose keys are in the keyspace.
    pub(crate) fn add(&self, bytes: usize, loaded: Loaded) {
        self.bytes.fetch_add(bytes as u64, Relaxed);
        self.keys.fetch_add(loaded.keys, Relaxed);
        self.expired.fetch_add(loaded.expired, Relaxed);
        self.empty.fetch_add(loaded.empty, Relaxed);
    }

    /// How far loading is; `None` while nothing is loaded.
    pub fn progress(&self, now: MonoNs) -> Option<Progress> {
        if !self.is_on() {
            return None;
        }
        let (total_bytes, bytes) = (self.total_bytes.load(Relaxed), self.bytes.load(Relaxed));
        let elapsed_s = now.since(MonoNs(self.started_ns.load(Relaxed))) as f64 / 1e9;
        let left = total_bytes.saturating_sub(bytes) as f64;
        let seconds_left = if bytes == 0 { 1 } else { (elapsed_s * left / bytes as f64) as u64 };
        Some(Progress {
            started_ms: self.started_ms.load(Relaxed),
            total_bytes,
            bytes,
            keys: self.keys.load(Relaxed),
            used_memory: self.used_memory.load(Relaxed),
            seconds_left: seconds_left.max(1),
        })
    }

    /// What was loaded so far.
    pub fn loaded(&self) -> Loaded {
        Loaded {
            keys: self.keys.load(Relaxed),
            expired: self.expired.load(Relaxed),
            empty: self.empty.load(Relaxed),
        }
    }

    /// Keeps a library of functions, unless it is there.
    pub(crate) fn add_function(&self, library: Vec<u8>) {
        held(&self.functions).add(functions::name_of(&library), library.into());
    }

    /// Changes the libraries as the commands of a file say.
    pub(crate) fn change_functions(&self, change: impl FnOnce(&mut Functions)) {
        change(&mut held(&self.functions));
    }

    /// Counts commands of a file which have failed; returns how many there were before.
    pub(crate) fn count_failed(&self, commands: u64) -> u64 {
        self.failed.fetch_add(commands, Relaxed)
    }

    /// Commands which have failed.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Relaxed)
    }

    /// Loading at the start begins: so many producers are kept.
    pub(crate) fn keep_producers(&self, most: usize) {
        *held(&self.producers) = Kept::new(most);
    }

    /// A file says up to which number it holds the messages of a producer.
    pub(crate) fn add_producer(&self, name: Name, number: u64) {
        held(&self.producers).add(name, number);
    }

    /// The file at hand has lines about producers which cannot be read.
    pub(crate) fn add_unread(&self, unread: Unread) {
        held(&self.unread).append(unread);
    }

    /// Those of a file which is loaded.
    pub(crate) fn take_unread(&self) -> Unread {
        std::mem::take(&mut held(&self.unread))
    }

    /// What the files have said of producers.
    pub(crate) fn take_producers(&self) -> Vec<(Name, u64)> {
        held(&self.producers).take()
    }

    /// The libraries of functions that the file had. A later snapshot writes them again.
    pub fn functions(&self) -> Vec<Arc<[u8]>> {
        held(&self.functions).to_vec()
    }

    /// An append-only file was loaded, or there is none yet.
    pub(crate) fn set_found(&self, found: Found) {
        *held(&self.found) = Some(found);
    }

    /// The append-only file that was loaded, for whoever writes it from now on; `None` if a
    /// snapshot was loaded.
    pub fn take_found(&self) -> Option<Found> {
        held(&self.found).take()
    }

    /// The start has failed; the first reason counts.
    pub(crate) fn fail(&self, why: String) {
        held(&self.failure).get_or_insert(why);
    }

    /// Why the start has failed, if it has: one line.
    pub fn failure(&self) -> Option<String> {
        held(&self.failure).clone()
    }

    pub(crate) fn add_thread(&self, thread: JoinHandle<()>) {
        held(&self.threads).push(thread);
    }

    /// Waits for the end of the loader threads: they have ended once the last of them has said so,
    /// and end soon once the workers have ended.
    pub(crate) fn join(&self) {
        for thread in std::mem::take(&mut *held(&self.threads)) {
            thread.join().expect("a loader thread catches its panics");
        }
    }
}

/// A panic under these locks leaves their data complete.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file that is loaded at the start, if the settings name one.
pub fn file_of(dir: &Path, name: &Path) -> Option<PathBuf> {
    (!name.as_os_str().is_empty()).then(|| dir.join(name))
}
