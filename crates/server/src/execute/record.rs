//! What is recorded of commands: statistics, latency spikes, and the logs of slow and large ones.

use crate::execute::blocked::args_of;
use crate::execute::caller::Caller;
use crate::execute::outcome::Outcome;
use crate::execute::redact;
use crate::execute::request::Request;
use crate::execute::sizes::Sizes;
use crate::execute::window::{Framed, Window};
use crate::sessions::session::{Blocked, HeldRequest, LongCommand, Suspended};
use crate::settings::LONG_RUN_NS;
use crate::worker::core::Core;
use base::{DbIndex, MonoNs};
use command::CommandId;
use command::spec::{Flags, LockClass};
use observe::{Spike, SpikeEvent};
use resp::{Args, OutBuf};

/// True if a command of this class keeps its locks while it runs. (A walk takes one slot after the
/// other.)
fn holds_locks(class: LockClass) -> bool {
    !matches!(class, LockClass::None | LockClass::Each)
}

/// Whether a value belongs into a log with this bound. A bound below 0 stands for none: as an
/// unsigned number it is above every value.
fn over(bound: i64, value: u64) -> bool {
    value >= bound as u64
}

impl Core {
    /// The sizes of the command that was just executed.
    pub(crate) fn sizes(&self, request: u64, out: &OutBuf) -> Sizes {
        let end = out.position();
        // A reply that was truncated, as under CLIENT REPLY OFF, may end before its start.
        let from = self.running.reply_from();
        let has_reply = end.bytes >= from.bytes && end.blobs >= from.blobs;
        Sizes { request, reply: if has_reply { out.len_between(from, end) as u64 } else { 0 } }
    }

    /// Counts a command which ran for so long, unless a gate stopped it, and charges its session.
    /// A command that continues in steps is counted when it ends.
    pub(crate) fn record_executed(
        &mut self,
        request: &Request<'_>,
        started: MonoNs,
        run_ns: u64,
        outcome: Outcome,
        sizes: Sizes,
    ) {
        let Request { caller, id, args, .. } = *request;
        let is_answered = outcome == Outcome::Done && sizes.reply > 0;
        self.charge(caller.conn().index, run_ns, is_answered);
        // Taken in any case: it is not the time of another command.
        let ahead_ns = self.running.take_time_ahead();
        if self.running.id().is_none() {
            return;
        }
        if run_ns >= LONG_RUN_NS {
            self.note_long_run(id, args, run_ns, self.running.held_to_its_end(run_ns));
        }
        let mut ns = run_ns + ahead_ns;
        if outcome == Outcome::Waiting {
            let s = caller.session(self);
            match s.suspended {
                Suspended::Sleep(until) => ns = until.since(started),
                Suspended::Task(_)
                | Suspended::TaskParked(_)
                | Suspended::Migrating
                | Suspended::Rewriting(_)
                | Suspended::Saving(_) => {
                    let request = HeldRequest::new(s, resp::OwnedRequest::new(args), 0);
                    s.long = Some(Box::new(LongCommand { id, request, ns, sizes }));
                    return;
                }
                // Its call is counted here; its time and its logs are added when its wait ends.
                Suspended::Blocked(ref mut blocked) => {
                    blocked.ns = ns;
                    blocked.request = sizes.request;
                    return self.record_blocked(caller.db, id, args, ns);
                }
                _ => {}
            }
        }
        self.record_command(caller, id, args, ns, sizes);
    }

