//! What commands record, and that repeating it leads to the same data: where the request is not the
//! record, in long commands, in transactions, with keys and fields that expire, after errors and
//! panics.

use crate::common::pair::Pair;
use crate::common::with_args;
use base::sync::Arc;
use base::{DbIndex, UnixMs};
use command::{record, registry};
use keyspace::{Access, Event, Intent, Keyspace, Options};
use value::NewStr;

/// Requests and what they record: nothing, or commands between semicolons. `<n>` is the time in `n`
/// milliseconds, `<0>` now. No time passes.
const FORMS: &str = include_str!("golden/records.txt");

#[test]
fn commands_leave_these_records() {
    let mut pair = Pair::new();
    let mut lines = 0;
    for line in FORMS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (request, wanted) = line.split_once(" =>").unwrap_or((line, ""));
        let recorded = pair.line(request);
        if line.contains(" =>") {
            let now = pair.first.now.0;
            let mut wanted = wanted.trim().to_owned();
            while let Some((before, rest)) = wanted.split_once('<') {
                let (ms, after) = rest.split_once('>').expect("a time");
                let at = now + ms.parse::<i64>().expect("milliseconds");
                wanted = format!("{before}{at}{after}");
            }
            assert_eq!(recorded.join(" ; "), wanted, "{request}\n{}", pair.story);
            lines += 1;
        }
    }
    pair.compare();
    assert!(lines > 100, "{lines}");
}

/// A served client's command leaves the record of one that does not wait, whatever key it was
/// served for.
#[test]
fn what_a_waiting_client_takes_is_recorded_like_what_is_taken_at_once() {
    let mut pair = Pair::new();
    for line in ["RPUSH b 1 2 3", "ZADD c 1 x 2 y", "XADD a 1-1 f v", "XGROUP CREATE a g 0"] {
        pair.line(line);
    }
    let mut serve = |at: usize, line: &str| {
        pair.first.served = Some(at);
        let recorded = pair.line(line).join(" ; ");
        pair.first.served = None;
        recorded
    };
    assert_eq!(serve(2, "BLPOP k* b 0"), "LPOP b");
    assert_eq!(serve(4, "BLMPOP 0 2 k* b RIGHT COUNT 5"), "RPOP b 5");
    assert_eq!(serve(2, "BZPOPMAX k* c 0"), "ZPOPMAX c");
    assert_eq!(serve(4, "BZMPOP 0 2 k* c MIN"), "ZPOPMIN c 1");
    let now = pair.first.now.0;
    pair.first.served = Some(8);
    let line = "XREADGROUP GROUP g me BLOCK 0 STREAMS b a > >";
    let recorded = pair.line(line).join(" ; ");
    assert_eq!(
        recorded,
        format!(
            "MULTI ; XGROUP CREATECONSUMER a g me ; \
         XCLAIM a g me 0 1-1 TIME {now} RETRYCOUNT 1 FORCE JUSTID ; \
         XGROUP SETID a g 1-1 ENTRIESREAD 1 ; EXEC"
        )
    );
    pair.first.served = None;
    pair.compare();
}

/// Fills keys with so much that commands prepare their work.
fn fill(pair: &mut Pair) {
    let words = |word: &dyn Fn(u32) -> String| (0..100).map(word).collect::<Vec<_>>().concat();
    let numbers = |prefix: &str| words(&|n| format!(" {prefix}{n}"));
    pair.line(&format!("SADD a{}", numbers("m")));
    pair.line(&format!("SADD b{}", numbers("1")));
    pair.line(&format!("RPUSH k*{}", numbers("7")));
    let scored = words(&|n| format!(" {n} m{n}"));
    pair.line(&format!("ZADD c{scored}"));
    for n in 1..=100 {
        pair.line(&format!("XADD GROUP {n}-1 field {n}"));
    }
    for group in ["g", "h"] {
        pair.line(&format!("XGROUP CREATE GROUP {group} 0"));
    }
}

