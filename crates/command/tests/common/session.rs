//! A session on a keyspace of its own: requests run under the locks which the table declares, as in
//! a worker.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base::{DbIndex, UnixMs};
use command::{
    CommandSpec, Ctx, Done, Error, Handler, LockClass, Prepared, Progress, Resumable, Settings,
    Tally, keys, record, registry,
};
use keyspace::{Access, Due, Entry, Event, Guard, Intent, Keyspace, Options};
use resp::{Args, OutBuf, Proto, Reply};
use value::string::encode;

use super::{Value, with_args, words};

pub struct Session {
    pub access: Access,
    pub settings: Settings,
    pub tally: Tally,
    /// What was prepared before the request.
    prepared: Prepared,
    pub db: DbIndex,
    pub proto: Proto,
    pub now: UnixMs,
    /// The number of steps of the last request.
    pub steps: usize,
    /// The next request panics at this change. 0: never.
    pub panic_after: u32,
    /// Requests run with the whole keyspace locked, not only the slots of the keys found by the
    /// table.
    pub whole: bool,
    /// The last request was answered with an error, although its handler had changed data.
    pub changed_before_error: bool,
    /// The last request has changed data.
    pub changed: bool,
    /// The rule for what is due.
    pub due: Due,
    /// A blocking command is served for this key alone, an argument, as if it had waited.
    pub served: Option<usize>,
}

impl Session {
    pub fn new() -> Session {
        let options = Options { databases: 16, hash_secret: 7, workers: 1 };
        let mut access = Access::new(Arc::new(Keyspace::new(&options)), 0);
        assert!(access.enter());
        Session {
            access,
            settings: Settings::default(),
            tally: Tally::default(),
            prepared: None,
            db: DbIndex(0),
            proto: Proto::Resp2,
            now: wall_clock(),
            steps: 0,
            panic_after: 0,
            whole: false,
            changed_before_error: false,
            changed: false,
            due: Due::Remove,
            served: None,
        }
    }

    /// Changes leave records from now on, or do not.
    pub fn record(&mut self, on: bool) {
        self.access.leave();
        self.access.try_world().expect("nobody else is there");
        self.access.world(self.now).set_recording(on);
        self.access.open_world();
        assert!(self.access.enter());
    }

    /// The text under a key, in this session's database.
    pub fn put(&mut self, name: &[u8], text: &[u8], expiry: Option<UnixMs>) {
        let keyspace = Arc::clone(self.access.keyspace());
        let key = keyspace.key(name);
        let mut guard =
            self.access.lock_one(key.slot, self.now, Intent::Write).expect("nobody holds it");
        guard.insert(Event::SILENT, self.db, &key, encode(text), expiry);
    }

    /// Runs a request at the current time.
    pub fn ask(&mut self, request: &[&[u8]]) -> Value {
        self.now = wall_clock();
        self.ask_at(request)
    }

    /// Like `ask`, with the words of a line.
    pub fn ask_line(&mut self, line: &str) -> Value {
        self.ask(&words(line))
    }

    /// Runs a request at the time of the previous one.
    pub fn ask_at(&mut self, request: &[&[u8]]) -> Value {
        Value::parse(&with_args(request, |args| self.reply_to(args)).to_vec())
    }

    /// The reply to a request as a worker gets it: references to shared values are not resolved.
    pub fn reply_to(&mut self, args: Args<'_>) -> OutBuf {
        let mut out = OutBuf::new();
        if let Err(error) = self.run(&mut out, args) {
            out.clear();
            Reply::new(&mut out, self.proto).error_bytes(&error.text());
        }
        out
    }

