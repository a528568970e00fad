//! Every kind of reply in both protocol versions, compared with recorded replies of Redis.

// A method of a type with a lifetime is not general enough to replace its closure here.
#![allow(clippy::redundant_closure_for_method_calls)]

use base::Blob;
use resp::{OutBuf, OutPos, Proto, ProtocolError, Reply};

fn written(proto: Proto, write: impl Fn(&mut Reply<'_>)) -> String {
    let mut out = OutBuf::new();
    write(&mut Reply::new(&mut out, proto));
    out.to_vec().escape_ascii().to_string()
}

/// Checks what `write` writes in RESP2 and in RESP3.
#[track_caller]
fn check(resp2: &str, resp3: &str, write: impl Fn(&mut Reply<'_>)) {
    assert_eq!(written(Proto::Resp2, &write), resp2, "RESP2");
    assert_eq!(written(Proto::Resp3, &write), resp3, "RESP3");
}

#[track_caller]
fn check_both(both: &str, write: impl Fn(&mut Reply<'_>)) {
    check(both, both, write);
}

/// Recorded from `DEBUG PROTOCOL` of redis-server 7.0.
#[test]
fn replies_match_the_examples_of_debug_protocol() {
    check_both(r"$11\r\nHello World\r\n", |reply| reply.bulk(b"Hello World"));
    check_both(r":12345\r\n", |reply| reply.integer(12345));
    check(r"$5\r\n3.141\r\n", r",3.141\r\n", |reply| reply.double_text(b"3.141"));
    check(r"$-1\r\n", r"_\r\n", |reply| reply.null());
    check_both(r"*3\r\n:0\r\n:1\r\n:2\r\n", |reply| {
        reply.array(3);
        (0..3).for_each(|n| reply.integer(n));
    });
    check(r"*3\r\n:0\r\n:1\r\n:2\r\n", r"~3\r\n:0\r\n:1\r\n:2\r\n", |reply| {
        reply.set(3);
        (0..3).for_each(|n| reply.integer(n));
    });
    let map = |reply: &mut Reply<'_>| {
        reply.map(3);
        for n in 0..3 {
            reply.integer(n);
            reply.bool(n == 1);
        }
    };
    check(
        r"*6\r\n:0\r\n:0\r\n:1\r\n:1\r\n:2\r\n:0\r\n",
        r"%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n",
        map,
    );
    let attribute = |reply: &mut Reply<'_>| {
        if reply.attribute(1) {
            reply.bulk(b"key-popularity");
            reply.array(2);
            reply.bulk(b"key:123");
            reply.integer(90);
        }
        reply.bulk(b"Some real reply following the attribute");
    };
    check(
        r"$39\r\nSome real reply following the attribute\r\n",
        concat!(
            r"|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n",
            r"$39\r\nSome real reply following the attribute\r\n"
        ),
        attribute,
    );
    let verbatim = |reply: &mut Reply<'_>| reply.verbatim(*b"txt", b"This is a verbatim\nstring");
    check(
        r"$25\r\nThis is a verbatim\nstring\r\n",
        r"=29\r\ntxt:This is a verbatim\nstring\r\n",
        verbatim,
    );
    check(":1\\r\\n", "#t\\r\\n", |reply| reply.bool(true));
    check(":0\\r\\n", "#f\\r\\n", |reply| reply.bool(false));
    check(
        r"$37\r\n1234567999999999999999999999999999999\r\n",
        r"(1234567999999999999999999999999999999\r\n",
        |reply| reply.big_number(b"1234567999999999999999999999999999999"),
    );
}

/// Recorded from BLPOP, a Pub/Sub message, ZRANGE and an unknown command.
#[test]
fn replies_match_recorded_commands() {
    check(r"*-1\r\n", r"_\r\n", |reply| reply.null_array());
    check(r"*3\r\n", r">3\r\n", |reply| reply.push(3));
    check(r"$3\r\ninf\r\n", r",inf\r\n", |reply| reply.double(f64::INFINITY));
    check(r"$4\r\n-inf\r\n", r",-inf\r\n", |reply| reply.double(f64::NEG_INFINITY));
    check(r"$1\r\n3\r\n", r",3\r\n", |reply| reply.double(3.0));
    check_both(r"+OK\r\n", |reply| reply.ok());
    check_both(r"+PONG\r\n", |reply| reply.simple("PONG"));
    let unknown = b"ERR unknown command 'a\r\nb\xff', with args beginning with: 'x' ";
    check_both(
        r"-ERR unknown command \'a  b\xff\', with args beginning with: \'x\' \r\n",
        |reply| reply.error_bytes(unknown),
    );
    check_both(r"-ERR syntax error\r\n", |reply| reply.error("ERR syntax error"));
    check_both(r"-ERR Protocol error: expected \'$\', got \'\xff\'\r\n", |reply| {
        reply.protocol_error(ProtocolError::ExpectedDollar(0xff));
    });
}

#[test]
fn lengths_and_integers_of_any_width_are_written() {
    for len in [0, 1, 9, 10, 11, 99, 100, 101, 999, 1000, 123_456] {
        let value = vec![b'v'; len];
        let text = String::from_utf8(value.clone()).expect("only the letter v");
        check_both(&format!("${len}\\r\\n{text}\\r\\n"), |reply| reply.bulk(&value));
        check_both(&format!("*{len}\\r\\n"), |reply| reply.array(len));
    }
    for value in [0, 1, 9, 10, 99, 100, -1, -9, -10, 1_234_567, i64::MAX, i64::MIN] {
        check_both(&format!(":{value}\\r\\n"), |reply| reply.integer(value));
        let len = value.to_string().len();
        check_both(&format!("${len}\\r\\n{value}\\r\\n"), |reply| reply.bulk_int(value));
    }
}

#[test]
fn a_large_value_is_sent_by_reference() {
    let blob = Blob::from(&b"v".repeat(100_000)[..]);
    let mut out = OutBuf::new();
    let mut reply = Reply::new(&mut out, Proto::Resp2);
    reply.ok();
    let from = reply.position();
    reply.bulk_blob(&blob);
    reply.null();
    let to = reply.position();
    assert_eq!(out.bytes, b"+OK\r\n$100000\r\n\r\n$-1\r\n");
    assert_eq!(out.blobs[0].position, b"+OK\r\n$100000\r\n".len());
    assert!(out.blobs[0].blob.is_same(&blob), "not copied");
    assert_eq!(out.len_between(from, to), b"$100000\r\n\r\n$-1\r\n".len() + 100_000);
    let whole = [b"+OK\r\n$100000\r\n", &*blob.to_slice(), b"\r\n$-1\r\n"].concat();
    assert_eq!(out.to_vec(), whole);
    out.truncate(from);
    assert_eq!(out.to_vec(), b"+OK\r\n");
    out.clear();
    assert!(out.is_empty());
    assert_eq!(out.position(), OutPos::default());
}

#[test]
fn a_header_written_last_is_placed_first() {
    let blob = Blob::from(&b"big"[..]);
    for proto in [Proto::Resp2, Proto::Resp3] {
        for len in [0, 1, 12, 345] {
            let (mut early, mut late) = (OutBuf::new(), OutBuf::new());
            let mut reply = Reply::new(&mut early, proto);
            reply.bulk_blob(&blob);
            reply.map(1);
            reply.array(len);
            members(&mut reply, &blob, len);
            reply.set(len);
            members(&mut reply, &blob, len);
            reply.ok();
            let mut reply = Reply::new(&mut late, proto);
            reply.bulk_blob(&blob);
            let map = reply.array_deferred();
            let array = reply.array_deferred();
            members(&mut reply.reborrow(), &blob, len);
            reply.close_array(array, len);
            let set = reply.array_deferred();
            members(&mut reply, &blob, len);
            reply.close_set(set, len);
            reply.close_map(map, 1);
            reply.ok();
            assert_eq!(
                late.to_vec().escape_ascii().to_string(),
                early.to_vec().escape_ascii().to_string()
            );
            assert_eq!(late.blobs.len(), early.blobs.len());
        }
    }
}

fn members(reply: &mut Reply<'_>, blob: &Blob, len: usize) {
    for n in 0..len {
        if n % 2 == 0 { reply.bulk_blob(blob) } else { reply.bulk_int(n as i64) }
    }
}
