//! Service time on a virtual clock: from the receive that completed a request to the send that took
//! the last byte of its reply. The clock goes on by a microsecond a turn, by what a send takes, and
//! when the test says so; so every time is exact.

use base::sync::Arc;
use driver::loopback::Loopback;
use driver::{ConnId, Driver, MailboxSender};
use server::config::{Access, Config};
use server::figures::service::ServiceFigures;
use server::shared::Shared;
use server::worker::Worker;
use server::worker::message::Message;

const SECOND: u64 = 1_000_000_000;
/// The clock goes on so far with each turn, nanoseconds.
const TURN: u64 = 1_000;
/// Commands of one session in a turn, as in `execute/window.rs`.
const COMMANDS_PER_TURN: usize = 512;
/// Turns after which a reply that has not come is missing.
const TURNS_MAX: usize = 100_000;

struct WakeByMail(MailboxSender<Message>);

impl keyspace::Waker for WakeByMail {
    fn wake(&self, _: usize, token: u64) {
        self.0.post(Message::Retry(ConnId::from_token(token)));
    }
}

struct World {
    worker: Worker<Loopback<Message>>,
    shared: Arc<Shared>,
}

impl World {
    /// A worker with three clients. Nothing is recorded yet.
    fn new() -> Self {
        let mut driver = Loopback::new(7);
        for _ in 0..3 {
            driver.connect().expect("a pair of sockets");
        }
        let mut config = Config::default();
        config.enable_debug_command = Access::Yes;
        let shared = Arc::new(server::boot::make_shared(config, &mut driver, 1, || (0, 0)));
        assert!(shared.mailboxes.set(vec![driver.mailbox()]).is_ok(), "set once");
        shared.keyspace.set_waker(Box::new(WakeByMail(driver.mailbox())));
        let worker = Worker::new(driver, shared.clone(), 0, Vec::new());
        let mut world = Self { worker, shared };
        world.worker.turn();
        world
    }

    fn now(&mut self) -> u64 {
        self.worker.driver().now().0
    }

    fn wait(&mut self, ns: u64) {
        self.worker.driver().advance(ns);
    }

    /// Writes requests; nothing is received before the next turn.
    fn write(&mut self, client: usize, lines: &[&str]) {
        self.worker.driver().forget(client);
        let text: String = lines.iter().flat_map(|line| [*line, "\r\n"]).collect();
        self.worker.driver().write(client, text.as_bytes());
    }

    fn turn(&mut self) {
        self.worker.turn();
    }

    /// Turns until something was sent to this client. Returns the time, and what.
    fn reply(&mut self, client: usize) -> (u64, String) {
        for _ in 0..TURNS_MAX {
            if !self.worker.driver().received(client).is_empty() {
                let text = String::from_utf8_lossy(self.worker.driver().received(client));
                let text = text.into_owned();
                return (self.now(), text);
            }
            self.turn();
        }
        panic!("no reply");
    }

    fn ask(&mut self, client: usize, line: &str) -> String {
        self.write(client, &[line]);
        self.reply(client).1
    }

    /// Requests so far, and the sum of their times in nanoseconds.
    fn seen(&self) -> (u64, u64) {
        let f = ServiceFigures::gather(&self.shared);
        (f.times.count(), f.sum_ns)
    }

    /// What was recorded during `story`.
    fn during(&mut self, story: impl FnOnce(&mut Self)) -> (u64, u64) {
        let before = self.seen();
        story(self);
        let after = self.seen();
        (after.0 - before.0, after.1 - before.1)
    }
}

#[test]
fn a_pipeline_counts_each_request_up_to_the_end_of_its_send() {
    let mut world = World::new();
    world.worker.driver().set_send_ns(70);
    let seen = world.during(|w| {
        w.write(0, &["PING"; 100]);
        w.turn();
    });
    assert_eq!(seen, (100, 100 * 70));
    // Two clients in a turn: the clock is read behind both sends.
    let seen = world.during(|w| {
        w.write(0, &["GET a", "NOSUCH", "GET b"]);
        w.write(1, &["GET a b"]);
        w.turn();
    });
    assert_eq!(seen, (4, 4 * 140), "errors are replies, too");
}

