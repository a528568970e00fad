//! CLIENT: a connection's own properties, and its power over other connections.

mod evict;
mod filter;
mod list;

use crate::execute::caller::Caller;
use crate::execute::outcome::Outcome;
use crate::sessions::card::{ClientCard, flag};
use crate::sessions::session::{ReplyMode, Session, gate};
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::UnixMs;
use base::sync::atomic::Ordering::Relaxed;
use base::sync::{Arc, PoisonError};
use command::Error;
use command::ops::{self, ClientKill, ClientOp, LibraryFact};
use keyspace::Guard;
use resp::{Args, OutBuf, Reply};

impl Core {
    /// Carries out a CLIENT subcommand.
    pub(crate) fn client_op(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        caller: &Caller,
        args: Args<'_>,
        op: ClientOp,
    ) -> Result<Outcome, Error> {
        let mut reply = caller.reply(out);
        match op {
            ClientOp::GetName => match &*caller.session(self).card.text().name {
                "" => reply.null(),
                name => reply.bulk(name.as_bytes()),
            },
            ClientOp::SetName(name) => {
                caller.session(self).set_name(&name);
                reply.ok();
            }
            ClientOp::SetInfo(fact) => {
                set_library(caller.session(self), fact);
                reply.ok();
            }
            ClientOp::Id => reply.integer(caller.session(self).card.id as i64),
            ClientOp::Tracking(asked) => return self.tracking_op(guard, out, caller, asked),
            ClientOp::Caching(on) => self.caching_op(out, caller, on)?,
            ClientOp::Redirection => reply.integer(caller.session(self).redirection()),
            ClientOp::TrackingInfo => caller.session(self).write_tracking_info(&mut reply),
            ClientOp::Info => self.client_info(&mut reply, caller, args),
            ClientOp::List(filters) => self.client_list(&mut reply, caller, args, &filters),
            ClientOp::Capa { redirect } => {
                let card = &caller.session(self).card;
                card.set_flag(flag::CAN_REDIRECT, redirect || card.has_flag(flag::CAN_REDIRECT));
                reply.ok();
            }
            ClientOp::Kill(kill) => return self.client_kill(out, caller, &kill),
            ClientOp::NoEvict(on) => {
                caller.session(self).card.set_flag(flag::NO_EVICT, on);
                reply.ok();
            }
            ClientOp::NoTouch(on) => {
                let s = caller.session(self);
                s.set_gate(gate::NO_TOUCH, on);
                s.card.set_flag(flag::NO_TOUCH, on);
                reply.ok();
            }
            ClientOp::ImportSource(on) => {
                self.set_import_source(caller, on)?;
                reply.ok();
            }
            ClientOp::Pause { timeout_ms, writes_only } => {
                let until = i64::try_from(timeout_ms).ok();
                let until = until.and_then(|ms| self.turn.unix_ms().0.checked_add(ms));
                self.pause_clients(until.ok_or(Error::TimeoutRange)?, !writes_only);
                reply.ok();
            }
            ClientOp::Unpause => {
                self.pause_clients(0, false);
                reply.ok();
            }
            ClientOp::Reply(mode) => set_reply_mode(caller.session(self), &mut reply, mode),
            ClientOp::Unblock { id, with_error } => {
                let unblocked =
                    u64::try_from(id).is_ok_and(|id| self.unblock_client(id, with_error));
                reply.integer(i64::from(unblocked));
            }
        }
        Ok(Outcome::Done)
    }

    fn client_info(&mut self, reply: &mut Reply<'_>, caller: &Caller, args: Args<'_>) {
        let card = caller.session(self).card.clone();
        let line = self.client_line(&card, Some(args)) + "\n";
        reply.verbatim(*b"txt", line.as_bytes());
    }

    fn client_list(
        &mut self,
        reply: &mut Reply<'_>,
        caller: &Caller,
        args: Args<'_>,
        filters: &ops::ClientFilters,
    ) {
        let me = caller.session(self).card.id;
        let cards = self.clients_of(filters, me);
        let own = |c: &ClientCard| (c.id == me).then_some(args);
        let text: String = cards.iter().map(|c| self.client_line(c, own(c)) + "\n").collect();
        reply.verbatim(*b"txt", text.as_bytes());
    }

