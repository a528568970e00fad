//! Operations of a session on itself: AUTH, HELLO, SELECT, RESET, QUIT and the transaction
//! commands.

use crate::execute::caller::Caller;
use crate::execute::outcome::Outcome;
use crate::sessions::card::flag;
use crate::sessions::password::same_bytes;
use crate::sessions::session::{ReplyMode, gate};
use crate::worker::core::Core;
use base::DbIndex;
use base::sync::atomic::Ordering::Relaxed;
use command::Error;
use command::ops::{Credentials, Hello, SessionOp};
use command::transactions::WATCHED_TOGETHER;
use keyspace::Guard;
use resp::{Args, OutBuf, Proto, Reply};

use command::REDIS_VERSION;

impl Core {
    /// Carries out an operation on the session.
    pub(crate) fn session_op(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        caller: &Caller,
        args: Args<'_>,
        op: SessionOp,
    ) -> Result<Outcome, Error> {
        match op {
            SessionOp::Auth(credentials) => {
                self.authenticate(caller, &credentials)?;
                caller.reply(out).ok();
            }
            SessionOp::Hello(hello) => self.hello(out, caller, &hello)?,
            SessionOp::Select(db) => {
                self.select(caller, db)?;
                caller.reply(out).ok();
            }
            SessionOp::Quit => {
                caller.reply(out).ok();
                self.finish(caller);
            }
            SessionOp::Reset => {
                if self.reset(caller) {
                    return Ok(Outcome::Waiting);
                }
                Reply::new(out, Proto::Resp2).simple("RESET");
            }
            SessionOp::Client(op) => return self.client_op(guard, out, caller, args, op),
            SessionOp::Monitor => self.monitor(caller, out)?,
            SessionOp::Multi => self.multi(caller, out)?,
            SessionOp::Exec => return Err(Error::ExecWithoutMulti), // dispatched before it gets here
            SessionOp::Discard => {
                self.discard(caller)?;
                caller.reply(out).ok();
            }
            SessionOp::Watch if args.len() > 1 + WATCHED_TOGETHER => {
                self.begin_watching(caller)?;
                return Ok(Outcome::Waiting);
            }
            SessionOp::Watch => {
                self.watch(guard, caller, args)?;
                caller.reply(out).ok();
            }
            SessionOp::Unwatch => {
                self.unwatch_soon(caller);
                caller.reply(out).ok();
            }
            SessionOp::Subscribe(subject) => return self.subscribe(out, caller, args, subject),
            SessionOp::Unsubscribe(subject) => {
                return Ok(self.unsubscribe(out, caller, args, subject));
            }
            SessionOp::Publish(subject) => {
                return Ok(self.publish(guard, out, caller, args, subject));
            }
        }
        Ok(Outcome::Done)
    }

    /// No further command; the connection ends when its replies have left.
    pub(crate) fn finish(&mut self, caller: &Caller) {
        self.end_subscriptions(caller.conn());
        let s = caller.session(self);
        s.finish();
        s.card.set_flag(flag::CLOSE_AFTER_REPLY, true);
        self.turn.closing.push(caller.conn());
    }

    fn authenticate(&mut self, caller: &Caller, credentials: &Credentials) -> Result<(), Error> {
        let required = self.settings.needs_password();
        if credentials.user.is_none() && !required {
            return Err(Error::NoPasswordSet);
        }
        let known = credentials.user.as_deref().is_none_or(|u| u == b"default");
        let right = !required || same_bytes(&self.settings.password, &credentials.password);
        if !(known && right) {
            return Err(Error::WrongPass);
        }
        let s = caller.session(self);
        s.authenticated = true;
        s.set_gate(gate::NEED_AUTH, false);
        Ok(())
    }

    fn hello(&mut self, out: &mut OutBuf, caller: &Caller, hello: &Hello) -> Result<(), Error> {
        if let Some(credentials) = &hello.auth {
            self.authenticate(caller, credentials)?;
        }
        let required = self.settings.needs_password();
        let s = caller.session(self);
        if !s.authenticated && required {
            return Err(Error::NoAuthHello);
        }
        if let Some(name) = &hello.name {
            s.set_name(name);
        }
        if let Some(proto) = hello.proto {
            s.proto = if proto == 3 { Proto::Resp3 } else { Proto::Resp2 };
            s.card.proto.store(u32::from(proto), Relaxed);
        }
        let (proto, id) = (s.proto, s.card.id);
        let mut r = Reply::new(out, proto);
        r.map(7);
        for (name, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
            r.bulk(name.as_bytes());
            r.bulk(value.as_bytes());
        }
        r.bulk(b"proto");
        r.integer(if proto == Proto::Resp3 { 3 } else { 2 });
        r.bulk(b"id");
        r.integer(id as i64);
        r.bulk(b"mode");
        r.bulk(b"standalone");
        r.bulk(b"role");
        r.bulk(b"master");
        r.bulk(b"modules");
        r.array(0);
        Ok(())
    }

    fn select(&mut self, caller: &Caller, db: i32) -> Result<(), Error> {
        let db = u16::try_from(db).ok().filter(|d| *d < self.settings.command.databases);
        let db = DbIndex::new(db.ok_or(Error::DbRange)?);
        let s = caller.session(self);
        s.db = db;
        s.card.db.store(db.0, Relaxed);
        Ok(())
    }

    /// RESET: as if the client had just connected. True if its subscriptions are many: they end in
    /// steps, and the last one replies.
    fn reset(&mut self, caller: &Caller) -> bool {
        self.unwatch_soon(caller);
        self.end_monitor(caller.conn());
        let need_auth = self.settings.needs_password();
        let s = caller.session(self);
        let multi = s.end_transaction();
        s.db = DbIndex(0);
        s.proto = Proto::Resp2;
        s.reply_mode = ReplyMode::On;
        s.skips_next = false;
        s.authenticated = !need_auth;
        s.gates &= gate::STOPPED | gate::LISTENS;
        s.set_gate(gate::NEED_AUTH, need_auth);
        s.set_name(b"");
        s.card.db.store(0, Relaxed);
        s.card.proto.store(2, Relaxed);
        s.card.set_flag(flag::NO_EVICT | flag::NO_TOUCH | flag::IMPORT_SOURCE, false);
        self.free_queue(multi);
        self.end_tracking(caller.conn());
        self.reset_subscriptions(caller)
    }
}

impl crate::sessions::session::Session {
    /// CLIENT SETNAME; the name is valid.
    pub(crate) fn set_name(&mut self, name: &[u8]) {
        self.change_names(|text| text.name = String::from_utf8_lossy(name).into_owned());
    }
}