    /// Statistics of a window: commands on the short path share one pair of clock reads, because
    /// each of them takes bounded time; all others were timed by themselves.
    pub(crate) fn account(&mut self, window: &Window, started: MonoNs) {
        let timed_ns = std::mem::take(&mut self.batch.timed_ns);
        let ns = self.clock.now().since(started).saturating_sub(timed_ns);
        let short = (window.commands.len() - self.batch.off_path.len()) as u64;
        let each = ns / short.max(1);
        let counters = &self.shared.workers[self.id];
        let latency = self.settings.latency_tracking;
        let count = |id: CommandId, n: u64| {
            counters.commands.executed_times(id.index(), n, each);
            if latency {
                counters.commands.latency_times(id.index(), n, each);
            }
        };
        let commands = if short > 0 { &window.commands[..] } else { &[] };
        for run in commands.chunk_by(|a, b| a.id == b.id) {
            let Some(id) = run[0].id else { continue };
            let is_short = |c: &&Framed| self.batch.is_on_short_path(c);
            let all = self.batch.off_path.is_empty();
            let n = if all { run.len() } else { run.iter().filter(is_short).count() };
            if n > 0 {
                count(id, n as u64);
            }
        }
        if self.settings.is_noted(ns) {
            self.note_long_window(window, ns);
        }
        self.count_for_clients(window, window.commands.len());
        let uncounted = if self.batch.is_mixed { 0 } else { short };
        self.batch.end();
        let counters = &self.shared.workers[self.id];
        counters.windows.add(1);
        counters.processed.add(short);
        let of_database = &counters.databases[window.db.index()];
        of_database.commands.add(uncounted);
        of_database.hits.add(std::mem::take(&mut self.tally.hits));
        of_database.misses.add(std::mem::take(&mut self.tally.misses));
        self.timers.is_busy = true;
    }

    /// Counts a command of any path for its database, with the lookups since the last count.
    #[inline]
    fn count_command(&mut self, db: DbIndex) {
        let counters = self.counters();
        counters.processed.add(1);
        counters.databases[db.index()].commands.add(1);
        self.count_lookups(db);
    }

    /// Counts the lookups since the last count for a database.
    #[inline]
    pub(super) fn count_lookups(&mut self, db: DbIndex) {
        if self.tally.hits | self.tally.misses > 0 {
            self.add_lookups(db);
        }
    }

    #[inline(never)]
    fn add_lookups(&mut self, db: DbIndex) {
        let of_database = &self.shared.workers[self.id].databases[db.index()];
        of_database.hits.add(std::mem::take(&mut self.tally.hits));
        of_database.misses.add(std::mem::take(&mut self.tally.misses));
    }

    /// Counts a command of a window with several databases, if it took the short path, and its
    /// lookups.
    pub(super) fn count_for_database(&mut self, c: &Framed) {
        let Some(session) = self.sessions[c.session as usize].as_deref() else { return };
        let db = session.db;
        if self.batch.is_on_short_path(c) {
            self.counters().databases[db.index()].commands.add(1);
        }
        self.count_lookups(db);
    }

    /// A session of the window has changed its database: from here on commands are counted one by
    /// one. Those so far were executed in `db`.
    #[cold]
    pub(super) fn mix_databases(&mut self, db: DbIndex) {
        if !self.batch.is_mixed {
            let short = self.batch.counted.commands() - self.batch.off_path.len();
            self.counters().databases[db.index()].commands.add(short as u64);
            self.batch.is_mixed = true;
            self.batch.set_unusual_from(0);
        }
    }

    /// A window took long without the commands which were timed by themselves.
    #[cold]
    fn note_long_window(&mut self, window: &Window, ns: u64) {
        self.charge_window(window, ns);
        if self.settings.is_spike(ns) {
            // Something delayed at least one of them: none takes long by itself.
            self.record_spike(SpikeEvent::FastCommand, ns);
        }
        if ns < LONG_RUN_NS {
            return;
        }
        for c in window.commands.iter().filter(|c| self.batch.is_on_short_path(c)) {
            if let Some(id) = c.id {
                self.counters().commands.held(id.index(), ns);
                self.counters().commands.ran(id.index(), ns);
            }
        }
    }

