//! A handler accesses only keys which are locked for it. Requests of every command of the table are
//! generated from its syntax, with values which look like options, and options in any place and
//! order. Each runs twice on equal data: with the slots locked which [`keys::for_each`] finds, and
//! with all slots locked. An access to a key outside the locks is a panic of the guard. A key which
//! a handler skips because it is not locked leads to two different replies.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::common::requests::{Dice, NAMES, VALUES, database, populate, request};
use crate::common::session::Session;
use crate::common::with_args;
use base::DbIndex;
use command::{CommandSpec, Handler, LockClass, ServerOp, keys, registry};

/// The number of requests of each command.
const REQUESTS: usize = 300;
/// At least this many of them must succeed.
const RIGHT: usize = 5;
/// The number of requests after which all keys are reset.
const FRESH: usize = 100;

/// The reply, or the message of the panic.
fn run(session: &mut Session, request: &[&[u8]]) -> Result<Vec<u8>, String> {
    let run = || with_args(request, |args| session.reply_to(args).to_vec());
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
    })
}

#[test]
fn no_handler_accesses_a_key_which_is_not_locked() {
    let mut confined = Session::new();
    let mut whole = Session::new();
    whole.now = confined.now;
    whole.whole = true;
    let slot = |name: &str| confined.access.keyspace().key(name.as_bytes()).slot;
    let mut slots: Vec<_> = NAMES.iter().chain(&VALUES).map(|name| slot(name)).collect();
    slots.sort_unstable();
    slots.dedup();
    assert_eq!(slots.len(), NAMES.len() + VALUES.len(), "each name has a slot of its own");
    let is_tested = |spec: &CommandSpec| {
        let runs = matches!(spec.handler, Handler::Data(_) | Handler::Blocking(..));
        runs && matches!(spec.lock, LockClass::Keys | LockClass::Growing)
    };
    let (mut others, mut seldom, mut late) = (Vec::new(), Vec::new(), Vec::new());
    for spec in registry::all().map(command::CommandId::spec).filter(|s| !s.keys.is_empty()) {
        if !is_tested(spec) {
            others.push(spec.full_name);
            continue;
        }
        // One generator per command, so that a new command does not change the requests of others.
        let mut dice = Dice(base::crc64::crc64(0, spec.full_name.as_bytes()));
        let mut answered = 0;
        for i in 0..REQUESTS {
            if i % FRESH == 0 {
                populate(&mut confined);
                populate(&mut whole);
            }
            let request = request(spec, &mut dice);
            let db = DbIndex(database(spec, &mut dice));
            (confined.db, whole.db) = (db, db);
            let words: Vec<&[u8]> = request.iter().map(String::as_bytes).collect();
            let (mine, all) = (run(&mut confined, &words), run(&mut whole, &words));
            assert_eq!(
                mine.as_ref().map(|bytes| String::from_utf8_lossy(bytes)),
                all.as_ref().map(|bytes| String::from_utf8_lossy(bytes)),
                "{} in database {}",
                request.join(" "),
                db.0
            );
            if confined.changed_before_error && late.last() != Some(&spec.full_name) {
                late.push(spec.full_name);
            }
            confined.changed_before_error = false;
            answered += usize::from(mine.is_ok_and(|reply| !reply.starts_with(b"-")));
        }
        // RESTORE needs a payload with a valid checksum.
        if answered < RIGHT && spec.full_name != "restore" {
            seldom.push((spec.full_name, answered));
        }
    }
    assert!(seldom.is_empty(), "requests that are mostly wrong: {seldom:?}");
    assert!(late.is_empty(), "they change data before they find an error: {late:?}");
    // These run in the server. The next test covers the keys of MIGRATE; shard channels are none.
    assert_eq!(others, ["migrate", "watch", "spublish", "ssubscribe", "sunsubscribe"]);
}

/// MIGRATE transfers exactly the keys which are locked and frozen for it.
#[test]
fn migrate_transfers_exactly_the_locked_keys() {
    let mut dice = Dice(3);
    let spec = registry::lookup(b"migrate").expect("it is in the table").spec();
    let Handler::Server(parse) = spec.handler else { panic!("the server runs it") };
    let (mut several, mut single) = (0, 0);
    for _ in 0..20 * REQUESTS {
        let mut request = request(spec, &mut dice);
        if request.len() < 6 {
            continue;
        }
        request[4] = "0".to_owned();
        request[5] = "1000".to_owned();
        if dice.one_in(2) {
            request[3].clear();
        }
        let words: Vec<&[u8]> = request.iter().map(String::as_bytes).collect();
        with_args(&words, |args| {
            let Ok(ServerOp::Migrate(op)) = parse(args) else { return };
            let mut told = Vec::new();
            keys::for_each(spec, args, |key| told.push(args.get(key.arg))).expect("it is right");
            let taken: Vec<&[u8]> = op.keys.iter().map(|key| &key[..]).collect();
            assert_eq!(told, taken, "{}", request.join(" "));
            several += usize::from(taken.len() > 1);
            single += usize::from(taken.len() == 1);
        });
    }
    assert!(several > 100 && single > 100, "{several} with KEYS, {single} without");
}
