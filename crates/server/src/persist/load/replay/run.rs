//! Runs commands of an append-only file: their handlers under locks, without a session and without
//! replies. What is due is treated like any other key, because the file says itself when a key was
//! removed.

use crate::execute::steps::run_through;
use crate::log;
use crate::persist::delay::sleep_for_keys;
use crate::persist::load::replay::chunk::{Chunk, Command, Needs};
use crate::persist::load::section::Section;
use crate::persist::load::state::Loaded;
use crate::shared::Shared;
use base::sync::Arc;
use base::{SlotId, UnixMs};
use command::spec::{TakeFn, WaitFn};
use command::{Ctx, Done, Error, Full, Handler, ServerOp, Tally};
use keyspace::{Due, Guard, Keyspace, PrefetchTarget};
use rdb::file::Shown;
use resp::{Args, OutBuf, OutPos, Proto, Reply};

/// Commands whose slots and buckets are prefetched together, and which run within one section.
const BATCH: usize = 64;
/// Failed commands that are logged, in all.
const LOGGED_MAX: u64 = 16;
/// Bytes of a reply whose memory is kept.
const REPLY_KEPT: usize = 64 << 10;

/// A thread's means to run commands.
pub(crate) struct Runner {
    section: Section,
    shared: Arc<Shared>,
    /// The file, for the log.
    file: String,
    handling: Handling,
    slots: Vec<SlotId>,
}

/// What handlers use beside the data.
struct Handling {
    settings: command::Settings,
    tally: Tally,
    out: OutBuf,
    now: UnixMs,
}

impl Runner {
    pub(crate) fn new(
        mut section: Section,
        shared: &Arc<Shared>,
        file: String,
        settings: &command::Settings,
        random: u64,
    ) -> Self {
        section.exempt_from_turns();
        let handling = Handling {
            settings: settings.clone(),
            tally: Tally::new(random),
            out: OutBuf::new(),
            now: UnixMs(0),
        };
        Self { section, shared: shared.clone(), file, handling, slots: Vec::new() }
    }

    /// Runs all commands of a chunk, in order; fewer if the server ends.
    pub(crate) fn run(&mut self, chunk: &Chunk) {
        let keyspace = Arc::clone(&self.shared.keyspace);
        let commands = chunk.commands();
        let (mut at, is_delayed) = (0, self.key_delay_us() > 0);
        while at < commands.len() && !self.section.is_cancelled() {
            let (from, end) = (at, batch_end(commands, at));
            prefetch(&keyspace, &commands[at..end]);
            self.handling.now = UnixMs(driver::clock::unix_ns() / 1_000_000);
            while at < end {
                let count = commands[at].count as usize;
                self.one(&keyspace, chunk, at, count);
                at += count;
            }
            self.section.leave();
            if is_delayed {
                let goes_on = || !self.section.is_cancelled();
                sleep_for_keys((end - from) as u64, || self.key_delay_us(), goes_on);
            }
        }
        self.shared.load.add(chunk.len(), Loaded::default());
    }

    /// `key-load-delay`, here of each command.
    fn key_delay_us(&self) -> u64 {
        let config = self.shared.config.lock();
        config.expect("no panic while the configuration is held").load_delay_us
    }

    /// A command, or `count` commands as one.
    #[inline]
    fn one(&mut self, keyspace: &Keyspace, chunk: &Chunk, at: usize, count: usize) {
        let command = &chunk.commands()[at];
        let (now, mut failed) = (self.handling.now, Failed::default());
        let handling = &mut self.handling;
        let run = |guard: &mut Guard<'_>| {
            guard.set_due(Due::Ignore);
            for number in at..at + count {
                let command = &chunk.commands()[number];
                if let Err(error) = handling.command(guard, command, chunk.args(number)) {
                    failed.add(number, error);
                }
            }
            guard.finish();
        };
        match command.needs {
            Needs::One(slot) => _ = self.section.with_slot(slot, now, run),
            Needs::Many => {
                collect(&mut self.slots, keyspace, chunk, at, count);
                _ = self.section.with_slots(&self.slots, now, run);
            }
            Needs::World => {
                _ = self.section.with_world(now, run);
                self.section.reclaim();
            }
        }
        if let Some((number, error)) = failed.first {
            self.log(chunk, number, &error, failed.count);
        }
    }

    /// Like Redis, which goes on behind a command that fails as well.
    #[cold]
    fn log(&self, chunk: &Chunk, number: usize, error: &Error, count: u64) {
        let load = &self.shared.load;
        if load.count_failed(count) < LOGGED_MAX {
            let (offset, name) = (chunk.commands()[number].at, Shown(chunk.args(number).get(0)));
            log::warning(format_args!(
                "{}: at byte {offset}: the command '{name}' has failed, and is left out: {}",
                self.file,
                Shown(&error.text())
            ));
        }
    }
}

/// The commands which failed of those that ran as one.
#[derive(Default)]
struct Failed {
    first: Option<(usize, Error)>,
    count: u64,
}

