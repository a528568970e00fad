//! The memory in use, recounted from the keys while data is there and nobody changes it.

use crate::clients::ledger::DATABASES;
use crate::clients::words;
use crate::judge::{SETTLED_NS, ask, shared, wait};
use crate::world::World;
use client::Value;
use driver::sim::SimClient;

/// What MEMORY USAGE counts for the place of an entry in a table.
const BYTES_OF_PLACE: u64 = 16;
/// How often keys that are due are waited for. A wall clock that was stepped back keeps them.
const WAITS_MAX: u32 = 20;

/// Compares what the keyspace has counted with the sum over all keys.
pub fn recount(world: &mut World, conn: &SimClient) -> Result<(), String> {
    let (mut sum, mut count) = (0, 0);
    for db in 0..DATABASES {
        ask(world, conn, &words(&format!("SELECT {db}")))?;
        let Some(keys) = all_keys(world, conn)? else { return Ok(()) };
        sum += sum_of(world, conn, &keys)?;
        count += keys.len();
    }
    let counted = shared(world)?.keyspace.memory();
    *world.tally.entry("keys whose memory was recounted").or_default() += count as u64;
    if counted.entries == sum {
        return Ok(());
    }
    Err(format!("{count} keys take {sum} bytes, and {} are counted", counted.entries))
}

/// What these keys of the selected database take, bytes.
fn sum_of(world: &mut World, conn: &SimClient, keys: &[Vec<u8>]) -> Result<u64, String> {
    let mut sum = 0;
    for key in keys {
        let key = std::slice::from_ref(key);
        let usage = ask(world, conn, &[&words("MEMORY USAGE")[..], key].concat())?;
        let expires = ask(world, conn, &[&words("PEXPIRETIME")[..], key].concat())?;
        let (Value::Integer(usage), Value::Integer(expires)) = (&usage, &expires) else {
            return Err(format!("the memory of a key is {usage:?}, its end {expires:?}"));
        };
        let expiry = if *expires < 0 { 0 } else { keyspace::BYTES_PER_EXPIRY };
        sum += *usage as u64 - BYTES_OF_PLACE - expiry;
    }
    Ok(sum)
}

/// All keys, when no key that is due is left; `None` if some stay.
fn all_keys(world: &mut World, conn: &SimClient) -> Result<Option<Vec<Vec<u8>>>, String> {
    for _ in 0..WAITS_MAX {
        let size = ask(world, conn, &words("DBSIZE"))?;
        let found = ask(world, conn, &words("SCAN 0 COUNT 1000000"))?;
        let keys = found.as_members().and_then(|parts| parts.get(1)?.as_members());
        let keys: Vec<Vec<u8>> = keys
            .unwrap_or_default()
            .iter()
            .filter_map(|key| key.as_bytes().map(<[u8]>::to_vec))
            .collect();
        match size.as_integer() {
            Some(size) if size == keys.len() as i64 => return Ok(Some(keys)),
            Some(size) if size > keys.len() as i64 => wait(world, SETTLED_NS),
            _ => return Err(format!("DBSIZE is {size:?}, and SCAN finds {} keys", keys.len())),
        }
    }
    Ok(None)
}