    /// A command that was timed by itself took long; and held its locks to its end, if it did.
    #[cold]
    fn note_long_run(&self, id: Option<CommandId>, args: Args<'_>, ns: u64, hold_ns: Option<u64>) {
        let Some(id) = id else { return };
        let id = command::resolve(id, args).unwrap_or(id);
        self.counters().commands.ran(id.index(), ns);
        let class = || command::keys::lock_class(id.spec(), args);
        if let Some(hold_ns) = hold_ns.filter(|_| holds_locks(class())) {
            self.counters().commands.held(id.index(), hold_ns);
        }
    }

    /// The locks of the command have dropped, and it goes on.
    pub(crate) fn note_unlocked(&mut self, id: CommandId) {
        let ns = self.running.unlock(self.clock.now());
        if ns >= LONG_RUN_NS && holds_locks(id.spec().lock) {
            self.counters().commands.held(id.index(), ns);
        }
    }

    /// A command of the window leaves the short path, or never took it: it is counted after its
    /// execution, not with its window.
    pub(crate) fn leave_short_path(&mut self, window: &Window, c: &Framed) {
        debug_assert!(self.batch.off_path.last() != Some(&c.spans_from), "a command leaves once");
        self.batch.off_path.push(c.spans_from);
        let at = window.index_of(c, &self.batch.counted);
        self.count_for_clients(window, at);
        self.batch.counted.skip_to(at + 1);
    }

    /// Counts the window's commands of the short path, up to `end`, for their clients.
    fn count_for_clients(&mut self, window: &Window, end: usize) {
        let tracks = self.settings.latency_tracking;
        let (sessions, counted) = (&mut self.sessions, &mut self.batch.counted);
        window.count_runs(counted, end, |session, n| {
            if let Some(session) = &mut sessions[session as usize] {
                session.card.commands.add(n);
                if tracks {
                    session.unanswered.add_done(n as u32);
                }
            }
        });
    }

    /// Adds the time and reply size of a step to its command's. The last step counts the command.
    pub(crate) fn record_step(
        &mut self,
        caller: &Caller,
        id: Option<CommandId>,
        started: MonoNs,
        reply: usize,
        last: bool,
    ) {
        let ns = self.clock.now().since(started);
        if ns >= LONG_RUN_NS
            && let Some(id) = id
        {
            self.counters().commands.ran(id.index(), ns);
        }
        let session = caller.session(self);
        let Some(long) = &mut session.long else { return };
        long.ns += ns;
        long.sizes.reply += reply as u64;
        if last && let Some(long) = session.take_long() {
            self.record_command(caller, long.id, long.request.args(), long.ns, long.sizes);
        }
    }

    /// Counts a command that begins to wait.
    fn record_blocked(&mut self, db: DbIndex, id: Option<CommandId>, args: Args<'_>, ns: u64) {
        let Some(id) = id else { return };
        let id = command::resolve(id, args).unwrap_or(id);
        self.count_command(db);
        self.counters().commands.executed(id.index(), ns);
    }

    /// Records a command that has waited: its time before and after the wait, without the wait. Not
    /// called for a timeout, as in Redis.
    pub(crate) fn record_unblocked(
        &mut self,
        caller: &Caller,
        blocked: &Blocked,
        ns: u64,
        reply: usize,
        has_failed: bool,
    ) {
        let args = args_of(&blocked.ticket);
        let Some(id) = command::lookup(args.get(0)) else { return };
        let id = command::resolve(id, args).unwrap_or(id);
        let commands = &self.counters().commands;
        commands.add_time(id.index(), ns);
        if has_failed {
            commands.failed(id.index());
        }
        let total_ns = blocked.ns + ns;
        if self.settings.latency_tracking {
            commands.latency(id.index(), total_ns);
        }
        if self.settings.is_spike(ns) {
            self.record_spike(SpikeEvent::CommandUnblocking, ns);
        }
        let sizes = Sizes { request: blocked.request, reply: reply as u64 };
        self.log_command(caller, id, args, Some(total_ns / 1000), sizes);
        self.sample_alone(caller.db, id, args, total_ns, sizes.request + sizes.reply);
    }

