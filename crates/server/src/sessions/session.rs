//! A session: the state of one client's connection. Self-contained, so that it can move to another
//! worker between two commands (`worker/moving.rs`).

use crate::execute::sizes::Sizes;
use crate::pubsub::subscriptions::{Subscribing, Subscriptions};
use crate::sessions::card::{CardText, ClientCard, flag};
use crate::sessions::client_memory::{ClientMemory, Share};
use crate::sessions::outbox::Outbox;
use crate::sessions::quota::Quota;
use crate::sessions::unanswered::Unanswered;
use crate::sessions::watches::Watches;
use crate::settings::rewriter::AwaitsRun;
use crate::tracking::state::Tracking;
use base::sync::Arc;
use base::sync::atomic::{AtomicU64, Ordering::Relaxed};
use base::{DbIndex, MonoNs, SeqNo};
use command::{CommandId, Prepared, Resumable};
use driver::{ConnId, RECV_MAX};
use keyspace::{Parked, ThawTurn, Ticket, Turn};
use resp::{Args, Assembler, Limits, OutBuf, OutPos, OwnedRequest, Proto};

/// Bits of [`Session::gates`]: any set bit takes a command off the short path.
pub mod gate {
    /// Not authenticated yet.
    pub const NEED_AUTH: u32 = 1;
    /// MULTI is open: commands are queued.
    pub const MULTI: u32 = 1 << 1;
    /// CLIENT REPLY OFF or SKIP: replies are dropped.
    pub const MUTE: u32 = 1 << 2;
    /// Nothing more is executed: the connection is closing or suspended.
    pub const STOPPED: u32 = 1 << 3;
    /// CLIENT NO-TOUCH ON.
    pub const NO_TOUCH: u32 = 1 << 4;
    /// Work was done ahead of the next command.
    pub const PREPARED: u32 = 1 << 5;
    /// Waits for a turn, or has waited for the end of one: it may be long though others wait
    /// ([`keyspace::Turn`]).
    pub const TURN: u32 = 1 << 7;
    /// In MONITOR.
    pub const MONITOR: u32 = 1 << 6;
    /// Has waited for the end of a [`keyspace::ThawTurn`]: it may freeze slots though others wait
    /// for a thaw.
    pub const MAY_FREEZE: u32 = 1 << 8;
    /// CLIENT IMPORT-SOURCE ON.
    pub const IMPORT_SOURCE: u32 = 1 << 9;
    /// Has subscriptions.
    pub const SUBSCRIBED: u32 = 1 << 10;
    /// CLIENT TRACKING ON.
    pub const TRACKING: u32 = 1 << 11;
    /// CLIENT CACHING YES or NO: for the next command.
    pub const CACHING: u32 = 1 << 12;
    /// Is told of messages or keys: before each of its replies.
    pub const LISTENS: u32 = SUBSCRIBED | TRACKING;
}

/// Memory of a client which holds nothing: without its names and its place in tables.
pub const CLIENT_BYTES: u64 = (size_of::<Session>() + size_of::<ClientCard>()) as u64;

/// What a short command takes, about, with its part of a turn.
const COMMAND_NS: u64 = 300;
/// How many bytes are received or sent in a nanosecond, about.
const BYTES_PER_NS: u64 = 4;

/// Which replies a client wants (CLIENT REPLY).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyMode {
    /// All of them.
    On,
    /// None until ON.
    Off,
    /// Not that of the next command, or of the one that runs or waits now.
    Skip,
}

/// Why a session executes nothing at the moment.
pub enum Suspended {
    /// Not suspended: commands are executed as they come.
    No,
    /// The World gate is closed, a slot is held for long or frozen; retried when the way is free.
    Parked(Parked),
    /// CLIENT PAUSE; retried when it ends.
    Pause,
    /// It would read what cannot be made durable at the moment; retried when that changes.
    Disk,
    /// DEBUG SLEEP: this session holds World until then.
    Sleep(MonoNs),
    /// A long command goes on in steps.
    Task(Task),
    /// The next step waits until the World gate opens or a slot is no longer held for long.
    TaskParked(Task),
    /// MIGRATE waits for the target.
    Migrating,
    /// CONFIG REWRITE waits for the disk.
    Rewriting(Box<AwaitsRun>),
    /// SAVE waits for the file, BGSAVE for the moment that the file will show, SHUTDOWN for the
    /// save before the end; since this time.
    Saving(MonoNs),
    /// It has left many watches and tickets at keys; its command is retried when most of them are
    /// released.
    Releasing,
    /// A blocking command waits for its keys.
    Blocked(Blocked),
    /// Its share of the worker's time is used up: it goes on when it is its turn.
    Spent,
}

