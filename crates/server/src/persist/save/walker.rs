//! The thread that walks over a snapshot, writes what it finds into buffers, and sends them to the
//! worker that writes the file.

use crate::ingest::kept;
use crate::persist::backup::SNAPSHOT;
use crate::persist::delay::sleep_for_keys;
use crate::persist::save::FromWalker;
use crate::persist::save::job::{Format, Handed, Job, Ready};
use crate::persist::save::pipe::{BUFFER_BYTES, Order, Pipe};
use crate::shared::{PanicAt, Shared, VERSION};
use crate::worker::message::Message;
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;
use base::{DbIndex, MonoNs};
use command::REDIS_VERSION;
use command::save::{CommandFile, FileOptions, SavedFile, SnapshotFile};
use driver::Clock;
use journal::moment;
use journal::stream::{AUX_ID, AUX_OFFSET};
use keyspace::Entry;
use keyspace::snapshot::{Root, Sink, Step};
use offline::{Copied, Digest, Manifest};

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// How long the walk waits when every slot that is left is held for long.
const NAP: Duration = Duration::from_millis(1);
/// How long the thread keeps a processor for which a worker waits. Without this, Linux lets it run
/// until the next tick of the scheduler, which comes every 4 ms on many systems.
const BURST_NS: u64 = 1_000_000;

/// Starts a thread that will walk, and send what it writes to `worker`, when it gets its job.
pub(crate) fn start(shared: &Arc<Shared>, worker: usize) -> std::io::Result<Ready> {
    let (pipe, job) = (Arc::new(Pipe::waiting(&shared.saves.buffer_bytes)), Handed::default());
    let (ours, to, its) = (Arc::clone(shared), Arc::clone(&pipe), Arc::clone(&job));
    let number = shared.walkers.start(&pipe, move |number| {
        let walker = Walker { shared: ours, worker, number, pipe: to };
        walker.pipe.first_order();
        let job: Option<Job> = its.lock().expect("no panic while it is held").take();
        match job {
            Some(job) => walker.run(job),
            None => walker.tell(FromWalker::Over),
        }
    })?;
    Ok(Ready::of(number, pipe, job))
}

struct Walker {
    shared: Arc<Shared>,
    worker: usize,
    number: u64,
    pipe: Arc<Pipe>,
}

impl Walker {
    fn run(self, mut job: Job) {
        if let Some(format) = job.file {
            self.write_or_fail(&mut job, format);
        }
        job.snapshot.abort();
        let (mut nothing, mut burst) = (Nothing, Burst::begin(job.clock.clone()));
        while self.pipe.order() != Order::Quit {
            burst.yield_in_time();
            match job.snapshot.step(&mut job.access, &mut nothing) {
                Step::More => {}
                Step::Waits => base::sync::thread::sleep(NAP),
                Step::Complete => break,
            }
        }
        drop(job); // before the worker joins
        self.tell(FromWalker::Over);
    }

    /// Writes the file. A panic costs this file alone, and the walk goes on without it: while
    /// nobody walks, writers capture what they change, and wait once they reach the bound.
    ///
    /// What a panic leaves behind is whole:
    /// - The file and its digest are dropped by the unwinding. The worker gives its output up, and
    ///   takes no further bytes.
    /// - The guard of the slot is dropped, too. The section may still be entered, so it is left.
    /// - Snapshot and walk expect a sink which panics: an entry leaves its queue, and a slot's
    ///   position moves, behind the sink. What the next steps meet again is not passed to anybody.
    /// - No lock of the pipe, of the job or of the server is held while entries are written.
    ///
    /// A panic of the walk without a file is not caught here, and ends the process: nobody else
    /// could end that walk.
    fn write_or_fail(&self, job: &mut Job, format: Format) {
        let write = AssertUnwindSafe(|| match format {
            Format::Rdb(options) => self.write(job, begin(job, options)),
            Format::Commands => {
                self.write(job, CommandFile::begin(job.base_of, &job.functions));
            }
        });
        if catch_unwind(write).is_err() {
            job.access.leave();
            self.tell(FromWalker::Failed("the thread that saves has panicked".into()));
        }
    }

    /// Writes the file, unless it is told to stop.
    fn write<F: SavedFile>(&self, job: &mut Job, mut file: F) {
        let file = &mut file;
        let digest = &mut job.manifest_of.is_some().then(Digest::default);
        let mut burst = Burst::begin(job.clock.clone());
        if !self.producers(job, file, digest) {
            return;
        }
        let mut panics_after = self.armed_panic();
        let mut is_complete = false;
        while !is_complete {
            if self.pipe.order() != Order::Write {
                return;
            }
            let step = match &mut panics_after {
                None => job.snapshot.step(&mut job.access, file),
                Some(left) => {
                    job.snapshot.step(&mut job.access, &mut Panics { file: &mut *file, left })
                }
            };
            match step {
                Step::More => {}
                Step::Waits => base::sync::thread::sleep(NAP),
                Step::Complete => is_complete = true,
            }
            loop {
                burst.yield_in_time();
                self.note(job, file);
                if file.len() >= BUFFER_BYTES && !self.send(file, digest) {
                    return;
                }
                if !file.step() {
                    break;
                }
                job.snapshot.release_copied(file.take_freed());
            }
            if let Some(failure) = file.failure() {
                return self.tell(FromWalker::Failed(failure.to_string().into()));
            }
        }
        file.end();
        if self.send(file, digest) {
            let manifest = digest.take().map(|digest| manifest(job, file.total(), digest));
            self.tell(FromWalker::End(manifest));
        }
    }

