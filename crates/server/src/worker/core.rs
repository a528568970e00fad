//! Everything of a worker that knows no driver. Its parts are kept by how long they live.
//!
//! | part | lives for | begun and ended by |
//! |---|---|---|
//! | the fields of `Core` itself | the worker | boot, `Shutdown` |
//! | `Turn` | one turn of the loop | `Turn::begin`, the flush |
//! | `Batch` | one window of commands | `Batch::begin`, `Batch::end` |
//! | `Running` | one command | `Running::begin`, the next command |
//! | `CommandKeys` | one command's locks | `CommandKeys::collect`, the next command |
//! | `Tasks` | until done, over many turns | a step a turn, in the background |
//! | `Quotas` | until sessions have a share of the time again | the command that used it up |
//! | `Load` | a period of 100 ms, or some | housekeeping |
//! | `Timers` | again and again | the work itself, each time |

use crate::execute::hot::{Hot, hot_table};
use crate::execute::keys::CommandKeys;
use crate::execute::running::Running;
use crate::execute::sampler::Sampler;
use crate::pubsub::events::KeyEvents;
use crate::pubsub::local::Local;
use crate::sessions::outbox::Holding;
use crate::sessions::quota::Quotas;
use crate::sessions::session::Session;
use crate::settings::WorkerSettings;
use crate::shared::{Shared, WorkerCounters};
use crate::worker::batch::Batch;
use crate::worker::load::Load;
use crate::worker::message::Message;
use crate::worker::recent::Recent;
use crate::worker::shutdown::Shutdown;
use crate::worker::tasks::Tasks;
use crate::worker::tending::Tending;
use crate::worker::timers::Timers;
use crate::worker::turn::Turn;
use base::FenceNo;
use base::SeqNo;
use base::sync::Arc;
use command::Tally;
use driver::{ConnId, Driver, ListenerId};
use observe::Unfolded;

/// Everything of a worker that knows no driver.
pub struct Core {
    /// What all workers share.
    pub shared: Arc<Shared>,
    /// This worker's number.
    pub id: usize,
    /// Reads the monotonic clock afresh.
    pub clock: driver::Clock,
    /// Sessions by the driver's connection index. (Boxed: an idle place costs a word.)
    pub sessions: Vec<Option<Box<Session>>>,
    /// Configuration as this worker last saw it.
    pub settings: WorkerSettings,
    /// Bits of [`crate::execute::gates::closed`]: any set bit takes every command off the short
    /// path.
    pub gates: u32,
    /// `maxmemory` is exceeded, and no key may be evicted.
    pub(crate) is_out_of_room: bool,
    /// What of the others' changes this worker has taken over.
    pub(crate) versions: Versions,
    /// Service times that are not in the heat map yet.
    pub(crate) unfolded: Unfolded,
    /// Keyspace hits and misses not yet published, and random numbers for handlers.
    pub tally: Tally,
    /// What the short path needs of every command.
    pub(crate) hot: Vec<Hot>,
    /// How the last requests began.
    pub(crate) recent: Recent,
    /// Sessions whose replies wait to leave.
    pub(crate) holding: Holding,
    /// Sessions whose replies are above the soft limit, to be closed if they stay there.
    pub(crate) above_soft: Vec<ConnId>,
    /// Sessions which have begun to receive an argument in place, to be checked for progress.
    pub(crate) bulks: Vec<ConnId>,
    /// Sessions in MONITOR.
    pub(crate) monitors: Vec<ConnId>,
    /// Which sessions subscribe to what.
    pub(crate) pubsub: Local,
    /// What it publishes of its changes.
    pub(crate) key_events: Arc<KeyEvents>,
    /// The highest number of messages that were poured here.
    pub(crate) poured: SeqNo,
    pub(crate) shutdown: Shutdown,
    /// This turn.
    pub turn: Turn,
    /// The window that is executed.
    pub(crate) batch: Batch,
    /// The command that is executed.
    pub(crate) running: Running,
    /// Which commands are looked at for the view of hot keys.
    pub(crate) sampler: Sampler,
    /// The keys that it locks.
    pub(crate) locking: CommandKeys,
    /// Work that goes on in steps, and who waits.
    pub(crate) tasks: Tasks,
    /// Recurring work.
    pub(crate) timers: Timers,
    /// Sessions whose share of the time is used up.
    pub(crate) quotas: Quotas,
    /// Memory that is to come back.
    pub(crate) tending: Tending,
    /// How busy this worker is, and which of its clients could move.
    pub(crate) load: Load,
}

/// The latest changes of others that this worker has taken over. At first it has none: what
/// changes while it starts is found at its first turn.
#[derive(Default)]
pub struct Versions {
    /// The latest fence.
    pub fence: FenceNo,
    /// The configuration.
    pub config: u64,
    /// The statistics epoch that this worker's counts belong to.
    pub stats: u64,
}

impl Core {
    /// The core of worker `id` on this driver.
    pub(crate) fn new<D: Driver<Message = Message>>(
        driver: &mut D,
        shared: Arc<Shared>,
        id: usize,
        listeners: Vec<ListenerId>,
    ) -> Self {
        let now = driver.refresh_now();
        let key_events = Arc::new(KeyEvents::new(shared.clone(), id));
        Self {
            id,
            clock: driver.clock(),
            sessions: Vec::new(),
            settings: WorkerSettings::new(&shared),
            gates: 0,
            is_out_of_room: false,
            versions: Versions::default(),
            unfolded: Unfolded::default(),
            tally: Tally::new(driver.random()),
            hot: hot_table(),
            recent: Recent::default(),
            holding: Holding::default(),
            above_soft: Vec::new(),
            bulks: Vec::new(),
            monitors: Vec::new(),
            pubsub: Local::default(),
            key_events,
            poured: SeqNo(0),
            shutdown: Shutdown::new(listeners),
            turn: Turn::new(now, driver.unix_ms()),
            batch: Batch::default(),
            running: Running::default(),
            sampler: Sampler::new(),
            locking: CommandKeys::default(),
            tasks: Tasks::default(),
            timers: Timers::new(now),
            quotas: Quotas::default(),
            tending: Tending::default(),
            load: Load::new(now),
            shared,
        }
    }

    /// The session of a connection, if it is still there.
    #[inline]
    pub fn session_mut(&mut self, conn: ConnId) -> Option<&mut Session> {
        self.sessions
            .get_mut(conn.index as usize)
            .and_then(|s| s.as_deref_mut())
            .filter(|s| s.conn == conn)
    }

    /// Adds a session at the place of its connection.
    pub(crate) fn insert_session(&mut self, session: Box<Session>) {
        let at = session.conn.index as usize;
        if self.sessions.len() <= at {
            self.sessions.resize_with(at + 1, || None);
        }
        self.sessions[at] = Some(session);
    }

    /// This worker's counters.
    #[inline]
    pub fn counters(&self) -> &WorkerCounters {
        &self.shared.workers[self.id]
    }
    /// True if nothing may be executed for a session, which may also be gone.
    pub(crate) fn is_stopped(&mut self, conn: ConnId) -> bool {
        self.session_mut(conn).is_none_or(|s| s.is_stopped())
    }

    pub(crate) fn log_query_limit(&self, conn: ConnId) {
        if let Some(s) = self.sessions[conn.index as usize].as_deref() {
            crate::log::warning(format_args!(
                "Closing client that reached max query buffer length: id={} addr={}",
                s.card.id, s.card.addr
            ));
        }
    }
}