/// A wait for keys.
pub struct Blocked {
    /// In the queues of the keys; whoever claims it answers.
    pub ticket: Arc<Ticket>,
    /// When the time is up.
    pub until: Option<MonoNs>,
    /// WAITAOF: it ends when the change with this number is synced (never with the last number that
    /// there is), and when the append-only file does.
    pub synced: Option<SeqNo>,
    /// Time spent before it waited, nanoseconds.
    pub ns: u64,
    /// Bytes of the request.
    pub request: u64,
}

/// A long command between two of its steps.
pub enum Task {
    /// A handler that replies at its end.
    Resumable(Box<dyn Resumable>, CommandId),
    /// Work that is done ahead of a command, which then runs again.
    Preparing(Box<dyn Resumable>, CommandId),
    /// WATCH of many keys: the argument which its next step begins with.
    Watching(usize, Option<CommandId>),
    /// SUBSCRIBE or UNSUBSCRIBE of many names.
    Subscribing(Subscribing),
    /// FLUSHALL SYNC and FLUSHDB SYNC: replies OK when everything is freed.
    Reclaim(BlockedMark),
}

impl Task {
    /// The command whose work it is.
    pub fn command(&self) -> Option<CommandId> {
        match self {
            Task::Resumable(_, id) | Task::Preparing(_, id) => Some(*id),
            Task::Watching(_, id) => *id,
            Task::Subscribing(work) => work.id,
            Task::Reclaim(_) => None,
        }
    }

    /// Bytes of what it has built.
    pub fn memory(&self) -> u64 {
        match self {
            Task::Resumable(work, _) | Task::Preparing(work, _) => work.memory() as u64,
            Task::Watching(..) | Task::Subscribing(_) | Task::Reclaim(_) => 0,
        }
    }
}

/// Lets a client count as blocked, as long as this is there.
pub struct BlockedMark {
    blocked: Arc<AtomicU64>,
    card: Arc<ClientCard>,
}

impl BlockedMark {
    /// Marks a client, which counts among `blocked`.
    pub fn new(blocked: &Arc<AtomicU64>, card: &Arc<ClientCard>) -> Self {
        blocked.fetch_add(1, Relaxed);
        card.set_flag(flag::BLOCKED, true);
        Self { blocked: blocked.clone(), card: card.clone() }
    }
}

impl Drop for BlockedMark {
    fn drop(&mut self) {
        self.card.set_flag(flag::BLOCKED, false);
        self.blocked.fetch_sub(1, Relaxed);
    }
}

/// A worker frees an argument of at most so many pages: 60 us.
const FREED_PAGES_MAX: usize = 64;
/// An argument of which less is missing arrives as other input does.
const BULK_MIN: usize = 2 * RECV_MAX;
/// Before so much of an argument has arrived, it arrives as other input does: its memory grows with
/// what has come. Less than one receive, which also brings the beginning of the request.
const BULK_BEGUN_MIN: usize = RECV_MAX / 2;

/// A request which arrives in parts, or is whole and waits to be retried. Its bytes count as client
/// memory while this lives.
pub struct InParts {
    assembler: Assembler,
    held: Share,
    card: Arc<ClientCard>,
    /// Bytes that were missing of its bulk when it was last checked for progress.
    missing_before: usize,
}

impl InParts {
    /// The request of a session that begins with the next byte fed to it.
    pub fn new(session: &Session, limits: Limits) -> Box<Self> {
        let (held, card) = (session.requests_held.another(), session.card.clone());
        let assembler = Assembler::new(limits);
        Box::new(Self { assembler, held, card, missing_before: usize::MAX })
    }

