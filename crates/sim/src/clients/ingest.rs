//! Producers of ingest protocol 2: numbered messages into a stream or a list, resumed after each
//! lost connection. Each message is there once, in order, and what was acknowledged is there. Where
//! data is kept, this goes on from server to server: a producer sends again what the next one does
//! not have, and what was fsynced is never sent again.

use crate::clients::model::Want;
use crate::clients::words;
use crate::closings;
use crate::host::ingest_addr;
use crate::link::{Link, Turn};
use crate::session::{Actor, Question};
use crate::world::{Phase, World};
use driver::sim::Ending;
use ingest::v2::{
    Acking, Hello, Level, Reader, ServerFrame, SinkKind, write_data_header, write_flush,
    write_hello, write_message,
};

/// Messages of a frame at most.
const FRAME_MAX: u64 = 8;
/// Messages that are not acknowledged, at most.
const AHEAD_MAX: u64 = 60;
/// The code of the error: this producer has a newer connection.
const TAKEN_OVER: u16 = 10;
/// How long until the next try to connect, at most.
const RECONNECT_NS_MAX: u64 = 20_000_000;

/// A producer.
pub struct Producer {
    who: u32,
    epoch: u32,
    link: Option<Link>,
    reader: Reader,
    /// It was welcomed by this connection.
    is_welcome: bool,
    /// A connection has ended before its Welcome. The server may read its Hello behind that of a
    /// later one, which it then calls overtaken.
    left_early: bool,
    /// This connection was overtaken so.
    is_overtaken: bool,
    /// The server must know it.
    is_known: bool,
    /// Acknowledgements mean *fsynced*.
    is_fsynced: bool,
    /// The last message that was sent, of all connections and of this one, and the last one that
    /// was acknowledged.
    highest: u64,
    sent: u64,
    acked: u64,
    /// The last one that was called fsynced.
    durable: u64,
    /// Bytes sent by this connection, and how many may be.
    used: u64,
    credit: u64,
    /// When it has sent something last.
    sent_ns: u64,
    not_before_ns: u64,
    has_left: bool,
}

impl Producer {
    /// The producer with this number.
    pub fn new(who: u32) -> Self {
        Self {
            who,
            epoch: 0,
            link: None,
            reader: Reader::new(),
            is_welcome: false,
            left_early: false,
            is_overtaken: false,
            is_known: false,
            is_fsynced: false,
            highest: 0,
            sent: 0,
            acked: 0,
            durable: 0,
            used: 0,
            credit: 0,
            sent_ns: 0,
            not_before_ns: 0,
            has_left: false,
        }
    }

    fn key(&self) -> String {
        format!("i:{}:{}", self.who, self.epoch)
    }

    fn is_stream(&self) -> bool {
        self.who.is_multiple_of(2)
    }

    fn connect(&mut self, world: &mut World) {
        self.not_before_ns = world.soon(RECONNECT_NS_MAX);
        let Some(mut link) = Link::open(world, self.who, &ingest_addr()) else { return };
        self.is_fsynced = world.plan.always_syncs() && (self.who / 2).is_multiple_of(2);
        let (key, name) = (self.key(), format!("p{}:{}", self.who, self.epoch));
        let hello = Hello {
            level: if self.is_fsynced { Level::Fsynced } else { Level::InMemory },
            acking: Acking::Adaptive,
            resume: self.is_known,
            sink: if self.is_stream() { SinkKind::Stream } else { SinkKind::List },
            producer: name.as_bytes(),
            key: key.as_bytes(),
            ..Hello::default()
        };
        let mut bytes = Vec::new();
        write_hello(&mut bytes, &hello);
        link.queue(&bytes);
        world.note(self.who, format_args!("> Hello, resume: {}", self.is_known));
        (self.link, self.reader, self.is_welcome) = (Some(link), Reader::new(), false);
    }

    fn take(&mut self, world: &mut World) {
        let Some(link) = &mut self.link else { return };
        let got = std::mem::take(&mut link.got);
        let mut rest = &got[..];
        while let Some(frame) = self.reader.next(&mut rest) {
            let who = self.who;
            let frame = match frame {
                Ok(frame) => frame,
                Err(error) => return world.fail(format!("c{who}: {error:?}")),
            };
            world.note(who, format_args!("< {frame:?}"));
            match frame {
                ServerFrame::Welcome(welcome) => {
                    let last = welcome.last_id;
                    if last < self.acked || last > self.highest || welcome.durable > last {
                        world.fail(format!(
                            "c{who}: welcomed at {last}, {}, of {}, {} acknowledged",
                            welcome.durable, self.highest, self.acked
                        ));
                    }
                    self.durable = self.durable.max(welcome.durable);
                    (self.is_welcome, self.is_known) = (true, true);
                    // What the server does not hold is sent again.
                    (self.acked, self.sent) = (last, last);
                    (self.used, self.credit) = (0, welcome.credit);
                }
                ServerFrame::Ack(ack) => {
                    if ack.id < self.acked || ack.id > self.sent {
                        let (acked, sent) = (self.acked, self.sent);
                        let text = format!("{} acknowledged after {acked}, sent {sent}", ack.id);
                        world.fail(format!("c{who}: {text}"));
                    }
                    if ack.durable > self.sent || (self.is_fsynced && ack.durable < ack.id) {
                        world.fail(format!("c{who}: {} fsynced of {ack:?}", ack.durable));
                    }
                    self.acked = ack.id;
                    self.durable = self.durable.max(ack.durable);
                }
                ServerFrame::Credit(credit) => self.credit = credit,
                ServerFrame::Error { code: TAKEN_OVER, .. } if self.left_early => {
                    self.is_overtaken = true;
                }
                ServerFrame::Error { code, id, .. } => {
                    if world.is_living() && !world.plan.panics {
                        world.fail(format!("c{who}: error {code} after {id}"));
                    }
                }
            }
        }
    }

