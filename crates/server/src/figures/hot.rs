//! The view of hot keys, and the sessions of HOTKEYS.

use crate::figures::hot_sessions::{HotSessions, SAMPLE, Session, Spent};
use crate::figures::rates::totals;
use crate::shared::Shared;
use command::ops::HotKeysSession;
use observe::hot::{Shown, View};

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

impl HotSessions {
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
            let ms = (now_ms - view.since_ms).max(0);
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