impl Failed {
    #[cold]
    fn add(&mut self, number: usize, error: Error) {
        self.count += 1;
        self.first.get_or_insert((number, error));
    }
}

/// The end of a batch which begins with this command: transactions are not divided.
fn batch_end(commands: &[Command], from: usize) -> usize {
    let mut end = from;
    while end < commands.len() && end - from < BATCH {
        end += commands[end].count as usize;
    }
    end
}

/// Prefetches slots, buckets and entries, for the commands which have one key.
fn prefetch(keyspace: &Keyspace, commands: &[Command]) {
    let commands = &commands[..commands.len().min(BATCH)];
    let hashed = || commands.iter().filter(|command| command.first.arg > 0);
    hashed().for_each(|command| keyspace.prefetch_slot(command.first.slot));
    let mut targets = [PrefetchTarget::default(); BATCH];
    for (command, target) in hashed().zip(&mut targets) {
        let first = command.first;
        *target = keyspace.prefetch_bucket(first.slot, first.hash, command.db);
    }
    targets[..hashed().count()].iter().for_each(|target| keyspace.prefetch_entry(*target));
}

/// The slots of several commands, ascending and each once.
fn collect(slots: &mut Vec<SlotId>, keyspace: &Keyspace, chunk: &Chunk, at: usize, count: usize) {
    slots.clear();
    for number in at..at + count {
        let (spec, args) = (chunk.commands()[number].id.spec(), chunk.args(number));
        // A command whose keys cannot be found fails when it runs.
        let _ = command::keys::for_each(spec, args, |key| {
            slots.push(keyspace.key(args.get(key.arg)).slot);
        });
    }
    slots.sort_unstable();
    slots.dedup();
}

impl Handling {
    /// Calls the handler; what it has changed is taken back if it fails.
    #[inline]
    fn command(
        &mut self,
        guard: &mut Guard<'_>,
        command: &Command,
        args: Args<'_>,
    ) -> Result<(), Error> {
        let mark = guard.mark();
        let called = match command.id.spec().handler {
            Handler::Data(run) => {
                let full = Full::new(None, &[]);
                let mut ctx = self.ctx(guard, command, args).with_full(&full);
                let result = run(&mut ctx);
                run_through(&mut ctx, result, run).map(|_| ())
            }
            Handler::Blocking(wait, take) => self.take(guard, command, args, (wait, take)),
            Handler::Server(parse) => {
                parse(args).and_then(|op| self.everything(guard, command, &op))
            }
            Handler::Session(_) | Handler::Container => {
                unreachable!("they are sorted out when the file is read")
            }
        };
        if called.is_err() {
            guard.rollback_to(mark);
        }
        self.out.truncate(OutPos::default());
        if self.out.bytes.capacity() > REPLY_KEPT {
            self.out = OutBuf::new();
        }
        called
    }

    fn ctx<'a, 'g>(
        &'a mut self,
        guard: &'a mut Guard<'g>,
        command: &Command,
        args: Args<'a>,
    ) -> Ctx<'a, 'g> {
        let reply = Reply::new(&mut self.out, Proto::Resp2);
        let Command { db, first, .. } = *command;
        Ctx::new(guard, reply, args, db, self.now, &self.settings, &mut self.tally, first)
    }

    /// Takes from the first key that has something, and never waits.
    #[cold]
    fn take(
        &mut self,
        guard: &mut Guard<'_>,
        command: &Command,
        args: Args<'_>,
        (wait, take): (WaitFn, TakeFn),
    ) -> Result<(), Error> {
        let wait = wait(args)?;
        for at in wait.keys.clone() {
            let full = Full::new(None, &[]);
            let mut ctx = self.ctx(guard, command, args).with_full(&full);
            let taken = take(&mut ctx, &wait, at);
            let taken = run_through(&mut ctx, taken, |ctx| take(ctx, &wait, at))?;
            if !matches!(taken, Done::Nothing | Done::NothingYet(_)) {
                break;
            }
        }
        Ok(())
    }

    /// An operation on the whole keyspace. Those which are about a running server do nothing.
    #[cold]
    fn everything(
        &mut self,
        guard: &mut Guard<'_>,
        command: &Command,
        op: &ServerOp,
    ) -> Result<(), Error> {
        match *op {
            ServerOp::FlushAll(_) => _ = guard.flush_all(),
            ServerOp::FlushDb(_) => _ = guard.flush_db(command.db),
            ServerOp::SwapDb(a, b) => {
                let databases = self.settings.databases;
                guard.swap_db(database(a, databases)?, database(b, databases)?);
            }
            _ => {}
        }
        Ok(())
    }
}

/// A database that there is.
fn database(number: i32, databases: u16) -> Result<base::DbIndex, Error> {
    let index = u16::try_from(number).ok().filter(|db| *db < databases);
    index.map(base::DbIndex::new).ok_or(Error::DbRange)
}