    /// As [`Assembler::feed`].
    ///
    /// # Errors
    /// As there.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(usize, bool), resp::ProtocolError> {
        let fed = self.assembler.feed(bytes);
        self.count();
        fed
    }

    /// Bytes that are missing of an argument which is worth being received in place: much of it is
    /// missing, and so much has come that its memory may grow by whole pages.
    pub fn bulk_missing(&self) -> Option<usize> {
        let missing = self.assembler.big_missing();
        let worth = missing >= BULK_MIN && self.assembler.big_arrived() >= BULK_BEGUN_MIN;
        worth.then_some(missing)
    }

    /// Receives about `most` bytes of the argument that is arriving, into its memory. `receive`
    /// appends to the vector's spare room and returns how many bytes. Returns their sum.
    pub fn receive(
        &mut self,
        most: usize,
        mut receive: impl FnMut(&mut Vec<u8>) -> usize,
    ) -> usize {
        let mut total = 0;
        while total < most && self.assembler.big_missing() > 0 {
            let (room, received) = self.assembler.fill_big(|page| {
                let room = page.capacity() - page.len();
                (room, receive(page))
            });
            total += received;
            if received < room {
                break;
            }
        }
        self.count();
        total
    }

    /// True if a big argument is arriving and some of it has arrived since the last call.
    pub fn makes_progress(&mut self) -> bool {
        let missing = self.assembler.big_missing();
        std::mem::replace(&mut self.missing_before, missing) != missing && missing > 0
    }

    /// Counts the bytes that are held.
    pub fn count(&mut self) {
        let bytes = self.assembler.memory() as u64;
        self.held.set(bytes);
        self.card.argv_bytes.store(bytes, Relaxed);
        self.card.raise_input_peak();
    }

    /// Bytes that are held.
    pub fn bytes(&self) -> u64 {
        self.held.bytes()
    }

    /// The arguments, to run them. CLIENT LIST counts them as the running request.
    pub fn run(&self) -> Args<'_> {
        self.card.argv_bytes.store(0, Relaxed);
        self.assembler.args()
    }

    /// True if it has arrived whole.
    pub fn is_complete(&self) -> bool {
        self.assembler.is_complete()
    }

    /// Takes the arguments of a request which has run, if it takes long to free them: the reclaimer
    /// does that. Only the end of the request may follow.
    pub fn take_long(&mut self) -> Option<Box<EndedRequest>> {
        let request = self.assembler.take_request();
        let is_long = request.owns_pages(FREED_PAGES_MAX);
        is_long.then(|| Box::new(EndedRequest(request)))
    }
}

/// A request with long arguments, which has run and waits to be freed.
pub struct EndedRequest(OwnedRequest);

impl keyspace::Parts for EndedRequest {
    fn memory(&self) -> usize {
        self.0.memory()
    }
}

impl Drop for InParts {
    fn drop(&mut self) {
        self.card.argv_bytes.store(0, Relaxed);
    }
}

/// A request which has begun and waits, for its keys or for its next step. Its bytes count as
/// client memory while this lives.
pub struct HeldRequest {
    request: OwnedRequest,
    /// Its bytes in the count; subtracted when this is dropped.
    _held: Share,
}

impl HeldRequest {
    /// A request of this session; `more` is what is held beside it.
    pub fn new(session: &Session, request: OwnedRequest, more: u64) -> Self {
        let mut held = session.requests_held.another();
        held.set(request.memory() as u64 + more);
        session.card.waiting_bytes.store(held.bytes(), Relaxed);
        Self { request, _held: held }
    }

    /// Its words.
    pub fn args(&self) -> Args<'_> {
        self.request.args()
    }
}

/// A command that goes on in steps, as the slow log will show it.
pub struct LongCommand {
    /// The command.
    pub id: Option<CommandId>,
    /// Its request.
    pub request: HeldRequest,
    /// Time spent in its steps so far.
    pub ns: u64,
    /// Its size, the reply's as far as it was written.
    pub sizes: Sizes,
}

/// An open transaction.
pub struct Multi {
    /// What was queued, in order.
    pub queue: Vec<(CommandId, OwnedRequest)>,
    /// A command was refused while queueing: EXEC answers EXECABORT.
    pub failed: bool,
    /// Bytes held by the queue.
    pub held: Share,
    /// Bytes of an ended queue which are not freed yet; they count for no client.
    over: usize,
}

impl Multi {
    /// Nothing is queued yet.
    pub fn new(held: Share) -> Self {
        Self { queue: Vec::new(), failed: false, held, over: 0 }
    }

