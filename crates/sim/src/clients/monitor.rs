//! A client in MONITOR. It reads until all others have left.

use crate::books::monitored::Feed;
use crate::closings;
use crate::host::server_addr;
use crate::link::{Link, Turn};
use crate::session::Actor;
use crate::world::{Phase, World};
use client::{Decoder, Error, Value, encode};
use driver::sim::Ending;

/// How long until the next try to connect, at most.
const RECONNECT_NS_MAX: u64 = 20_000_000;

/// A client of this family.
pub struct Monitor {
    who: u32,
    link: Option<Link>,
    /// The incarnation of the server that it connected to.
    epoch: u32,
    /// The tick of MONITOR.
    call: u64,
    call_ns: u64,
    /// From the reply to MONITOR on.
    feed: Option<Feed>,
    not_before_ns: u64,
    has_left: bool,
}

impl Monitor {
    /// The client with this number.
    pub fn new(who: u32) -> Self {
        Self {
            who,
            link: None,
            epoch: 0,
            call: 0,
            call_ns: 0,
            feed: None,
            not_before_ns: 0,
            has_left: false,
        }
    }

    fn connect(&mut self, world: &mut World) {
        self.not_before_ns = world.soon(RECONNECT_NS_MAX);
        let Some(mut link) = Link::open(world, self.who, &server_addr()) else { return };
        world.connected.insert(self.who, (link.addr(), None));
        link.queue(&encode(&[b"MONITOR"]));
        world.note(self.who, format_args!("> MONITOR"));
        (self.epoch, self.call, self.call_ns) = (world.epoch, world.tick(), world.now());
        self.link = Some(link);
    }

    /// Takes whole lines.
    fn take(&mut self, world: &mut World) {
        let Some(link) = &mut self.link else { return };
        let Some(end) = link.got.iter().rposition(|byte| *byte == b'\n') else { return };
        let whole: Vec<u8> = link.got.drain(..=end).collect();
        let mut decoder = Decoder::new(&whole[..]);
        loop {
            let value = match decoder.read() {
                Ok(value) => value,
                Err(Error::Closed) => return,
                Err(other) => return world.fail(format!("c{}: {other}", self.who)),
            };
            world.note(self.who, format_args!("< {value:?}"));
            match &mut self.feed {
                None if value == Value::ok() => {
                    let began = (self.call, world.tick());
                    self.feed = Some(Feed { began, ..Feed::default() });
                }
                Some(feed) if let Some(line) = line(&value) => feed.lines.push(line),
                _ => return world.fail(format!("c{}: MONITOR shows {value:?}", self.who)),
            }
        }
    }

    /// The connection is over.
    fn end(&mut self, world: &mut World, by_peer: Option<Ending>) {
        let Some(link) = self.link.take() else { return };
        world.connected.remove(&self.who);
        if let Some(ending) = by_peer {
            world.note(self.who, format_args!("connection over: {ending:?}"));
            if closings::reason(world, &link, self.epoch).is_none() {
                let text = "the server closed a connection without a reason";
                world.fail(format!("c{}: {text}", self.who));
            }
        }
        if let Some(feed) = self.feed.take() {
            world.books.monitored.add(feed);
        }
        self.not_before_ns = world.soon(RECONNECT_NS_MAX);
    }

    /// Nothing came: returns when to look again. It leaves when it is alone and all lines must be
    /// there.
    fn rest(&mut self, world: &mut World) -> u64 {
        let is_alone = world.connected.len() == 1 && world.phase == Phase::Ending;
        let Some(link) = &self.link else { return u64::MAX };
        if self.feed.is_some() && !is_alone {
            return u64::MAX;
        }
        let since_ns = link.moved_ns.max(self.call_ns).max(world.last_left_ns);
        if let Some(left_ns) = world.patience_left_ns(since_ns, world.plan.patience_ns(2000)) {
            return world.now() + left_ns + 1;
        }
        match &mut self.feed {
            Some(feed) => feed.is_whole = true,
            None => world.fail(format!("c{}: a stall: no reply to MONITOR", self.who)),
        }
        self.end(world, None);
        self.has_left = true;
        u64::MAX
    }
}

/// The address and the command of a line: `SECONDS.MICROSECONDS [DB ADDRESS] "COMMAND" ...`.
fn line(value: &Value) -> Option<(String, String)> {
    let Value::Simple(text) = value else { return None };
    let (time, rest) = std::str::from_utf8(text).ok()?.split_once(" [0 ")?;
    let (seconds, us) = time.split_once('.')?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (addr, command) = rest.split_once("] ")?;
    let is_whole = is_number(seconds) && is_number(us) && us.len() == 6;
    let is_quoted = command.starts_with('"') && command.ends_with('"');
    (is_whole && is_quoted).then(|| (addr.to_owned(), command.to_owned()))
}

impl Actor for Monitor {
    fn turn(&mut self, world: &mut World) -> u64 {
        if self.has_left {
            return u64::MAX;
        }
        if self.link.is_none() {
            if world.phase == Phase::Ending {
                self.has_left = true;
                return u64::MAX;
            }
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
            Turn::Busy => world.now(),
            Turn::Idle(until) if until < u64::MAX => until,
            Turn::Idle(_) => self.rest(world),
        }
    }

    fn has_left(&self) -> bool {
        self.has_left
    }

    fn state(&self) -> String {
        format!("c{}: monitors: {}", self.who, self.feed.is_some())
    }

    fn on_restart(&mut self, _: &mut World) {}
}