    /// Statistics and logs of a command timed by itself.
    pub fn record_command(
        &mut self,
        caller: &Caller,
        id: Option<CommandId>,
        args: Args<'_>,
        ns: u64,
        sizes: Sizes,
    ) {
        let Some(id) = id else { return };
        let id = command::resolve(id, args).unwrap_or(id);
        self.count_command(caller.db);
        let counters = &self.shared.workers[self.id];
        counters.commands.executed(id.index(), ns);
        if let Some(session) = &self.sessions[caller.conn().index as usize] {
            session.card.commands.add(1);
        }
        if self.settings.latency_tracking {
            counters.commands.latency(id.index(), ns);
        }
        let flags = id.spec().flags;
        if self.settings.is_spike(ns) {
            let is_fast = flags.contains(Flags::FAST);
            let event = if is_fast { SpikeEvent::FastCommand } else { SpikeEvent::Command };
            self.record_spike(event, ns);
        }
        if !flags.contains(Flags::SKIP_SLOWLOG) {
            self.log_command(caller, id, args, Some(ns / 1000), sizes);
            self.sample_alone(caller.db, id, args, ns, sizes.request + sizes.reply);
        }
    }

    /// Logs a large reply of the short path.
    #[cold]
    pub(crate) fn record_large_reply(
        &mut self,
        window: &Window,
        c: &Framed,
        input: &[u8],
        out: &OutBuf,
    ) {
        let Some(session) = self.sessions[c.session as usize].as_deref() else { return };
        let (Some(id), caller) = (c.id, Caller::of_session(session)) else { return };
        // Requests large enough for the log of large requests do not take the short path.
        let sizes = Sizes { request: 0, ..self.sizes(0, out) };
        self.log_command(&caller, id, window.args(input, c), None, sizes);
    }

    /// Adds a command to the logs whose bounds it exceeds. Without a time it is added to the log of
    /// large replies at most.
    #[inline]
    fn log_command(
        &mut self,
        caller: &Caller,
        id: CommandId,
        args: Args<'_>,
        us: Option<u64>,
        sizes: Sizes,
    ) {
        let settings = &self.settings;
        let is_slow = us.is_some_and(|us| over(settings.slower_than_us, us));
        let is_large = us.is_some() && over(settings.request_larger_than, sizes.request);
        let has_large_reply = over(settings.reply_larger_than, sizes.reply);
        if is_slow | is_large | has_large_reply {
            self.add_to_logs(caller, id, args, us, sizes);
        }
    }

    #[cold]
    #[inline(never)]
    fn add_to_logs(
        &mut self,
        caller: &Caller,
        id: CommandId,
        args: Args<'_>,
        us: Option<u64>,
        sizes: Sizes,
    ) {
        let settings = &self.settings;
        let slow = us.filter(|us| over(settings.slower_than_us, *us));
        let request = Some(sizes.request)
            .filter(|size| us.is_some() && over(settings.request_larger_than, *size));
        let reply = Some(sizes.reply).filter(|size| over(settings.reply_larger_than, *size));
        let now = self.clock.now();
        let s = caller.session(self);
        let (addr, name) = (s.card.addr.clone(), s.card.text().name.clone());
        // What is not its execution since it was received, or since it was served.
        let since_us = now.since(s.unanswered.received()) / 1000;
        let waited_us = since_us.saturating_sub(us.unwrap_or_default());
        let at_s = self.turn.unix_ms().0 / 1000;
        let shared = &self.shared;
        let logs = [
            (&shared.slowlog, slow, waited_us),
            (&shared.large_requests, request, 0),
            (&shared.large_replies, reply, 0),
        ];
        for (log, value, waited_us) in logs {
            let Some(value) = value else { continue };
            let shown = redact::starts(id.spec(), args);
            log.add(at_s, (value, waited_us), shown.into_iter(), &addr, name.as_bytes());
        }
    }