    /// Ends the transaction. Whoever frees the queue accounts for its bytes.
    pub fn end(&mut self) {
        self.over = self.held.bytes() as usize;
        self.held.set(0);
    }
}

impl keyspace::Parts for Multi {
    fn memory(&self) -> usize {
        self.over
    }
}

/// The state of one connection.
pub struct Session {
    /// The connection at the driver.
    pub conn: ConnId,
    /// What others may see of this client.
    pub card: Arc<ClientCard>,
    /// Bits of [`gate`].
    pub gates: u32,
    /// Selected (logical) database.
    pub db: DbIndex,
    /// Protocol of the replies.
    pub proto: Proto,
    /// Comes from this machine: loopback or unix socket.
    pub is_local: bool,
    /// CLIENT REPLY.
    pub reply_mode: ReplyMode,
    /// The running command is CLIENT REPLY SKIP: the mode becomes [`ReplyMode::Skip`] at its end.
    pub skips_next: bool,
    /// Has passed AUTH or needs none.
    pub authenticated: bool,
    /// Bytes of requests that were put back and have not run.
    pub requests_held: Share,
    /// Bytes of replies that have not left.
    pub replies_held: Share,
    /// Reading is stopped because replies wait to be sent.
    pub output_blocked: bool,
    /// The highest number of what its running command has read: what it replies later waits for
    /// that.
    pub seen: SeqNo,
    /// The number of the last change that it has made, for WAITAOF; 0 if none has one.
    pub wrote: SeqNo,
    /// Replies that may not leave yet; never an empty queue.
    pub outbox: Option<Box<Outbox>>,
    /// Pushes which follow the reply that is being written in steps.
    pub pushes: Option<Box<Outbox>>,
    /// Close once everything written has left.
    pub close_after_reply: bool,
    /// Why nothing is executed now.
    pub suspended: Suspended,
    /// The command that goes on in steps, if one does.
    pub long: Option<Box<LongCommand>>,
    /// The result of work which the next command has asked for before it runs; present if
    /// [`gate::PREPARED`] is set.
    pub prepared: Prepared,
    /// Time spent on it, nanoseconds.
    pub prepared_ns: u64,
    /// Bytes which its command has built in steps and which are not under a key yet.
    pub built_held: Share,
    /// Keeps new long holders out, because long holders made the session's command wait.
    pub turn: Option<Turn>,
    /// Keeps slots from being frozen, because the session's command needs the whole keyspace and
    /// waits for a thaw.
    pub thaw_turn: Option<ThawTurn>,
    /// The command that goes on in steps waits for the backlog of replies to leave.
    pub stalled: bool,
    /// Bytes of replies that the driver was given.
    pub handed: u64,
    /// End of this turn's input in the receive area; meaningful while framing.
    pub input_end: usize,
    /// A request too large for the receive area, being assembled or waiting to be retried.
    pub assembler: Option<Box<InParts>>,
    /// The transaction between MULTI and EXEC.
    pub multi: Option<Box<Multi>>,
    /// Bytes of its names.
    names_held: Share,
    /// Keys under WATCH.
    pub watched: Watches,
    /// What it subscribes to; never nothing.
    pub subscriptions: Option<Box<Subscriptions>>,
    /// How keys are tracked for it.
    pub tracking: Option<Box<Tracking>>,
    /// It has been told of every message up to this number ([`crate::pubsub`]), ahead of others.
    pub told_to: u64,
    /// Keys that it has left, and that are yet to be released.
    pub keys_left: usize,
    /// Last time a command was read, for `timeout`.
    pub last_active: MonoNs,
    /// What it may still use of the worker's time.
    pub quota: Quota,
    /// Its weight when the worker looked last for a client to hand over.
    pub weighed: u64,
    /// It has moved, and stays until then.
    pub stays_until: MonoNs,
    /// Since when the output is above the soft limit.
    pub soft_limit_since: Option<MonoNs>,
    /// Its requests whose replies have not left.
    pub unanswered: Unanswered,
}

