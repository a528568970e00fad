//! The connections of one driver: a dense table whose places are reused under new generations.

use super::backlog::Backlog;
use crate::patience::Patience;
use crate::{BULK_LOW_WATER, ConnId};
use rustix::event::epoll::EventFlags;

/// A driver's state of one connection. An idle one holds no buffer.
pub struct Conn<S> {
    pub stream: S,
    generation: u32,
    /// The events it is registered for.
    pub interest: EventFlags,
    /// Its registration may have to change before the next poll.
    pub stale: bool,
    /// Bits of [`apart`]: any set bit takes its input off the usual path.
    pub apart: u8,
    /// Input that was put back is to be delivered without receiving.
    pub redelivers: bool,
    /// The peer stopped sending while the connection was paused, and `Hangup` was reported: it is
    /// not reported again.
    pub hangup_seen: bool,
    /// Its end is reported or queued for reporting; no other event follows.
    pub dead: bool,
    /// A segment of it is queued for the next batch of sends.
    pub queued: bool,
    /// Its next read is delayed so that bytes gather.
    pub gathering: bool,
    /// The turn of its last `Data` (the low bits of a counter: compared for equality with the
    /// current one).
    pub turn: u32,
    /// Bytes that are left of the bulk which its session receives.
    pub bulk_left: usize,
    /// The low-water mark that its socket has for the bulk; 0: none.
    pub low_water: usize,
    /// Whether its reads may be delayed at all.
    pub gathers: bool,
    pub patience: Patience,
    pub put_back: Vec<u8>,
    pub backlog: Option<Box<Backlog>>,
}

/// Why a connection's input is not received into the area.
pub mod apart {
    /// The session does not want input.
    pub const PAUSED: u8 = 1;
    /// It is closed once its backlog is empty.
    pub const CLOSING: u8 = 2;
    /// The session receives a bulk by itself.
    pub const BULK: u8 = 4;
    /// The sender of the bulk is slow: any byte of it is reported.
    pub const SLOW: u8 = 8;
}

impl<S> Conn<S> {
    /// True if one of these bits is set.
    #[inline]
    pub fn is(&self, bits: u8) -> bool {
        self.apart & bits != 0
    }

    /// Sets or clears a bit.
    pub fn set(&mut self, bit: u8, on: bool) {
        if on {
            self.apart |= bit;
        } else {
            self.apart &= !bit;
        }
    }

    /// The low-water mark that its socket should have: no more than what is left of the bulk.
    pub fn wanted_low_water(&self) -> usize {
        match self.apart & (apart::BULK | apart::SLOW) {
            apart::BULK => self.bulk_left.min(BULK_LOW_WATER),
            0 => 0,
            _ => 1,
        }
    }
}

/// Bytes that the driver uses for an idle connection, without the kernel's.
pub const CONN_BYTES_MAX: usize = 200;
const _: () = assert!(size_of::<Option<Conn<std::os::fd::OwnedFd>>>() <= CONN_BYTES_MAX);

/// The table.
pub struct Conns<S> {
    places: Vec<Option<Conn<S>>>,
    free: Vec<u32>,
    generation: u32,
}

impl<S> Conns<S> {
    pub const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new(), generation: 0 }
    }

    /// The identifier of the next connection.
    pub fn next_id(&mut self) -> ConnId {
        if self.free.is_empty() {
            self.free.push(self.places.len() as u32);
            self.places.push(None);
        }
        self.generation = self.generation.wrapping_add(1);
        let index = self.free[self.free.len() - 1];
        ConnId { index, generation: self.generation }
    }

    /// Inserts a connection under the identifier that [`Conns::next_id`] returned last.
    pub fn insert(&mut self, id: ConnId, stream: S, interest: EventFlags) {
        let index = self.free.pop();
        assert_eq!((index, self.generation), (Some(id.index), id.generation), "just named");
        self.places[id.index as usize] = Some(Conn {
            stream,
            generation: id.generation,
            interest,
            stale: false,
            apart: 0,
            redelivers: false,
            hangup_seen: false,
            dead: false,
            queued: false,
            gathering: false,
            turn: 0,
            bulk_left: 0,
            low_water: 0,
            gathers: false,
            patience: Patience::default(),
            put_back: Vec::new(),
            backlog: None,
        });
    }

    #[inline]
    pub fn find(&self, id: ConnId) -> Option<&Conn<S>> {
        let conn = self.places.get(id.index as usize)?.as_ref()?;
        (conn.generation == id.generation).then_some(conn)
    }

    #[inline]
    pub fn find_mut(&mut self, id: ConnId) -> Option<&mut Conn<S>> {
        let conn = self.places.get_mut(id.index as usize)?.as_mut()?;
        (conn.generation == id.generation).then_some(conn)
    }

    /// Removes a connection and frees its place.
    pub fn remove(&mut self, id: ConnId) -> Option<Conn<S>> {
        self.find(id)?;
        self.free.push(id.index);
        self.places[id.index as usize].take()
    }

    /// Puts back what was removed last, under the same identifier.
    pub fn restore(&mut self, id: ConnId, conn: Conn<S>) {
        let index = self.free.pop();
        assert_eq!((index, conn.generation), (Some(id.index), id.generation), "removed last");
        self.places[id.index as usize] = Some(conn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_index_has_a_new_generation() {
        let mut conns = Conns::new();
        let a = conns.next_id();
        conns.insert(a, 'a', EventFlags::IN);
        let b = conns.next_id();
        conns.insert(b, 'b', EventFlags::IN);
        assert_ne!(a.index, b.index);
        assert!(conns.remove(a).is_some());
        assert!(conns.remove(a).is_none(), "once");
        let c = conns.next_id();
        conns.insert(c, 'c', EventFlags::IN);
        assert_eq!(a.index, c.index);
        assert!(conns.find(a).is_none());
        assert_eq!(conns.find_mut(c).map(|conn| conn.stream), Some('c'));
        assert_eq!(conns.find(b).map(|conn| conn.stream), Some('b'));
    }
}
