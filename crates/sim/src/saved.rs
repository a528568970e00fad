//! What was saved, at the end of a run: the server dies, perhaps with its machine, another one
//! loads what is on the disk, and its state must be one that the clients' histories allow.

use crate::books::registers::REGISTERS;
use crate::clients::ledger::{self, DATABASES};
use crate::clients::registers;
use crate::clients::saver;
use crate::clients::transactions;
use crate::clients::words;
use crate::host::{Host, server_addr};
use crate::judge::{ask, shared, wait};
use crate::plan::MS;
use crate::trace::WORLD;
use crate::world::World;
use base::sync::atomic::Ordering::Relaxed;
use base::sync::baton::Status;
use client::Value;
use driver::sim::{DiskFaults, SimClient};
use server::persist::journal::status::JournalStatus;
use sheafdb_tests::linear::Op;
use sheafdb_tests::serializable::{Outcome, Txn};
use std::collections::BTreeSet;

/// A server has died, or has loaded, within this time; no disk is slow any more.
const RESTART_NS_MAX: u64 = 10_000 * MS;
/// Keys with a time to live have gone after so long; what was changed is durable, and rewritten.
const EXPIRED_NS: u64 = 3_000 * MS;

/// Kills the server, loads what it has saved, and judges that; then the same behind a SAVE which
/// nothing has followed. Returns a connection to the last server.
pub fn check(world: &mut World) -> Result<SimClient, String> {
    let in_order = world.plan.disk.in_order;
    world.machine.disk.set_faults(DiskFaults { in_order, ..DiskFaults::NONE });
    if world.plan.journal.is_some() {
        let is_over =
            |journal: &JournalStatus| !journal.is_rewriting.load(Relaxed) && !journal.has_trouble();
        until(world, "a rewrite never ends", |w| shared(w).is_ok_and(|s| is_over(&s.journal)))?;
    }
    let crashes = world.prng.chance(1, 2);
    let mut conn = restart(world, crashes)?;
    histories(world, &conn)?;
    sums(world, &conn)?;
    if world.plan.journal.is_some() {
        conn = appended(world, conn)?;
    }
    let ok = ask(world, &conn, &words("SAVE"))?;
    if ok != Value::ok() {
        return Err(format!("at the end SAVE is answered {ok:?}"));
    }
    let info = ask(world, &conn, &words("INFO persistence"))?;
    let info = info.as_str().unwrap_or_default();
    if !info.contains("rdb_changes_since_last_save:0\r") {
        return Err(format!("behind a SAVE nothing has changed, and INFO shows {info}"));
    }
    let before = ask(world, &conn, &words("DEBUG DIGEST"))?;
    drop(conn);
    let conn = restart(world, true)?;
    let after = ask(world, &conn, &words("DEBUG DIGEST"))?;
    if before != after {
        return Err(format!("the digest was {before:?} at SAVE and is {after:?} once loaded"));
    }
    let saves = &world.books.saves;
    for (what, count) in
        [("saves acknowledged", saves.promised), ("ends behind a save", saves.ends_saved() as u64)]
    {
        *world.tally.entry(what).or_default() += count;
    }
    Ok(conn)
}

/// What is loaded from an append-only file is there for good, before a rewrite and behind it.
fn appended(world: &mut World, mut conn: SimClient) -> Result<SimClient, String> {
    for rewrites in [false, true] {
        wait(world, EXPIRED_NS);
        if rewrites {
            let begun = ask(world, &conn, &words("BGREWRITEAOF"))?;
            if begun != Value::simple("Background append only file rewriting started") {
                return Err(format!("at the end BGREWRITEAOF is answered {begun:?}"));
            }
            wait(world, EXPIRED_NS);
        }
        let info = ask(world, &conn, &words("INFO persistence"))?;
        let info = info.as_str().unwrap_or_default();
        let wanted = [
            "aof_enabled:1",
            "aof_rewrite_in_progress:0",
            "aof_rewrite_scheduled:0",
            "aof_last_bgrewrite_status:ok",
            "aof_last_write_status:ok",
        ];
        if let Some(missing) = wanted.iter().find(|line| !info.contains(*line)) {
            return Err(format!("at the end INFO does not show {missing}: {info}"));
        }
        if shared(world)?.keyspace.journal().unrecorded() > 0 {
            return Err("a change has left no record".into());
        }
        let before = ask(world, &conn, &words("DEBUG DIGEST"))?;
        let keys = digests(world, &conn)?;
        drop(conn);
        conn = restart(world, true)?;
        let after = ask(world, &conn, &words("DEBUG DIGEST"))?;
        if before != after {
            let others = digests(world, &conn)?;
            let less: Vec<&String> = keys.difference(&others).collect();
            let more: Vec<&String> = others.difference(&keys).collect();
            return Err(format!(
                "the digest was {before:?} and is {after:?} behind a crash; rewritten: {rewrites}; \
                 before {less:?}, behind {more:?}"
            ));
        }
    }
    Ok(conn)
}

