//! One connection as its worker sees it: self-contained, so that it could move to another worker.

use crate::client_card::{ClientCard, flag};
use crate::client_memory::{ClientMemory, Share};
use crate::shared::Shared;
use crate::watches::Watches;
use crate::worker::{Outbox, Sizes};
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;
use base::{DbIndex, MonoNs, SeqNo};
use command::{CommandId, Prepared, Resumable};
use driver::ConnId;
use keyspace::{Ticket, Turn};
use resp::{Assembler, OutBuf, OutPos, OwnedRequest, Proto};

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
    /// Waits for a turn, or has waited for the end of one: it may be long though others wait ([`keyspace::Turn`]).
    pub const TURN: u32 = 1 << 7;
    /// In MONITOR.
    pub const MONITOR: u32 = 1 << 6;
    /// CLIENT IMPORT-SOURCE ON.
    pub const IMPORT_SOURCE: u32 = 1 << 8;
}

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
    /// It does not: commands are executed as they come.
    No,
    /// The World gate is closed or a slot is held for long; retried when the way is free.
    Parked,
    /// CLIENT PAUSE; retried when it ends.
    Pause,
    /// DEBUG SLEEP: this session holds World until then.
    Sleep(MonoNs),
    /// A long command goes on in steps.
    Task(Task),
    /// It does once the World gate is open, or a slot no longer held for long.
    TaskParked(Task),
    /// MIGRATE waits for the target.
    Migrating,
    /// A blocking command waits for its keys.
    Blocked(Blocked),
}

/// A wait for keys.
pub struct Blocked {
    /// In the queues of the keys; whoever claims it answers.
    pub ticket: Arc<Ticket>,
    /// When the time is up.
    pub until: Option<MonoNs>,
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
    /// FLUSHALL SYNC and FLUSHDB SYNC: replies OK when everything is freed.
    Reclaim(BlockedMark),
}

/// Lets a client count as blocked, as long as this is there.
pub struct BlockedMark {
    shared: Arc<Shared>,
    card: Arc<ClientCard>,
}

impl BlockedMark {
    /// Marks a client.
    pub fn new(shared: &Arc<Shared>, card: &Arc<ClientCard>) -> Self {
        shared.blocked.fetch_add(1, Relaxed);
        card.set_flag(flag::BLOCKED, true);
        Self { shared: shared.clone(), card: card.clone() }
    }
}

impl Drop for BlockedMark {
    fn drop(&mut self) {
        self.card.set_flag(flag::BLOCKED, false);
        self.shared.blocked.fetch_sub(1, Relaxed);
    }
}

/// A command that goes on in steps, as the slow log will show it.
pub struct LongCommand {
    /// The command.
    pub id: Option<CommandId>,
    /// Its arguments.
    pub args: OwnedRequest,
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
}

impl Multi {
    /// Nothing is queued yet.
    pub fn new(held: Share) -> Self {
        Self { queue: Vec::new(), failed: false, held }
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
    /// Bytes of requests that have not run.
    pub requests_held: Share,
    /// Bytes of replies that have not left.
    pub replies_held: Share,
    /// Reading is stopped because replies wait to be sent.
    pub output_blocked: bool,
    /// The highest number of what its running command has read: what it replies later waits for that.
    pub seen: SeqNo,
    /// Replies that may not leave yet; never an empty queue.
    pub outbox: Option<Box<Outbox>>,
    /// What the session is to be told behind the reply that is being written in steps.
    pub pushes: Option<Box<Outbox>>,
    /// Close once everything written has left.
    pub close_after_reply: bool,
    /// Why nothing is executed now.
    pub suspended: Suspended,
    /// The command that goes on in steps, if one does.
    pub long: Option<Box<LongCommand>>,
    /// Work that was done ahead of the next command, which asked for it; there is some if [`gate::PREPARED`] is set.
    pub prepared: Prepared,
    /// Time spent on it, nanoseconds.
    pub prepared_ns: u64,
    /// Keeps new long holders out, because long holders have turned the session's command back.
    pub turn: Option<Turn>,
    /// The command that goes on in steps waits for the backlog of replies to leave.
    pub stalled: bool,
    /// Bytes of replies that the driver was given.
    pub handed: u64,
    /// End of this turn's input in the receive area; meaningful while framing.
    pub input_end: usize,
    /// A request too large for the receive area, being assembled or waiting to be retried.
    pub assembler: Option<Box<Assembler>>,
    /// The transaction between MULTI and EXEC.
    pub multi: Option<Box<Multi>>,
    /// Keys under WATCH.
    pub watched: Watches,
    /// Last time a command was read, for `timeout`.
    pub last_active: MonoNs,
    /// Since when the output is above the soft limit.
    pub soft_limit_since: Option<MonoNs>,
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
            outbox: None,
            pushes: None,
            close_after_reply: false,
            suspended: Suspended::No,
            long: None,
            prepared: None,
            prepared_ns: 0,
            turn: None,
            stalled: false,
            handed: 0,
            input_end: 0,
            assembler: None,
            multi: None,
            watched: Watches::default(),
            last_active: now,
            soft_limit_since: None,
        }
    }

    /// Sets or clears bits of [`gate`].
    pub fn set_gate(&mut self, bits: u32, on: bool) {
        if on {
            self.gates |= bits;
        } else {
            self.gates &= !bits;
        }
    }

    /// Counts the requests that are held: what was kept back, and one that arrives in parts or waits.
    pub fn count_requests(&mut self) {
        let in_parts = self.assembler.as_ref().map_or(0, |assembler| assembler.memory() as u64);
        self.requests_held.set(self.card.input_bytes.load(Relaxed) + in_parts);
    }

    /// So many bytes stand in the receive area: what was kept back, and what has arrived behind it. Nothing is kept now.
    pub fn note_received(&mut self, bytes: u64) {
        let kept = self.card.input_bytes.load(Relaxed);
        self.card.net_in.add(bytes - kept);
        if kept > 0 {
            self.card.input_bytes.store(0, Relaxed);
            self.count_requests();
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
        self.set_gate(gate::PREPARED, false);
    }

    /// The session's command was turned back by long holders: it waits for its turn, unless it will not be tried again
    /// before its client has read.
    pub fn await_turn(&mut self, keyspace: &Arc<keyspace::Keyspace>) {
        if self.output_blocked {
            return;
        }
        self.turn.get_or_insert_with(|| Turn::wait(keyspace));
        self.set_gate(gate::TURN, true);
    }

    /// The command has run, or will not for some time: others may be long.
    pub fn end_turn(&mut self) {
        self.turn = None;
        self.set_gate(gate::TURN, false);
    }

    /// True if a complete request waits in the assembler.
    pub fn has_assembled(&self) -> bool {
        self.assembler.as_ref().is_some_and(|assembler| assembler.is_complete())
    }

    /// True while a reply is being written in steps.
    pub fn is_streaming(&self) -> bool {
        use Suspended::{Task as Runs, TaskParked};
        matches!(self.suspended, Runs(Task::Resumable(..)) | TaskParked(Task::Resumable(..)))
    }

    /// True while nothing may be executed for this session.
    pub fn is_stopped(&self) -> bool {
        self.gates & gate::STOPPED != 0
    }

    /// Stops executing; the reason decides who starts it again.
    pub fn suspend(&mut self, why: Suspended) {
        self.suspended = why;
        self.gates |= gate::STOPPED;
    }

    /// Executes again, unless the connection is closing.
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
