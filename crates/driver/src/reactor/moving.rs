//! Connections that leave for another driver of the same kind, and those that come from one.
//!
//! Whoever is detached has nothing under way here: no bytes that wait to be sent, no end that is
//! yet to be reported, no operation of the poller. So the socket and its input are all that goes,
//! and everything else begins anew: it is registered for reading, and not paused. The lists of this
//! driver may still name its identifier, which nobody has any more.

use super::Reactor;
use super::conns::apart;
use crate::poller::{Poller, Token};
use crate::{CloseReason, ConnId, Moving};
use rustix::event::epoll::EventFlags;

impl<P: Poller, M: Send> Reactor<P, M> {
    pub(super) fn detach_conn(&mut self, id: ConnId) -> Option<Moving> {
        let conn = self.conns.find(id)?;
        let sends = conn.queued || conn.backlog.is_some();
        let is_apart = conn.is(apart::CLOSING | apart::BULK | apart::SLOW);
        if conn.dead || sends || is_apart || conn.low_water > 0 {
            return None;
        }
        let mut conn = self.conns.remove(id)?;
        match self.poller.detach(conn.stream) {
            Ok((socket, unread)) => {
                let (put_back, gathers) = (conn.put_back, conn.gathers);
                Some(Moving { socket, put_back, unread, gathers })
            }
            Err(stream) => {
                conn.stream = stream;
                self.conns.restore(id, conn);
                None
            }
        }
    }

    pub(super) fn attach_conn(&mut self, moving: Moving) -> ConnId {
        let Moving { socket, put_back, unread, gathers } = moving;
        let stream = self.poller.attach(socket, unread);
        let id = self.conns.next_id();
        let added = self.poller.add(&stream, Token::conn(id), EventFlags::IN);
        self.conns.insert(id, stream, EventFlags::IN);
        let has_input = !put_back.is_empty();
        if let Some(conn) = self.conns.find_mut(id) {
            (conn.put_back, conn.gathers) = (put_back, gathers);
        }
        if added.is_err() {
            self.end(id, CloseReason::Error);
        } else if has_input {
            crate::Driver::redeliver(self, id);
        }
        id
    }
}