    /// More messages, if there is room for them.
    fn send(&mut self, world: &mut World) {
        let Some(link) = &mut self.link else { return };
        if !self.is_welcome || link.was_cut || link.has_unsent() {
            return;
        }
        let count = (1 + world.prng.below(FRAME_MAX)).min(AHEAD_MAX - (self.sent - self.acked));
        let mut body = Vec::new();
        for n in self.sent + 1..=self.sent + count {
            write_message(&mut body, payload(n).as_bytes());
        }
        let mut frame = Vec::new();
        write_data_header(&mut frame, self.sent + 1, body.len());
        frame.extend(body);
        if count == 0 || self.used + frame.len() as u64 > self.credit {
            return;
        }
        world.note(self.who, format_args!("> Data {}..={}", self.sent + 1, self.sent + count));
        *world.tally.entry("messages").or_default() += count;
        self.used += frame.len() as u64;
        self.sent += count;
        self.highest = self.highest.max(self.sent);
        if world.prng.chance(1, 3) {
            write_flush(&mut frame);
        }
        link.queue(&frame);
        self.sent_ns = world.now();
        self.not_before_ns = world.soon(world.plan.think_ns_max);
    }

    fn end(&mut self, world: &mut World, by_peer: Option<Ending>) {
        if let (Some(link), Some(ending)) = (self.link.take(), by_peer) {
            world.note(self.who, format_args!("connection over: {ending:?}"));
            if !self.is_overtaken && closings::reason(world, &link, self.epoch).is_none() {
                world.fail(format!(
                    "c{}: the server closed a connection without a reason",
                    self.who
                ));
            }
        }
        self.left_early |= !self.is_welcome;
        (self.is_welcome, self.is_overtaken) = (false, false);
        self.not_before_ns = world.soon(RECONNECT_NS_MAX);
    }

    /// When the reply to what was sent is late.
    fn check_patience(&self, world: &mut World) -> u64 {
        let Some(link) = &self.link else { return u64::MAX };
        if self.is_welcome && self.acked == self.sent {
            return u64::MAX;
        }
        let since = link.moved_ns.max(self.sent_ns);
        let disk_ns = if self.is_fsynced { world.plan.window_ns().unwrap_or(0) } else { 0 };
        let bound_ns = world.plan.patience_ns(2000) + 2 * disk_ns;
        if let Some(left_ns) = world.patience_left_ns(since, bound_ns) {
            return world.now() + left_ns + 1;
        }
        let (waited, acked) = ((world.now() - since) / 1_000_000, self.acked);
        let text = format!("{acked} of {} acknowledged", self.sent);
        world.fail(format!("c{}: a stall: no byte for {waited} ms, {text}", self.who));
        u64::MAX
    }

    fn send_next(&mut self, world: &mut World) {
        if world.phase == Phase::Busy {
            if world.now() >= self.not_before_ns {
                self.send(world);
            }
        } else if self.is_welcome && self.acked == self.sent {
            self.link = None;
            self.has_left = true;
        }
    }
}

fn payload(n: u64) -> String {
    format!("m{n}")
}

impl Actor for Producer {
    fn turn(&mut self, world: &mut World) -> u64 {
        if self.has_left {
            return u64::MAX;
        }
        if self.link.is_none() {
            if world.now() < self.not_before_ns {
                return self.not_before_ns;
            }
            self.connect(world);
        }
        let Some(link) = &mut self.link else { return self.not_before_ns };
        let turn = link.turn(world);
        self.take(world);
        match turn {
            Turn::Ended(by_peer) => {
                self.end(world, by_peer);
                self.not_before_ns
            }
            Turn::Busy => {
                self.send_next(world);
                world.now()
            }
            Turn::Idle(until) => {
                let patience = self.check_patience(world);
                let sent = self.sent;
                self.send_next(world);
                // Without credit it waits for the server.
                let is_resting = self.not_before_ns > world.now();
                let later = if is_resting { self.not_before_ns } else { u64::MAX };
                let until = until.min(patience).min(later);
                if self.sent > sent { world.now() } else { until }
            }
        }
    }

    fn has_left(&self) -> bool {
        self.has_left
    }

    fn state(&self) -> String {
        format!("c{}: {} of {} messages acknowledged", self.who, self.acked, self.sent)
    }

    fn on_restart(&mut self, world: &mut World) {
        if world.plan.saves.is_none() {
            *self = Self { epoch: world.epoch, ..Self::new(self.who) };
            return;
        }
        // What was acknowledged in memory may be gone.
        let acked = if world.plan.is_durable() { self.acked } else { self.durable };
        let Self { epoch, highest, durable, .. } = *self;
        let is_known = acked > 0;
        *self = Self { epoch, is_known, highest, acked, durable, ..Self::new(self.who) };
    }

    fn questions(&mut self) -> Vec<Question> {
        let key = self.key();
        let want = Want::Messages((1..=self.sent).map(|n| (n, payload(n))).collect());
        let text = if self.is_stream() {
            format!("XRANGE {key} - +")
        } else {
            format!("LRANGE {key} 0 -1")
        };
        vec![Question { args: words(&text), want }]
    }
}
