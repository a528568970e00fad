//! The simulated network in a world of the baton: who waits for it, and what it belongs to.

use super::SimNet;
use super::net::{Side, State};
use crate::poller::{Ready, Wait};
use base::MonoNs;
use base::sync::baton::{self, Group, Kind, Waker, Woken};
use std::collections::BTreeMap;

/// The longest that a poll takes.
const POLL_NS_MAX: u64 = 2_000;

/// What a world adds to the network. Outside a world it stays empty.
#[derive(Debug, Default)]
pub struct World {
    /// By worker: its group, and its thread while that waits.
    workers: Vec<(Option<Group>, Option<Waker>)>,
    /// By listener.
    listeners: Vec<Option<Group>>,
    /// By stream: the group whose server has it.
    streams: Vec<Option<Group>>,
    /// How far a group's wall clock was set, nanoseconds.
    clock_steps: BTreeMap<Group, i64>,
    /// Threads that wait for what clients can see.
    clients: Vec<Waker>,
    /// Counts what clients could see.
    changes: u64,
}

impl World {
    pub fn now_ns() -> Option<u64> {
        baton::now_ns()
    }

    /// A worker of the calling thread's group.
    pub fn add_worker(&mut self) {
        self.workers.push((baton::current_group(), None));
    }

    /// A listener of the calling thread's group.
    pub fn add_listener(&mut self) {
        self.listeners.push(baton::current_group());
    }

    /// A connection to this listener.
    pub fn add_stream(&mut self, listener: usize) {
        self.streams.push(self.listeners[listener]);
    }

    /// Wakes a worker's thread at this time if it waits.
    pub fn wake(&mut self, worker: usize, at: MonoNs) {
        if let (_, Some(waker)) = self.workers[worker] {
            waker.wake_at(at.0);
        }
    }

    pub fn clock_step_ns(&self, worker: usize) -> i64 {
        let (group, _) = self.workers[worker];
        group.and_then(|group| self.clock_steps.get(&group).copied()).unwrap_or_default()
    }
}

/// Whether a poll is over.
enum Polled {
    Over,
    /// Its thread must wait, until this time at most.
    Waits(Option<u64>),
}

impl State {
    /// A poll of this worker: whether it is over.
    fn poll_in_world(&mut self, worker: usize, ready: &mut Vec<Ready>, wait: Wait) -> Polled {
        let found = self.ready_of(worker);
        let limit = match wait {
            Wait::NoWait => Some(0),
            Wait::Until(at) => Some(at.0),
            Wait::Forever => None,
        };
        let is_over = limit.is_some_and(|at| at <= self.now().0);
        if !found.is_empty() || self.workers[worker].woken || is_over {
            self.world.workers[worker].1 = None;
            self.take(worker, found, ready);
            return Polled::Over;
        }
        self.world.workers[worker].1 = Waker::of_this_thread();
        let arrivals = self.workers[worker].streams.keys().map(|s| self.next_arrival_at(*s));
        let disk = self.workers[worker].disk.as_ref().map(|d| d.next_arrival(self.now()));
        Polled::Waits(arrivals.chain([limit, disk.flatten()]).flatten().min())
    }

    /// When the next bytes, or the end, arrive at an end of this stream.
    fn next_arrival_at(&self, stream: usize) -> Option<u64> {
        let (s, now) = (&self.streams[stream], self.now().0);
        let both = [s.to_server.next_arrival(now), s.to_client.next_arrival(now)];
        both.into_iter().flatten().min()
    }

    /// A stream has changed: those who may see it are woken, now or when it arrives.
    pub fn tell(&mut self, stream: usize) {
        let arrival = self.next_arrival_at(stream).map(MonoNs);
        let owner = self.workers.iter().position(|w| w.streams.contains_key(&stream));
        if let Some(owner) = owner {
            let now = self.ready(owner, stream).map(|_| self.now());
            now.or(arrival).into_iter().for_each(|at| self.world.wake(owner, at));
        }
        self.world.changes += 1;
        let at = arrival.map_or(0, |at| at.0);
        self.world.clients.iter().for_each(|client| client.wake_at(at));
    }

    /// A connection has come to a listener.
    pub fn tell_acceptor(&mut self, listener: usize) {
        let acceptor = self.workers.iter().position(|w| w.listeners.contains_key(&listener));
        if let Some(worker) = acceptor {
            self.world.wake(worker, self.now());
        }
    }

    /// Closes what a group had open, as a system does when a process ends.
    fn end_group(&mut self, group: Group) {
        for worker in 0..self.workers.len() {
            if self.world.workers[worker].0 == Some(group) {
                // The thread is stopped for ever and never drops its driver.
                let disk = self.workers[worker].disk.take();
                disk.into_iter().for_each(|disk| disk.end());
                self.remove_worker(worker);
            }
        }
        for listener in 0..self.listeners.len() {
            if self.world.listeners[listener] == Some(group) {
                self.close_listener(listener);
            }
        }
        for stream in 0..self.streams.len() {
            if self.world.streams[stream] == Some(group) && !self.streams[stream].server_closed {
                self.close(stream, Side::Server);
            }
        }
    }

    /// The first arrival at any client after `since`.
    fn next_client_arrival(&self, since: MonoNs) -> Option<u64> {
        let open = self.streams.iter().filter(|s| !s.client_closed && !s.reset);
        open.filter_map(|s| s.to_client.next_arrival(since.0)).min()
    }
}

pub fn is_active() -> bool {
    baton::is_active()
}

/// A system call.
#[track_caller]
pub fn call() {
    baton::point(Kind::Call);
}

/// Has the network close what a group had open when the group ends.
pub fn close_with_groups(net: &SimNet) {
    let net = net.clone();
    baton::on_group_end(move |group| net.locked().end_group(group));
}

/// A poll: blocks the thread until it finds something or its time is over.
pub fn poll(net: &SimNet, worker: usize, ready: &mut Vec<Ready>, wait: Wait) {
    loop {
        let polled = net.state().poll_in_world(worker, ready, wait);
        let Polled::Waits(until) = polled else { break };
        baton::wait("the network", until);
    }
    // Polls take time, so that a worker which only polls comes to its next deadline.
    baton::pass_time(POLL_NS_MAX);
}

/// What a thread with clients has seen of the network.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    changes: u64,
    now: MonoNs,
}

impl SimNet {
    /// This moment, for [`SimNet::wait`]: take it before the clients are read and written.
    pub fn moment(&self) -> Moment {
        let net = self.state();
        Moment { changes: net.world.changes, now: net.now() }
    }

    /// Blocks the calling thread of a world until a client may see something that it did not see at
    /// `since`, or until `until`. It may return early. False if nothing can ever happen again (only
    /// on the world's own thread, and without `until`).
    pub fn wait(&self, since: Moment, until: Option<MonoNs>) -> bool {
        let Some(me) = Waker::of_this_thread() else { return false };
        let mut net = self.state();
        let arrival = net.next_client_arrival(since.now);
        let until = arrival.into_iter().chain(until.map(|at| at.0)).min();
        if net.world.changes != since.changes || until.is_some_and(|at| at <= net.now().0) {
            return true;
        }
        net.world.clients.push(me);
        drop(net);
        let woken = baton::wait("a client's connection", until);
        self.locked().world.clients.retain(|client| *client != me);
        woken != Woken::AtRest
    }

    /// Sets the wall clock of a group's machine forward or back.
    pub fn step_wall_clock(&self, group: Group, by_ns: i64) {
        *self.state().world.clock_steps.entry(group).or_default() += by_ns;
    }
}
