//! The proxy which damages data: it forwards one command at a time and sends its own commands after
//! some writes.
//!
//! Which writes are damaged depends only on their bytes, so a sequence is damaged in the same way
//! each time, whichever commands are left out of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::{Damage, EVERY};
use crate::wire::{Value, Wire, encode, parse};

/// Commands that write their first argument's key and nothing else.
const WRITES: &str = "SET APPEND INCR DECR INCRBY DECRBY SETRANGE LPUSH RPUSH LSET LREM LTRIM LINSERT \
    SADD SREM HSET HDEL HINCRBY ZADD ZREM ZINCRBY GEOADD SETBIT BITFIELD PFADD";
/// Key for the copy of the value from before a lost write.
const BEFORE: &[u8] = b"\0before";

/// Serves one client until either side closes.
pub fn forward(mut client: TcpStream, to: SocketAddr, damage: Damage) {
    let Ok(mut server) = Wire::connect(to) else { return };
    let mut unread = Vec::new();
    let mut chunk = [0; 16 * 1024];
    // Queued commands have not been executed yet.
    let mut queues = false;
    while let Ok(n @ 1..) = client.read(&mut chunk) {
        unread.extend_from_slice(&chunk[..n]);
        while let Ok(Some((request, used))) = parse(&unread) {
            unread.drain(..used);
            let args = words(&request);
            let hit = !queues && is_hit(&args);
            let Some(reply) = pass(&mut server, &args, hit.then_some(damage)) else { return };
            match args.first().map(|name| name.to_ascii_uppercase()).as_deref() {
                Some(b"MULTI") => queues = true,
                Some(b"EXEC" | b"DISCARD" | b"RESET") => queues = false,
                _ => {}
            }
            if client.write_all(&reply).is_err() {
                return;
            }
        }
    }
}

fn is_hit(args: &[Vec<u8>]) -> bool {
    let name = args.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
    let writes = WRITES.split_whitespace().any(|write| write.as_bytes() == name);
    writes && args.len() > 2 && fnv(&args.concat()).is_multiple_of(EVERY)
}

/// The bytes of the reply.
fn pass(server: &mut Wire, args: &[Vec<u8>], damage: Option<Damage>) -> Option<Vec<u8>> {
    let key = args.get(1).cloned().unwrap_or_default();
    let ask = |server: &mut Wire, words: &[&[u8]]| server.command(words).ok();
    if damage == Some(Damage::LostWrite) {
        ask(server, &[b"COPY", &key, BEFORE, b"REPLACE"])?;
    }
    server.send(&encode(args)).ok()?;
    let reply = server.receive_bytes().ok()?;
    match damage {
        Some(Damage::LostWrite) => {
            ask(server, &[b"DEL", &key])?;
            ask(server, &[b"RENAME", BEFORE, &key])?;
        }
        Some(_) => change_byte(server, &key)?,
        None => {}
    }
    Some(reply)
}

/// Changes one byte of the value.
fn change_byte(server: &mut Wire, key: &[u8]) -> Option<()> {
    let mut ask = |words: &[&[u8]]| server.command(words).ok();
    let kind = ask(&[b"TYPE", key])?;
    let Value::Simple(kind) = kind else { return Some(()) };
    match kind.as_slice() {
        b"string" => ask(&[b"SETRANGE", key, b"0", b"~"])?,
        b"list" => ask(&[b"LSET", key, b"-1", b"~"])?,
        b"set" => ask(&[b"SADD", key, b"~"])?,
        b"hash" => ask(&[b"HSET", key, b"a", b"~"])?,
        b"zset" => ask(&[b"ZINCRBY", key, b"1", b"a"])?,
        _ => Value::Null,
    };
    Some(())
}

fn words(request: &Value) -> Vec<Vec<u8>> {
    let Value::Array(items) = request else { return Vec::new() };
    let word = |item: &Value| match item {
        Value::Bulk(word) => word.clone(),
        _ => Vec::new(),
    };
    items.iter().map(word).collect()
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
