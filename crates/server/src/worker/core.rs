//! Everything of a worker that knows no driver. Its parts are kept by how long they live.
//!
//! | part | lives for | begun and ended by |
//! |---|---|---|
//! | the fields of [`Core`] itself | the worker | boot, [`super::shutdown`] |
//! | [`Turn`] | one turn of the loop | [`Turn::begin`], the flush |
//! | [`Batch`] | one window of commands | [`Batch::begin`], [`Batch::end`] |
//! | [`Running`] | one command | [`Running::begin`], the next command |
//! | [`CommandKeys`] | one command's locks | [`CommandKeys::collect`], the next command |
//! | [`Tasks`] | until done, over many turns | a step a turn, in the background |
//! | [`Timers`] | again and again | the work itself, each time |

use super::batch::Batch;
use super::execute::{Hot, hot_table};
use super::fence::Versions;
use super::keys::CommandKeys;
use super::outbox::Holding;
use super::recent::Recent;
use super::running::Running;
use super::shutdown::Shutdown;
use super::tasks::Tasks;
use super::timers::Timers;
use super::turn::Turn;
use crate::message::Message;
use crate::session::Session;
use crate::settings::WorkerSettings;
use crate::shared::{Shared, WorkerCounters};
use base::SeqNo;
use base::sync::Arc;
use command::Tally;
use driver::{ConnId, Driver, ListenerId};

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
    /// Bits of [`super::closed`]: any set bit takes every command off the short path.
    pub gates: u32,
    /// What of the others' changes this worker has taken over.
    pub(crate) versions: Versions,
    /// Keyspace hits and misses not yet published, and random numbers for handlers.
    pub tally: Tally,
    /// What the short path needs of every command.
    pub(super) hot: Vec<Hot>,
    /// How the last requests began.
    pub(super) recent: Recent,
    /// Sessions whose replies wait to leave.
    pub(super) holding: Holding,
    /// Sessions whose replies are above the soft limit, to be closed if they stay there.
    pub(super) above_soft: Vec<ConnId>,
    /// Sessions in MONITOR.
    pub(super) monitors: Vec<ConnId>,
    /// The highest number of messages that were poured here.
    pub(super) poured: SeqNo,
    pub(super) shutdown: Shutdown,
    /// This turn.
    pub turn: Turn,
    /// The window that is executed.
    pub(super) batch: Batch,
    /// The command that is executed.
    pub(super) running: Running,
    /// The keys that it locks.
    pub(super) locking: CommandKeys,
    /// Work that goes on in steps, and who waits.
    pub(crate) tasks: Tasks,
    /// Recurring work.
    pub(super) timers: Timers,
}

impl Core {
    /// The core of worker `id` on this driver.
    pub(super) fn new<D: Driver<Message = Message>>(
        driver: &mut D,
        shared: Arc<Shared>,
        id: usize,
        listeners: Vec<ListenerId>,
    ) -> Self {
        let now = driver.refresh_now();
        Self {
            id,
            clock: driver.clock(),
            sessions: Vec::new(),
            settings: WorkerSettings::new(&shared),
            gates: 0,
            versions: Versions::default(),
            tally: Tally::new(driver.random()),
            hot: hot_table(),
            recent: Recent::default(),
            holding: Holding::default(),
            above_soft: Vec::new(),
            monitors: Vec::new(),
            poured: SeqNo(0),
            shutdown: Shutdown::new(listeners),
            turn: Turn::new(now, driver.unix_ms()),
            batch: Batch::default(),
            running: Running::default(),
            locking: CommandKeys::default(),
            tasks: Tasks::default(),
            timers: Timers::new(now),
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

    /// This worker's counters.
    #[inline]
    pub fn counters(&self) -> &WorkerCounters {
        &self.shared.workers[self.id]
    }
}
