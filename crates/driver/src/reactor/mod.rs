//! The driver over a [`Poller`], which reports the connections that are ready. Input is received
//! when the worker asks for it. Replies are sent at once, or all together at the flush where one
//! call sends to many. It owns everything that an operation points to. epoll, io_uring and the
//! simulated network run this same code.
//!
//! A request that is not pipelined costs one receive and one send; all ready connections share the
//! poll and two reads of the clock. A registration changes at most once per turn.

mod accept;
mod backlog;
mod conns;
mod moving;
mod receive;
mod transmit;

pub use accept::{ACCEPT_RETRY_NS, ACCEPTS_MAX};
pub use backlog::{JOIN, PIECES_MAX};
pub use conns::CONN_BYTES_MAX;
pub use receive::{SPARE_BYTES, SPARES_MAX};
pub use transmit::{ARENA_KEPT, DISCARD_MAX, FLUSH_MAX};

use crate::clock::WallClock;
use crate::files::engine::Files;
use crate::mailbox::{Mailbox, MailboxSender};
use crate::poller::{Poller, Ready, Target, Token, Wait};
use crate::spin::{Spin, SpinOptions};
use crate::{
    AREA, Clock, CloseReason, ConnId, Driver, DriverStats, Event, FileOp, ListenAddr, ListenError,
    ListenOptions, ListenerId, Moving, OutBuf, PeerAddr, Segment, Socket, SocketOptions,
};
use accept::Listening;
use base::prng::Prng;
use base::{MonoNs, UnixMs};
use conns::{Conns, apart};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use std::collections::VecDeque;

/// One worker's network.
pub struct Reactor<P: Poller, M> {
    poller: P,
    clock: Clock,
    conns: Conns<P::Stream>,
    /// Connections whose registration may have to change before the next poll.
    stale: Vec<ConnId>,
    listening: Listening<P::Listener>,
    ready: Vec<Ready>,
    ready_at: usize,
    turn: u32,
    area: Vec<u8>,
    area_at: usize,
    spares: Vec<Vec<u8>>,
    out: OutBuf,
    /// Segments of the next batch of sends, at most one per connection; only with a poller that
    /// defers.
    queued: Vec<(ConnId, Segment)>,
    /// Segments of the last batch that were not sent completely: number in the batch, and result.
    short: Vec<(u32, Result<usize, Errno>)>,
    /// Connections that got a backlog from a batch and are not reported yet.
    backlogged: Vec<ConnId>,
    /// Connections whose put-back input is to be delivered next turn, and those still to do in this
    /// turn.
    redeliver_next: Vec<ConnId>,
    redeliver_now: VecDeque<ConnId>,
    ended: VecDeque<(ConnId, CloseReason)>,
    /// Connections whose next read is delayed, and until when; ascending by time.
    gathering: VecDeque<(MonoNs, ConnId)>,
    files: Files<P::File>,
    mailbox: Mailbox<M>,
    mail: VecDeque<M>,
    now: MonoNs,
    unix_ms: UnixMs,
    wall: WallClock,
    spin: Spin,
    prng: Prng,
    stats: DriverStats,
}

impl<P: Poller, M: Send> Reactor<P, M> {
    /// A driver without connections over this poller.
    pub fn on(mut poller: P, spin: SpinOptions) -> Self {
        let clock = poller.clock();
        let now = clock.now();
        let mut wall = WallClock::default();
        Self {
            conns: Conns::new(),
            stale: Vec::new(),
            listening: Listening::new(),
            ready: Vec::with_capacity(crate::poller::EVENTS_MAX),
            ready_at: 0,
            turn: 0,
            area: vec![0; AREA],
            area_at: 0,
            spares: Vec::new(),
            out: OutBuf::new(),
            queued: Vec::new(),
            short: Vec::new(),
            backlogged: Vec::new(),
            redeliver_next: Vec::new(),
            redeliver_now: VecDeque::new(),
            ended: VecDeque::new(),
            gathering: VecDeque::new(),
            files: Files::new(),
            mailbox: Mailbox::new(poller.waker()),
            mail: VecDeque::new(),
            now,
            unix_ms: wall.unix_ms(now, || poller.unix_ns()),
            wall,
            spin: Spin::new(spin),
            prng: Prng::new(poller.seed()),
            stats: DriverStats::default(),
            clock,
            poller,
        }
    }

    /// The address of a listener, with the port that the system chose for port 0.
    pub fn listen_addr(&self, id: ListenerId) -> Option<PeerAddr> {
        self.listening.find(id).map(|l| self.poller.listen_addr(l))
    }

    /// The poller.
    pub fn poller(&self) -> &P {
        &self.poller
    }