#[test]
fn long_commands_leave_their_records_once() {
    let mut pair = Pair::new();
    for line in [
        "SPOP a 40",
        "SPOP a 59",
        "SPOP a 10",
        "ZPOPMIN c 40",
        "ZMPOP 1 c MAX COUNT 30",
        "BZMPOP 0 1 c MAX COUNT 30",
        "LMOVEM k* 50 LEFT RIGHT COUNT 60 OBO",
        "BLMOVEM k* k* LEFT LEFT 0 COUNT 60 BULK",
        "LMPOP 1 k* LEFT COUNT 50",
        "XREADGROUP GROUP g me COUNT 50 STREAMS GROUP >",
        "XREADGROUP GROUP g me COUNT 50 STREAMS GROUP 0",
        "XREADGROUP GROUP g me NOACK STREAMS GROUP >",
        "XREADGROUP GROUP h me STREAMS GROUP >",
        "XAUTOCLAIM GROUP h you 0 - COUNT 70",
        "XACK GROUP h 1-1 2-1 3-1 4-1 5-1 6-1 7-1 8-1 9-1 10-1 11-1 12-1 13-1 14-1 15-1 16-1 17-1 \
         18-1 19-1 20-1 21-1 22-1",
        "XCLAIM GROUP h me 0 23-1 24-1 25-1 26-1 27-1 28-1 29-1 30-1 31-1 32-1 33-1 34-1 35-1 36-1 \
         37-1 38-1 39-1 40-1 41-1 42-1 43-1 44-1 45-1",
        "XDEL GROUP 23-1 24-1",
        "XCLAIM GROUP h you 0 23-1 24-1 25-1",
        "XAUTOCLAIM GROUP g you 0 - COUNT 100",
        "XTRIM GROUP MAXLEN ~ 60 ACKED",
        "XTRIM GROUP MINID ~ 60 DELREF",
        "XADD GROUP MAXLEN ~ 10 DELREF * f v",
        "XADD GROUP MAXLEN 5 ACKED 9999999999999-* f v",
        "XGROUP DELCONSUMER GROUP g me",
        "SUNIONSTORE LEFT a b",
        "SORT b STORE MIN",
        "SORT b BY nosort STORE MIN",
        "GEOSEARCHSTORE 2 c FROMLONLAT 0 0 BYRADIUS 20000 km",
        "ZUNIONSTORE 1 2 c b WEIGHTS 0.1 0.7",
        "ZREMRANGEBYRANK c 0 50",
        "LTRIM k* 30 60",
        "PFADD BY 1 2 3",
        "PFMERGE 0 BY",
    ] {
        fill(&mut pair);
        pair.line("XREADGROUP GROUP g me COUNT 70 STREAMS GROUP >");
        pair.line("XREADGROUP GROUP h me COUNT 70 STREAMS GROUP >");
        pair.compare();
        pair.line(line);
        assert!(!pair.recorded.is_empty(), "{line}");
        pair.compare();
        for name in crate::common::requests::NAMES {
            pair.line(&format!("DEL {name}"));
        }
    }
}

#[test]
fn big_values_are_recorded_by_reference() {
    let mut pair = Pair::new();
    let big = vec![b'x'; 3 << 20];
    let medium = vec![b'y'; 50_000];
    let requests: [&[&[u8]]; 14] = [
        &[b"SET", b"a", &big],
        &[b"SET", b"a", &big, b"EX", b"100"],
        &[b"SET", b"a", &big, b"KEEPTTL"],
        &[b"SETEX", b"b", b"100", &medium],
        &[b"SETRANGE", b"a", b"5", &big],
        &[b"APPEND", b"a", &medium],
        &[b"BITOP", b"NOT", b"c", b"a"],
        &[b"MSETEX", b"2", b"0", &big, b"1", &medium, b"PX", b"100000"],
        &[b"HSETEX", b"2", b"EX", b"10", b"FIELDS", b"2", b"f", &medium, b"g", &medium],
        &[b"HSETEX", b"2", b"KEEPTTL", b"FIELDS", b"1", b"f", &medium],
        &[b"RPUSH", b"50", &medium, &big, b"5"],
        &[b"LMOVEM", b"50", b"k*", b"LEFT", b"RIGHT", b"COUNT", b"3", b"BULK"],
        &[b"LMOVEM", b"k*", b"k*", b"RIGHT", b"LEFT", b"COUNT", b"2", b"OBO"],
        &[b"XADD", b"BY", b"*", b"f", &medium],
    ];
    for request in requests {
        pair.run(request);
        assert!(!pair.recorded.is_empty());
        pair.compare();
    }
}

