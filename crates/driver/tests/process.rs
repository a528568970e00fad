//! Tests which need a process of their own: signals, and running out of descriptors.

mod common;

use common::{OPTIONS, Patience, Ring, World};
use driver::epoll::{EpollDriver, EpollOptions};
use driver::poller::Poller;
use driver::reactor::{ACCEPT_RETRY_NS, Reactor};
use driver::uring::UringDriver;
use driver::{Driver, Event, ListenAddr, ListenOptions, PeerAddr};
use rustix::process::{Pid, Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setrlimit};
use std::fs::File;
use std::net::TcpStream;

fn options(signals: bool) -> EpollOptions {
    EpollOptions { busy_poll_us: 0, workers: 1, signals }
}

fn epoll(signals: bool) -> EpollDriver<u32> {
    EpollDriver::new(&options(signals)).expect("an event loop")
}

fn ring(signals: bool) -> UringDriver<u32> {
    UringDriver::new(&options(signals)).expect("a ring")
}

fn next_signal<P: Poller>(driver: &mut Reactor<P, u32>) -> i32 {
    let mut patience = Patience::new();
    loop {
        patience.step();
        driver.wait(None);
        if let Some(Event::Signal(signal)) = driver.next() {
            return signal;
        }
    }
}

fn signals_become_events<P: Poller>(mut driver: Reactor<P, u32>) {
    let me: Pid = getpid();
    for (signal, number) in [(Signal::TERM, 15), (Signal::INT, 2), (Signal::TERM, 15)] {
        kill_process(me, signal).expect("it is this process");
        assert_eq!(next_signal(&mut driver), number);
        // The signal is consumed.
        let until = driver.refresh_now().plus(3_000_000);
        driver.wait(Some(until));
        assert!(driver.next().is_none());
    }
}

/// Opens descriptors until none is left.
fn exhaust() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

fn without_descriptors_accepting_is_suspended<P: Poller>(make: fn(bool) -> Reactor<P, u32>) {
    let now = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: now.maximum }).expect("lower");
    let mut driver = make(false);
    let at = ListenAddr::Tcp("127.0.0.1:0".parse().expect("an address"));
    let id = driver.listen(&at, &ListenOptions { backlog: 10 }).expect("a free port");
    let Some(PeerAddr::Tcp(addr)) = driver.listen_addr(id) else { panic!("it is TCP") };
    let _client = TcpStream::connect(addr).expect("it listens");
    let files = exhaust();
    let started = driver.refresh_now();
    let mut waits = 0;
    while driver.refresh_now().since(started) < 3 * ACCEPT_RETRY_NS {
        let until = started.plus(3 * ACCEPT_RETRY_NS);
        driver.wait(Some(until));
        assert!(driver.next().is_none(), "nothing can be accepted");
        waits += 1;
    }
    assert!(waits < 20, "{waits}: it does not spin on the queue");
    assert!(driver.stats().accept_errors >= 2, "and it tries again");
    drop(files);
    let mut patience = Patience::new();
    let conn = loop {
        patience.step();
        driver.wait(None);
        if let Some(Event::Accepted { socket, .. }) = driver.next() {
            break driver.adopt(socket, &OPTIONS);
        }
    };
    // With all descriptors in use again, releasing a connection lets the next one in without a
    // delay.
    let _second = TcpStream::connect(addr).expect("it listens");
    let _files = exhaust();
    let until = driver.refresh_now().plus(ACCEPT_RETRY_NS / 4);
    driver.wait(Some(until));
    assert!(driver.next().is_none());
    driver.release(conn);
    let released = driver.refresh_now();
    driver.wait(None);
    assert!(matches!(driver.next(), Some(Event::Accepted { .. })));
    assert!(driver.refresh_now().since(released) < ACCEPT_RETRY_NS / 2);
    setrlimit(Resource::Nofile, now).expect("as it was");
}

fn the_file_limit_is_raised_to_its_maximum() {
    let now = getrlimit(Resource::Nofile);
    let ceiling = now.maximum.unwrap_or(4096).min(4096);
    setrlimit(Resource::Nofile, Rlimit { current: Some(100), maximum: now.maximum })
        .expect("lower");
    assert_eq!(driver::raise_file_limit(50), 50);
    let room = getrlimit(Resource::Nofile).current;
    assert_eq!(room, Some(50 + 32 + 1024), "for connections that are accepted ahead");
    assert_eq!(driver::raise_file_limit(20), 20);
    assert_eq!(getrlimit(Resource::Nofile).current, room, "enough as it is");
    let wanted = ceiling as u32 - 32;
    assert_eq!(driver::raise_file_limit(wanted), wanted);
    let (got, bound) = (getrlimit(Resource::Nofile), now.maximum.unwrap_or(u64::MAX));
    assert!(got.current >= Some((ceiling + 1024).min(bound)), "{got:?}");
}

/// One test, because limits and signals belong to the whole process.
#[test]
fn signals_and_descriptor_limits() {
    signals_become_events(epoll(true));
    without_descriptors_accepting_is_suspended(epoll);
    if Ring::is_here() {
        signals_become_events(ring(true));
        without_descriptors_accepting_is_suspended(ring);
    }
    the_file_limit_is_raised_to_its_maximum();
}
