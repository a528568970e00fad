//! A client that reads a large reply slowly, or never, holds little memory and delays no other.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use sheafdb_tests::big::{Element, MILLION, ask, fill, until_freed};
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, encode};

/// A client requests a hundred megabytes and does not read. The server buffers little for it, the
/// value may change and be removed, another client is answered, and the complete reply arrives when
/// it is read.
#[test]
fn a_large_reply_to_a_slow_reader() {
    const HELD_MAX: u64 = 32 << 20;
    const VALUE: usize = 100;
    let server = ServerProcess::start(&Binary::under_test(), &["--threads", "1"]);
    let mut wire = server.connect();
    let value: fn(usize) -> String = |n| format!("{n:0>100}");
    let requests: [(&str, Element, &[&str], usize); 5] = [
        ("HSET", |n| vec![format!("field:{n}"), format!("{n:0>100}")], &["HGETALL", "k"], 2),
        ("RPUSH", |n| vec![format!("{n:0>100}")], &["LRANGE", "k", "0", "-1"], 1),
        ("SADD", |n| vec![format!("{n:0>100}")], &["SMEMBERS", "k"], 1),
        ("ZADD", |n| vec![format!("{n}"), format!("{n:0>100}")], &["ZRANGE", "k", "0", "-1"], 1),
        ("SADD", |n| vec![format!("{n:0>100}")], &["SINTER", "k", "k"], 1),
    ];
    assert_eq!(value(7).len(), VALUE);
    for (command, element, request, parts) in requests {
        ask(&mut wire, "DEL k");
        until_freed(&mut wire);
        fill(&mut wire, command, "k", MILLION, element);
        let before = server.resident_bytes();
        let mut slow = TcpStream::connect(server.addr).expect("a connection");
        slow.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout is settable");
        slow.write_all(&encode(request)).expect("it takes requests");
        let (began, mut peak) = (Instant::now(), 0);
        while began.elapsed() < Duration::from_millis(700) {
            assert_eq!(ask(&mut wire, "SET other there"), Value::Simple(b"OK".to_vec()));
            assert_eq!(ask(&mut wire, "GET other"), Value::Bulk(b"there".to_vec()));
            peak = peak.max(server.resident_bytes().saturating_sub(before));
        }
        println!("{}: {} KB held", request[0], peak >> 10);
        // The result of an operation on sets is collected first, because its length is unknown.
        let is_collected = request[0] == "SINTER";
        assert!(is_collected || peak <= HELD_MAX, "{}: {peak} bytes held", request[0]);
        // The value is removed; the reply is that of the old value.
        assert_eq!(ask(&mut wire, "UNLINK k"), Value::Int(1));
        let header = format!("*{}\r\n", MILLION * parts);
        let bulk = |text: &String| format!("${}\r\n{text}\r\n", text.len()).len();
        let values = MILLION * bulk(&value(0));
        let names = if parts == 2 { (0..MILLION).map(|n| bulk(&element(n)[0])).sum() } else { 0 };
        let mut left = header.len() + values + names;
        let mut chunk = vec![0; 256 * 1024];
        while left > 0 {
            let read = slow.read(&mut chunk).expect("the connection is open");
            assert!(0 < read && read <= left, "{read} bytes, {left} were to come: {}", request[0]);
            left -= read;
        }
    }
}