#[test]
fn restored_values_are_recorded_with_the_time_at_which_they_expire() {
    let mut pair = Pair::new();
    for (name, line) in
        [("a", "SET a 5"), ("b", "RPUSH b 1 2"), ("c", "HSET c f v"), ("1", "ZADD 1 3 x")]
    {
        pair.line(line);
        let dump = |args: resp::Args<'_>| pair.first.reply_to(args).to_vec();
        let reply = with_args(&[b"DUMP", name.as_bytes()], dump);
        let from = reply.iter().position(|byte| *byte == b'\n').expect("a length") + 1;
        let payload = &reply[from..reply.len() - 2];
        let at = (pair.first.now.0 + 70_000).to_string();
        for words in [
            &[b"0".as_slice()] as &[&[u8]],
            &[b"5000"],
            &[b"5000", b"IDLETIME", b"9"],
            &[b"0", b"FREQ", b"9"],
            &[at.as_bytes(), b"ABSTTL"],
            &[b"1", b"ABSTTL"],
            &[b"1", b"ABSTTL"],
        ] {
            let mut request: Vec<&[u8]> = vec![b"RESTORE", name.as_bytes(), words[0], payload];
            request.push(b"REPLACE");
            request.extend(&words[1..]);
            pair.run(&request);
            pair.compare();
        }
        assert_eq!(pair.line(&format!("RESTORE {name} 0 nonsense")), [""; 0]);
    }
}

#[test]
fn what_expires_in_between_is_recorded_before_what_finds_it_gone() {
    let mut pair = Pair::new();
    let expiring = "HSETEX a EX 2 FIELDS 2 f 1 g 2";
    for line in [
        "HSET a f 3",
        "HINCRBY a f 1",
        "HINCRBYFLOAT a f 1",
        "HGETALL a",
        "HSETNX a f 9",
        "HLEN a",
        "COPY a b",
        "RENAME a b",
        "HGETDEL a FIELDS 1 f",
        "HSETEX a FNX FIELDS 1 f 1",
        "HDEL a f x",
        "HPERSIST a FIELDS 1 f",
        "HEXPIRE a 100 FIELDS 2 f x",
        "RPUSH a 1",
        "SET a 1",
        "DEL a",
        "MOVE a 3",
        "EXPIRE a 10",
    ] {
        for others in ["HSET a x 1", "PING"] {
            if others != "PING" {
                pair.line(others);
            }
            pair.line(expiring);
            pair.compare();
            pair.pass(2001);
            pair.line(line);
            pair.compare();
            pair.line("DEL a b");
        }
    }
    for line in [
        "INCR 1",
        "APPEND 1 x",
        "RPUSH 1 x",
        "SET 1 x NX",
        "GET 1",
        "RENAME 1 2",
        "COPY 1 2",
        "SADD 1 x",
        "EXISTS 1",
        "SINTERSTORE 2 1",
        "BITOP OR 2 1 0",
        "SET 1 7",
    ] {
        pair.line("SET 1 5 PX 10");
        pair.pass(11);
        let recorded = pair.line(line);
        assert!(recorded.iter().any(|record| record == "DEL 1"), "{line}: {recorded:?}");
        pair.compare();
        pair.line("DEL 1 2");
    }
}

/// Where expiry is held, commands do not see a key that is due. Who repeats them must not, either.
#[test]
fn a_key_that_is_hidden_and_replaced_is_removed_by_the_records() {
    let mut pair = Pair::new();
    for line in ["INCR a", "APPEND a x", "SETNX a 7", "SET a 2 KEEPTTL"] {
        pair.line("SET a 5 PX 10");
        pair.pass(11);
        let until = UnixMs(pair.first.now.0 + 1000);
        pair.first.access.keyspace().hold_expiry(until);
        pair.line(line);
        pair.first.access.keyspace().hold_expiry(UnixMs(0));
        pair.compare();
    }
}

#[test]
fn a_transaction_is_one_record() {
    let mut pair = Pair::new();
    pair.line("HSETEX c EX 1 FIELDS 1 f v");
    pair.line("HSET c g v");
    pair.line("SET k* 1 PX 1000");
    let recorded = pair.together(&["SET a 1", "INCR a", "GET a"]);
    assert_eq!(recorded, ["MULTI", "SET a 1", "INCR a", "EXEC"]);
    assert_eq!(pair.together(&["SET a 1", "GET a"]), ["SET a 1"]);
    let recorded = pair.together(&["SET a x", "INCR a", "LPUSH a 1", "SETEX b 10 v"]);
    let at = pair.first.now.0 + 10_000;
    assert_eq!(recorded, ["MULTI", "SET a x", &format!("SET b v PXAT {at}"), "EXEC"]);
    assert_eq!(pair.together(&["INCR a"]), [""; 0]);
    pair.pass(1001);
    let recorded = pair.together(&["INCR a", "GET k*", "HGET c g", "LPUSH c 1", "DEL a"]);
    assert_eq!(recorded, ["MULTI", "DEL k*", "HDEL c f", "DEL a", "EXEC"]);
    pair.compare();
    // A key that a command had made itself before it expired comes back with a rollback.
    pair.line("SET a x");
    let recorded = pair.together(&["SET b v PXAT 1", "GET b", "SET b v", "INCR a"]);
    assert_eq!(recorded, ["MULTI", "SET b v PXAT 1", "DEL b", "SET b v", "EXEC"]);
    pair.compare();
}