impl Session {
    /// A fresh session of a connection.
    pub fn new(
        conn: ConnId,
        card: Arc<ClientCard>,
        need_auth: bool,
        memory: &ClientMemory,
        now: MonoNs,
    ) -> Self {
        Self {
            requests_held: memory.share(),
            replies_held: memory.share(),
            conn,
            card,
            gates: if need_auth { gate::NEED_AUTH } else { 0 },
            db: DbIndex(0),
            proto: Proto::Resp2,
            is_local: false,
            reply_mode: ReplyMode::On,
            skips_next: false,
            authenticated: !need_auth,
            output_blocked: false,
            seen: SeqNo(0),
            wrote: SeqNo(0),
            outbox: None,
            pushes: None,
            close_after_reply: false,
            suspended: Suspended::No,
            long: None,
            prepared: None,
            prepared_ns: 0,
            built_held: memory.share(),
            turn: None,
            thaw_turn: None,
            stalled: false,
            handed: 0,
            input_end: 0,
            assembler: None,
            multi: None,
            names_held: memory.share(),
            watched: Watches::new(memory.share()),
            subscriptions: None,
            tracking: None,
            told_to: 0,
            keys_left: 0,
            last_active: now,
            quota: Quota::default(),
            weighed: 0,
            stays_until: MonoNs(0),
            soft_limit_since: None,
            unanswered: Unanswered::new(now),
        }
    }

    /// An estimate of the time that it has used so far, nanoseconds; it wraps. What was charged is
    /// measured. Short commands are not charged, and what the system does for it is not known.
    pub fn weight(&self) -> u64 {
        let bytes = self.card.net_in.get() + self.card.net_out.get();
        let short = self.card.commands.get().wrapping_mul(COMMAND_NS);
        self.quota.charged_ns().wrapping_add(short).wrapping_add(bytes / BYTES_PER_NS)
    }

    /// True if it can move to another worker: it is between two commands, nothing but its card and
    /// its connection refers to it, and all its replies have left.
    pub fn may_move(&self) -> bool {
        let is_spent = matches!(self.suspended, Suspended::Spent);
        let kept = gate::MUTE | gate::NO_TOUCH | gate::IMPORT_SOURCE;
        let open = if is_spent { kept | gate::STOPPED } else { kept };
        let runs = self.gates & !open == 0 && (is_spent || matches!(self.suspended, Suspended::No));
        let has_replies = self.outbox.is_some() || self.pushes.is_some() || self.output_blocked;
        let has_command = self.assembler.is_some()
            || self.multi.is_some()
            || self.long.is_some()
            || self.prepared.is_some()
            || self.skips_next
            || self.stalled
            || self.turn.is_some()
            || self.thaw_turn.is_some();
        let has_keys = !self.watched.is_empty() || self.keys_left > 0;
        let is_closing = self.close_after_reply || self.soft_limit_since.is_some();
        let marks = flag::CLOSE_ASAP
            | flag::BLOCKED
            | flag::MONITOR
            | flag::MULTI
            | flag::REDIRECTION_TARGET;
        runs && !(has_replies || has_command || has_keys || is_closing)
            && !self.card.has_flag(marks)
    }

    /// It has arrived at another worker, as this connection. What it holds counts there.
    pub fn arrive(&mut self, conn: ConnId, memory: &ClientMemory) {
        self.conn = conn;
        self.told_to = 0; // the messages of this worker have numbers of their own
        self.requests_held.move_to(memory);
        self.replies_held.move_to(memory);
        self.built_held.move_to(memory);
        self.names_held.move_to(memory);
        self.watched.move_to(memory);
    }

    /// Sets or clears bits of [`gate`].
    pub fn set_gate(&mut self, bits: u32, on: bool) {
        if on {
            self.gates |= bits;
        } else {
            self.gates &= !bits;
        }
    }

    /// So many bytes of input are put back now.
    pub fn count_input(&mut self, bytes: u64) {
        self.requests_held.set(bytes);
        self.card.input_bytes.store(bytes, Relaxed);
        self.card.raise_input_peak();
    }

    /// Changes what the client says of itself, which counts as long as it is connected.
    pub fn change_names(&mut self, change: impl FnOnce(&mut CardText)) {
        let mut text = self.card.text();
        change(&mut text);
        let bytes = text.name.capacity() + text.lib_name.capacity() + text.lib_ver.capacity();
        drop(text);
        self.names_held.set(bytes as u64);
    }

    /// Publishes on the card what the session watches.
    pub fn publish_watched(&self) {
        self.card.watching.store(self.watched.len() as u32, Relaxed);
        self.card.watch_bytes.store(self.watched.bytes(), Relaxed);
    }

