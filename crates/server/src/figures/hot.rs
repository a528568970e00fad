//! The view of hot keys, and the sessions of HOTKEYS.

use crate::figures::rates::totals;
use crate::shared::Shared;
use base::sync::atomic::AtomicU64;
use base::sync::atomic::Ordering::{Acquire, Release};
use base::sync::{Mutex, MutexGuard};
use command::ops::HotKeysSession;
use observe::hot::{Shown, View};

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

impl Spent {
    fn gather(shared: &Shared) -> Self {
        let (cpu, io) = (driver::process_times(), totals(shared));
        let ms = |s: f64| (s * 1000.0) as u64;
        let net_bytes = io.bytes_in + io.bytes_out;
        Self { user_ms: ms(cpu.user_s), system_ms: ms(cpu.system_s), net_bytes }
    }

    fn since(&self, then: &Self) -> Self {
        Self {
            user_ms: self.user_ms.saturating_sub(then.user_ms),
            system_ms: self.system_ms.saturating_sub(then.system_ms),
            net_bytes: self.net_bytes.saturating_sub(then.net_bytes),
        }
    }
}

/// A session that was started.
#[derive(Clone, Debug)]
pub struct Session {
    /// What it was asked for.
    pub asked: HotKeysSession,
    started_ms: i64,
    /// When it ends by itself.
    until_ms: i64,
    /// What was spent when it began, and while it lasted if it has ended.
    then: Spent,
    ended: Option<(i64, Spent)>,
}

/// The session of HOTKEYS, if there is one.
#[derive(Debug, Default)]
pub struct HotSessions {
    /// Raised with every change; workers compare it in each turn.
    version: AtomicU64,
    session: Mutex<Option<Session>>,
}

/// What HOTKEYS GET shows.
pub struct HotFigures {
    /// The session; without one the last one to two minutes are shown.
    pub session: Option<Session>,
    /// The session has not ended, or there is none.
    pub is_active: bool,
    /// One command in so many was looked at.
    pub ratio: u32,
    /// What was counted.
    pub view: View,
    /// For how long, milliseconds.
    pub ms: i64,
    /// What the server spent meanwhile.
    pub spent: Spent,
}

impl Session {
    fn is_active(&self, now_ms: i64) -> bool {
        self.ended.is_none() && now_ms < self.until_ms
    }

    fn ratio(&self) -> u32 {
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

    fn lock(&self) -> MutexGuard<'_, Option<Session>> {
        self.session.lock().expect("no panic while the session is held")
    }

    fn change(&self) {
        self.version.fetch_add(1, Release);
    }

    /// Ends a session whose time has come: its workers look at fewer commands again. Housekeeping
    /// calls it.
    pub fn end_if_due(&self, shared: &Shared, now_ms: i64) {
        let mut session = self.lock();
        if let Some(s) = session.as_mut().filter(|s| s.ended.is_none() && now_ms >= s.until_ms) {
            s.ended = Some((s.until_ms, Spent::gather(shared).since(&s.then)));
            self.change();
        }
    }

    /// Begins a session on all workers. False if one is under way.
    pub fn start(&self, shared: &Shared, asked: HotKeysSession, now_ms: i64) -> bool {
        let mut session = self.lock();
        if session.as_ref().is_some_and(|s| s.is_active(now_ms)) {
            return false;
        }
        let until_ms = match asked.seconds {
            0 => i64::MAX,
            seconds => now_ms.saturating_add(i64::from(seconds) * 1000),
        };
        let then = Spent::gather(shared);
        *session = Some(Session { asked, started_ms: now_ms, until_ms, then, ended: None });
        shared.workers.iter().for_each(|w| w.hot.start(now_ms, until_ms));
        self.change();
        true
    }

    /// Ends the session. False if none is under way.
    pub fn stop(&self, shared: &Shared, now_ms: i64) -> bool {
        let mut session = self.lock();
        let Some(s) = session.as_mut().filter(|s| s.is_active(now_ms)) else { return false };
        s.ended = Some((now_ms, Spent::gather(shared).since(&s.then)));
        shared.workers.iter().for_each(|w| w.hot.stop(now_ms));
        self.change();
        true
    }

    /// Forgets the session, whether it has ended or not.
    pub fn reset(&self, shared: &Shared) {
        *self.lock() = None;
        shared.workers.iter().for_each(|w| w.hot.reset());
        self.change();
    }

    /// What was counted: by the session, or without one in the last one to two minutes.
    pub fn figures(&self, shared: &Shared, now_ms: i64) -> HotFigures {
        self.end_if_due(shared, now_ms);
        let session = self.lock().clone();
        let Some(s) = session else {
            let view = always(shared, now_ms, usize::from(command::ops::HOTKEYS_COUNT_DEFAULT));
            let ms = now_ms - view.since_ms;
            let spent = Spent::default();
            return HotFigures { session, is_active: true, ratio: SAMPLE, view, ms, spent };
        };
        let most = usize::from(s.asked.count);
        let workers = || shared.workers.iter().map(|w| &w.hot);
        let view = View::gather(workers(), Shown::Session, now_ms, most);
        let now = || Spent::gather(shared).since(&s.then);
        let (end_ms, spent) = s.ended.unwrap_or_else(|| (now_ms, now()));
        HotFigures {
            is_active: s.is_active(now_ms),
            ratio: s.ratio(),
            view: View { since_ms: s.started_ms, ..view },
            ms: end_ms - s.started_ms,
            spent,
            session: Some(s),
        }
    }
}

/// What was counted in the last one to two minutes.
pub fn always(shared: &Shared, now_ms: i64, most: usize) -> View {
    View::gather(shared.workers.iter().map(|w| &w.hot), Shown::Always, now_ms, most)
}