    /// Has the registration of this connection updated before the next poll.
    fn mark_stale(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.find_mut(id)
            && !conn.stale
        {
            conn.stale = true;
            self.stale.push(id);
        }
    }

    /// Updates the registrations of all stale connections.
    fn register(&mut self) {
        let mut stale = std::mem::take(&mut self.stale);
        for id in stale.drain(..) {
            let Some(conn) = self.conns.find_mut(id) else { continue };
            conn.stale = false;
            if conn.dead {
                continue;
            }
            let renew = self.set_low_water(id);
            let Some(conn) = self.conns.find_mut(id) else { continue };
            let unsent = conn.backlog.is_some();
            let mut want = EventFlags::empty();
            if !conn.is(apart::PAUSED | apart::CLOSING) {
                want.set(EventFlags::IN, !conn.gathering);
            } else if !conn.is(apart::CLOSING) && !conn.hangup_seen {
                want |= EventFlags::RDHUP;
            }
            if unsent {
                want |= EventFlags::OUT;
            }
            if want != conn.interest || renew {
                let changed = self.poller.modify(&conn.stream, Token::conn(id), want);
                conn.interest = want;
                if changed.is_err() {
                    // Without the registration no event would ever be reported for it.
                    self.end(id, CloseReason::Error);
                }
            }
        }
        self.stale = stale;
    }

    /// Ends the delay of reads whose time is over.
    fn end_gathering(&mut self, now: MonoNs) {
        while let Some((until, id)) = self.gathering.front().copied()
            && until <= now
        {
            self.gathering.pop_front();
            if let Some(conn) = self.conns.find_mut(id) {
                conn.gathering = false;
                self.mark_stale(id);
            }
        }
    }

    /// If the sleep ended because a delayed read became due, polls again, so that the gathered
    /// bytes are read in this turn.
    fn poll_released(&mut self) {
        if self.gathering.is_empty() || !self.ready.is_empty() {
            return;
        }
        self.end_gathering(self.clock.now());
        if !self.stale.is_empty() {
            self.register();
            self.poller.poll(&mut self.ready, Wait::NoWait);
        }
    }

    /// Ends a connection: `Closed` is its only further event.
    fn end(&mut self, id: ConnId, why: CloseReason) {
        let Some(conn) = self.conns.find_mut(id) else { return };
        if !conn.dead {
            conn.dead = true;
            conn.backlog = None;
            conn.put_back = Vec::new();
            self.ended.push_back((id, why));
            // A level-triggered hang-up would be reported at every poll until the connection is
            // released.
            self.poller.remove(&conn.stream);
        }
    }

    /// True if the coming turn has work even if the poll reports nothing.
    fn has_work(&self) -> bool {
        !self.redeliver_now.is_empty()
            || !self.ended.is_empty()
            || !self.mailbox.is_empty()
            || self.files.has_done()
    }

    fn spin_or_sleep(&mut self, until: Option<MonoNs>, started: MonoNs) {
        // While reads are delayed, spinning would take the client's processor, or receive its bytes
        // one by one.
        let budget = if self.gathering.is_empty() { self.spin.budget(started) } else { 0 };
        if budget > 0 {
            if self.spin.wants_sample(started) {
                self.spin.sample(started, self.poller.involuntary_switches());
            }
            self.poller.poll(&mut self.ready, Wait::NoWait);
            if !self.ready.is_empty() {
                return; // ready at once: neither a win nor a loss for spinning
            }
            loop {
                self.poller.poll(&mut self.ready, Wait::NoWait);
                if !self.ready.is_empty() || !self.mailbox.is_empty() {
                    self.stats.spins_won += 1;
                    return self.spin.won();
                }
                let now = self.clock.now();
                if until.is_some_and(|u| now >= u) {
                    return;
                }
                if now.since(started) >= budget {
                    break;
                }
            }
            self.stats.spins_lost += 1;
            self.spin.lost();
        }
        if self.mailbox.prepare_sleep() {
            self.stats.sleeps += 1;
            let wait = until.map_or(Wait::Forever, Wait::Until);
            self.poller.poll(&mut self.ready, wait);
            if P::SLEEPS {
                self.mailbox.awake();
            }
        }
    }

    fn count_poll(&mut self, started: MonoNs) {
        let events = self.ready.len() as u64;
        self.stats.polls += 1;
        self.stats.events += events;
        self.stats.events_per_poll.record(events);
        let ns = self.now.since(started);
        self.stats.poll_ns += ns;
        self.stats.ns_per_poll.record(ns);
    }