    fn set_import_source(&mut self, caller: &Caller, on: Option<bool>) -> Result<(), Error> {
        if on != Some(false) && !self.shared.keyspace.is_importing() {
            return Err(Error::NoImportMode);
        }
        let on = on.ok_or(Error::Syntax)?;
        let s = caller.session(self);
        s.set_gate(gate::IMPORT_SOURCE, on);
        s.card.set_flag(flag::IMPORT_SOURCE, on);
        Ok(())
    }

    /// Starts, extends or ends a pause. A pause in force is never shortened by another PAUSE.
    fn pause_clients(&mut self, until_ms: i64, all: bool) {
        let pause = &self.shared.pause;
        let changing = pause.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let current = pause.until_ms.load(Relaxed);
        let active = current > self.turn.unix_ms().0;
        if until_ms == 0 {
            pause.until_ms.store(0, Relaxed);
            self.shared.keyspace.hold_expiry(UnixMs(0));
        } else {
            pause.until_ms.store(if active { current.max(until_ms) } else { until_ms }, Relaxed);
            pause.all.store(all || (active && pause.all.load(Relaxed)), Relaxed);
            // Expired keys are not removed during a pause, but they are not visible either.
            self.shared.keyspace.hold_expiry(UnixMs(pause.until_ms.load(Relaxed)));
        }
        drop(changing);
        self.turn.mark_pause_changed();
        self.shared.post_others(self.id, || Message::PauseChanged);
        self.publish_fence();
    }

    fn client_kill(
        &mut self,
        out: &mut OutBuf,
        caller: &Caller,
        kill: &ClientKill,
    ) -> Result<Outcome, Error> {
        let me = caller.session(self).card.id;
        let mut victims = match kill {
            ClientKill::Address(addr) => {
                let mut all = self.shared.registry.all();
                all.retain(|card| card.addr.as_bytes() == &**addr);
                all
            }
            ClientKill::Filters(filters) => self.clients_of(filters, me),
        };
        victims.retain(|card| !card.has_flag(flag::CLOSE_ASAP));
        let mut reply = caller.reply(out);
        match kill {
            ClientKill::Address(_) if victims.is_empty() => return Err(Error::NoSuchClient),
            ClientKill::Address(_) => reply.ok(),
            ClientKill::Filters(_) => reply.integer(victims.len() as i64),
        }
        if victims.iter().any(|card| card.id == me) {
            self.finish(caller);
        }
        victims.retain(|card| card.id != me);
        self.kill(&victims);
        Ok(Outcome::Done)
    }

    /// Kills clients: once the reply has left, they execute nothing and are not served.
    pub(super) fn kill(&mut self, victims: &[Arc<ClientCard>]) {
        if victims.is_empty() {
            return;
        }
        for card in victims {
            card.set_flag(flag::CLOSE_ASAP, true);
            self.shared.registry.condemn(card.clone());
        }
        // (A subscriber of an idle worker counts as a receiver until that worker has stopped it.)
        self.publish_fence_as(victims.iter().any(|card| card.has_flag(flag::PUBSUB)));
        self.stop_condemned();
        for card in victims {
            // The worker of a blocked client may be asleep and not follow the fence: the ticket is
            // claimed here.
            if let Some(ticket) = &*card.ticket.lock().expect("no panic while a card is held") {
                ticket.claim();
            }
            self.shared.post(card.place().worker, Message::Kill(card.clone()));
        }
    }
}

/// CLIENT SETINFO.
fn set_library(s: &mut Session, fact: LibraryFact) {
    let text_of = |v: &[u8]| String::from_utf8_lossy(v).into_owned();
    s.change_names(|text| match fact {
        LibraryFact::Name(v) => text.lib_name = text_of(&v),
        LibraryFact::Version(v) => text.lib_ver = text_of(&v),
    });
}

/// CLIENT REPLY: only ON is answered.
fn set_reply_mode(s: &mut Session, reply: &mut Reply<'_>, mode: ops::ReplyMode) {
    match mode {
        ops::ReplyMode::On => {
            s.reply_mode = ReplyMode::On;
            reply.ok();
        }
        ops::ReplyMode::Off => s.reply_mode = ReplyMode::Off,
        ops::ReplyMode::Skip => s.skips_next = s.reply_mode != ReplyMode::Off,
    }
    s.set_gate(gate::MUTE, s.reply_mode != ReplyMode::On || s.skips_next);
}