/// What a command has changed before it fails leaves no record. The removal of what it found due
/// does.
#[test]
fn a_panic_takes_back_records_but_not_those_of_keys_that_were_due() {
    let mut panics = 0;
    for line in [
        "SET a 1 EX 10",
        "MSETEX 3 a 1 b 2 c 3 EX 10",
        "SPOP 2 3",
        "XADD BY * f v",
        "XREADGROUP GROUP g me STREAMS BY >",
        "HSETEX 50 EX 10 FIELDS 2 x 1 y 2",
        "BLMOVE KEYS a LEFT RIGHT 0",
        "RENAME KEYS b",
        "INCRBYFLOAT a 1.5",
        "EXPIRE KEYS 100",
        "HEXPIRE 50 10 FIELDS 1 f",
        "SUNIONSTORE a b 2",
        "COPY 2 a REPLACE",
        "SORT KEYS STORE a",
    ] {
        for changes in 1..=3 {
            let mut pair = Pair::new();
            for line in [
                "RPUSH KEYS 1 2 3",
                "SADD 2 a b c d e f",
                "XADD BY 1-1 f v",
                "XGROUP CREATE BY g 0",
                "HSET 50 f v g w",
                "SET a 7 PX 10",
                "SET b 8 PX 10",
                "HSETEX 50 PX 10 FIELDS 1 old v",
            ] {
                pair.line(line);
            }
            pair.compare();
            pair.pass(11);
            if pair.panics(line, changes) {
                panics += 1;
                let expiries = |record: &String| {
                    ["DEL a", "DEL b", "MULTI", "EXEC", "HDEL 50 old"].contains(&record.as_str())
                };
                assert!(pair.recorded.iter().all(expiries), "{line}: {:?}", pair.recorded);
            }
            pair.compare();
            pair.line("INCR a");
            pair.compare();
        }
    }
    assert!(panics > 20, "{panics}");
}

/// Nothing is recorded, and nothing drawn, while nobody reads.
#[test]
fn without_a_reader_nothing_is_recorded() {
    let mut pair = Pair::new();
    pair.first.record(false);
    let before = pair.first.access.keyspace().numbers().last();
    for line in ["SET a 1 EX 1", "SPOP b", "XADD c * f v", "HSETEX 1 EX 1 FIELDS 1 f v"] {
        assert_eq!(pair.line(line), [""; 0]);
    }
    assert_eq!(pair.first.access.keyspace().numbers().last(), before);
}

/// A command which needs no record and changed nothing was taken for the record of the next one on
/// the short path, whose change was then missing in the file.
#[test]
fn a_record_that_is_not_needed_is_not_that_of_the_next_command() {
    let ks = Arc::new(Keyspace::new(&Options { databases: 1, hash_secret: 1, workers: 1 }));
    let (now, db, mut access) = (UnixMs(1), DbIndex(0), Access::new(ks.clone(), 0));
    access.try_world().expect("nobody is inside");
    access.world(now).set_recording(true);
    access.open_world();
    assert!(access.enter());
    let (key, request) = (ks.key(b"k"), b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\n1\r\n");
    let mut guard = access.lock_one(key.slot, now, Intent::Write).expect("free");
    guard.record_nothing();
    guard.finish();
    drop(guard);
    let mut guard = access.lock_one(key.slot, now, Intent::Write).expect("free");
    let mark = guard.mark();
    guard.insert(Event::SILENT, db, &key, NewStr::Int(1), None);
    let set = registry::lookup(b"set").expect("a command").spec();
    with_args(&[b"SET", b"k", b"1"], |args| {
        record::framed(&mut guard, mark, set, db, args, request);
    });
    guard.finish();
    drop(guard);
    access.leave();
    let mut batches = Vec::new();
    ks.journal().take(&mut batches);
    assert_eq!(batches[0].out.bytes, request);
}
