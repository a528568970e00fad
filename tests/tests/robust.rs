//! Hostile, faulty and numerous clients: the server does not crash, no reply is lost or reordered,
//! other clients are served, and memory stays bounded.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sheafdb_tests::in_time::{LIMIT, until};
use sheafdb_tests::limits::raise_open_files;
use sheafdb_tests::proxy::{Damage, Proxy};
use sheafdb_tests::rng::Rng;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess, without_huge_pages};
use sheafdb_tests::wire::{PATIENCE, Value, Wire, encode, parse};
use sheafdb_tests::workers;

fn start(extra: &[&str]) -> ServerProcess {
    ServerProcess::start(&Binary::under_test(), extra)
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

/// Reads what there is, although this program may have been stopped meanwhile.
fn read(stream: &mut TcpStream, to: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match stream.read(to) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Sends bytes and reads until the server closes or sends nothing for a while.
fn throw(server: &ServerProcess, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.addr).expect("the server accepts connections");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout is settable");
    // The server may close while the test still writes; only its output matters.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    reply
}

#[test]
fn invalid_bytes_get_an_error_or_a_closed_connection() {
    let mut server = start(&[]);
    let cases: &[&[u8]] = &[
        b"\r\n\r\n\r\nPING\r\n",
        b"*\r\n",
        b"*x\r\n",
        b"*-5\r\nPING\r\n",
        b"*99999999999999999999\r\n",
        b"*2147483648\r\n$1\r\n",
        b"*1\r\n:1\r\n",
        b"*1\r\n$-1\r\n",
        b"*1\r\n$99999999999\r\n",
        b"*2\r\n$3\r\nGET\r\n$2\r\nabc\r\n",
        b"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n",
        b"GET \"unbalanced\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\0\0\0\0\0\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870913\r\n",
    ];
    for case in cases {
        throw(&server, case);
        assert!(server.answers(), "after {}", case.escape_ascii());
    }
    let long = vec![b'A'; 200_000];
    let reply = throw(&server, &long);
    assert_eq!(reply, b"-ERR Protocol error: too big inline request\r\n");
    assert!(server.answers());
}

/// An incomplete long request followed a command which runs in steps. When that had ended, the
/// request was treated as complete, had no arguments, and the worker panicked.
#[test]
fn a_partial_long_request_after_a_command_in_steps() {
    let mut server = start(&[]);
    let set = encode(&["SET", "long", &"x".repeat(100_000)]);
    for behind in [&["PING"][..], &[]] {
        for part in [40_000, 90_000] {
            server.connect().command(&["MSET", "a", "1", "b", "2"]).expect("answered");
            let mut stream = TcpStream::connect(server.addr).expect("a connection");
            stream.set_read_timeout(Some(PATIENCE)).expect("a timeout is settable");
            let flush = encode(&["FLUSHALL", "SYNC"]);
            let start = [flush, encode(behind), set[..part].to_vec()].concat();
            stream.write_all(&start).expect("the server reads");
            std::thread::sleep(Duration::from_millis(50));
            stream.write_all(&set[part..]).expect("the server reads on");
            stream.shutdown(Shutdown::Write).expect("half a connection is left");
            let mut reply = Vec::new();
            stream.read_to_end(&mut reply).expect("the server answers and closes");
            let pong = if behind.is_empty() { "" } else { "+PONG\r\n" };
            assert_eq!(String::from_utf8_lossy(&reply), format!("+OK\r\n{pong}+OK\r\n"));
        }
    }
    assert!(server.answers());
}

#[test]
fn a_long_blank_line_is_no_request() {
    let mut server = start(&[]);
    let mut stream = TcpStream::connect(server.addr).expect("a connection");
    stream.write_all(&vec![b' '; 40_000]).expect("the server reads");
    std::thread::sleep(Duration::from_millis(50));
    stream.write_all(b"\r\nPING\r\n").expect("the server reads on");
    stream.shutdown(Shutdown::Write).expect("half a connection is left");
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).expect("the server answers and closes");
    assert_eq!(reply, b"+PONG\r\n");
    assert!(server.answers());
}

