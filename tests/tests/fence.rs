//! Changes which fence commands: CLIENT PAUSE, a password, MONITOR, CLIENT KILL. Once such a change
//! is answered, no worker executes a command under the old rules.
//!
//! Writers pipeline slow commands on every worker, so that windows are in progress at any time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sheafdb_tests::in_time::until;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

const THREADS: &str = "3";
/// Enough that every worker has some.
const WRITERS: usize = 6;
/// Elements of the list which a slow command traverses.
const ELEMENTS: usize = 20_000;
/// Pipelined requests of a writer.
const ROUNDS: usize = 16;
const TRIES: usize = 40;
/// Attempts where one success suffices.
const PATIENT_TRIES: usize = 200;

fn start(extra: &[&str]) -> ServerProcess {
    let server =
        ServerProcess::start(&Binary::under_test(), &[&["--threads", THREADS], extra].concat());
    let mut wire = server.connect();
    if let [.., "--requirepass", password] = extra {
        assert_eq!(ask(&mut wire, &format!("AUTH {password}")), ok());
    }
    for list in 0..WRITERS {
        let key = format!("list{list}");
        let elements = (0..ELEMENTS).map(|n| n.to_string());
        let words: Vec<String> = ["RPUSH".into(), key].into_iter().chain(elements).collect();
        assert_eq!(wire.command(&words).expect("open"), Value::Int(ELEMENTS as i64));
    }
    server
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

fn ask(wire: &mut Wire, line: &str) -> Value {
    wire.command(&words(line)).unwrap_or_else(|e| panic!("'{line}': {e}"))
}

fn number(wire: &mut Wire, line: &str) -> i64 {
    match ask(wire, line) {
        Value::Int(n) => n,
        Value::Bulk(text) => String::from_utf8(text).expect("text").parse().expect("a number"),
        Value::NullBulk => 0,
        other => panic!("'{line}': {other:?}"),
    }
}

/// Connections which write until the test stops them, each with its own thread.
struct Writers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Writers {
    /// `round(n)` returns the requests which the n-th writer repeats.
    fn start(server: &ServerProcess, round: impl Fn(usize) -> Vec<String>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..WRITERS).map(|n| {
            let (stop, mut wire, round) = (stop.clone(), server.connect(), round(n));
            thread::spawn(
                move || {
                    while !stop.load(Ordering::Relaxed) && pipeline(&mut wire, &round) {}
                },
            )
        });
        let threads = threads.collect();
        Self { stop, threads }
    }

    fn stop(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().expect("it does not panic"));
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Sends the round [`ROUNDS`] times in one write and reads the replies; false if the connection has
/// ended.
fn pipeline(wire: &mut Wire, round: &[String]) -> bool {
    let bytes: Vec<u8> = round.iter().flat_map(|line| encode(&words(line))).collect();
    let sent = wire.send(&bytes.repeat(ROUNDS));
    sent.is_ok() && (0..round.len() * ROUNDS).all(|_| wire.receive().is_ok())
}

fn slow_writes(n: usize) -> Vec<String> {
    vec![format!("LINSERT list{n} AFTER none x"), "INCR n".into()]
}

/// Waits until all writers have written.
fn until_they_write(wire: &mut Wire) {
    let before = number(wire, "GET n");
    until("somebody writes", || number(wire, "GET n") >= before + 2 * WRITERS as i64);
}

/// Fails if the counter changes while no client may write.
fn assert_unchanged(wire: &mut Wire, what: &str) {
    let before = number(wire, "GET n");
    for _ in 0..4 {
        thread::sleep(Duration::from_millis(1));
        assert_eq!(number(wire, "GET n"), before, "{what}");
    }
}

#[test]
fn no_write_happens_after_a_pause_is_answered() {
    let server = start(&[]);
    let (mut wire, writers) = (server.connect(), Writers::start(&server, slow_writes));
    for n in 0..TRIES {
        until_they_write(&mut wire);
        if n % 2 == 0 {
            assert_eq!(ask(&mut wire, "CLIENT PAUSE 100000 WRITE"), ok());
        } else {
            let queued = Value::Simple(b"QUEUED".to_vec());
            assert_eq!(ask(&mut wire, "MULTI"), ok());
            assert_eq!(ask(&mut wire, "CLIENT PAUSE 100000 WRITE"), queued);
            assert_eq!(ask(&mut wire, "EXEC"), Value::Array(vec![ok()]));
        }
        assert_unchanged(&mut wire, "a write during CLIENT PAUSE");
        assert_eq!(ask(&mut wire, "CLIENT UNPAUSE"), ok());
    }
    writers.stop();
}

/// A connection that was authenticated before the change stays so until its RESET: one write of
/// each writer is allowed.
#[test]
fn an_old_password_is_refused_after_the_change_is_answered() {
    let server = start(&["--requirepass", "old"]);
    let mut wire = server.connect();
    assert_eq!(ask(&mut wire, "AUTH old"), ok());
    let writers = Writers::start(&server, |n| {
        let mut round = vec!["AUTH old".into()];
        round.extend(slow_writes(n));
        round.extend([format!("INCR own{n}"), "RESET".into()]);
        round
    });
    for _ in 0..TRIES {
        until_they_write(&mut wire);
        assert_eq!(ask(&mut wire, "CONFIG SET requirepass new"), ok());
        let before = counts(&mut wire);
        for _ in 0..4 {
            thread::sleep(Duration::from_millis(1));
            let came = counts(&mut wire).iter().zip(&before).map(|(now, then)| now - then).max();
            assert!(came <= Some(1), "a client authenticated with the old password: {came:?}");
        }
        assert_eq!(ask(&mut wire, "CONFIG SET requirepass old"), ok());
    }
    writers.stop();
}

/// What each writer has counted.
fn counts(wire: &mut Wire) -> Vec<i64> {
    (0..WRITERS).map(|n| number(wire, &format!("GET own{n}"))).collect()
}

/// The lines of one key are in execution order, so all increments are between two reads of the key.
#[test]
fn a_monitor_shows_every_command_after_its_reply() {
    let server = start(&[]);
    // One of them is on the monitor's worker; it is answered first.
    let mut readers: Vec<Wire> = (0..3).map(|_| server.connect()).collect();
    let writers = Writers::start(&server, slow_writes);
    for n in 0..TRIES {
        let reader = &mut readers[n % 3];
        until_they_write(reader);
        let mut monitor = server.connect();
        assert_eq!(ask(&mut monitor, "MONITOR"), ok());
        let before = number(reader, "GET n");
        thread::sleep(Duration::from_millis(2));
        let after = number(reader, "GET n");
        let (mut reads, mut seen) = (0, 0);
        while reads < 2 {
            let Value::Simple(line) = monitor.receive().expect("a line") else { panic!("no line") };
            if line.ends_with(b"\"GET\" \"n\"") {
                reads += 1;
            } else if reads == 1 && line.ends_with(b"\"INCR\" \"n\"") {
                seen += 1;
            }
        }
        assert_eq!(seen, after - before, "changes that were told");
    }
    writers.stop();
}

#[test]
fn a_killed_client_writes_nothing_after_the_answer() {
    let server = start(&[]);
    let mut wire = server.connect();
    for n in 0..TRIES {
        let mut victim = server.connect();
        let id = number(&mut victim, "CLIENT ID");
        let round = slow_writes(n % WRITERS);
        let before = number(&mut wire, "GET n");
        let writing = thread::spawn(move || while pipeline(&mut victim, &round) {});
        until("the victim writes", || number(&mut wire, "GET n") != before);
        assert_eq!(ask(&mut wire, &format!("CLIENT KILL ID {id}")), Value::Int(1));
        assert_unchanged(&mut wire, "a killed client wrote");
        writing.join().expect("it does not panic");
    }
}

#[test]
fn a_killed_blocked_client_takes_no_element() {
    let server = start(&[]);
    let mut wire = server.connect();
    let elsewhere: Vec<Wire> = (0..3).map(|_| server.connect()).collect();
    for _ in 0..TRIES {
        let mut victim = server.connect();
        let id = number(&mut victim, "CLIENT ID");
        victim.send(&encode(&words("BLPOP queue 0"))).expect("open");
        let blocked = format!("id={id} ");
        until("it is blocked", || {
            let Value::Bulk(list) = ask(&mut wire, "CLIENT LIST") else { panic!("no list") };
            let list = String::from_utf8(list).expect("text");
            let line = list.lines().find(|line| line.starts_with(&blocked)).expect("it is there");
            line.contains(" flags=b")
        });
        assert_eq!(ask(&mut wire, &format!("CLIENT KILL ID {id}")), Value::Int(1));
        assert_eq!(number(&mut wire, "RPUSH queue x"), 1);
        assert_eq!(number(&mut wire, "DEL queue"), 1, "the killed client took it");
    }
    drop(elsewhere);
}

/// Only the reply of a change waits for a long command of another worker: the client's next command
/// is executed meanwhile.
#[test]
fn only_the_answer_waits_for_a_long_command() {
    const COMMANDS: usize = 2_000;
    let server = start(&[]);
    let mut holder = server.connect();
    let queue = [encode(&["MULTI"]), encode(&words("LINSERT list0 AFTER none x")).repeat(COMMANDS)];
    let queue = [queue.concat(), encode(&words("SET done 1"))].concat();
    // One of them is on the holder's worker.
    let mut wires: Vec<Wire> = (0..3).map(|_| server.connect()).collect();
    for n in 0..PATIENT_TRIES {
        let wire = &mut wires[n % 3];
        ask(wire, "DEL done");
        holder.send(&queue).expect("open");
        for _ in 0..COMMANDS + 2 {
            holder.receive().expect("queued");
        }
        holder.send(&encode(&["EXEC"])).expect("open");
        let pause = encode(&words("CLIENT PAUSE 100000 WRITE"));
        wire.send(&[pause, encode(&words("GET done"))].concat()).expect("open");
        assert_eq!(wire.receive().expect("open"), ok());
        let meanwhile = wire.receive().expect("open");
        // Read after the reply: EXEC has been executed completely, or will not be before the pause
        // ends.
        let then = ask(wire, "GET done");
        assert_eq!(ask(wire, "CLIENT UNPAUSE"), ok());
        holder.receive().expect("executed");
        if meanwhile == Value::NullBulk && then == Value::Bulk(b"1".to_vec()) {
            return;
        }
    }
    panic!("in no try was a command executed before the answer in front of it left");
}
