//! No worker sleeps because of a long holder. While a command holds a slot for seconds, commands
//! that need that slot, or all slots, park their sessions, and every other worker keeps answering.
//!
//! The holder is `DEBUG HOLD`, which the test ends. So nothing here depends on how fast the machine
//! is: what is checked must happen before the test ends the hold.

use std::thread;
use std::time::{Duration, Instant};

use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

/// Number of clients, enough that each worker has some.
const CLIENTS: usize = 24;
/// At least this many clients are on other workers than the holder.
const OTHERS_MIN: usize = 4;
/// The longest hold; it ends earlier if the test passes.
const HOLD_S: u32 = 40;
/// How often each client pings.
const ROUNDS: usize = 40;
/// If no reply arrives for this long, no more are expected. If it is too short, the test uses fewer
/// clients.
const QUIET: Duration = Duration::from_millis(300);

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

fn ask(wire: &mut Wire, text: &str) -> Value {
    wire.command(&words(text)).unwrap_or_else(|e| panic!("'{text}': {e}"))
}

/// Sends without waiting for the reply.
fn send(wire: &mut Wire, text: &str) {
    wire.send(&encode(&words(text))).expect("it takes requests");
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

fn has_reply(wire: &mut Wire, wait: Duration) -> bool {
    wire.has_reply(wait).expect("the connection stands")
}

struct Scene {
    server: ServerProcess,
    /// The client whose command holds a slot.
    holder: Wire,
    /// Clients of other workers.
    others: Vec<Wire>,
}

impl Scene {
    /// Finds the clients of the holder's worker: they are not answered while it holds.
    fn new(threads: usize) -> Self {
        let threads = threads.to_string();
        let args = ["--threads", &threads, "--enable-debug-command", "yes"];
        let server = ServerProcess::start(&Binary::under_test(), &args);
        let mut holder = server.connect();
        let mut clients: Vec<Wire> = (0..CLIENTS).map(|_| server.connect()).collect();
        for wire in &mut clients {
            ask(wire, "PING");
        }
        send(&mut holder, &format!("DEBUG HOLD held {HOLD_S}"));
        for wire in &mut clients {
            send(wire, "PING");
        }
        let heard = Self::who_answers(&mut clients);
        let at = heard.iter().position(|&heard| heard).expect("some were heard");
        assert_eq!(clients[at].receive().expect("answered"), Value::Simple(b"PONG".to_vec()));
        assert_eq!(ask(&mut clients[at], "DEBUG HOLD held 0"), ok());
        assert_eq!(holder.receive().expect("the hold ends"), ok());
        for (n, wire) in clients.iter_mut().enumerate().filter(|(n, _)| *n != at) {
            let pong = wire.receive().unwrap_or_else(|e| panic!("client {n}: {e}"));
            assert_eq!(pong, Value::Simple(b"PONG".to_vec()));
        }
        let mut heard = heard.into_iter();
        clients.retain(|_| heard.next().expect("one each"));
        let mut scene = Self { server, holder, others: clients };
        for line in ["SET held 1", "SET {held}w1 5", "RPUSH l 1 2 3"] {
            ask(&mut scene.others[0], line);
        }
        scene
    }

    /// Which clients are answered during the hold. Some always are, later on a slow machine.
    fn who_answers(clients: &mut [Wire]) -> Vec<bool> {
        let began = Instant::now();
        loop {
            thread::sleep(QUIET);
            let answered = |wire: &mut Wire| has_reply(wire, QUIET / 20);
            let heard: Vec<bool> = clients.iter_mut().map(answered).collect();
            if heard.iter().filter(|&&heard| heard).count() > OTHERS_MIN {
                return heard;
            }
            let is_held = began.elapsed() < Duration::from_secs(u64::from(HOLD_S) / 2);
            assert!(is_held, "most clients have other workers: {heard:?}");
        }
    }

    /// Holds the slot of `held`; returns whether that was observed.
    fn hold(&mut self) -> bool {
        send(&mut self.holder, &format!("DEBUG HOLD held {HOLD_S}"));
        let mut probe = self.server.connect();
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(10) {
            send(&mut probe, "GET held");
            if !has_reply(&mut probe, QUIET) {
                return true;
            }
            probe.receive().expect("answered");
        }
        false
    }

    fn release(&mut self) {
        assert_eq!(ask(&mut self.others[0], "DEBUG HOLD held 0"), ok());
        assert_eq!(self.holder.receive().expect("the hold ends"), ok());
    }

    /// Runs `command` during the hold: all others are answered meanwhile, and `command` is answered
    /// after the hold.
    fn beside(&mut self, command: &str) -> Value {
        assert!(self.hold(), "the slot is held");
        let mut asking = self.others.pop().expect("there are some");
        send(&mut asking, command);
        for round in 0..ROUNDS {
            self.others.iter_mut().for_each(|wire| send(wire, "PING"));
            for wire in &mut self.others {
                let pong = wire.receive().unwrap_or_else(|e| panic!("'{command}': {e}"));
                assert_eq!(pong, Value::Simple(b"PONG".to_vec()));
            }
            assert!(
                !has_reply(&mut self.holder, Duration::from_millis(1)),
                "beside '{command}' the pings of round {round} waited until the hold had ended"
            );
        }
        self.release();
        let reply = asking.receive().unwrap_or_else(|e| panic!("'{command}': {e}"));
        self.others.push(asking);
        reply
    }
}

#[test]
fn a_command_waiting_for_all_slots_blocks_no_other() {
    let mut scene = Scene::new(3);
    assert_eq!(scene.beside("FLUSHALL"), ok());
    assert_eq!(ask(&mut scene.others[0], "DBSIZE"), Value::Int(0));
}

#[test]
fn a_command_which_needs_a_held_slot_blocks_no_other() {
    let mut scene = Scene::new(3);
    assert_eq!(scene.beside("SORT l BY {held}w* STORE sorted"), Value::Int(3));
}

#[test]
fn walks_block_no_other_command() {
    let mut scene = Scene::new(3);
    let all = |reply| match reply {
        Value::Array(keys) => keys.len(),
        other => panic!("a list: {other:?}"),
    };
    assert_eq!(all(scene.beside("KEYS *")), 3);
    assert_eq!(all(scene.beside("SCAN 0 COUNT 1000")), 2);
    assert!(matches!(scene.beside("RANDOMKEY"), Value::Bulk(_)));
    assert_eq!(all(scene.beside("KEYS held")), 1);
}

/// A transaction with walks locks the slots that they visit, not World. It is answered while
/// another slot is held.
#[test]
fn transactions_with_walks_block_no_other_command() {
    let mut scene = Scene::new(3);
    // Their slots are lower than the slot of `held`.
    ask(&mut scene.others[0], "MSET early 1 free 1");
    let worlds = figure(&mut scene.others[0], "world_holds:");
    assert!(scene.hold(), "the slot is held");
    let mut asking = scene.others.pop().expect("there are some");
    for line in
        ["MULTI", "DBSIZE", "RANDOMKEY", "SCAN 0", "RPUSH l 4", "DEL early", "DBSIZE", "EXEC"]
    {
        send(&mut asking, line);
    }
    let mut replies = Vec::new();
    for line in 0..8 {
        assert!(has_reply(&mut asking, Duration::from_secs(20)), "reply {line} waits for the hold");
        replies.push(asking.receive().expect("answered"));
    }
    scene.release();
    let Some(Value::Array(parts)) = replies.pop() else { panic!("the replies of a queue") };
    assert_eq!((&parts[0], &parts[5]), (&Value::Int(5), &Value::Int(4)), "with its own changes");
    let keys = ["free", "early", "l"].map(|key| Value::Bulk(key.as_bytes().to_vec()));
    assert!(keys.contains(&parts[1]), "{:?} is not held", parts[1]);
    let Value::Array(scan) = &parts[2] else { panic!("a cursor and keys") };
    assert_eq!(scan[1], Value::Array(keys[..2].to_vec()), "up to the held slot");
    assert_eq!(parts[3], Value::Int(4));

    // The slot it needs is held: the session parks before any of its commands has run.
    let Value::Bulk(cursor) = &scan[0] else { panic!("a cursor") };
    let scan = format!("SCAN {}", String::from_utf8_lossy(cursor));
    let queue = |scene: &mut Scene, lines: &[&str]| {
        let asking = scene.others.last_mut().expect("there are some");
        for line in lines {
            ask(asking, line);
        }
        scene.beside("EXEC")
    };
    let Value::Array(parts) = queue(&mut scene, &["MULTI", "SET k 1", &scan]) else {
        panic!("the replies of a queue")
    };
    assert!(matches!(&parts[1], Value::Array(scan) if scan[0] == Value::Bulk(b"0".to_vec())));
    let Value::Array(parts) = queue(&mut scene, &["MULTI", "DEL l k free", "RANDOMKEY"]) else {
        panic!("the replies of a queue")
    };
    assert!(matches!(&parts[1], Value::Bulk(key) if key.starts_with(b"held") || key[0] == b'{'));
    assert_eq!(figure(&mut scene.others[0], "world_holds:"), worlds, "World was taken");
}

/// How often sessions have parked.
fn parks(wire: &mut Wire) -> u64 {
    figure(wire, "lock_parks:")
}

/// The sum of an INFO field over the total and all workers.
fn figure(wire: &mut Wire, name: &str) -> u64 {
    let Value::Bulk(text) = ask(wire, "INFO io") else { panic!("a text") };
    let text = String::from_utf8(text).expect("text");
    let figures = text.lines().filter_map(|line| Some(line.split_once(name)?.1));
    figures.map(|n| n.parse::<u64>().expect("a number")).sum()
}

/// Sends a command that parks, and waits until it has.
fn send_to_park(by: &mut Wire, command: &str, other: &mut Wire) {
    let before = parks(other);
    send(by, command);
    let began = Instant::now();
    while parks(other) == before {
        assert!(began.elapsed() < Duration::from_secs(10), "'{command}' parks");
    }
}

/// A FLUSHALL that waits runs before a long command that was sent later, which runs next. A waiting
/// FLUSHALL whose client disconnects blocks no other command.
#[test]
fn a_waiting_flushall_runs_before_later_long_commands() {
    let mut scene = Scene::new(4);
    for leaves in [false, true] {
        assert!(scene.hold(), "the slot is held");
        let mut flushing = scene.others.pop().expect("there are some");
        let mut second = scene.others.pop().expect("there are some");
        send_to_park(&mut flushing, "FLUSHALL", &mut scene.others[0]);
        let later = format!("DEBUG HOLD later {HOLD_S}");
        send_to_park(&mut second, &later, &mut scene.others[0]);
        assert_eq!(ask(&mut scene.others[1], "SET later 1"), ok());
        if leaves {
            drop(flushing);
        } else {
            scene.release();
            assert_eq!(flushing.receive().expect("answered"), ok());
        }
        // It runs. Some of the other clients are on its worker, so each is asked to end the hold.
        let began = Instant::now();
        let mut probe = scene.others.pop().expect("there are some");
        loop {
            send(&mut probe, "GET later");
            if !has_reply(&mut probe, QUIET) {
                break;
            }
            probe.receive().expect("answered");
            assert!(began.elapsed() < Duration::from_secs(10), "the later one holds");
        }
        scene.others.iter_mut().for_each(|wire| send(wire, "DEBUG HOLD later 0"));
        for wire in &mut scene.others {
            assert_eq!(wire.receive().expect("answered"), ok());
        }
        probe.receive().expect("answered when the hold has ended");
        assert_eq!(second.receive().expect("the hold ends"), ok());
        if leaves {
            assert_eq!(scene.holder.receive().expect("the hold ends"), ok());
        }
    }
}

/// A parked session whose client does not read its replies is not executed, so no other session
/// waits for its turn.
#[test]
fn a_parked_client_which_does_not_read_blocks_no_other() {
    // In one window: so FLUSHALL is executed with them, however long they take.
    const READS: usize = 30;
    const WRITES: usize = 300;
    let mut scene = Scene::new(4);
    ask(&mut scene.others[0], &format!("SET big {}", "v".repeat(256_000)));
    assert!(scene.hold(), "the slot is held");
    let mut deaf = scene.others.pop().expect("there are some");
    let before = parks(&mut scene.others[0]);
    let reads = encode(&words("GET big")).repeat(READS);
    deaf.send(&[reads, encode(&["FLUSHALL"])].concat()).expect("it takes requests");
    let began = Instant::now();
    while parks(&mut scene.others[0]) == before {
        assert!(began.elapsed() < Duration::from_secs(10), "FLUSHALL parks");
    }
    scene.release();
    let wire = &mut scene.others[0];
    let writes = encode(&words("SET k v")).repeat(WRITES);
    wire.send(&[encode(&["MULTI"]), writes, encode(&["EXEC"])].concat()).expect("it takes them");
    for _ in 0..=WRITES {
        wire.receive().expect("queued");
    }
    assert!(has_reply(wire, Duration::from_secs(10)), "a long EXEC waits for who does not read");
    assert!(matches!(wire.receive(), Ok(Value::Array(all)) if all.len() == WRITES));
}

/// CLIENT IMPORT-SOURCE changes whether expired keys are visible, also within a queue: RANDOMKEY
/// follows it.
#[test]
fn import_source_in_a_queue_changes_which_keys_are_visible() {
    let server = ServerProcess::start(&Binary::under_test(), &["--import-mode", "yes"]);
    let mut wire = server.connect();
    assert_eq!(ask(&mut wire, "CLIENT IMPORT-SOURCE ON"), ok());
    for n in 0..50 {
        assert_eq!(ask(&mut wire, &format!("SET due{n} v PXAT 1000")), ok());
    }
    assert_eq!(ask(&mut wire, "SET live v"), ok());
    for _ in 0..20 {
        assert_eq!(ask(&mut wire, "CLIENT IMPORT-SOURCE ON"), ok());
        ask(&mut wire, "MULTI");
        ask(&mut wire, "CLIENT IMPORT-SOURCE OFF");
        ask(&mut wire, "RANDOMKEY");
        let replies = ask(&mut wire, "EXEC");
        assert_eq!(replies, Value::Array(vec![ok(), Value::Bulk(b"live".to_vec())]));
    }
}
