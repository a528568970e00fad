//! Thousands of connections: memory of each when idle, busy and idle again; fairness; and refusing
//! further connections.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use sheafdb_tests::limits::raise_open_files;
use sheafdb_tests::server_process::{self, Binary, ServerProcess, without_huge_pages};
use sheafdb_tests::wire::{PATIENCE, encode};
use sheafdb_tests::workers;

/// Connections held at once.
const CONNECTIONS: usize = 5_000;
/// The first of them, which cause one-time allocations.
const WARM: usize = 500;
/// Bound on resident bytes of the process per idle connection which has sent a request: typically
/// 700. One huge page is 466 bytes per connection here, and tables which have just grown take up to
/// two of them (1,608 bytes were measured).
const IDLE_BYTES_MAX: i64 = 2_200;
/// Bound on buffer bytes per connection which remain when the buffers are no longer needed.
/// Connections keep none, but each worker keeps 64 spare buffers, which may keep as many pages of
/// the allocator in use (2 MB).
const LEFT_BYTES_MAX: i64 = 800;
/// Total number of requests of all connections in the test of fairness.
const BUSY: u64 = 40 * CONNECTIONS as u64;

/// The request.
const PING: &[u8] = b"PING\r\n";
const PONG: &[u8] = b"+PONG\r\n";

fn connect(server: &ServerProcess) -> TcpStream {
    let stream = TcpStream::connect(server.addr).expect("the server accepts connections");
    stream.set_nodelay(true).expect("TCP can");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    stream.set_write_timeout(Some(PATIENCE)).expect("a limit");
    stream
}

fn send(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).expect("the server reads");
}

fn expect(stream: &mut TcpStream, reply: &[u8]) {
    let mut got = vec![0; reply.len()];
    stream.read_exact(&mut got).expect("the server answers");
    assert!(got == reply, "{} instead of {}", got.escape_ascii(), reply.escape_ascii());
}

fn ask(stream: &mut TcpStream) {
    send(stream, PING);
    expect(stream, PONG);
}

/// Resident memory without free memory which the allocator keeps.
fn resident(server: &ServerProcess) -> i64 {
    server.connect().command(&["MEMORY", "PURGE"]).expect("answered");
    server.resident_bytes() as i64
}

fn each(server: &ServerProcess, before: i64, connections: usize) -> i64 {
    (resident(server) - before) / connections as i64
}

#[test]
fn thousands_of_connections() {
    let open = raise_open_files(2 * CONNECTIONS as u64);
    assert!(open > CONNECTIONS as u64 + 200, "{open} open files: raise 'ulimit -n'");
    // One worker: with two, another program may delay one of them and half of the clients.
    without_huge_pages();
    let args = ["--maxclients", "6000", "--threads", "1"];
    let server = ServerProcess::start(&Binary::under_test(), &args);
    let mut all: Vec<TcpStream> = Vec::new();
    let mut grow = |until: usize| {
        while all.len() < until {
            let mut stream = connect(&server);
            ask(&mut stream);
            all.push(stream);
        }
        resident(&server)
    };
    let warm = grow(WARM);
    grow(CONNECTIONS);
    let idle = each(&server, warm, CONNECTIONS - WARM);
    println!("{idle} bytes of resident memory for an idle connection");
    assert!(idle <= IDLE_BYTES_MAX, "{idle} bytes for an idle connection, bound {IDLE_BYTES_MAX}");
    let least = served_evenly(&all);
    for stream in &all {
        stream.set_nonblocking(false).expect("sockets can");
    }
    // One-time allocations kept for all connections: reply arenas, spare buffers.
    fill_and_drain(&server, &mut all[..WARM], 0);
    let before = resident(&server);
    let held = fill_and_drain(&server, &mut all, before);
    let left = each(&server, before, CONNECTIONS);
    println!(
        "{held} bytes each while half a request waits, {left} left of it afterwards; {least} replies at least"
    );
    assert!(held > 1_000, "the server held no input: {held} bytes each");
    assert!(left <= LEFT_BYTES_MAX, "{left} bytes left on each connection, bound {LEFT_BYTES_MAX}");
}

