//! One thread of the load generator: an event loop over its connections.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;

use super::conn::{Broken, Conn, Shared};
use super::error::Error;
use super::record::now_ns;
use super::spec::{Amount, Driver, UNBOUNDED_BYTES_MAX};
use super::task::{Outcome, Task};

/// Events taken from one poll.
const EVENTS_MAX: usize = 512;
/// Arrivals of an open loop that are due and wait for a connection, at most: later ones stay in the
/// schedule with their times, only the count of requests under way no longer includes them.
const DUE_MAX: usize = 1 << 22;
/// Requests that the unbounded driver makes per connection and turn.
const BURST: u64 = 64;
/// An open loop sleeps for at least this long, unless it spins: what falls due meanwhile leaves
/// together, and its delay counts.
const SLEEP_NS_MIN: u64 = 20_000;
/// For so long after its end, an open loop still sends what is due. A request that waits for the
/// one before it at the very end is no sign of a server that falls behind.
const GRACE_NS: u64 = 10_000_000;

/// The thread.
pub struct Worker<'a> {
    task: Task<'a>,
    shared: Shared<'a>,
    poll: OwnedFd,
    conns: Vec<Option<Conn>>,
    due: VecDeque<u64>,
    next_conn: usize,
    /// No connection had room when it was last looked for.
    full: bool,
    /// An open loop has sent its last request.
    ended: bool,
    left: u64,
    in_flight: u64,
    measuring: bool,
    area: f64,
    area_until: u64,
    peak: u64,
    last_reply: u64,
    /// Since when the oldest silence lasts: the last reply, or the first request after idleness.
    quiet_since: u64,
}