/// The time of a send is not taken for that of a receive, nor the other way round.
#[test]
fn a_request_counts_from_the_receive_which_completed_it() {
    let mut world = World::new();
    world.worker.driver().set_send_ns(70);
    let seen = world.during(|w| {
        w.worker.driver().write(0, b"PING\r\nPI");
        w.turn();
        w.wait(SECOND);
        w.worker.driver().write(0, b"NG\r\nPI");
        w.turn();
        w.wait(SECOND);
        w.worker.driver().write(0, b"NG\r\n");
        w.turn();
    });
    assert_eq!(seen, (3, 3 * 70));
}

#[test]
fn what_one_turn_does_not_execute_counts_from_its_receive() {
    let mut world = World::new();
    let seen = world.during(|w| {
        w.write(0, &vec!["PING"; COMMANDS_PER_TURN * 2 + 5]);
        w.turn();
        w.turn();
        w.turn();
    });
    let sum = COMMANDS_PER_TURN as u64 * TURN + 5 * 2 * TURN;
    assert_eq!(seen, (COMMANDS_PER_TURN as u64 * 2 + 5, sum));
}

/// A client that waits behind another's command which keeps the whole keyspace, and what it has
/// sent behind.
#[test]
fn the_wait_behind_the_command_of_another_client_counts() {
    let mut world = World::new();
    assert_eq!(world.ask(2, "CONFIG SET slowlog-log-slower-than 0"), "+OK\r\n");
    let mut times = (0, 0, 0);
    let seen = world.during(|w| {
        w.write(0, &["DEBUG SLEEP 0.25"]);
        w.turn();
        times.0 = w.now();
        w.wait(SECOND / 10);
        w.write(1, &["GET key", "GET key"]);
        w.turn();
        times.1 = w.now();
        w.wait(SECOND);
        times.2 = w.reply(1).0;
    });
    let (slept, received, sent) = times;
    assert!(sent - received >= SECOND);
    assert_eq!(seen, (3, (sent - TURN - slept) + 2 * (sent - received)));
    world.ask(2, "CONFIG SET slowlog-log-slower-than -1");
    // The newest entries: GET, GET, DEBUG.
    let log = world.ask(2, "SLOWLOG GET 3 WAITED");
    let waited = format!("\r\n$0\r\n\r\n:{}\r\n", (sent - received) / 1_000);
    assert_eq!(log.matches(&*waited).count(), 2, "{log}");
    assert_eq!(log.matches("*7\r\n").count(), 3, "{log}");
    assert_eq!(world.ask(2, "SLOWLOG GET 3").matches("*6\r\n").count(), 3);
}

/// Elements that a client waits for are not the server's time; nor are they that of what the same
/// client has sent behind.
#[test]
fn a_blocked_client_counts_from_when_it_was_served() {
    let mut world = World::new();
    world.worker.driver().set_send_ns(70);
    let seen = world.during(|w| {
        w.write(0, &["PING", "BLPOP list 0", "PING"]);
        w.turn();
        w.wait(SECOND);
        w.ask(1, "RPUSH list element");
        w.worker.driver().forget(0);
        assert!(w.reply(0).1.contains("element"));
        w.turn();
    });
    assert_eq!(seen, (4, 4 * 70));
    let seen = world.during(|w| {
        w.write(0, &["BLPOP list 3"]);
        w.turn();
        assert_eq!(w.reply(0).1, "*-1\r\n");
    });
    assert_eq!(seen, (1, 70), "its time was up");
}

#[test]
fn held_replies_count_when_they_leave() {
    let mut world = World::new();
    assert!(world.ask(1, "DEBUG SAFE-UP-TO 0").starts_with(':'));
    let mut times = (0, 0, 0, 0);
    let seen = world.during(|w| {
        w.write(0, &["SET a 1", "SET b 1", "GET a"]);
        w.turn();
        times.0 = w.now();
        w.wait(SECOND);
        w.write(0, &["SET c 1"]);
        w.turn();
        times.1 = w.now();
        w.wait(SECOND);
        assert_eq!(w.during(|_| ()), (0, 0), "nothing has left");
        assert!(w.ask(1, "DEBUG SAFE-UP-TO 2").starts_with(':'));
        times.2 = w.reply(0).0;
        w.wait(SECOND);
        w.worker.driver().forget(0);
        assert!(w.ask(1, "DEBUG SAFE-UP-TO 9").starts_with(':'));
        times.3 = w.reply(0).0;
    });
    let (first, second, left, last) = times;
    assert_eq!(seen, (6, 3 * (left - first) + (last - second)));
}