/// All connections send PING repeatedly, one request at a time. Returns the smallest number of
/// replies of a connection.
fn served_evenly(all: &[TcpStream]) -> u64 {
    // First a round for all: on a busy machine the last ones may not be accepted yet.
    for mut stream in all {
        stream.write_all(PING).expect("room for a request");
    }
    for mut stream in all {
        stream.read_exact(&mut [0; PONG.len()]).expect("a reply");
    }
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll");
    for (at, stream) in all.iter().enumerate() {
        stream.set_nonblocking(true).expect("sockets can");
        let data = epoll::EventData::new_u64(at as u64);
        epoll::add(&poll, stream, data, epoll::EventFlags::IN).expect("it is watched");
    }
    let mut served = vec![0u64; all.len()];
    let mut sent = all.len() as u64;
    let mut heard = Instant::now();
    for mut stream in all {
        stream.write_all(PING).expect("room for a request");
    }
    let (mut waiting, mut events) = (all.len(), Vec::with_capacity(512));
    while waiting > 0 {
        assert!(heard.elapsed() < PATIENCE, "{waiting} connections got no answer");
        events.clear();
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        let _ = epoll::wait(&poll, spare_capacity(&mut events), Some(&second));
        for event in &events {
            heard = Instant::now();
            let at = event.data.u64() as usize;
            let mut stream = &all[at];
            let mut reply = [0; PONG.len()];
            stream.read_exact(&mut reply).expect("a whole reply leaves at once");
            assert_eq!(&reply[..], PONG);
            served[at] += 1;
            if sent < BUSY {
                stream.write_all(PING).expect("room for a request");
                sent += 1;
            } else {
                waiting -= 1;
            }
        }
    }
    served.sort_unstable();
    let (least, median, most) = (served[0], served[served.len() / 2], served[served.len() - 1]);
    println!("replies per connection: {least} at least, {median} in the middle, {most} at most");
    let spread =
        format!("{least} to {most} replies on a connection, {median} on the one in the middle");
    assert!(least * 5 >= median * 4 && most * 2 <= median * 3, "{spread}");
    least
}

/// Each sends a request in two halves, and some send requests with long replies and read them
/// later. Returns the bytes held per connection between the halves.
fn fill_and_drain(server: &ServerProcess, all: &mut [TcpStream], before: i64) -> i64 {
    const SLOW: usize = 50;
    let value = "v".repeat(10_000);
    server.connect().command(&["SET", "long", &value]).expect("answered");
    let echo = encode(&["ECHO", &"e".repeat(3_000)]);
    let (first, second) = echo.split_at(2_500);
    for stream in all.iter_mut() {
        send(stream, first);
    }
    let held = held(server, before, all.len());
    let reply = &echo[b"*2\r\n$4\r\nECHO\r\n".len()..];
    for stream in all.iter_mut() {
        send(stream, second);
        expect(stream, reply);
    }
    // Replies of a megabyte: more than the socket buffers hold.
    let gets = encode(&["GET", "long"]).repeat(600);
    for stream in &mut all[..SLOW] {
        send(stream, &gets);
    }
    std::thread::sleep(Duration::from_millis(100));
    let one = format!("${}\r\n{value}\r\n", value.len()).into_bytes().repeat(600);
    for stream in &mut all[..SLOW] {
        expect(stream, &one);
    }
    all.iter_mut().for_each(ask);
    held
}

/// Bytes held per connection, once the figure is stable.
fn held(server: &ServerProcess, before: i64, connections: usize) -> i64 {
    let mut last = i64::MIN;
    loop {
        std::thread::sleep(Duration::from_millis(300));
        let now = each(server, before, connections);
        if now > 1_000 || now <= last {
            return now;
        }
        last = now;
    }
}

