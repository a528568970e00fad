//! CLIENT: what a connection says of itself and does to others.

use crate::client_card::{ClientCard, flag};
use crate::message::Message;
use crate::session::{ReplyMode, gate};
use crate::worker::{Core, Outcome};
use base::sync::Arc;
use base::sync::atomic::Ordering::{Relaxed, Release};
use command::Error;
use command::ops::{self, ClientFilter, ClientKill, ClientOp, ClientType, LibraryFact};
use driver::ConnId;
use resp::{OutBuf, Reply};

impl Core {
    /// Carries out a CLIENT subcommand.
    pub(crate) fn client_op(
        &mut self,
        out: &mut OutBuf,
        conn: ConnId,
        op: ClientOp,
    ) -> Result<Outcome, Error> {
        let Some(s) = self.session_mut(conn) else { return Ok(Outcome::Done) };
        let (proto, card) = (s.proto, s.card.clone());
        let mut reply = Reply::new(out, proto);
        match op {
            ClientOp::GetName => match &*card.text().name {
                "" => reply.null(),
                name => reply.bulk(name.as_bytes()),
            },
            ClientOp::SetName(name) => {
                s.set_name(&name);
                reply.ok();
            }
            ClientOp::SetInfo(fact) => {
                let mut text = card.text();
                match fact {
                    LibraryFact::Name(v) => {
                        text.lib_name = String::from_utf8_lossy(&v).into_owned();
                    }
                    LibraryFact::Version(v) => {
                        text.lib_ver = String::from_utf8_lossy(&v).into_owned();
                    }
                }
                reply.ok();
            }
            ClientOp::Id => reply.integer(card.id as i64),
            ClientOp::Info => {
                let line = self.client_line(&card) + "\n";
                reply.verbatim(*b"txt", line.as_bytes());
            }
            ClientOp::List(filter) => {
                let text = self.client_list(&filter);
                reply.verbatim(*b"txt", text.as_bytes());
            }
            ClientOp::Kill(kill) => return self.client_kill(out, conn, &kill),
            ClientOp::NoEvict(on) => {
                card.set_flag(flag::NO_EVICT, on);
                reply.ok();
            }
            ClientOp::NoTouch(on) => {
                s.set_gate(gate::NO_TOUCH, on);
                card.set_flag(flag::NO_TOUCH, on);
                reply.ok();
            }
            ClientOp::Pause { timeout_ms, writes_only } => {
                let until =
                    self.unix_ms.0.saturating_add(i64::try_from(timeout_ms).unwrap_or(i64::MAX));
                self.pause_clients(until, !writes_only);
                reply.ok();
            }
            ClientOp::Unpause => {
                self.pause_clients(0, false);
                reply.ok();
            }
            ClientOp::Reply(mode) => {
                s.reply_mode = match mode {
                    ops::ReplyMode::On => ReplyMode::On,
                    ops::ReplyMode::Off => ReplyMode::Off,
                    ops::ReplyMode::Skip if s.reply_mode == ReplyMode::Off => ReplyMode::Off,
                    ops::ReplyMode::Skip => ReplyMode::SkipNext,
                };
                s.set_gate(gate::MUTE, s.reply_mode != ReplyMode::On);
                reply.ok(); // dropped again unless replies are on now
            }
            ClientOp::Unblock { id, with_error } => {
                let unblocked =
                    u64::try_from(id).is_ok_and(|id| self.unblock_client(id, with_error));
                Reply::new(out, proto).integer(i64::from(unblocked));
            }
        }
        Ok(Outcome::Done)
    }

    /// Starts, extends or ends a pause. A pause in force is never shortened by another PAUSE.
    fn pause_clients(&mut self, until_ms: i64, all: bool) {
        let pause = &self.shared.pause;
        let current = pause.until_ms.load(Relaxed);
        let active = current > self.unix_ms.0;
        if until_ms == 0 {
            pause.until_ms.store(0, Relaxed);
        } else {
            pause.until_ms.store(if active { current.max(until_ms) } else { until_ms }, Relaxed);
            pause.all.store(all || (active && pause.all.load(Relaxed)), Relaxed);
        }
        self.pause_changed = true;
        self.shared.config_version.fetch_add(1, Release);
        self.shared.post_others(self.id, || Message::PauseChanged);
        self.refresh_gates();
    }

    fn client_list(&self, filter: &ClientFilter) -> String {
        let cards = match filter {
            ClientFilter::All => self.shared.registry.all(),
            ClientFilter::Type(kind) => {
                let mut all = self.shared.registry.all();
                all.retain(|_| *kind == ClientType::Normal);
                all
            }
            ClientFilter::Ids(ids) => ids
                .iter()
                .filter_map(|id| u64::try_from(*id).ok())
                .filter_map(|id| self.shared.registry.get(id))
                .collect(),
        };
        cards.iter().map(|c| self.client_line(c) + "\n").collect()
    }

    fn client_kill(
        &mut self,
        out: &mut OutBuf,
        conn: ConnId,
        kill: &ClientKill,
    ) -> Result<Outcome, Error> {
        let Some(s) = self.session_mut(conn) else { return Ok(Outcome::Done) };
        let (proto, me) = (s.proto, s.card.id);
        let victims: Vec<Arc<ClientCard>> =
            self.shared.registry.all().into_iter().filter(|c| matches_kill(c, kill, me)).collect();
        let mut reply = Reply::new(out, proto);
        match kill {
            ClientKill::Address(_) if victims.is_empty() => return Err(Error::NoSuchClient),
            ClientKill::Address(_) => reply.ok(),
            ClientKill::Filters(_) => reply.integer(victims.len() as i64),
        }
        for card in victims {
            if card.id == me {
                self.finish(conn);
            } else {
                card.set_flag(flag::CLOSE_ASAP, true);
                self.shared
                    .post(card.worker as usize, Message::Kill { conn: card.conn, id: card.id });
            }
        }
        Ok(Outcome::Done)
    }
}

fn matches_kill(card: &ClientCard, kill: &ClientKill, me: u64) -> bool {
    if card.has_flag(flag::CLOSE_ASAP) {
        return false;
    }
    match kill {
        ClientKill::Address(addr) => card.addr.as_bytes() == &**addr,
        ClientKill::Filters(f) => {
            !(f.skip_me && card.id == me)
                && f.id.is_none_or(|id| id == card.id)
                && f.kind.is_none_or(|k| k == ClientType::Normal)
                && f.address.as_ref().is_none_or(|a| card.addr.as_bytes() == &**a)
                && f.local_address.as_ref().is_none_or(|a| card.laddr.as_bytes() == &**a)
        }
    }
}