    /// Adds a spike of this event to the latency history.
    pub(crate) fn record_spike(&self, event: SpikeEvent, ns: u64) {
        let spike = Spike { unix_s: self.turn.unix_ms().0 / 1000, ms: ns / 1_000_000 };
        self.shared.spikes.add(event, spike);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::sessions::session::Session;
    use crate::worker::Worker;
    use crate::worker::message::Message;
    use base::sync::Arc;
    use driver::loopback::Loopback;
    use observe::CommandTotals;

    const SECOND_NS: u64 = 1_000_000_000;

    /// A worker on a virtual clock, which stands still while a command or a step runs.
    struct World(Worker<Loopback<Message>>);

    impl World {
        /// A worker with two clients.
        fn new() -> Self {
            let mut driver = Loopback::new(7);
            for _ in 0..2 {
                driver.connect().expect("a pair of sockets");
            }
            let shared = crate::boot::make_shared(Config::default(), &mut driver, 1, || (0, 0));
            let mut worker = Worker::new(driver, Arc::new(shared), 0, Vec::new());
            worker.turn();
            Self(worker)
        }

        /// Sends a request whose arguments are separated by spaces.
        fn send(&mut self, client: usize, line: &str) {
            self.0.driver().forget(client);
            self.0.driver().write(client, format!("{line}\r\n").as_bytes());
        }

        /// The last reply to this client, without its CR LF.
        fn reply(&mut self, client: usize) -> String {
            while !self.0.driver().received(client).ends_with(b"\r\n") {
                self.0.turn();
            }
            String::from_utf8_lossy(self.0.driver().received(client)).trim_end().to_owned()
        }

        fn ask(&mut self, client: usize, line: &str) -> String {
            self.send(client, line);
            self.reply(client)
        }

        /// Client 0 sends a union which is prepared in steps. The test sets the time of those steps
        /// to one second.
        fn begin_union_of_a_second(&mut self) {
            self.send(0, "SUNIONSTORE to set");
            let is_in_steps = |s: &&mut Session| matches!(s.suspended, Suspended::Task(_));
            loop {
                self.0.turn();
                let session = self.0.core.sessions[0].as_deref_mut();
                if let Some(session) = session.filter(is_in_steps) {
                    session.prepared_ns += SECOND_NS;
                    return;
                }
            }
        }

        fn totals(&self, name: &str) -> CommandTotals {
            let mut all = crate::figures::commands(&self.0.core.shared);
            let found = all.find(|(id, _)| id.spec().full_name == name);
            found.map(|(_, totals)| totals).unwrap_or_default()
        }
    }

    /// Regression: when a gate refused a command after its preparation steps, their time was
    /// counted for the worker's next command.
    #[test]
    fn the_time_of_preparation_steps_counts_for_their_own_command() {
        let mut world = World::new();
        for first in (0..5_000).step_by(500) {
            let members: Vec<String> =
                (first..first + 500).map(|n| format!("member:{n}")).collect();
            let add = format!("SADD set {}", members.join(" "));
            assert_eq!(world.ask(1, &add), ":500");
        }
        world.begin_union_of_a_second();
        assert_eq!(world.reply(0), ":5000");
        let union = world.totals("sunionstore");
        assert_eq!((union.calls, union.ns), (1, SECOND_NS));

        world.begin_union_of_a_second();
        assert_eq!(world.ask(1, "CONFIG SET maxmemory 1"), "+OK");
        assert!(world.reply(0).starts_with("-OOM"));
        assert!(world.ask(1, "CONFIG GET maxmemory").ends_with("\r\n1"));
        let next = world.totals("config|get");
        assert_eq!((next.calls, next.ns), (1, 0));
        let union = world.totals("sunionstore");
        assert_eq!((union.calls, union.rejected, union.ns), (1, 1, SECOND_NS));
    }
}
