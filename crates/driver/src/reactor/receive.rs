//! Input: receives lazily, stores input that is put back, and delivers it again.

use super::Reactor;
use super::conns::apart;
use crate::patience::WAIT_NS;
use crate::poller::Poller;
use crate::trouble;
use crate::{AREA, BULKS_MAX, CloseReason, ConnId, Event, PUT_BACK_MAX, RECV_MAX};
use rustix::event::epoll::EventFlags;

/// Maximum number of buffers kept for reuse; larger buffers are freed.
pub const SPARES_MAX: usize = 64;
/// Maximum size of a buffer kept for reuse.
pub const SPARE_BYTES: usize = 4 << 10;

/// Received input starts on a cache line of its own.
const LINE: usize = 64;

const _: () = assert!(AREA >= PUT_BACK_MAX + RECV_MAX, "one connection's input always fits");

impl<P: Poller, M: Send> Reactor<P, M> {
    /// A connection is ready.
    #[inline]
    pub(super) fn on_conn(&mut self, id: ConnId, flags: EventFlags) -> Option<Event<M>> {
        let Some(conn) = self.conns.find_mut(id) else {
            self.ready_at += 1;
            return None;
        };
        if flags.contains(EventFlags::OUT) {
            self.ready[self.ready_at].flags.remove(EventFlags::OUT);
            return self.flush_backlog(id);
        }
        if conn.dead || conn.redelivers || conn.turn == self.turn {
            self.ready_at += 1; // level-triggered: reported again
            return None;
        }
        if conn.apart != 0 {
            self.ready_at += 1;
            return self.on_apart(id, flags);
        }
        if !flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            self.ready_at += 1;
            return None;
        }
        let (start, kept) = (self.area_at, conn.put_back.len());
        if AREA.saturating_sub(start) < kept + RECV_MAX {
            return Some(Event::AreaFull);
        }
        self.ready_at += 1;
        let room = &mut self.area[start + kept..start + kept + RECV_MAX];
        match self.poller.recv(&conn.stream, room) {
            Ok(0) => self.end(id, CloseReason::Peer),
            Ok(received) => {
                conn.turn = self.turn;
                if conn.gathers && conn.patience.read(self.now, received) {
                    conn.gathering = true;
                    self.gathering.push_back((self.now.plus(WAIT_NS), id));
                    self.stats.receives_held += 1;
                    self.mark_stale(id);
                }
                let conn = self.conns.find_mut(id)?;
                if kept > 0 {
                    self.area[start..start + kept].copy_from_slice(&conn.put_back);
                    recycle(&mut self.spares, std::mem::take(&mut conn.put_back));
                }
                self.stats.receives += 1;
                self.stats.bytes_received += received as u64;
                self.stats.bytes_per_receive.record(received as u64);
                return Some(self.data(id, kept + received));
            }
            Err(error) => match trouble::Stream::of(error) {
                trouble::Stream::Later => {}
                trouble::Stream::Over => self.end(id, CloseReason::Error),
            },
        }
        None
    }

    /// The event for `len` bytes of this connection at the end of the used part of the area.
    #[inline]
    fn data(&mut self, conn: ConnId, len: usize) -> Event<M> {
        let start = self.area_at;
        self.area_at = (start + len).next_multiple_of(LINE);
        Event::Data { conn, start, end: start + len }
    }

    /// Handles an event of a connection whose input is not received into the area.
    fn on_apart(&mut self, id: ConnId, flags: EventFlags) -> Option<Event<M>> {
        let ready = self.ready.len();
        let conn = self.conns.find_mut(id)?;
        if conn.is(apart::PAUSED | apart::CLOSING) {
            return self.on_paused(id, flags);
        }
        if !flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            return None;
        }
        conn.turn = self.turn;
        Some(Event::Bulk { conn: id, most: RECV_MAX.max(BULKS_MAX / ready) })
    }

    pub(super) fn begin_bulk_of(&mut self, id: ConnId, bytes: usize) -> bool {
        let Some(conn) = self.conns.find_mut(id) else { return false };
        if conn.dead || conn.apart != 0 || !conn.put_back.is_empty() || bytes == 0 {
            return false;
        }
        conn.bulk_left = bytes;
        conn.set(apart::BULK, true);
        self.mark_stale(id);
        true
    }

    pub(super) fn receive_bulk(&mut self, id: ConnId, room: &mut Vec<u8>) -> usize {
        let Some(conn) = self.conns.find_mut(id) else { return 0 };
        let asked = room.capacity() - room.len();
        if conn.dead || !conn.is(apart::BULK) || asked == 0 {
            return 0;
        }
        assert!(asked <= conn.bulk_left, "what follows the bulk is not received into it");
        match self.poller.recv_onto(&conn.stream, room) {
            Ok(0) => self.end(id, CloseReason::Peer),
            Ok(received) => {
                conn.bulk_left -= received;
                if conn.bulk_left == 0 {
                    conn.set(apart::BULK | apart::SLOW, false);
                }
                self.stats.receives += 1;
                self.stats.bytes_received += received as u64;
                self.stats.bytes_per_receive.record(received as u64);
                self.mark_stale(id);
                return received;
            }
            Err(error) => match trouble::Stream::of(error) {
                trouble::Stream::Later => {}
                trouble::Stream::Over => self.end(id, CloseReason::Error),
            },
        }
        0
    }

    /// Brings the socket's low-water mark in line with its bulk. Returns true if the registration
    /// must be renewed: bytes have arrived of which nothing was reported, and nothing would be.
    /// (At other times the connection was reported in this turn, so the next poll looks at it.)
    pub(super) fn set_low_water(&mut self, id: ConnId) -> bool {
        let Some(conn) = self.conns.find_mut(id) else { return false };
        let wanted = conn.wanted_low_water();
        if conn.low_water == wanted {
            return false;
        }
        conn.low_water = wanted;
        self.poller.set_bulk(&conn.stream, (wanted > 0).then_some(wanted));
        conn.is(apart::SLOW)
    }

    /// Handles an event of a connection that is not read. An error ends it. A hang-up is reported:
    /// the peer may still want replies to requests that it sent before it stopped sending.
    fn on_paused(&mut self, id: ConnId, flags: EventFlags) -> Option<Event<M>> {
        let conn = self.conns.find_mut(id)?;
        if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            self.end(id, CloseReason::Error);
            return None;
        }
        let mut event = None;
        if flags.contains(EventFlags::RDHUP) && !conn.is(apart::CLOSING) {
            let unread = !conn.put_back.is_empty() || self.poller.has_input(&conn.stream);
            let is_known = std::mem::replace(&mut conn.hangup_seen, true);
            event = (!is_known).then_some(Event::Hangup { conn: id, unread });
        }
        self.mark_stale(id);
        event
    }

    pub(super) fn put_back_input(&mut self, id: ConnId, from: usize, to: usize) {
        let Some(conn) = self.conns.find_mut(id) else { return };
        if conn.dead || conn.is(apart::CLOSING) {
            return;
        }
        let bytes = &self.area[from..to];
        if bytes.len() > PUT_BACK_MAX {
            return self.end(id, CloseReason::Error);
        }
        if bytes.len() > SPARE_BYTES {
            conn.put_back = bytes.to_vec();
            return;
        }
        if conn.put_back.capacity() == 0 && !bytes.is_empty() {
            conn.put_back = self.spares.pop().unwrap_or_default();
        }
        conn.put_back.clear();
        conn.put_back.extend_from_slice(bytes);
    }

    /// Delivers put-back input without receiving.
    pub(super) fn deliver_kept(&mut self, id: ConnId) -> Option<Event<M>> {
        let conn = self.conns.find_mut(id)?;
        let (start, kept) = (self.area_at, conn.put_back.len());
        if conn.dead || conn.is(apart::PAUSED | apart::CLOSING) || kept == 0 {
            conn.redelivers = false;
            return None;
        }
        if AREA.saturating_sub(start) < kept {
            self.redeliver_now.push_front(id);
            return Some(Event::AreaFull);
        }
        conn.redelivers = false;
        conn.turn = self.turn;
        self.area[start..start + kept].copy_from_slice(&conn.put_back);
        recycle(&mut self.spares, std::mem::take(&mut conn.put_back));
        Some(self.data(id, kept))
    }
}

fn recycle(spares: &mut Vec<Vec<u8>>, buffer: Vec<u8>) {
    if spares.len() < SPARES_MAX && buffer.capacity() <= SPARE_BYTES {
        spares.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spare_buffers_are_bounded_in_number_and_size() {
        let mut spares = Vec::new();
        recycle(&mut spares, Vec::with_capacity(SPARE_BYTES + 1));
        assert!(spares.is_empty());
        for _ in 0..=SPARES_MAX {
            recycle(&mut spares, Vec::with_capacity(SPARE_BYTES));
        }
        assert_eq!(spares.len(), SPARES_MAX);
    }
}
