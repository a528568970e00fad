//! Whole journals of random requests: a file of all records makes an empty session hold the same.
//!
//! `REPLAYED_SEED` and `REPLAYED_JOURNALS` choose other journals; a failure names its seed.

use crate::common::pair::{Pair, content};
use crate::common::requests::{Dice, MIXED, NAMES, database, populate, request};
use crate::common::session::Session;
use crate::common::with_args;
use base::{DbIndex, UnixMs};
use command::{CommandSpec, Handler, LockClass, registry};
use journal::{Item, Moment, Reader, record};
use keyspace::Due;

/// Journals of a run, and requests of each.
const JOURNALS: u64 = 60;
const REQUESTS: usize = 250;
/// Requests of a transaction at most.
const TOGETHER_MAX: usize = 6;
const DATABASES: u32 = 16;
/// The file is read so long after it was written.
const LATER_MS: i64 = 3 * 3_600_000;

fn env_or(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Commands that run as a request on keys.
fn runs(spec: &CommandSpec) -> bool {
    let locks = matches!(spec.lock, LockClass::Keys | LockClass::Growing);
    locks && matches!(spec.handler, Handler::Data(_) | Handler::Blocking(..))
}

#[test]
fn a_file_of_all_records_makes_the_same_data() {
    let seed = env_or("REPLAYED_SEED", 1);
    let specs: Vec<_> = registry::all().map(command::CommandId::spec).filter(|s| runs(s)).collect();
    let (mut commands, mut bytes) = (0, 0);
    for seed in seed..seed + env_or("REPLAYED_JOURNALS", JOURNALS) {
        let mut dice = Dice(seed);
        let mut pair = Pair::new();
        pair.bytes = Some(Vec::new());
        populate(&mut pair.first);
        pair.repeat();
        for _ in 0..REQUESTS {
            step(&mut pair, &specs, &mut dice);
        }
        let expected = held(&mut pair.first);
        pair.repeat(); // what was due is gone now
        let records = pair.bytes.take().expect("they were kept");
        let file = written(&records, &mut dice);
        let mut empty = Session::new();
        (empty.due, empty.whole) = (Due::Ignore, true);
        empty.now = UnixMs(pair.first.now.0 + LATER_MS);
        commands += replay(&file, 1 + dice.below(3000), &mut empty, seed);
        bytes += file.len();
        for ((name, expected), got) in expected.iter().zip(held(&mut empty)) {
            assert_eq!((name, expected), (&got.0, &got.1), "seed {seed}");
        }
    }
    println!("{commands} commands in {bytes} bytes");
}

/// A request of any command, or several in a transaction, and some time.
fn step(pair: &mut Pair, specs: &[&'static CommandSpec], dice: &mut Dice) {
    let spec = specs[dice.below(specs.len())];
    let mixed = dice.one_in(3);
    pair.first.db = DbIndex(if mixed { MIXED } else { database(spec, dice) });
    pair.first.whole = true;
    if dice.one_in(5) {
        let count = 1 + dice.below(TOGETHER_MAX);
        let lines: Vec<String> = (0..count).filter_map(|_| transacted(specs, dice)).collect();
        pair.together(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    } else {
        let request = request(spec, dice);
        pair.run(&request.iter().map(String::as_bytes).collect::<Vec<_>>());
    }
    if dice.one_in(3) {
        pair.pass(dice.below(900));
    }
    if dice.one_in(60) {
        populate(&mut pair.first);
        pair.repeat();
    }
}

/// A request for a transaction: one that is known, and cannot wait.
fn transacted(specs: &[&'static CommandSpec], dice: &mut Dice) -> Option<String> {
    let spec = specs[dice.below(specs.len())];
    let request = request(spec, dice);
    let words: Vec<&[u8]> = request.iter().map(String::as_bytes).collect();
    let found = with_args(&words, |args| registry::find(args).map(command::CommandId::spec).ok())?;
    matches!(found.handler, Handler::Data(_)).then(|| request.join(" "))
}

/// A file of these records: each behind the database that it is for if that is another one, with
/// annotations between them.
fn written(records: &[(DbIndex, Vec<u8>)], dice: &mut Dice) -> Vec<u8> {
    let (mut file, mut selected) = (Vec::new(), None);
    for (number, (db, bytes)) in records.iter().enumerate() {
        if dice.one_in(5) {
            Moment { number: number as u64, unix_ms: 1_700_000_000_123 }.annotate(&mut file);
        }
        if selected != Some(*db) {
            record::write_select(&mut file, db.0);
        }
        file.extend_from_slice(bytes);
        selected = Some(*db);
        // A record may end in another database than it began in.
        if bytes.windows(8).any(|some| some == b"\nSELECT\r") {
            selected = None;
        }
    }
    file
}

/// Runs what a file says, which comes in blocks of this size. Returns the number of commands.
fn replay(file: &[u8], block: usize, session: &mut Session, seed: u64) -> usize {
    let (mut reader, mut blocks, mut count) = (Reader::new(0), file.chunks(block), 0);
    session.db = DbIndex(0);
    loop {
        let words: Vec<Vec<u8>> = match reader.next().expect("it is whole") {
            Some(Item::Command(words)) => words.iter().map(<[u8]>::to_vec).collect(),
            Some(Item::Annotation { .. }) => continue,
            None => match blocks.next() {
                Some(block) => {
                    reader.feed(block);
                    continue;
                }
                None => break,
            },
        };
        count += 1;
        match &words[0][..] {
            b"MULTI" | b"EXEC" => {}
            b"SELECT" => {
                let db = std::str::from_utf8(&words[1]).expect("a number").parse();
                session.db = DbIndex(db.expect("a number"));
            }
            _ => {
                let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                let reply = with_args(&words, |args| session.reply_to(args)).to_vec();
                let text = String::from_utf8_lossy(&reply);
                assert!(!text.starts_with('-'), "seed {seed}: {words:?}: {text}");
            }
        }
    }
    assert_eq!(reader.finish(), Ok(()), "seed {seed}");
    count
}

/// What each name holds in each database.
fn held(session: &mut Session) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for db in 0..DATABASES {
        session.db = DbIndex(db);
        for name in NAMES {
            all.push((format!("{name} in {db}"), content(session, name.as_bytes())));
        }
    }
    all
}