impl<'a> Worker<'a> {
    /// A thread with its connections; they are watched from now on.
    pub fn new(task: Task<'a>, shared: Shared<'a>, conns: Vec<Conn>) -> Result<Self, Error> {
        let system = |what| move |error: Errno| Error::System(what, error.into());
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system("make an epoll"))?;
        for (at, conn) in conns.iter().enumerate() {
            conn.stream()
                .set_nonblocking()
                .map_err(|error| Error::System("change a socket", error))?;
            let data = epoll::EventData::new_u64(at as u64);
            let flags = epoll::EventFlags::IN
                | epoll::EventFlags::OUT
                | epoll::EventFlags::RDHUP
                | epoll::EventFlags::ET;
            epoll::add(&poll, conn.stream().as_fd(), data, flags)
                .map_err(system("watch a socket"))?;
        }
        let (started, measured_from) = (task.started, task.measured_from);
        let mut worker = Self {
            task,
            shared,
            poll,
            conns: conns.into_iter().map(Some).collect(),
            due: VecDeque::new(),
            next_conn: 0,
            full: false,
            ended: false,
            left: u64::MAX,
            in_flight: 0,
            measuring: false,
            area: 0.0,
            area_until: started,
            peak: 0,
            last_reply: 0,
            quiet_since: started,
        };
        if measured_from <= started {
            worker.measure();
        }
        Ok(worker)
    }

    /// Runs to the end: all requests answered, or lost.
    pub fn run(mut self) -> Outcome {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        let mut now = now_ns();
        if self.task.schedule.is_some() && !self.task.spec.spin {
            // Without this the kernel lets us sleep for 50 us longer than asked.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        }
        if self.is_closed_loop() {
            for at in 0..self.conns.len() {
                self.refill(at, now);
            }
        }
        loop {
            self.produce(now);
            if self.is_done(now) {
                break;
            }
            events.clear();
            self.wait(&mut events, now);
            now = now_ns();
            self.account(now);
            for event in &events {
                self.handle(event.data.u64() as usize, event.flags);
            }
            self.shared.recorder.turn(now, self.in_flight + self.due.len() as u64);
        }
        self.finish()
    }

    fn is_closed_loop(&self) -> bool {
        self.task.schedule.is_none() && self.task.spec.driver != Driver::Unbounded
    }

    /// The warm-up is over.
    fn measure(&mut self) {
        let from = self.task.measured_from;
        self.measuring = true;
        self.shared.tally.replies = 0;
        self.conns.iter_mut().flatten().for_each(|conn| conn.served = 0);
        self.shared.recorder.restart(from);
        (self.area, self.area_until, self.peak) = (0.0, from, self.in_flight);
        if let Amount::Requests(requests) = self.task.amount {
            self.left = requests;
        }
    }

    /// May more requests be made?
    #[inline]
    fn is_making(&self, now: u64) -> bool {
        self.left > 0
            && self.task.end().is_none_or(|end| now < end)
            && !self.task.stop.load(Ordering::Relaxed)
    }

    /// Adds up requests under way over time.
    #[inline]
    fn account(&mut self, now: u64) {
        if !self.measuring && now >= self.task.measured_from {
            self.measure();
        }
        let under_way = self.in_flight + self.due.len() as u64;
        self.area += under_way as f64 * now.saturating_sub(self.area_until) as f64;
        self.area_until = self.area_until.max(now);
        self.peak = self.peak.max(under_way);
    }

    fn is_done(&mut self, now: u64) -> bool {
        if self.in_flight == 0 && !self.is_making(now) {
            return true;
        }
        // A reply may have come after `now` was read: then the time since is negative.
        let silent =
            self.in_flight > 0 && now.saturating_sub(self.quiet_since) > self.task.timeout_ns();
        if silent {
            self.shared.tally.explain(|| "no reply in time".to_owned());
            self.task.stop.store(true, Ordering::Relaxed);
        }
        silent
    }

    /// Sleeps until something happens, or until there is something to do.
    fn wait(&mut self, events: &mut Vec<epoll::Event>, now: u64) {
        let mut until = self.shared.recorder.ends();
        if self.in_flight > 0 {
            until = until.min(self.quiet_since + self.task.timeout_ns() + 1);
        }
        if self.is_making(now) {
            until = until.min(self.task.end().unwrap_or(u64::MAX));
            if self.task.spec.driver == Driver::Unbounded && !self.is_too_much() {
                until = now;
            }
        }
        if !self.measuring {
            until = until.min(self.task.measured_from);
        }
        let mut sleep_ns = until.saturating_sub(now);
        if let Some(schedule) = self.task.schedule.as_ref().filter(|_| self.is_making(now)) {
            if !self.full {
                sleep_ns = sleep_ns.min(schedule.peek().saturating_sub(now).max(SLEEP_NS_MIN));
            }
            if sleep_ns > 0 && !self.task.spec.spin {
                // epoll counts in milliseconds; ppoll on it in nanoseconds.
                let mut fds = [PollFd::new(&self.poll, PollFlags::IN)];
                let _ = poll(&mut fds, Some(&timespec(sleep_ns)));
                sleep_ns = 0;
            }
        }
        if self.task.spec.spin {
            sleep_ns = 0;
        }
        // Interrupted: the next turn asks again.
        let _ = epoll::wait(&self.poll, spare_capacity(events), Some(&timespec(sleep_ns)));
    }

    fn handle(&mut self, at: usize, flags: epoll::EventFlags) {
        let Some(conn) = &mut self.conns[at] else { return };
        let ends = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        let before = conn.in_flight;
        let result = (|| {
            if flags.contains(epoll::EventFlags::OUT) && conn.unsent_bytes() > 0 {
                conn.flush()?;
            }
            conn.receive(&mut self.shared, flags.intersects(ends))
        })();
        // Replies may have come even if the connection broke behind them.
        self.in_flight -= before - conn.in_flight;
        match result {
            Ok((0, _)) => {}
            Ok((_, now)) => {
                (self.last_reply, self.quiet_since, self.full) = (now, now, false);
                if self.is_closed_loop() {
                    self.refill(at, now);
                }
            }
            Err(broken) => self.drop_broken(at, &broken),
        }
    }

    /// A closed loop makes the next requests of a connection.
    #[inline]
    fn refill(&mut self, at: usize, now: u64) {
        if !self.is_making(now) {
            return;
        }
        let Some(conn) = &self.conns[at] else { return };
        let room = match self.task.spec.driver {
            Driver::LockStep if conn.in_flight > 0 => 0,
            _ => conn.window - conn.in_flight,
        };
        self.send(at, now, room.min(self.left));
    }

    fn send(&mut self, at: usize, now: u64, count: u64) {
        let Some(conn) = self.conns[at].as_mut().filter(|_| count > 0) else { return };
        conn.make(&mut self.shared, now, count);
        let flushed = conn.flush();
        self.count_made(count, now);
        if let Err(broken) = flushed {
            self.drop_broken(at, &broken);
        }
    }

    fn count_made(&mut self, count: u64, now: u64) {
        if self.in_flight == 0 {
            self.quiet_since = now;
        }
        self.in_flight += count;
        self.left -= count;
    }

    /// Makes requests that do not wait for replies.
    fn produce(&mut self, now: u64) {
        if self.task.schedule.is_some() {
            if !self.ended && !self.task.stop.load(Ordering::Relaxed) {
                self.ended = self.task.end().is_some_and(|end| now > end + GRACE_NS);
                self.dispatch(now);
            }
            return;
        }
        if self.is_closed_loop() || !self.is_making(now) {
            return;
        }
        for at in 0..self.conns.len() {
            if self.is_too_much() {
                return;
            }
            self.send(at, now, BURST.min(self.left));
        }
    }

    fn is_too_much(&self) -> bool {
        let unsent: usize = self.conns.iter().flatten().map(Conn::unsent_bytes).sum();
        unsent > UNBOUNDED_BYTES_MAX
    }

    /// Sends what is due. A connection takes as much as its window allows before the next one gets
    /// something, so that what is due together leaves in few sends.
    fn dispatch(&mut self, now: u64) {
        let end = self.task.end().unwrap_or(u64::MAX);
        let schedule = self.task.schedule.as_mut().expect("only an open loop dispatches");
        while schedule.peek() <= now && schedule.peek() < end && self.due.len() < DUE_MAX {
            self.due.push_back(schedule.advance());
        }
        self.peak = self.peak.max(self.in_flight + self.due.len() as u64);
        while !self.due.is_empty() && !self.full && !self.ended && self.left > 0 {
            let Some(at) = self.with_room() else {
                self.full = true;
                return;
            };
            let conn = self.conns[at].as_mut().expect("it was found to have room");
            let mut count = 0;
            while conn.in_flight < conn.window && count < self.left {
                let Some(intended) = self.due.pop_front() else { break };
                conn.make(&mut self.shared, intended, 1);
                count += 1;
            }
            let flushed = conn.flush();
            self.count_made(count, now);
            if let Err(broken) = flushed {
                self.drop_broken(at, &broken);
            }
        }
    }

    /// The next connection that may take a request; turns from one to the next.
    fn with_room(&mut self) -> Option<usize> {
        let len = self.conns.len();
        let found = (0..len)
            .map(|step| (self.next_conn + step) % len)
            .find(|&at| self.conns[at].as_ref().is_some_and(|conn| conn.in_flight < conn.window))?;
        self.next_conn = (found + 1) % len;
        Some(found)
    }

    /// A connection broke: its requests are lost, and the load ends.
    #[cold]
    fn drop_broken(&mut self, at: usize, broken: &Broken) {
        let Some(conn) = self.conns[at].take() else { return };
        self.shared.tally.failures.lost += conn.in_flight;
        // A connection that broke without a request is a failure too, of the next one.
        self.shared.tally.failures.lost += u64::from(conn.in_flight == 0);
        self.in_flight -= conn.in_flight;
        self.shared.tally.explain(|| broken.0.clone());
        self.task.stop.store(true, Ordering::Relaxed);
    }

    fn finish(mut self) -> Outcome {
        self.account(now_ns());
        self.shared.tally.failures.lost += self.in_flight;
        let unsent = self.task.unsent(&self.due);
        let served = self.conns.iter().flatten().map(|conn| conn.served).collect();
        self.shared.recorder.finish();
        Outcome {
            tally: self.shared.tally,
            area: self.area,
            peak: self.peak,
            last_reply: self.last_reply,
            unsent,
            served,
        }
    }
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}
