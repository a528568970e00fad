//! The effect of a command depends only on its request and on the data, or its row declares that
//! its request is not its record.

use crate::common::requests::{Dice, NAMES, database, populate, request};
use crate::common::session::Session;
use crate::common::with_args;
use base::DbIndex;
use command::spec::{Flags, Traits};
use command::{CommandSpec, Handler, LockClass, registry};
use std::collections::BTreeSet;

/// The number of requests of each command.
const REQUESTS: usize = 200;
/// Milliseconds between the two runs of a request.
const LATER_MS: i64 = 7;

/// The DUMP of all keys, with their expiries.
fn state(session: &mut Session) -> Vec<(u32, Vec<u8>, Vec<u8>)> {
    let (db, whole) = (session.db, std::mem::replace(&mut session.whole, true));
    let mut all = Vec::new();
    for at in 0..16 {
        session.db = DbIndex(at);
        for name in NAMES {
            for read in ["DUMP", "PEXPIRETIME"] {
                let request = [read.as_bytes(), name.as_bytes()];
                let reply = with_args(&request, |args| session.reply_to(args).to_vec());
                all.push((at, name.as_bytes().to_vec(), reply));
            }
        }
    }
    (session.db, session.whole) = (db, whole);
    all
}

/// Commands which this test cannot check: blocking commands would block again without a client to
/// serve them, and no request generates the payload of RESTORE. `recorded.rs` checks their records.
const UNSEEN: [&str; 10] = [
    "blmove",
    "blmovem",
    "blmpop",
    "blpop",
    "brpop",
    "brpoplpush",
    "bzmpop",
    "bzpopmax",
    "bzpopmin",
    "restore",
];

#[test]
fn repeating_a_request_repeats_its_effect() {
    let is_tested = |spec: &CommandSpec| {
        let runs = matches!(spec.handler, Handler::Data(_) | Handler::Blocking(..));
        runs && matches!(spec.lock, LockClass::Keys | LockClass::Growing)
            && spec.flags.contains(Flags::WRITE)
    };
    let mut dice = Dice(11);
    let mut sessions = [Session::new(), Session::new()];
    let now = sessions[0].now;
    for (n, session) in sessions.iter_mut().enumerate() {
        session.whole = true;
        session.now = now;
        session.tally.random = n as u64 * 1000;
    }
    let (mut wrong, mut marked, mut seen) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for spec in registry::all().map(command::CommandId::spec).filter(|spec| is_tested(spec)) {
        let is_marked = spec.traits.contains(Traits::OWN_RECORD);
        if is_marked {
            marked.insert(spec.full_name);
        }
        sessions.iter_mut().for_each(populate);
        for _ in 0..REQUESTS {
            let request = request(spec, &mut dice);
            let db = DbIndex(database(spec, &mut dice));
            let words: Vec<&[u8]> = request.iter().map(String::as_bytes).collect();
            let [before, after] = &mut sessions;
            for (session, later) in [(&mut *before, 0), (&mut *after, LATER_MS)] {
                session.db = db;
                session.now.0 = now.0 + later;
                with_args(&words, |args| session.reply_to(args));
                session.now = now;
            }
            if !before.changed && !after.changed {
                continue;
            }
            if state(before) == state(after) {
                continue;
            }
            seen.insert(spec.full_name);
            if !is_marked {
                wrong.push(format!("{}: {}", spec.full_name, request.join(" ")));
            }
            sessions.iter_mut().for_each(populate);
        }
        wrong.dedup_by(|a, b| a.split(':').next() == b.split(':').next());
    }
    assert!(wrong.is_empty(), "their requests are no records:\n{}", wrong.join("\n"));
    let unseen: BTreeSet<&str> = UNSEEN.into_iter().collect();
    let never: BTreeSet<&str> = marked.difference(&seen).copied().collect();
    assert_eq!(never, unseen, "marked, and its requests are records");
}
