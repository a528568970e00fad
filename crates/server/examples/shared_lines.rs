//! Two workers of one server take turns, each on a thread of its own, so that a trace of this
//! process shows which cache lines both of them write: `shared_lines COMMAND own|same ROUNDS`, run
//! by `cargo xtask lines`.
//!
//! A round is a pipeline of 64 on one connection of one worker; no key comes twice. `own`: the
//! workers' keys lie in slots of their own, neighbours of the other one's. `same`: both use the
//! same keys. Everything above the system calls is what runs in production (worker, reactor,
//! keyspace), but each worker has a simulated network of its own, whose clock stands still: no
//! housekeeping falls into a round.
//!
//! On the standard output: where the executable is in memory, the lines that mark the rounds (a
//! store to one of them begins a round of worker 0, to the next one of worker 1, to the last one
//! ends it), and where the slots are. Then it waits for a line of input.

use base::sync::Arc;
use base::sync::atomic::{AtomicU64, Ordering::SeqCst};
use driver::sim::{Faults, SimClient, SimDriver, SimNet};
use driver::{Driver, ListenAddr, ListenOptions, PeerAddr};
use server::config::Config;
use server::shared::Shared;
use server::worker::Worker;
use server::worker::message::Message;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Requests per round.
const PIPELINE: usize = 64;
const WORKERS: usize = 2;

/// A line that nothing else is on.
#[repr(align(128))]
struct Mark(AtomicU64);

static MARKS: [Mark; WORKERS + 1] = [const { Mark(AtomicU64::new(0)) }; WORKERS + 1];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [command, keys, rounds] = &words[..] else { return usage() };
    let (Ok(rounds), true) = (rounds.parse::<usize>(), matches!(&keys[..], "own" | "same")) else {
        return usage();
    };
    if request(command, "key").is_empty() {
        return usage();
    }
    // Room for what surrounds a round, too: a first one that finds everything cold.
    let count = PIPELINE * (rounds + 1);
    let nets: Vec<SimNet> = (0..WORKERS as u64).map(|w| SimNet::new(w, Faults::NONE)).collect();
    let mut drivers: Vec<SimDriver<Message>> = nets.iter().map(SimNet::driver).collect();
    let none = || (0, 0);
    let shared = server::boot::make_shared(Config::default(), &mut drivers[0], WORKERS, none);
    let shared = Arc::new(shared);
    let mut ends = Vec::new();
    for (id, (net, driver)) in nets.into_iter().zip(drivers).enumerate() {
        let whose = if keys == "own" { Some(id) } else { None };
        let names = names(&shared, whose, count);
        let pipelines: Vec<Vec<u8>> = names
            .chunks(PIPELINE)
            .map(|some| all(some.iter(), |key| request(command, key)))
            .collect();
        let fill = if keys == "own" || id == 0 { all(names.iter(), first) } else { Vec::new() };
        let (go, told) = channel::<()>();
        let (tell, done) = channel::<()>();
        let shared = shared.clone();
        let thread = std::thread::spawn(move || {
            serve(id, &net, driver, shared, (&fill, &pipelines), (&told, &tell));
        });
        ends.push((go, done, thread));
    }
    let step = |id: usize| {
        let (go, done, _): &(Sender<()>, Receiver<()>, _) = &ends[id];
        go.send(()).is_ok() && done.recv().is_ok()
    };
    // The first step makes the worker and its keys, the second warms up.
    let mut well = (0..2 * WORKERS).all(|n| step(n % WORKERS));
    tell_places(&shared);
    well &= std::io::stdin().read_line(&mut String::new()).is_ok();
    well &= (0..rounds * WORKERS).all(|n| step(n % WORKERS));
    for (go, _, thread) in ends {
        drop(go);
        well &= thread.join().is_ok();
    }
    // Nothing is freed before the exit: every instruction is traced.
    std::process::exit(i32::from(!well))
}

fn usage() -> ExitCode {
    eprintln!("shared_lines get|miss|set|incr|append|new|del|expire own|same ROUNDS");
    ExitCode::FAILURE
}

