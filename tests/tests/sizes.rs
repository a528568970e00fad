//! Members of the largest size (512 MB) and empty members, in every type. The expected replies are
//! those of redis-server 7.0.15.

use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire};
use std::time::Duration;

/// `proto-max-bulk-len` at its default.
const LARGEST: usize = 512 << 20;
/// Bytes of it per write.
const CHUNK: usize = 1 << 20;
/// Longest wait for a reply: the system may have to free memory first.
const PATIENCE: Duration = Duration::from_secs(60);

/// An argument of a command.
#[derive(Clone, Copy)]
enum Arg {
    Text(&'static str),
    /// As many `x` as fit.
    Largest,
}
use Arg::{Largest as L, Text as T};

fn ask(wire: &mut Wire, args: &[Arg]) -> Value {
    let chunk = vec![b'x'; CHUNK];
    wire.send(format!("*{}\r\n", args.len()).as_bytes()).expect("sent");
    for arg in args {
        match arg {
            Arg::Text(text) => {
                wire.send(format!("${}\r\n{text}\r\n", text.len()).as_bytes()).expect("sent");
            }
            Arg::Largest => {
                wire.send(format!("${LARGEST}\r\n").as_bytes()).expect("sent");
                for _ in 0..LARGEST / CHUNK {
                    wire.send(&chunk).expect("sent");
                }
                wire.send(b"\r\n").expect("sent");
            }
        }
    }
    wire.receive().expect("an answer")
}

#[test]
fn members_of_the_largest_size() {
    let mut server = ServerProcess::start(&Binary::under_test(), &[]);
    let mut wire = server.connect();
    wire.stream().set_read_timeout(Some(PATIENCE)).expect("a limit");
    let one = |text: &str| Value::Bulk(text.as_bytes().to_vec());
    let cases: &[(&[Arg], Value)] = &[
        (&[T("SADD"), T("s"), L], Value::Int(1)),
        (&[T("SADD"), T("s"), L], Value::Int(0)),
        (&[T("SISMEMBER"), T("s"), L], Value::Int(1)),
        (&[T("OBJECT"), T("ENCODING"), T("s")], one("hashtable")),
        (&[T("SREM"), T("s"), L], Value::Int(1)),
        (&[T("HSET"), T("h"), L, T("v")], Value::Int(1)),
        (&[T("HGET"), T("h"), L], one("v")),
        (&[T("DEL"), T("h")], Value::Int(1)),
        (&[T("HSET"), T("h"), T("f"), L], Value::Int(1)),
        (&[T("HSTRLEN"), T("h"), T("f")], Value::Int(LARGEST as i64)),
        (&[T("DEL"), T("h")], Value::Int(1)),
        (&[T("ZADD"), T("z"), T("1"), L], Value::Int(1)),
        (&[T("ZSCORE"), T("z"), L], one("1")),
        (&[T("ZREM"), T("z"), L], Value::Int(1)),
        (&[T("RPUSH"), T("l"), L], Value::Int(1)),
        (&[T("LPOS"), T("l"), L], Value::Int(0)),
        (&[T("LREM"), T("l"), T("0"), L], Value::Int(1)),
        (&[T("PFADD"), T("p"), L], Value::Int(1)),
        (&[T("PFCOUNT"), T("p")], Value::Int(1)),
        (&[T("SETBIT"), T("b"), T("4294967295"), T("1")], Value::Int(0)),
        (&[T("BITCOUNT"), T("b")], Value::Int(1)),
        (&[T("STRLEN"), T("b")], Value::Int(LARGEST as i64)),
    ];
    for (number, (args, expected)) in cases.iter().enumerate() {
        assert_eq!(&ask(&mut wire, args), expected, "command {number}");
    }
    let too_long = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    for args in
        [&[T("APPEND"), T("b"), T("x")][..], &[T("SETRANGE"), T("b"), T("536870912"), T("x")]]
    {
        assert_eq!(ask(&mut wire, args), Value::Error(too_long.into()));
    }
    let offset = "ERR bit offset is not an integer or out of range";
    let past = [T("SETBIT"), T("b"), T("4294967296"), T("1")];
    assert_eq!(ask(&mut wire, &past), Value::Error(offset.into()));
    wire.send(format!("*2\r\n$4\r\nECHO\r\n${}\r\n", LARGEST + 1).as_bytes()).expect("sent");
    let refused = wire.receive().expect("an answer");
    assert_eq!(refused, Value::Error("ERR Protocol error: invalid bulk length".into()));
    assert!(wire.receive().is_err(), "that connection is closed");
    assert!(server.answers(), "other connections are served");
}

#[test]
fn empty_members() {
    let server = ServerProcess::start(&Binary::under_test(), &[]);
    let mut wire = server.connect();
    let empty = Value::Bulk(Vec::new());
    let cases: &[(&[Arg], Value)] = &[
        (&[T("SADD"), T("s"), T("")], Value::Int(1)),
        (&[T("SISMEMBER"), T("s"), T("")], Value::Int(1)),
        (&[T("SMEMBERS"), T("s")], Value::Array(vec![empty.clone()])),
        (&[T("HSET"), T("h"), T(""), T("")], Value::Int(1)),
        (&[T("HGETALL"), T("h")], Value::Array(vec![empty.clone(), empty.clone()])),
        (&[T("ZADD"), T("z"), T("1"), T("")], Value::Int(1)),
        (&[T("ZRANGE"), T("z"), T("0"), T("-1")], Value::Array(vec![empty.clone()])),
        (&[T("ZRANGEBYLEX"), T("z"), T("["), T("+")], Value::Array(vec![empty.clone()])),
        (&[T("RPUSH"), T("l"), T("")], Value::Int(1)),
        (&[T("LRANGE"), T("l"), T("0"), T("-1")], Value::Array(vec![empty.clone()])),
        (&[T("SET"), T(""), T("")], Value::Simple(b"OK".to_vec())),
        (&[T("GET"), T("")], empty),
        (&[T("PFADD"), T("p"), T("")], Value::Int(1)),
        (&[T("GEOADD"), T("g"), T("1"), T("1"), T("")], Value::Int(1)),
    ];
    for (number, (args, expected)) in cases.iter().enumerate() {
        assert_eq!(&ask(&mut wire, args), expected, "command {number}");
    }
}
