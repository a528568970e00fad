//! HOTKEYS: which keys and slots are used most, and which values are the largest.

use crate::execute::caller::Caller;
use crate::execute::outcome::Outcome;
use crate::figures::hot::HotFigures;
use crate::worker::core::Core;
use command::Error;
use command::ops::HotKeysOp;
use observe::hot::{Name, Value};
use resp::{OutBuf, Reply};

impl Core {
    /// Carries out a subcommand of HOTKEYS.
    pub(crate) fn hotkeys_op(
        &mut self,
        out: &mut OutBuf,
        caller: &Caller,
        op: HotKeysOp,
    ) -> Result<Outcome, Error> {
        let (shared, now_ms) = (&self.shared, self.turn.unix_ms().0);
        let mut reply = caller.reply(out);
        match op {
            HotKeysOp::Get => reply_figures(&mut reply, &shared.hot.figures(shared, now_ms)),
            HotKeysOp::Start(session) => {
                if !shared.hot.start(shared, session, now_ms) {
                    return Err(Error::HotKeysUnderWay);
                }
                reply.ok();
            }
            HotKeysOp::Stop if shared.hot.stop(shared, now_ms) => reply.ok(),
            HotKeysOp::Stop => reply.null(),
            HotKeysOp::Reset => {
                shared.hot.reset(shared);
                reply.ok();
            }
        }
        self.follow_hot_sessions();
        Ok(Outcome::Done)
    }
}

/// The fields of Redis 8.6, then those which only we have.
fn reply_figures(reply: &mut Reply<'_>, f: &HotFigures) {
    let cpu = f.session.as_ref().is_none_or(|s| s.asked.cpu);
    let net = f.session.as_ref().is_none_or(|s| s.asked.net);
    let spent = |asked: bool| asked && f.session.is_some();
    let view = &f.view;
    let fields = 10 + usize::from(cpu) + usize::from(net);
    reply.map(fields + 2 * usize::from(spent(cpu)) + usize::from(spent(net)));
    number(reply, "tracking-active", i64::from(f.is_active));
    number(reply, "sample-ratio", i64::from(f.ratio));
    reply.bulk(b"selected-slots");
    reply.array(0);
    number(reply, "all-commands-all-slots-us", (view.ns / 1000) as i64);
    number(reply, "net-bytes-all-commands-all-slots", view.bytes as i64);
    number(reply, "collection-start-time-unix-ms", view.since_ms);
    number(reply, "collection-duration-ms", f.ms);
    if spent(cpu) {
        number(reply, "total-cpu-time-user-ms", f.spent.user_ms as i64);
        number(reply, "total-cpu-time-sys-ms", f.spent.system_ms as i64);
    }
    if spent(net) {
        number(reply, "total-net-bytes", f.spent.net_bytes as i64);
    }
    if cpu {
        pairs(reply, "by-cpu-time-us", &view.by_time, 1000);
    }
    if net {
        pairs(reply, "by-net-bytes", &view.by_bytes, 1);
    }
    pairs(reply, "by-uses", &view.by_uses, 1);
    pairs(reply, "by-slot-uses", &view.by_slot, 1);
    reply.bulk(b"largest-values");
    reply.array(view.largest.len());
    view.largest.iter().for_each(|value| reply_value(reply, value));
}

fn number(reply: &mut Reply<'_>, name: &str, value: i64) {
    reply.bulk(name.as_bytes());
    reply.integer(value);
}

/// Names and numbers in turn.
fn pairs(reply: &mut Reply<'_>, name: &str, list: &[(Name, u64)], unit: u64) {
    reply.bulk(name.as_bytes());
    reply.array(2 * list.len());
    for (name, count) in list {
        reply.bulk(&name.shown());
        reply.integer((count / unit) as i64);
    }
}

/// Key, database, bytes, and the command that was sampled.
fn reply_value(reply: &mut Reply<'_>, value: &Value) {
    reply.array(4);
    reply.bulk(&value.name.shown());
    reply.integer(i64::from(value.db));
    reply.integer(value.bytes as i64);
    reply.bulk(value.command.as_bytes());
}