fn encode(args: &[&str]) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    out.extend_from_slice(format!("*{}\r\n", args.len()).as_bytes());
    for arg in args {
        out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        out.extend_from_slice(arg.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out
}

fn all<'a>(keys: impl Iterator<Item = &'a String>, one: impl Fn(&str) -> Vec<u8>) -> Vec<u8> {
    keys.flat_map(|key| one(key)).collect()
}

/// The first value of the key: a number of 15 digits.
fn first(key: &str) -> Vec<u8> {
    encode(&["SET", key, "100000000000000"])
}

fn request(command: &str, key: &str) -> Vec<u8> {
    match command {
        "get" => encode(&["GET", key]),
        "miss" => encode(&["GET", &format!("no{key}")]),
        "set" => encode(&["SET", key, "200000000000000"]),
        "incr" => encode(&["INCR", key]),
        "append" => encode(&["SETRANGE", key, "3", "x"]),
        "new" => encode(&["SET", &format!("new{key}"), "v"]),
        "del" => encode(&["DEL", key]),
        "expire" => encode(&["EXPIRE", key, "1000"]),
        _ => Vec::new(),
    }
}

/// Names of keys; of a worker's own those in every second slot.
fn names(shared: &Shared, whose: Option<usize>, count: usize) -> Vec<String> {
    let all = (0..).map(|n: u32| format!("key:{n:08}"));
    let is_its = |key: &String| {
        whose.is_none_or(|w| shared.keyspace.key(key.as_bytes()).slot.index() % WORKERS == w)
    };
    all.filter(is_its).take(count).collect()
}

fn tell_places(shared: &Shared) {
    let own = std::env::current_exe().unwrap_or_default();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let first = maps.lines().find(|line| line.ends_with(&*own.to_string_lossy()));
    let base = first.and_then(|line| line.split('-').next()).unwrap_or("0");
    let marks: Vec<String> =
        MARKS.iter().map(|mark| format!("{:x}", std::ptr::from_ref(mark).addr())).collect();
    let slots = shared.keyspace.slot_lines();
    println!("{base} {} {:x} {:x}", marks.join(" "), slots.start, slots.end);
}

/// A worker and its one client, a round for each word that comes.
fn serve(
    id: usize,
    net: &SimNet,
    mut driver: SimDriver<Message>,
    shared: Arc<Shared>,
    (fill, pipelines): (&[u8], &[Vec<u8>]),
    (told, tell): (&Receiver<()>, &Sender<()>),
) {
    let mut pipelines = pipelines.iter();
    if told.recv().is_err() {
        return;
    }
    let at = ListenAddr::Tcp(([127, 0, 0, 1], 6379 + id as u16).into());
    let listener = driver.listen(&at, &ListenOptions { backlog: 16 }).expect("the port is free");
    let mut worker = Worker::new(driver, shared, id, vec![listener]);
    let ListenAddr::Tcp(at) = at else { return };
    let client = net.connect(&PeerAddr::Tcp(at)).expect("it listens");
    let mut replies = Vec::with_capacity(1 << 20);
    worker.turn();
    for part in fill.chunks(16 << 10) {
        turn(&mut worker, &client, part, &mut replies);
    }
    while tell.send(()).is_ok() && told.recv().is_ok() {
        let Some(pipeline) = pipelines.next() else { return };
        client.write(pipeline);
        MARKS[id].0.store(1, SeqCst);
        worker.turn();
        MARKS[WORKERS].0.store(1, SeqCst);
        take(&client, &mut replies);
        assert!(replies.len() >= PIPELINE * 4 && replies[0] != b'-', "{}", replies.escape_ascii());
    }
}

fn turn(
    worker: &mut Worker<SimDriver<Message>>,
    client: &SimClient,
    bytes: &[u8],
    replies: &mut Vec<u8>,
) {
    client.write(bytes);
    worker.turn();
    take(client, replies);
}

fn take(client: &SimClient, replies: &mut Vec<u8>) {
    replies.clear();
    let mut some = [0; 4096];
    loop {
        match client.read(&mut some) {
            0 => return,
            n => replies.extend_from_slice(&some[..n]),
        }
    }
}
