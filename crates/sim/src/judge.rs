//! What is asked of a run when all its clients have left.

use crate::clients::model::Want;
use crate::clients::queues::{self, End, QUEUES};
use crate::clients::streams;
use crate::clients::words;
use crate::host::server_addr;
use crate::memory;
use crate::plan::MS;
use crate::saved;
use crate::session::Question;
use crate::trace::WORLD;
use crate::world::World;
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;
use client::{Decoder, Value, encode};
use driver::sim::SimClient;
use server::shared::Shared;

/// A reply comes within this time; nobody else is there.
const REPLY_NS_MAX: u64 = 30_000 * MS;
/// What clients leave behind is gone after so long.
pub const SETTLED_NS: u64 = 1_000 * MS;

/// Asks everything; the error is what is wrong.
pub fn judge(world: &mut World, questions: Vec<Question>) -> Result<(), String> {
    wait(world, SETTLED_NS);
    nobody_is_left(world)?;
    let conn = world.net.connect(&server_addr()).ok_or("nobody listens at the end")?;
    // A panic that is still armed is for nobody.
    if world.plan.panics {
        let reply = ask(world, &conn, &words("DEBUG PANIC-IN-COMMAND monitor 0 1000000"))?;
        if !Want::Is(Value::ok()).is(&reply) {
            return Err(format!("DEBUG PANIC-IN-COMMAND is answered {reply:?}"));
        }
    }
    for Question { args, want } in questions {
        let reply = ask(world, &conn, &args)?;
        if !want.is(&reply) {
            let shown = |text: String| text.chars().take(600).collect::<String>();
            let (wanted, found) = (shown(format!("{want:?}")), shown(format!("{reply:?}")));
            let command = args.iter().map(|a| a.escape_ascii().to_string()).collect::<Vec<_>>();
            return Err(format!(
                "at the end {} must be\n  {wanted}\nand is\n  {found}",
                command.join(" ")
            ));
        }
    }
    // Where nothing is lost with a server, what clients of earlier ones have left is there, too.
    let from = if world.plan.is_durable() { 0 } else { world.epoch };
    for epoch in from..=world.epoch {
        what_is_left_in_queues(world, &conn, epoch)?;
        what_is_left_in_streams(world, &conn, epoch)?;
        world.books.queues.check_lost(epoch)?;
    }
    let conn = if world.plan.saves.is_some() {
        drop(conn);
        saved::check(world)?
    } else {
        conn
    };
    world.books.check()?;
    tally(world);
    memory::recount(world, &conn)?;
    memory_is_free(world, &conn)?;
    drop(conn);
    wait(world, SETTLED_NS);
    nobody_is_left(world)
}

/// Lets simulated time pass.
pub fn wait(world: &mut World, ns: u64) {
    let end = world.now() + ns;
    while world.now() < end {
        let moment = world.net.moment();
        world.rest(moment, end);
    }
}

/// One request and its reply.
pub fn ask(world: &mut World, conn: &SimClient, args: &[Vec<u8>]) -> Result<Value, String> {
    let words: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
    let mut unsent = encode(&words);
    let (mut got, mut tried) = (Vec::new(), 0);
    let end = world.now() + REPLY_NS_MAX;
    while world.now() < end {
        let moment = world.net.moment();
        let written = if unsent.is_empty() { 0 } else { conn.write(&unsent) };
        unsent.drain(..written);
        let mut room = [0; 16 << 10];
        let read = conn.read(&mut room);
        got.extend_from_slice(&room[..read]);
        if got.len() > tried {
            tried = got.len();
            if let Ok(value) = Decoder::new(&got[..]).read() {
                world.note(WORLD, format_args!("asks {} {value:?}", args[0].escape_ascii()));
                return Ok(value);
            }
        }
        if conn.ending().is_some() {
            break;
        }
        world.rest(moment, if written + read > 0 { world.now() } else { end });
    }
    Err(format!("at the end {} has no reply", args[0].escape_ascii()))
}