#[test]
fn truncated_requests_change_nothing() {
    let mut server = start(&[]);
    let whole = [encode(&["SET", "k", "v"]), encode(&["MSET", "a", "1", "b", "2"])].concat();
    let first = encode(&["SET", "k", "v"]).len();
    for end in 0..whole.len() {
        server.connect().command(&["FLUSHALL"]).expect("answered");
        let reply = throw(&server, &whole[..end]);
        let expected: &[u8] = if end >= first { b"+OK\r\n" } else { b"" };
        assert_eq!(reply, expected, "after {end} bytes");
        let keys = server.connect().command(&["DBSIZE"]).expect("answered");
        assert_eq!(keys, Value::Int(i64::from(end >= first)), "after {end} bytes");
    }
    assert!(server.answers());
}

#[test]
fn random_bytes_do_not_crash_the_server() {
    let mut server = start(&[]);
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let mut bytes = rng.bytes(64 * 1024);
        if seed % 2 == 0 {
            // Bytes which resemble the protocol reach deeper code.
            for byte in &mut bytes {
                *byte = b"*$123\r\n GETSPINGk"[usize::from(*byte) % 17];
            }
        }
        throw(&server, &bytes);
        assert!(server.answers(), "after seed {seed}");
    }
}

#[test]
fn one_byte_at_a_time() {
    let server = start(&[]);
    let mut wire = server.connect();
    let big = "x".repeat(300);
    let requests = [
        encode(&["SET", "k", &big]),
        b"PING\r\n".to_vec(),
        encode(&["GET", "k"]),
        encode(&["MSET", "a", "", "b", "\r\n"]),
        encode(&["MGET", "a", "b"]),
    ];
    for byte in requests.concat() {
        wire.send(&[byte]).expect("it takes bytes");
    }
    let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
    let expected = [
        ok(),
        Value::Simple(b"PONG".to_vec()),
        bulk(&big),
        ok(),
        Value::Array(vec![bulk(""), bulk("\r\n")]),
    ];
    for one in expected {
        assert_eq!(wire.receive().expect("answered"), one);
    }
}

/// Maximum resident memory per idle connection.
const IDLE_BYTES_MAX: u64 = 4096;
/// The reference uses more; there the test only checks itself.
const IDLE_BYTES_MAX_REDIS: u64 = 64 * 1024;

#[test]
fn ten_thousand_connections() {
    const CONNECTIONS: u64 = 10_000;
    let open = raise_open_files(2 * CONNECTIONS);
    let count = CONNECTIONS.min(open.saturating_sub(500));
    assert!(count >= 1000, "only {open} open files are allowed here: raise 'ulimit -n'");
    without_huge_pages();
    let server = start(&["--maxclients", "10500"]);
    let ask = |wire: &mut Wire| {
        let reply = wire.command(&["ECHO", "here"]).expect("answered");
        assert_eq!(reply, Value::Bulk(b"here".to_vec()));
    };
    // The first connections cause one-time allocations.
    let mut wires: Vec<Wire> = Vec::new();
    let mut grow = |until: u64| {
        while (wires.len() as u64) < until {
            let mut wire = server.connect();
            ask(&mut wire);
            wires.push(wire);
        }
    };
    let warm = 200;
    grow(warm);
    // Servers free idle buffers in the background.
    std::thread::sleep(Duration::from_secs(3));
    let before = server.resident_bytes();
    grow(count);
    let max = match server.kind {
        Kind::SheafDb => IDLE_BYTES_MAX,
        Kind::Redis => IDLE_BYTES_MAX_REDIS,
    };
    let mut least = u64::MAX;
    until("an idle connection costs little", || {
        let each = server.resident_bytes().saturating_sub(before) / (count - warm);
        if each < least {
            println!("{count} connections, {each} bytes of resident memory each, of {max}");
        }
        least = least.min(each);
        each <= max
    });
    for wire in wires.iter_mut().step_by(97) {
        ask(wire);
    }
}