/// Each key with its digest.
fn digests(world: &mut World, conn: &SimClient) -> Result<BTreeSet<String>, String> {
    let mut all = BTreeSet::new();
    for db in 0..DATABASES {
        ask(world, conn, &words(&format!("SELECT {db}")))?;
        let keys = ask(world, conn, &words("KEYS *"))?;
        for key in keys.as_members().unwrap_or_default() {
            let key = key.as_str().unwrap_or_default();
            let digest = ask(world, conn, &words(&format!("DEBUG DIGEST-VALUE {key}")))?;
            let time = ask(world, conn, &words(&format!("PEXPIRETIME {key}")))?;
            all.insert(format!("{db} {key} {time:?} {digest:?}"));
        }
    }
    ask(world, conn, &words("SELECT 0"))?;
    Ok(all)
}

/// Kills the server, and perhaps its machine, and connects to the next one when it has loaded.
fn restart(world: &mut World, crashes: bool) -> Result<SimClient, String> {
    let group = world.host.as_ref().ok_or("there is no server at the end")?.group();
    world.baton.kill(group);
    until(world, "the server does not die", |w| w.baton.status(group) == Status::Killed)?;
    let files = world.machine.journal_files();
    world.note(WORLD, format_args!("{files}"));
    if crashes {
        world.note(WORLD, format_args!("the machine crashes at the end"));
        world.machine.disk.crash();
    }
    let files = world.machine.journal_files();
    world.note(WORLD, format_args!("{files}"));
    world.machine.check_history()?;
    let at = (world.tick(), world.now());
    world.books.saves.died(world.epoch, at, false);
    world.epoch += 1;
    world.reset_clock();
    let saved = world.machine.check_file()?;
    let machine = (&world.net, &world.machine);
    world.host = Some(Host::start(&world.baton, machine, (&world.plan, saved), world.epoch));
    until(world, "what was saved is not loaded", World::is_served)?;
    world.net.connect(&server_addr()).ok_or_else(|| "nobody listens at the end".into())
}

/// Lets time pass until it is so.
fn until(world: &mut World, what: &str, is: impl Fn(&World) -> bool) -> Result<(), String> {
    let end = world.now() + RESTART_NS_MAX;
    while !is(world) {
        if let Some(Err(why)) = world.host.as_ref().map(Host::shared) {
            return Err(why);
        }
        if world.now() >= end {
            return Err(what.into());
        }
        wait(world, MS);
    }
    Ok(())
}

/// Adds a reader of everything to the histories of each server: at the moment of the file it saw
/// what is there now. The books judge that with everything else.
fn histories(world: &mut World, conn: &SimClient) -> Result<(), String> {
    if world.plan.saves.is_some_and(|saves| saves.flushes) {
        return Ok(()); // a FLUSHALL has taken the marks
    }
    // Where everything is durable, histories go on: everybody sees all of them as they are now.
    let is_durable = world.plan.is_durable();
    let now = world.tick();
    for epoch in 0..world.epoch {
        let mark = ask(world, conn, &words(&format!("GET {}", saver::key(epoch))))?;
        let mark = mark.as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
        let on_request = world.plan.saves_on_request();
        let moment = match world.plan.journal {
            Some(_) => world.books.saves.appended(epoch, mark, world.plan.window_ns())?,
            None => world.books.saves.moment(epoch, mark, on_request)?,
        };
        let moment = if is_durable { now..=now } else { moment };
        world.note(WORLD, format_args!("server {epoch}: mark {mark}, moment {moment:?}"));
        let (call, ret) = (*moment.start(), *moment.end());
        if is_durable && epoch > 0 {
            continue;
        }
        for id in world.books.registers.of_epoch(epoch) {
            let reply = ask(world, conn, &registers::read(id))?;
            let did = registers::found(&reply).ok_or(format!("{id:?} is {reply:?}"))?;
            // A session of its own.
            let by = u64::MAX - u64::from(epoch) * REGISTERS as u64;
            world.books.registers.add(id, Op { did, call, ret, by });
            *world.tally.entry("registers read after loading").or_default() += 1;
        }
        for round in world.books.transactions.of_epoch(epoch) {
            let mut ops = Vec::new();
            for part in transactions::read_all(round) {
                let reply = ask(world, conn, part.args())?;
                ops.extend(part.done(&reply).ok_or(format!("a read is answered {reply:?}"))?);
            }
            let outcome = Outcome::Committed;
            world.books.transactions.add(round, Txn { outcome, call, ret, ops });
            *world.tally.entry("rounds read after loading").or_default() += 1;
        }
    }
    Ok(())
}

/// The numbers of all clients that transfer add up to zero, database by database.
fn sums(world: &mut World, conn: &SimClient) -> Result<(), String> {
    // What stood before a command that panicked stays.
    if world.plan.panics {
        return Ok(());
    }
    for db in 1..DATABASES {
        ask(world, conn, &words(&format!("SELECT {db}")))?;
        let keys = ask(world, conn, &words("KEYS l:*"))?;
        let mut total = 0;
        for key in keys.as_members().unwrap_or_default() {
            let key = key.as_str().unwrap_or_default();
            let reply = ask(world, conn, &words(&ledger::read(key)))?;
            total += ledger::sum(&reply);
            *world.tally.entry("accounts read after loading").or_default() += 1;
        }
        if total != 0 {
            return Err(format!("in database {db} of what was loaded transfers add up to {total}"));
        }
    }
    ask(world, conn, &words("SELECT 0"))?;
    Ok(())
}
