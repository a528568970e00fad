//! The session of HOTKEYS: what is shared about it.

use base::sync::atomic::AtomicU64;
use base::sync::atomic::Ordering::{Acquire, Release};
use base::sync::{Mutex, MutexGuard};
use command::ops::HotKeysSession;

/// One command in so many is looked at, always. A session may ask for more of them, not for fewer.
pub const SAMPLE: u32 = 1000;

/// Processor time and network bytes at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// In user code, milliseconds.
    pub user_ms: u64,
    /// In the kernel.
    pub system_ms: u64,
    /// Bytes received and sent.
    pub net_bytes: u64,
}

/// A session that was started.
#[derive(Clone, Debug)]
pub struct Session {
    /// What it was asked for.
    pub asked: HotKeysSession,
    pub(super) started_ms: i64,
    /// When it ends by itself.
    pub(super) until_ms: i64,
    /// What was spent when it began, and while it lasted if it has ended.
    pub(super) then: Spent,
    pub(super) ended: Option<(i64, Spent)>,
}

/// The session of HOTKEYS, if there is one.
#[derive(Debug, Default)]
pub struct HotSessions {
    /// Raised with every change; workers compare it in each turn.
    version: AtomicU64,
    session: Mutex<Option<Session>>,
}

impl Session {
    pub(super) fn is_active(&self, now_ms: i64) -> bool {
        self.ended.is_none() && now_ms < self.until_ms
    }

    pub(super) fn ratio(&self) -> u32 {
        self.asked.ratio.min(SAMPLE)
    }
}

impl HotSessions {
    /// Changes with every session.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Acquire)
    }

    /// One command in so many is to be looked at.
    pub fn ratio(&self, now_ms: i64) -> u32 {
        let session = self.lock();
        session.as_ref().filter(|s| s.is_active(now_ms)).map_or(SAMPLE, Session::ratio)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Option<Session>> {
        self.session.lock().expect("no panic while the session is held")
    }

    pub(super) fn change(&self) {
        self.version.fetch_add(1, Release);
    }
}