/// A client which sends and never reads: the server stops reading from it; others are served.
#[test]
fn a_client_that_never_reads() {
    /// What the server may hold for it besides the value itself.
    const HELD_MAX: u64 = 32 << 20;
    let mut server = start(&[]);
    let value = "v".repeat(100_000);
    let mut other = server.connect();
    assert_eq!(other.command(&["SET", "k", &value]).expect("answered"), ok());
    let before = server.resident_bytes();
    let mut stream = TcpStream::connect(server.addr).expect("the server accepts connections");
    stream.set_nonblocking(true).expect("sockets can");
    // Ten gigabytes of replies in total.
    let requests = encode(&["GET", "k"]).repeat(100);
    let mut sent = 0;
    let mut stuck_since = Instant::now();
    let started = Instant::now();
    let mut peak = 0;
    while sent < requests.len() * 1000 && stuck_since.elapsed() < Duration::from_millis(700) {
        match stream.write(&requests[sent % requests.len()..]) {
            Ok(n) => {
                sent += n;
                stuck_since = Instant::now();
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(_) => break,
        }
        peak = peak.max(server.resident_bytes().saturating_sub(before));
        if server.kind == Kind::Redis && peak > 4 * HELD_MAX {
            println!("redis-server reads on and holds {} MB", peak >> 20);
            break;
        }
        assert!(started.elapsed() < LIMIT, "the server keeps reading without limit");
    }
    assert_eq!(other.command(&["PING"]).expect("answered"), Value::Simple(b"PONG".to_vec()));
    if server.kind == Kind::SheafDb {
        assert!(peak <= HELD_MAX, "{peak} bytes held for a client that does not read");
        // When it reads, every reply arrives, in order and complete.
        let whole = sent / encode(&["GET", "k"]).len();
        stream.set_nonblocking(false).expect("sockets can");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout is settable");
        let reply = format!("${}\r\n{value}\r\n", value.len()).into_bytes();
        let mut got = vec![0; reply.len()];
        for n in 0..whole {
            stream.read_exact(&mut got).unwrap_or_else(|e| panic!("reply {n} of {whole}: {e}"));
            assert!(got == reply, "reply {n} of {whole} is damaged");
        }
    }
    drop(stream);
    assert!(server.answers());
}

/// One client sends a pipeline of 100 MB. The PINGs of another one are answered after little other
/// work, measured as processor time of the workers, independent of other programs.
#[test]
fn a_big_pipeline_beside_pings() {
    const BYTES: usize = 100 << 20;
    const P99_MAX_US: u64 = 10_000;
    const TRIES: usize = 8;
    let server = start(&[]);
    if server.kind == Kind::Redis {
        return; // its threads have other names
    }
    let mut measured = Vec::new();
    for _ in 0..4 * TRIES {
        if measured.len() == TRIES {
            break;
        }
        // Without many PINGs, if this program was not scheduled, it was no measurement.
        let Some(p99) = big_pipeline(&server, BYTES) else { continue };
        measured.push(p99);
        // The time of both workers counts, although only one of them serves PING.
        if p99 < P99_MAX_US {
            println!("p99 of PING beside a pipeline of 100 MB: {p99} us of the workers");
            return;
        }
    }
    panic!("p99 of PING in {TRIES} tries: {measured:?} us of the workers");
}

fn big_pipeline(server: &ServerProcess, bytes: usize) -> Option<u64> {
    let one = encode(&["SET", "key:000000000001", &"v".repeat(64)]);
    let count = bytes / one.len();
    let batch = one.repeat(1000);
    let mut sender = TcpStream::connect(server.addr).expect("the server accepts connections");
    sender.set_read_timeout(Some(PATIENCE)).expect("a timeout is settable");
    sender.set_write_timeout(Some(PATIENCE)).expect("a timeout is settable");
    let mut reader = sender.try_clone().expect("sockets can");
    let mut pinger = server.connect();
    let done = AtomicBool::new(false);
    let mut times = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut left = count;
            while left > 0 {
                let now = left.min(1000);
                sender.write_all(&batch[..now * one.len()]).expect("it reads on");
                left -= now;
            }
        });
        let replies = scope.spawn(|| {
            let mut chunk = vec![0; 256 * 1024];
            let mut got = 0;
            while got < count * 5 {
                let n = read(&mut reader, &mut chunk).expect("it answers");
                assert!(n > 0, "closed after {got} bytes of replies");
                let expected = b"+OK\r\n";
                let right =
                    chunk[..n].iter().enumerate().all(|(at, b)| *b == expected[(got + at) % 5]);
                assert!(right, "something else than +OK");
                got += n;
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) && !replies.is_finished() {
            let before = workers::so_far(server);
            let reply = pinger.command(&["PING"]).expect("answered");
            times.push(workers::so_far(server).saturating_sub(before));
            assert_eq!(reply, Value::Simple(b"PONG".to_vec()));
            std::thread::sleep(Duration::from_micros(500));
        }
    });
    times.sort_unstable();
    println!("{} PINGs", times.len());
    (times.len() >= 50).then(|| times[times.len() * 99 / 100])
}

