//! Thresholds of encodings, compared with a real server.
//!
//! While OBJECT ENCODING reports intset, the members of a set are listed in ascending order.

use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire};

fn ask(wire: &mut Wire, words: &[&str]) -> Value {
    wire.command(words).unwrap_or_else(|e| panic!("{words:?}: {e}"))
}

/// The default of set-max-intset-entries.
const INTS_MAX: usize = 512;

#[test]
fn intset_threshold_512_integers() {
    let servers = [Binary::under_test(), Binary::redis()].map(|b| ServerProcess::start(&b, &[]));
    let mut wires = servers.each_ref().map(ServerProcess::connect);
    let mut rng = sheafdb_tests::rng::Rng::new(7);
    let numbers: Vec<String> = (0..=INTS_MAX)
        .map(|_| {
            let bytes: [u8; 8] = rng.bytes(8).try_into().expect("eight bytes");
            (i64::from_le_bytes(bytes) | 1 << 62).to_string()
        })
        .collect();
    for wire in &mut wires {
        for half in numbers[..INTS_MAX].chunks(INTS_MAX / 2) {
            let mut words = vec!["SADD", "s"];
            words.extend(half.iter().map(String::as_str));
            ask(wire, &words);
        }
        ask(wire, &["SREM", "s", &numbers[3]]);
        ask(wire, &["SADD", "s", &numbers[3], "5"]);
        ask(wire, &["SREM", "s", "5"]);
    }
    let mut both = |words: &[&str]| {
        let [ours, theirs] = wires.each_mut().map(|wire| ask(wire, words));
        assert_eq!(ours, theirs, "{words:?}");
        ours
    };
    // The set exceeded the threshold once: Redis does not convert it back.
    assert_eq!(both(&["OBJECT", "ENCODING", "s"]), Value::Bulk(b"hashtable".to_vec()));
    both(&["SUNIONSTORE", "t", "s"]);
    assert_eq!(both(&["OBJECT", "ENCODING", "t"]), Value::Bulk(b"intset".to_vec()));
    both(&["SADD", "u", "1"]);
    for number in &numbers[1..INTS_MAX] {
        both(&["SADD", "u", number]);
    }
    let dumped = both(&["DUMP", "u"]);
    let Value::Bulk(dumped) = dumped else { panic!("a payload") };
    let restored = wires.each_mut().map(|wire| {
        wire.command(&[&b"RESTORE"[..], b"v", b"0", &dumped]).expect("it takes requests")
    });
    assert_eq!(restored[0], restored[1]);
    let mut both = |words: &[&str]| {
        let [ours, theirs] = wires.each_mut().map(|wire| ask(wire, words));
        assert_eq!(ours, theirs, "{words:?}");
        ours
    };
    both(&["SADD", "few", &numbers[1], &numbers[8]]);
    for key in ["t", "u", "v"] {
        both(&["OBJECT", "ENCODING", key]);
        both(&["SMEMBERS", key]);
        both(&["SSCAN", key, "0"]);
        for words in [["SINTER", key, "u"], ["SUNION", key, "few"], ["SDIFF", key, "few"]] {
            both(&words);
        }
        both(&["DUMP", key]);
    }
    // One above the threshold: a hash table from now on, with all members.
    both(&["SADD", "u", &numbers[INTS_MAX]]);
    assert_eq!(both(&["OBJECT", "ENCODING", "u"]), Value::Bulk(b"hashtable".to_vec()));
    assert_eq!(both(&["SCARD", "u"]), Value::Int(INTS_MAX as i64 + 1));
    both(&["SADD", "v", "text"]);
    assert_eq!(both(&["OBJECT", "ENCODING", "v"]), Value::Bulk(b"hashtable".to_vec()));
    assert_eq!(both(&["SCARD", "v"]), Value::Int(INTS_MAX as i64 + 1));
    let mut missing = numbers[1..INTS_MAX].iter().map(String::as_str).collect::<Vec<_>>();
    let mut words = vec!["SMISMEMBER", "v", "1", "text"];
    words.append(&mut missing);
    both(&words);
}

/// Members of 64 bytes exceed the size of an entry long before there are 128 of them: the threshold
/// also holds in the big form.
#[test]
fn listpack_threshold_128_long_members() {
    let servers = [Binary::under_test(), Binary::redis()].map(|b| ServerProcess::start(&b, &[]));
    let mut wires = servers.each_ref().map(ServerProcess::connect);
    let mut both = |words: &[&str]| {
        let [ours, theirs] = wires.each_mut().map(|wire| ask(wire, words));
        assert_eq!(ours, theirs, "{words:?}");
        ours
    };
    let encoding = |name: &str| Value::Bulk(name.as_bytes().to_vec());
    for n in 1..=128 {
        both(&["ZADD", "z", &n.to_string(), &format!("{n:064}")]);
        assert_eq!(both(&["OBJECT", "ENCODING", "z"]), encoding("listpack"), "{n} members");
    }
    assert_eq!(both(&["COPY", "z", "longer"]), Value::Int(1));
    both(&["ZADD", "longer", "7", &format!("{:064}", 1)]);
    assert_eq!(both(&["OBJECT", "ENCODING", "longer"]), encoding("listpack"));
    both(&["ZREM", "longer", &format!("{:064}", 1)]);
    both(&["ZADD", "longer", "1", &"x".repeat(65)]);
    assert_eq!(both(&["OBJECT", "ENCODING", "longer"]), encoding("skiplist"));
    both(&["ZADD", "z", "1", "one more"]);
    assert_eq!(both(&["OBJECT", "ENCODING", "z"]), encoding("skiplist"));
}