/// What the workers of the server share.
pub fn shared(world: &World) -> Result<Arc<Shared>, String> {
    let host = world.host.as_ref().ok_or("there is no server at the end")?;
    host.shared()?.ok_or_else(|| "the server has not started at the end".into())
}

/// No session, wait, watch or byte of a client that has left.
fn nobody_is_left(world: &World) -> Result<(), String> {
    let shared = shared(world)?;
    for (what, count) in [
        ("sessions", shared.connections()),
        ("registered clients", shared.registry.len() as u64),
        ("ingest connections", shared.ingest.connections()),
        ("blocked clients", shared.blocked.load(Relaxed)),
        ("keys that are waited for", shared.keyspace.waited_keys()),
        ("watched slots", shared.keyspace.watched_slots() as u64),
        ("bytes held for clients", shared.client_memory()),
    ] {
        if count > 0 {
            return Err(format!("all clients have left, and there are {count} {what}"));
        }
    }
    Ok(())
}

fn what_is_left_in_queues(world: &mut World, conn: &SimClient, epoch: u32) -> Result<(), String> {
    for number in 0..QUEUES {
        let queue = (number, epoch);
        let command = if queues::is_list(queue) { "LRANGE" } else { "ZRANGE" };
        let elements = elements(world, conn, command, &queues::key(queue))?;
        world.books.queues.left(queue, &elements);
    }
    for end in End::BOTH {
        let mut moved = elements(world, conn, "LRANGE", &queues::moved_key(end, epoch))?;
        if end == End::Right {
            moved.reverse();
        }
        world.books.queues.moved(&moved)?;
    }
    Ok(())
}

/// The numbers in a list or a sorted set.
fn elements(
    world: &mut World,
    conn: &SimClient,
    command: &str,
    key: &str,
) -> Result<Vec<u64>, String> {
    let reply = ask(world, conn, &words(&format!("{command} {key} 0 -1")))?;
    let number = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
    let elements = reply.as_members().and_then(|all| all.iter().map(number).collect());
    elements.ok_or_else(|| format!("{key} is {reply:?}"))
}

/// What each stream holds, and what its group has delivered and nobody has acknowledged.
fn what_is_left_in_streams(world: &mut World, conn: &SimClient, epoch: u32) -> Result<(), String> {
    if world.plan.counts.adders == 0 {
        return Ok(());
    }
    for number in 0..streams::STREAMS {
        let stream = (number, epoch);
        let key = streams::key(stream);
        let entries = ask(world, conn, &words(&format!("XRANGE {key} - +")))?;
        let pending = ask(world, conn, &words(&format!("XPENDING {key} g - + 1000000")))?;
        let entries = streams::entries(&entries).ok_or(format!("{key} is {entries:?}"))?;
        world.books.streams.check(stream, &entries, &streams::pending(&pending))?;
    }
    Ok(())
}

/// Without keys no memory is used.
fn memory_is_free(world: &mut World, conn: &SimClient) -> Result<(), String> {
    let reply = ask(world, conn, &words("FLUSHALL SYNC"))?;
    if !Want::Is(Value::ok()).is(&reply) {
        return Err(format!("FLUSHALL is answered {reply:?}"));
    }
    wait(world, SETTLED_NS);
    let shared = shared(world)?;
    let memory = shared.keyspace.memory();
    if memory.entries != 0 || memory.buckets != 0 {
        return Err(format!("without keys the memory in use is {memory:?}"));
    }
    Ok(())
}

fn tally(world: &mut World) {
    let undecided = world.books.registers.undecided();
    for id in &undecided {
        let (register, generation) = (id.register, id.generation);
        world.note(WORLD, format_args!("register {register}.{generation} stays undecided"));
    }
    let counts = [
        ("operations on registers", world.books.registers.len() as u64),
        ("histories of registers that stay undecided", undecided.len() as u64),
        ("transactions", world.books.transactions.len() as u64),
        ("reads of streams", world.books.streams.len() as u64),
        ("lines of MONITOR", world.books.monitored.len() as u64),
        ("waits that were served", world.books.queues.served),
    ];
    for (what, count) in counts {
        *world.tally.entry(what).or_default() += count;
    }
}