/// SIGTERM while four clients increment one counter. Each reply is the number of an executed INCR;
/// numbers below the highest received which no client received are lost replies.
#[test]
fn sigterm_under_load() {
    const ROUNDS: usize = 3;
    for _ in 0..ROUNDS {
        let mut server = start(&[]);
        let addr = server.addr;
        let clients: Vec<_> =
            (0..4).map(|_| std::thread::spawn(move || count_until_closed(addr))).collect();
        let mut wire = server.connect();
        let counted = |wire: &mut Wire| match wire.command(&["GET", "n"]) {
            Ok(Value::Bulk(text)) => String::from_utf8_lossy(&text).parse().unwrap_or(0),
            _ => 0,
        };
        until("they count", || counted(&mut wire) >= 20_000);
        drop(wire);
        server.terminate();
        let since = Instant::now();
        let status = server.wait_exit(LIMIT).expect("it ends in time");
        println!("ended {:?} after SIGTERM", since.elapsed());
        assert!(status.success(), "it ended with {status}");
        let mut numbers: Vec<i64> = Vec::new();
        let mut torn = 0;
        for client in clients {
            let (got, rest) = client.join().expect("no client panics");
            assert!(got.is_sorted(), "a client's replies are out of order");
            torn += usize::from(rest > 0);
            numbers.extend(got);
        }
        let (highest, lost) = lost(numbers);
        println!("{highest} executed, {lost} replies lost, {torn} torn");
        if server.kind == Kind::SheafDb {
            assert_eq!((lost, torn), (0, 0), "of {highest} executed commands");
        }
    }
}

/// The highest number received, and how many below it are missing.
fn lost(mut numbers: Vec<i64>) -> (i64, i64) {
    numbers.sort_unstable();
    let highest = *numbers.last().expect("they counted");
    (highest, highest - numbers.len() as i64)
}

/// Checks the count itself: behind a proxy which drops replies it is not zero.
#[test]
fn the_count_of_lost_replies_detects_losses() {
    let server = ServerProcess::start(&Binary::redis(), &[]);
    let proxy = Proxy::start(server.addr, Damage::Drop);
    let addr = proxy.addr;
    let client = std::thread::spawn(move || count_until_closed(addr));
    let mut wire = server.connect();
    until("it counts", || match wire.command(&["GET", "n"]) {
        Ok(Value::Bulk(text)) => text.len() >= 4, // some of those are received
        _ => false,
    });
    server.terminate();
    let (numbers, _) = client.join().expect("the client does not panic");
    let (highest, lost) = lost(numbers);
    assert!(lost >= highest / 20, "{lost} of {highest}");
}

/// Sends INCRs in pipelines until the connection ends. Returns the numbers received and the length
/// in bytes of an incomplete last reply.
fn count_until_closed(addr: std::net::SocketAddr) -> (Vec<i64>, usize) {
    const DEPTH: usize = 200;
    let batch = encode(&["INCR", "n"]).repeat(DEPTH);
    let mut stream = TcpStream::connect(addr).expect("the server accepts connections");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout is settable");
    let (mut numbers, mut unread, mut chunk) = (Vec::new(), Vec::new(), vec![0; 64 * 1024]);
    let mut asked = 0;
    let mut sending = true;
    loop {
        if sending && numbers.len() + 2 * DEPTH > asked {
            sending = stream.write_all(&batch).is_ok();
            asked += DEPTH;
        }
        match read(&mut stream, &mut chunk) {
            Ok(n @ 1..) => unread.extend_from_slice(&chunk[..n]),
            _ => return (numbers, unread.len()),
        }
        let mut at = 0;
        while let Some((value, used)) = parse(&unread[at..]).expect("replies are well formed") {
            let Value::Int(n) = value else { panic!("INCR answered {value:?}") };
            numbers.push(n);
            at += used;
        }
        unread.drain(..at);
    }
}