#[test]
fn connections_above_maxclients_are_refused() {
    let server = ServerProcess::start(&Binary::under_test(), &["--maxclients", "20"]);
    // The connection which waited for the start may not be closed yet.
    let mut first = connect(&server);
    until_connected(&mut first, 1);
    let mut all = vec![first];
    all.extend((1..20).map(|_| connect(&server)));
    all.iter_mut().for_each(ask);
    for _ in 0..3 {
        let mut reply = Vec::new();
        connect(&server).read_to_end(&mut reply).expect("it says why and closes");
        assert_eq!(reply.escape_ascii().to_string(), "-ERR max number of clients reached\\r\\n");
    }
    let rejected =
        String::from_utf8_lossy(&info(&mut all[0], "stats")).contains("rejected_connections:3\r\n");
    assert!(rejected, "INFO stats counts them");
    drop(all.pop());
    until_connected(&mut all[0], 19);
    ask(&mut connect(&server));
    all.iter_mut().for_each(ask);
}

/// Waits until the server reports at most this many connections.
fn until_connected(stream: &mut TcpStream, count: usize) {
    let (since, wanted) = (Instant::now(), format!("connected_clients:{count}\r\n"));
    while !String::from_utf8_lossy(&info(stream, "clients")).contains(&wanted) {
        assert!(since.elapsed() < PATIENCE, "{count} are connected");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn info(stream: &mut TcpStream, section: &str) -> Vec<u8> {
    send(stream, &encode(&["INFO", section]));
    let mut reply = vec![0; 64 << 10];
    let len = stream.read(&mut reply).expect("answered");
    reply.truncate(len);
    reply
}

/// Without free file descriptors open connections are served. New ones wait in the kernel's queue
/// without using processor time, and are answered when descriptors are free again.
#[test]
fn running_out_of_file_descriptors() {
    let mut server = ServerProcess::start(&Binary::under_test(), &[]);
    let mut first = connect(&server);
    ask(&mut first);
    let pid = Pid::from_raw(server.pid() as i32);
    let fds = std::fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("the server runs");
    let fds: BTreeSet<u64> =
        fds.flatten().filter_map(|fd| fd.file_name().to_str()?.parse().ok()).collect();
    let free = (0..1 << 20).find(|number| !fds.contains(number)).expect("it has few");
    let limit = |current: u64| {
        let before =
            prlimit(pid, Resource::Nofile, Rlimit { current: Some(current), maximum: None });
        before.or_else(|_| {
            let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
            prlimit(pid, Resource::Nofile, Rlimit { current: Some(current), maximum })
        })
    };
    let before = limit(free).expect("a server's limit may be lowered");
    let mut late: Vec<TcpStream> = (0..10).map(|_| connect(&server)).collect();
    for stream in &mut late {
        send(stream, PING);
    }
    let used = workers::so_far(&server);
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(1) {
        ask(&mut first);
        std::thread::sleep(Duration::from_millis(50));
    }
    let used = workers::so_far(&server) - used;
    let seconds = started.elapsed().as_secs_f64();
    let share = used as f64 / 1e6 / seconds;
    assert!(share < 0.25, "the server used {share:.2} of a processor while it could accept nobody");
    let refused = first_errors(&mut first);
    // io_uring accepts under the limit in force when the operation was submitted.
    let knows = server_process::io_backend().is_none_or(|name| name != "io_uring");
    assert!(refused > 0 || !knows, "the server must run out of descriptors");
    let often = refused as f64 / seconds;
    assert!(often < 100.0, "it tried {often:.0} times a second");
    limit(before.current.unwrap_or(1 << 10)).expect("and raised again");
    for stream in &mut late {
        expect(stream, PONG);
    }
    assert!(server.answers());
}

/// How often accepting failed, from INFO io.
fn first_errors(stream: &mut TcpStream) -> u64 {
    // Figures are published periodically.
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(100));
        let count = accept_errors(stream);
        if count > 0 {
            return count;
        }
    }
    0
}

fn accept_errors(stream: &mut TcpStream) -> u64 {
    let text = String::from_utf8_lossy(&info(stream, "io")).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("io_accept_errors:"));
    line.and_then(|count| count.parse().ok()).expect("INFO io has the count")
}