    /// The command that goes on in steps is over.
    pub fn take_long(&mut self) -> Option<Box<LongCommand>> {
        let long = self.long.take()?;
        self.card.waiting_bytes.store(0, Relaxed);
        Some(long)
    }

    /// So many bytes stand in the receive area: what was kept back, and what has arrived behind it.
    /// Nothing is kept now.
    pub fn note_received(&mut self, bytes: u64) {
        let kept = self.card.input_bytes.load(Relaxed);
        self.card.net_in.add(bytes.saturating_sub(kept));
        if kept > 0 {
            self.count_input(0);
        }
    }

    /// So many of the bytes that the driver was given have not left.
    pub fn note_sent(&self, backlog: usize) {
        self.card.net_out.set(self.handed - backlog as u64);
    }

    /// Drops what was written from here on, if the client wants no reply to it.
    pub fn mute(&self, from: OutPos, out: &mut OutBuf) {
        if self.reply_mode != ReplyMode::On {
            out.truncate(from);
        }
    }

    /// A command has ended, or its wait has: CLIENT REPLY SKIP concerns one command.
    pub fn end_reply(&mut self) {
        if self.reply_mode == ReplyMode::Skip {
            self.reply_mode = ReplyMode::On;
        }
        if std::mem::take(&mut self.skips_next) && self.reply_mode != ReplyMode::Off {
            self.reply_mode = ReplyMode::Skip;
        }
        self.set_gate(gate::MUTE, self.reply_mode != ReplyMode::On);
    }

    /// Forgets what was done ahead: its command has run.
    pub fn forget_prepared(&mut self) {
        self.prepared = None;
        self.prepared_ns = 0;
        self.built_held.set(0);
        self.set_gate(gate::PREPARED, false);
    }

    /// The session's command was turned back by long holders: it waits for its turn, unless it will
    /// not be tried again before its client has read.
    pub fn await_turn(&mut self, keyspace: &Arc<keyspace::Keyspace>) {
        if self.output_blocked {
            return;
        }
        self.turn.get_or_insert_with(|| Turn::wait(keyspace));
        self.set_gate(gate::TURN, true);
    }

    /// The session's command needs the whole keyspace, of which a part is frozen: nobody freezes
    /// more until it has run. Others may be long meanwhile.
    pub fn await_thaw(&mut self, keyspace: &Arc<keyspace::Keyspace>) {
        self.turn = None;
        if self.output_blocked {
            return;
        }
        self.thaw_turn.get_or_insert_with(|| ThawTurn::wait(keyspace));
        self.set_gate(gate::TURN, true);
    }

    /// The command has run, or will not run for some time: others may hold slots for long.
    pub fn end_turn(&mut self) {
        self.turn = None;
        self.thaw_turn = None;
        self.set_gate(gate::TURN | gate::MAY_FREEZE, false);
    }

    /// True if a complete request waits in the assembler.
    pub fn has_assembled(&self) -> bool {
        self.assembler.as_ref().is_some_and(|assembler| assembler.is_complete())
    }

    /// True while a reply is being written in steps, or is there and waits for something else.
    pub fn is_streaming(&self) -> bool {
        use Suspended::{Task as Runs, TaskParked};
        matches!(
            self.suspended,
            Runs(Task::Resumable(..) | Task::Reclaim(_))
                | TaskParked(Task::Resumable(..) | Task::Reclaim(_))
                | Suspended::Rewriting(_)
        )
    }

    /// True while a reply waits for the disk.
    pub fn has_parked_reply(&self) -> bool {
        matches!(&self.suspended, Suspended::Rewriting(_))
    }

    /// True while nothing may be executed for this session.
    pub fn is_stopped(&self) -> bool {
        self.gates & gate::STOPPED != 0
    }

    /// Stops executing; `why` decides who wakes the session.
    pub fn suspend(&mut self, why: Suspended) {
        self.suspended = why;
        self.gates |= gate::STOPPED;
    }

    /// Executes again, unless the connection is being closed.
    pub fn wake(&mut self) {
        self.suspended = Suspended::No;
        self.set_gate(gate::STOPPED, self.close_after_reply);
    }

    /// No further command; closes when the replies have left.
    pub fn finish(&mut self) {
        self.end_turn();
        self.close_after_reply = true;
        self.gates |= gate::STOPPED;
    }
}