    /// Writes the numbers of producers; false if nothing is wanted any more.
    fn producers(
        &self,
        job: &mut Job,
        file: &mut impl SavedFile,
        digest: &mut Option<Digest>,
    ) -> bool {
        let mut producers = std::mem::take(&mut job.producers);
        producers.sort_unstable_by_key(|(producer, _)| producer.number());
        producers.iter().all(|(producer, number)| {
            if let Some(field) = kept::field_of(producer.name(), *number) {
                file.producer(&field);
            }
            file.len() < BUFFER_BYTES || self.send(file, digest)
        })
    }

    /// DEBUG PANIC-IN-COMMAND SAVER: behind how many entries this save panics.
    fn armed_panic(&self) -> Option<u32> {
        let is_armed = self.shared.armed.load(Relaxed);
        let panic = is_armed.then(|| self.shared.disarm(|at| at == PanicAt::Saver)).flatten()?;
        Some(panic.after_changes)
    }

    /// Sends what is written; false if nothing is wanted any more.
    fn send(&self, file: &mut impl SavedFile, digest: &mut Option<Digest>) -> bool {
        let Some(empty) = self.pipe.send() else { return false };
        let bytes = file.take(empty);
        if let Some(digest) = digest {
            digest.update(&bytes);
        }
        self.tell(FromWalker::Bytes(bytes));
        true
    }

    /// Publishes how far the save is.
    fn note(&self, job: &Job, file: &impl SavedFile) {
        let progress = &self.shared.saves.progress;
        let keys = file.keys();
        let before = progress.keys.swap(keys, Relaxed);
        progress.bytes.store(file.total(), Relaxed);
        progress.captured_peak.fetch_max(job.snapshot.captured_bytes(), Relaxed);
        if job.is_delayed && keys > before {
            let goes_on = || self.pipe.order() == Order::Write;
            sleep_for_keys(keys - before, || self.key_delay_us(), goes_on);
        }
    }

    /// `rdb-key-save-delay`.
    fn key_delay_us(&self) -> u64 {
        let config = self.shared.config.lock();
        config.expect("no panic while the configuration is held").save_delay_us
    }

    fn tell(&self, what: FromWalker) {
        self.shared.post(self.worker, Message::Saver { number: self.number, what });
    }
}

/// How long the thread has run without a wait.
struct Burst {
    clock: Clock,
    since: MonoNs,
}

impl Burst {
    fn begin(clock: Clock) -> Self {
        Self { since: clock.now(), clock }
    }

    /// Lets others run, if it is time. Returns at once if nobody waits for this processor.
    fn yield_in_time(&mut self) {
        if self.clock.now().since(self.since) >= BURST_NS {
            base::sync::thread::yield_now();
            self.since = self.clock.now();
        }
    }
}

/// The file with its beginning.
fn begin(job: &Job, options: FileOptions) -> SnapshotFile {
    let (ctime, used) = ((job.now.0 / 1000).to_string(), job.used_bytes.to_string());
    let bits = usize::BITS.to_string();
    let moment = job.base_of.map(|extent| extent.moment.text());
    let position = job.base_of.and_then(|extent| extent.position);
    let position = position.map(|at| (at.id.to_string(), at.offset.to_string()));
    let mut aux: Vec<(&str, &[u8])> = vec![
        ("redis-ver", REDIS_VERSION.as_bytes()),
        ("redis-bits", bits.as_bytes()),
        ("ctime", ctime.as_bytes()),
        ("used-mem", used.as_bytes()),
        ("aof-base", b"0"),
    ];
    aux.extend(moment.as_ref().map(|text| (moment::AUX, text.as_bytes())));
    if let Some((id, offset)) = &position {
        aux.extend([(AUX_ID, id.as_bytes()), (AUX_OFFSET, offset.as_bytes())]);
    }
    let of = (job.snapshot.databases(), job.now);
    SnapshotFile::begin(options, of, job.recorded, &aux, &job.functions)
}

/// The manifest of a complete backup.
fn manifest(job: &Job, bytes: u64, digest: Digest) -> Vec<u8> {
    let with_keys = job.snapshot.databases().iter().filter(|db| db.keys > 0);
    let copied = Copied {
        bytes,
        sha256: digest.finish(),
        keys: with_keys.map(|db| (db.db.0, db.keys)).collect(),
        created_s: Some(job.now.0 / 1000),
    };
    let run_id = job.manifest_of.as_deref().unwrap_or_default();
    Manifest::new((VERSION, run_id), SNAPSHOT, copied).text()
}

/// Takes nothing: for a walk that only has to end.
struct Nothing;

impl Sink for Nothing {
    fn small(&mut self, _db: DbIndex, _entry: Entry<'_>) {}

    fn large(&mut self, _db: DbIndex, _entry: Entry<'_>, _value: Root) {}
}

/// Panics behind so many entries, where that is worst: a slot's lock may be held.
struct Panics<'f, F> {
    file: &'f mut F,
    left: &'f mut u32,
}

impl<F> Panics<'_, F> {
    fn count(&mut self) {
        assert!(*self.left > 0, "a panic was asked for, in a save");
        *self.left -= 1;
    }
}

impl<F: SavedFile> Sink for Panics<'_, F> {
    fn small(&mut self, db: DbIndex, entry: Entry<'_>) {
        self.count();
        self.file.small(db, entry);
    }

    fn large(&mut self, db: DbIndex, entry: Entry<'_>, value: Root) {
        self.count();
        self.file.large(db, entry, value);
    }
}