    /// An event of a ready descriptor; `None` to look at the next one.
    fn on_ready(&mut self, ready: Ready) -> Option<Event<M>> {
        match ready.token.target() {
            Target::Conn(id) => self.on_conn(id, ready.flags),
            Target::Listener(number) => self.on_listener(number),
            Target::Signal(place) => {
                self.ready_at += 1;
                self.poller.signal(place).map(Event::Signal)
            }
            Target::Wake => {
                self.ready_at += 1;
                None
            }
            Target::Files => self.on_files(ready.flags),
        }
    }
}

impl<P: Poller, M: Send> Reactor<P, M> {
    /// Operations on files have completed: handles them once per turn, and reports all.
    fn on_files(&mut self, flags: EventFlags) -> Option<Event<M>> {
        if flags.contains(EventFlags::IN) {
            self.ready[self.ready_at].flags.remove(EventFlags::IN);
            self.files.advance_all(&mut self.poller);
        }
        let done = self.files.next_done();
        if done.is_none() {
            self.ready_at += 1;
        }
        done.map(Box::new).map(Event::File)
    }
}

/// The earlier of two times. (An iterator over both takes several times as many instructions, in
/// every turn.)
#[inline]
fn earlier(a: Option<MonoNs>, b: Option<MonoNs>) -> Option<MonoNs> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl<P: Poller, M: Send> Driver for Reactor<P, M> {
    type Message = M;

    #[inline]
    fn now(&self) -> MonoNs {
        self.now
    }

    fn refresh_now(&mut self) -> MonoNs {
        self.now = self.clock.now();
        self.now
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    #[inline]
    fn unix_ms(&self) -> UnixMs {
        self.unix_ms
    }

    fn random(&mut self) -> u64 {
        self.prng.draw()
    }

    fn secret(&mut self) -> u128 {
        self.poller.secret()
    }

    fn set_busy_poll_us(&mut self, busy_poll_us: u32) {
        self.spin.set_limit_us(busy_poll_us);
    }

    fn listen(
        &mut self,
        at: &ListenAddr,
        options: &ListenOptions,
    ) -> Result<ListenerId, ListenError> {
        self.open_listener(at, *options)
    }

    fn close_listener(&mut self, id: ListenerId) {
        if let Some(listener) = self.listening.remove(id) {
            self.listening.overflows_closed += self.poller.overflows(&listener);
            self.poller.close_listener(listener);
        }
    }

    fn listener_overflows(&mut self) -> u64 {
        let open = self.listening.iter().map(|(_, l)| self.poller.overflows(l)).sum::<u64>();
        self.listening.overflows_closed + open
    }

    fn adopt(&mut self, socket: Socket, options: &SocketOptions) -> ConnId {
        let stream = self.poller.adopt(socket, options);
        let id = self.conns.next_id();
        let added = self.poller.add(&stream, Token::conn(id), EventFlags::IN);
        self.conns.insert(id, stream, EventFlags::IN);
        if let Some(conn) = self.conns.find_mut(id) {
            conn.gathers = options.gathers;
        }
        if added.is_err() {
            self.end(id, CloseReason::Error);
        }
        id
    }

    fn detach(&mut self, conn: ConnId) -> Option<Moving> {
        self.detach_conn(conn)
    }

    fn attach(&mut self, moving: Moving) -> ConnId {
        self.attach_conn(moving)
    }

    fn local_addr(&self, conn: ConnId) -> PeerAddr {
        let conn = self.conns.find(conn);
        conn.map_or_else(PeerAddr::unknown, |c| self.poller.local_addr(&c.stream))
    }

    fn wait(&mut self, until: Option<MonoNs>) {
        self.turn = self.turn.wrapping_add(1);
        self.ready.clear();
        self.ready_at = 0;
        let started = self.clock.now();
        self.stats.longest_turn_ns = self.stats.longest_turn_ns.max(started.since(self.now));
        self.accept_again(started);
        self.end_gathering(started);
        self.register();
        self.redeliver_now.extend(self.redeliver_next.drain(..));
        let held = self.gathering.front().map(|(until, _)| *until);
        let until = earlier(earlier(until, self.listening.retry_at), held);
        if self.has_work() || until.is_some_and(|u| u <= started) {
            self.poller.poll(&mut self.ready, Wait::NoWait);
        } else {
            self.spin_or_sleep(until, started);
            self.poll_released();
        }
        if self.files.has_done() {
            // Refused operations, of which the poller knows nothing.
            self.ready.push(Ready { token: Token::FILES, flags: EventFlags::empty() });
        }
        self.mailbox.take_all(&mut self.mail);
        self.refresh_now();
        self.unix_ms = self.wall.unix_ms(self.now, || self.poller.unix_ns());
        self.count_poll(started);
    }

    fn next(&mut self) -> Option<Event<M>> {
        if let Some(message) = self.mail.pop_front() {
            return Some(Event::Message(message));
        }
        while let Some(id) = self.redeliver_now.pop_front() {
            if let Some(event) = self.deliver_kept(id) {
                return Some(event);
            }
        }
        while let Some(&ready) = self.ready.get(self.ready_at) {
            if let Some(event) = self.on_ready(ready) {
                return Some(event);
            }
        }
        self.ended.pop_front().map(|(conn, why)| Event::Closed { conn, why })
    }

    #[inline]
    fn io(&mut self) -> (&[u8], &mut OutBuf) {
        (&self.area, &mut self.out)
    }

    #[inline]
    fn rewind(&mut self) {
        self.area_at = 0;
    }

    fn put_back(&mut self, conn: ConnId, from: usize, to: usize) {
        self.put_back_input(conn, from, to);
    }

    fn pause(&mut self, conn: ConnId) {
        if let Some(c) = self.conns.find_mut(conn) {
            c.set(apart::PAUSED, true);
            c.hangup_seen = false;
            self.mark_stale(conn);
        }
    }

    fn resume(&mut self, conn: ConnId) {
        let Some(c) = self.conns.find_mut(conn) else { return };
        c.set(apart::PAUSED, false);
        c.hangup_seen = false;
        let kept = !c.put_back.is_empty();
        self.mark_stale(conn);
        if kept {
            self.redeliver(conn);
        }
    }

    fn redeliver(&mut self, conn: ConnId) {
        if let Some(c) = self.conns.find_mut(conn)
            && !c.redelivers
        {
            c.redelivers = true;
            self.redeliver_next.push(conn);
        }
    }

    fn begin_bulk(&mut self, conn: ConnId, bytes: usize) -> bool {
        self.begin_bulk_of(conn, bytes)
    }

    fn receive(&mut self, conn: ConnId, room: &mut Vec<u8>) -> usize {
        self.receive_bulk(conn, room)
    }

    fn hasten_bulk(&mut self, conn: ConnId) {
        if let Some(c) = self.conns.find_mut(conn)
            && c.is(apart::BULK)
        {
            c.set(apart::SLOW, true);
            self.mark_stale(conn);
        }
    }

    #[inline]
    fn send(&mut self, conn: ConnId, segment: Segment) -> usize {
        self.send_segment(conn, segment)
    }

    fn send_now(&mut self, conn: ConnId, segment: Segment) -> usize {
        self.send_at_once(conn, segment)
    }

    fn flush_output(&mut self) {
        self.send_queued();
        self.out.clear();
        if self.out.bytes.capacity() > ARENA_KEPT {
            self.out.bytes.shrink_to(ARENA_KEPT);
        }
    }

    fn next_backlogged(&mut self) -> Option<(ConnId, usize)> {
        while let Some(conn) = self.backlogged.pop() {
            let waits = self.backlog(conn);
            if waits > 0 {
                return Some((conn, waits));
            }
        }
        None
    }

    fn backlog(&self, conn: ConnId) -> usize {
        let backlog = self.conns.find(conn).and_then(|c| c.backlog.as_ref());
        backlog.map_or(0, |b| b.len())
    }

    fn keep_half_open(&mut self, conn: ConnId) {
        let Some(c) = self.conns.find_mut(conn).filter(|c| c.dead) else { return };
        (c.dead, c.hangup_seen) = (false, true);
        c.set(apart::PAUSED, true);
        c.interest = EventFlags::empty();
        if self.poller.add(&c.stream, Token::conn(conn), EventFlags::empty()).is_err() {
            self.end(conn, CloseReason::Error);
        }
    }

    fn close_after_flush(&mut self, conn: ConnId) {
        let Some(c) = self.conns.find_mut(conn) else { return };
        c.set(apart::CLOSING, true);
        c.put_back = Vec::new();
        if c.backlog.is_none() {
            self.close_gracefully(conn);
        } else {
            self.mark_stale(conn);
        }
    }

    fn end_output(&mut self, conn: ConnId) {
        self.shutdown_output(conn);
    }

    fn release(&mut self, conn: ConnId) {
        if let Some(c) = self.conns.remove(conn) {
            if c.dead {
                self.ended.retain(|(other, _)| *other != conn);
            }
            self.poller.close(c.stream);
        }
        self.accept_after_release();
    }

    fn file(&mut self, token: u64, op: FileOp) {
        self.files.start(&mut self.poller, token, op);
    }

    fn mailbox(&self) -> MailboxSender<M> {
        self.mailbox.sender()
    }

    fn stats(&mut self) -> &mut DriverStats {
        &mut self.stats
    }
}
