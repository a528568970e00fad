//! Hash flooding: keys and members with equal hashes cannot be chosen without the server's secret.

use base::hash::KeyHasher;
use std::net::SocketAddr;

use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

/// Keys of each kind.
const KEYS: usize = 2000;
/// An upper bound on keys per SCAN call without collisions: COUNT, and the rest of the last bucket.
const SHOWN_MAX: usize = 64;

/// Suffixes of keys which collide under a hash with known constants: foldhash, and our hash with
/// the secret of the tests.
fn known_ends() -> Vec<Vec<u8>> {
    let foldhash: [[u8; 8]; 2] = [
        [0xdd, 0x50, 0x7c, 0xc9, 0xb7, 0x29, 0xac, 0xc0],
        [0x17, 0x09, 0x47, 0xb5, 0xb5, 0xd5, 0x84, 0x3f],
    ];
    let own = KeyHasher::new(0).weak_tail();
    let twice = |end: [u8; 8]| [end, end].concat();
    vec![twice(foldhash[0]), foldhash[1].to_vec(), own.to_vec(), twice(own)]
}

fn name(n: usize, end: &[u8]) -> Vec<u8> {
    [format!("{{a}}{n:05}").as_bytes(), end].concat()
}

/// How many elements the first call of a scan shows.
fn shown(reply: &Value) -> usize {
    let Value::Array(parts) = reply else { panic!("{reply:?}") };
    let Value::Array(elements) = &parts[1] else { panic!("{reply:?}") };
    elements.len()
}

/// Sends requests and takes as many replies.
fn pipeline(to: SocketAddr, requests: &[u8], replies: usize) {
    let mut wire = Wire::connect(to).expect("the server accepts connections");
    wire.send(requests).expect("a server that reads");
    (0..replies).for_each(|_| drop(wire.receive().expect("a reply")));
}

#[test]
fn keys_chosen_to_collide_do_not_collide() {
    let server = ServerProcess::start(&Binary::under_test(), &[]);
    let mut wire = Wire::connect(server.addr).expect("the server accepts connections");
    let mut call = |args: &[&str]| wire.command(args).expect("a reply");
    for end in known_ends() {
        call(&["FLUSHALL"]);
        let mut requests = Vec::new();
        for n in 0..KEYS {
            let name = name(n, &end);
            requests.extend(encode(&[b"SET", name.as_slice(), b"v"]));
            requests.extend(encode(&[b"SADD", b"set".as_slice(), &name]));
            requests.extend(encode(&[b"HSET", b"hash".as_slice(), &name, b"v"]));
            requests.extend(encode(&[b"ZADD", b"zset".as_slice(), b"1", &name]));
        }
        pipeline(server.addr, &requests, 4 * KEYS);
        assert_eq!(call(&["DBSIZE"]), Value::Int(KEYS as i64 + 3));
        let scans: [&[&str]; 4] = [
            &["SCAN", "0", "COUNT", "10"],
            &["SSCAN", "set", "0", "COUNT", "10"],
            &["HSCAN", "hash", "0", "COUNT", "10"],
            &["ZSCAN", "zset", "0", "COUNT", "10"],
        ];
        for scan in scans {
            let shown = shown(&call(scan));
            assert!(shown <= SHOWN_MAX, "{scan:?} shows {shown} of {}", end.escape_ascii());
        }
    }
}