    /// Returns the result of `f` on the entry of a key.
    pub fn entry<T>(&mut self, name: &[u8], f: impl FnOnce(Option<Entry<'_>>) -> T) -> T {
        let keyspace = Arc::clone(self.access.keyspace());
        let key = keyspace.key(name);
        let mut guard =
            self.access.lock_one(key.slot, self.now, Intent::Write).expect("nobody holds it");
        f(guard.peek(self.db, &key))
    }

    fn run(&mut self, out: &mut OutBuf, args: Args<'_>) -> Result<(), Error> {
        self.changed = false;
        let spec = registry::find(args)?.spec();
        self.steps = 1;
        match spec.handler {
            Handler::Data(handler) => self.run_data(spec, out, args, &mut { handler }),
            Handler::Blocking(wait, take) => {
                let wait = wait(args)?;
                let keys = self.served.map_or(wait.keys.clone(), |at| at..at + 1);
                let mut handler = |ctx: &mut Ctx<'_, '_>| {
                    for at in keys.clone() {
                        match take(ctx, &wait, at)? {
                            Done::Nothing | Done::NothingYet(_) => {}
                            done => return Ok(done),
                        }
                    }
                    Ok(Done::Nothing)
                };
                self.run_data(spec, out, args, &mut handler)
            }
            _ => panic!("{spec:?} is not for data"),
        }
    }

    /// Calls a handler under its locks, and executes the work which it leaves.
    fn run_data(
        &mut self,
        spec: &'static CommandSpec,
        out: &mut OutBuf,
        args: Args<'_>,
        handler: &mut dyn FnMut(&mut Ctx<'_, '_>) -> Result<Done, Error>,
    ) -> Result<(), Error> {
        let mut slots = Vec::new();
        let class = keys::lock_class(spec, args);
        if matches!(class, LockClass::Keys | LockClass::Growing) {
            let keyspace = self.access.keyspace();
            // A request whose keys cannot be determined fails by itself when it runs.
            let _ = keys::for_each(spec, args, |key| {
                slots.push(keyspace.key(args.get(key.arg)).slot);
            });
            slots.sort_unstable();
            slots.dedup();
        }
        let now = self.now;
        if self.whole {
            self.access.leave();
            self.access.try_world().expect("nobody else is there");
        }
        let guard = match (&slots[..], class) {
            _ if self.whole => Ok(self.access.world(now)),
            (slots, LockClass::Growing) => self.access.grow(slots, now, Intent::Write),
            (&[slot], _) => self.access.lock_one(slot, now, Intent::Write),
            (slots, LockClass::Keys) => self.access.lock(slots, now, Intent::Write),
            _ => Ok(self.access.free(now)),
        };
        let mut guard = guard.expect("nobody else locks");
        guard.set_due(self.due);
        let panic_after = std::mem::take(&mut self.panic_after);
        if panic_after > 0 {
            guard.panic_after(panic_after);
        }
        let begin = guard.mark();
        let changes = guard.keyspace().changes();
        let settings = &self.settings;
        let full = command::Full::new(self.prepared.take(), &[]);
        let (of, tally) = ((self.proto, self.db), &mut self.tally);
        let run = |ctx: Ctx<'_, '_>| handler(&mut ctx.with_full(&full));
        let done = with_ctx(&mut guard, out, of, args, settings, tally, run);
        self.changed_before_error = done.is_err() && guard.mark() != begin;
        match &done {
            Ok(_) => record::leave(&mut guard, begin, spec, self.db, args),
            Err(_) => guard.rollback_to(begin),
        }
        guard.finish();
        drop(guard);
        self.changed = self.access.keyspace().changes() != changes;
        if self.whole {
            self.access.open_world();
            assert!(self.access.enter());
        }
        match done? {
            Done::Replied => Ok(()),
            Done::Steps(mut rest) => self.run_steps(out, &mut rest),
            Done::Prepare(mut work) => {
                self.run_steps(out, &mut work)?;
                // As in a worker: after the work is complete, the command runs again.
                self.prepared = Some(work);
                self.panic_after = panic_after;
                self.run_data(spec, out, args, handler)
            }
            Done::Nothing | Done::NothingYet(_) => Err(Error::made("WAITS")),
            other => panic!("{spec:?} says {other:?}"),
        }
    }

    /// Runs requests one after the other under one guard, as EXEC does: their changes are committed
    /// together, those of a request that fails are rolled back alone.
    pub fn run_together(&mut self, requests: &[&str]) {
        self.access.leave();
        self.access.try_world().expect("nobody else is there");
        let mut guard = self.access.world(self.now);
        guard.set_due(self.due);
        for line in requests {
            let (db, of) = (self.db, (self.proto, self.db));
            with_args(&words(line), |args| {
                let spec = registry::find(args).expect("a command").spec();
                let Handler::Data(handler) = spec.handler else { panic!("{line} may wait") };
                let (begin, mut out, mut prepared) = (guard.mark(), OutBuf::new(), None);
                loop {
                    let full = command::Full::new(prepared.take(), &[]);
                    let run = |ctx: Ctx<'_, '_>| -> Result<Done, Error> {
                        let mut ctx = ctx.with_full(&full);
                        let mut done = handler(&mut ctx)?;
                        if let Done::Prepare(work) | Done::Steps(work) = &mut done {
                            while work.step(&mut ctx)? == Progress::More {}
                        }
                        Ok(done)
                    };
                    let (settings, tally) = (&self.settings, &mut self.tally);
                    let done = with_ctx(&mut guard, &mut out, of, args, settings, tally, run);
                    match done {
                        Ok(Done::Prepare(work)) => prepared = Some(work),
                        Ok(_) => break record::leave(&mut guard, begin, spec, db, args),
                        Err(_) => break guard.rollback_to(begin),
                    }
                }
            });
        }
        guard.finish();
        drop(guard);
        self.access.open_world();
        assert!(self.access.enter());
    }

    /// Runs steps until the work is complete, without locks between them.
    fn run_steps(&mut self, out: &mut OutBuf, work: &mut Box<dyn Resumable>) -> Result<(), Error> {
        let none = Args::new(&[], &[], &[]);
        let (of, settings) = ((self.proto, self.db), &self.settings);
        self.steps = 0;
        loop {
            self.steps += 1;
            let mut guard = self.access.free(self.now);
            let step = |mut ctx: Ctx<'_, '_>| work.step(&mut ctx);
            match with_ctx(&mut guard, out, of, none, settings, &mut self.tally, step)? {
                Progress::Complete => return Ok(()),
                Progress::More => {}
                Progress::Park(at) => panic!("nobody else holds {at:?}"),
            }
        }
    }
}

fn with_ctx<T>(
    guard: &mut Guard<'_>,
    out: &mut OutBuf,
    (proto, db): (Proto, DbIndex),
    args: Args<'_>,
    settings: &Settings,
    tally: &mut Tally,
    f: impl FnOnce(Ctx<'_, '_>) -> T,
) -> T {
    let (reply, now) = (Reply::new(out, proto), guard.now());
    f(Ctx::new(guard, reply, args, db, now, settings, tally, command::First::NONE))
}

pub fn wall_clock() -> UnixMs {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    UnixMs(since.as_millis() as i64)
}
