//! MONITOR at a worker: making the lines of the commands that its sessions execute, and sending
//! lines to those of its sessions that monitor.

use crate::execute::caller::Caller;
use crate::execute::gates::closed;
use crate::execute::redact;
use crate::sessions::card::flag;
use crate::sessions::monitors;
use crate::sessions::output;
use crate::sessions::output::Hold;
use crate::sessions::session::{ReplyMode, gate};
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::sync::Arc;
use command::spec::Flags;
use command::{CommandId, Error};
use driver::{ConnId, Driver};
use resp::{Args, OutBuf};

/// Commands that MONITOR does not show.
const NEVER_SHOWN: Flags = Flags::ADMIN;

impl Core {
    /// MONITOR: this session is sent a line for every command that any client executes from here
    /// on. A second MONITOR does nothing and has no reply, as in Redis.
    pub(crate) fn monitor(&mut self, caller: &Caller, out: &mut OutBuf) -> Result<(), Error> {
        if !caller.may_suspend {
            return Err(Error::MonitorInMulti);
        }
        let s = caller.session(self);
        if s.gates & gate::MONITOR != 0 {
            return Ok(());
        }
        s.set_gate(gate::MONITOR, true);
        s.card.set_flag(flag::MONITOR, true);
        self.monitors.push(caller.conn());
        self.shared.monitors.join(self.id);
        self.publish_fence();
        caller.reply(out).ok();
        Ok(())
    }

    /// Ends MONITOR for the session, if it monitors.
    pub(crate) fn end_monitor(&mut self, conn: ConnId) {
        let before = self.monitors.len();
        self.monitors.retain(|m| *m != conn);
        if self.monitors.len() == before {
            return;
        }
        self.shared.monitors.leave(self.id);
        if let Some(s) = self.session_mut(conn) {
            s.set_gate(gate::MONITOR, false);
            s.card.set_flag(flag::MONITOR, false);
        }
        self.refresh_gates();
    }

    /// The line for monitors about a command that a session has executed. Administration is not
    /// shown, passwords are redacted.
    #[cold]
    pub(crate) fn monitor_line(
        &mut self,
        caller: &Caller,
        id: CommandId,
        args: Args<'_>,
    ) -> Option<Arc<[u8]>> {
        let spec = id.spec();
        if !caller.is_monitored || spec.flags.intersects(NEVER_SHOWN) {
            return None;
        }
        let unix_us = self.clock.unix_us(self.turn.now(), self.turn.unix_ms());
        let s = caller.session(self); // its database after the command, as in Redis
        let shown = redact::redacted(spec, args);
        Some(if s.card.has_flag(flag::UNIX) {
            let path = s.card.addr.strip_suffix(":0").unwrap_or(&s.card.addr);
            monitors::line(unix_us, s.db.0, &format!("unix:{path}"), &shown)
        } else {
            monitors::line(unix_us, s.db.0, &s.card.addr, &shown)
        })
    }

    /// True while some client monitors.
    #[inline]
    pub(crate) fn has_monitors(&self) -> bool {
        self.gates & closed::MONITOR != 0
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Sends a line to each monitoring session of this worker.
    pub(crate) fn on_monitor(&mut self, line: &Arc<[u8]>, hold: Hold) {
        self.core.shared.monitors.received(self.core.id, line.len());
        // A session with too much unsent is closed in `push`, hence the copy.
        for conn in self.core.monitors.clone() {
            let Some(s) = self.core.session_mut(conn) else { continue };
            if s.reply_mode == ReplyMode::Off || s.close_after_reply {
                continue;
            }
            self.push(conn, line, hold);
        }
        let (_, out) = self.driver.io();
        if out.bytes.len() > output::ARENA_FLUSH_BYTES {
            self.run_window(); // sending may end a connection, so its commands run first
            self.flush();
        }
    }

    /// Lines were dropped: closes the monitors, so that no client misses commands without noticing.
    pub(crate) fn on_monitor_lost(&mut self) {
        self.run_window();
        for conn in self.core.monitors.clone() {
            if let Some(s) = self.core.session_mut(conn) {
                crate::log::warning(format_args!(
                    "Client id={} addr={} closed: more than {} bytes of MONITOR output wait for its worker",
                    s.card.id,
                    s.card.addr,
                    monitors::UNDERWAY_MAX
                ));
            }
            self.close_now(conn);
        }
        self.core.shared.monitors.restart(self.core.id);
    }
}