/// What a connection has not been answered when it ends is not counted, then or later.
#[test]
fn a_connection_takes_its_unanswered_requests_with_it() {
    let mut world = World::new();
    assert!(world.ask(1, "DEBUG SAFE-UP-TO 0").starts_with(':'));
    world.write(0, &["CLIENT ID"]);
    let id = world.reply(0).1.trim_start_matches(':').trim().to_owned();
    let seen = world.during(|w| {
        w.write(0, &["SET a 1"]);
        w.turn();
        assert_eq!(w.ask(1, &format!("CLIENT KILL ID {id}")), ":1\r\n");
        w.turn();
        assert!(w.ask(1, "DEBUG SAFE-UP-TO 9").starts_with(':'));
        w.turn();
    });
    assert_eq!(seen.0, 2, "CLIENT KILL and DEBUG");
    let is_gone = |w: &mut World| w.worker.driver().is_closed(0);
    assert!(is_gone(&mut world));
}

#[test]
fn requests_without_a_reply_are_not_counted() {
    let mut world = World::new();
    let seen = world.during(|w| {
        w.write(0, &["CLIENT REPLY OFF", "PING", "GET a", "CLIENT REPLY ON"]);
        assert_eq!(w.reply(0).1, "+OK\r\n");
        w.write(0, &["CLIENT REPLY SKIP", "GET a", "PING"]);
        assert_eq!(w.reply(0).1, "+PONG\r\n");
        w.write(0, &["MULTI", "GET a", "GET a", "EXEC"]);
        w.turn();
    });
    assert_eq!(seen, (6, 0), "ON, PING, MULTI, two that were queued, EXEC");
}

#[test]
fn without_latency_tracking_nothing_is_recorded() {
    let mut world = World::new();
    world.ask(0, "PING");
    assert_eq!(world.ask(0, "CONFIG SET latency-tracking no"), "+OK\r\n");
    let seen = world.during(|w| {
        w.write(0, &["PING"; 70]);
        w.turn();
        assert_eq!(w.ask(1, "INFO service"), "$11\r\n# Service\r\n\r\n");
    });
    assert_eq!(seen, (0, 0));
    assert_eq!(world.ask(0, "CONFIG SET latency-tracking yes"), "+OK\r\n");
    let seen = world.during(|w| {
        w.ask(0, "PING");
    });
    assert_eq!(seen, (1, 0));
}

#[test]
fn info_shows_what_was_recorded_and_resetstat_forgets_it_but_not_the_map() {
    let mut world = World::new();
    world.worker.driver().set_send_ns(50);
    world.write(0, &["PING"; 99]);
    world.turn();
    world.wait(SECOND); // housekeeping, which adds to the map
    world.turn();
    let shown = world.ask(0, "INFO service");
    let expected = "# Service\r\nservice_time_count:99\r\nservice_time_usec:4\r\n\
        service_time_percentiles_usec:p50=0.050,p99=0.050,p99.9=0.050,max=0.050\r\n";
    assert!(shown.contains(expected), "{shown}");
    assert!(world.ask(0, "INFO everything").contains("service_time_count:"));
    assert!(!world.ask(0, "INFO").contains("service_time_count:"));
    world.ask(0, "CONFIG RESETSTAT");
    world.turn();
    assert!(
        world.ask(0, "INFO service").contains("service_time_count:1\r\n"),
        "INFO's own is next"
    );
    let minute = world.worker.driver().unix_ms().0 / 60_000;
    let columns = world.shared.heat.columns(minute);
    assert!(columns[0].1[0] >= 99, "{columns:?}");
}
