//! `DEBUG`: its arguments, and the replies that need no server.

use base::glob::{Case, matches};
use base::num::parse_i64;
use resp::{Args, Proto, Reply};

use crate::error::Error;
use crate::ops::{Bytes, DebugOp, Populate, ProtocolSample, ServerOp};
use crate::parse::is;

/// The prefix of keys that `DEBUG POPULATE` makes.
const POPULATE_PREFIX: &[u8] = b"key";
/// Longest sleep: a year. Longer ones are as good as this.
const SLEEP_SECONDS_MAX: f64 = 365.0 * 86_400.0;

/// `DEBUG subcommand ...`.
pub fn debug(args: Args<'_>) -> Result<ServerOp, Error> {
    let name = args.get(1);
    let op = match args.len() {
        2 if is(name, "HELP") => DebugOp::Help,
        3 if is(name, "SLEEP") => DebugOp::Sleep { seconds: seconds(args.get(2)) },
        4 if is(name, "HOLD") => {
            DebugOp::Hold { key: args.get(2).into(), seconds: seconds(args.get(3)) }
        }
        3 if is(name, "OBJECT") => DebugOp::Object { key: args.get(2).into() },
        3 if is(name, "SET-ACTIVE-EXPIRE") => DebugOp::SetActiveExpire(is_set(args.get(2))),
        2 if is(name, "CHANGE-REPL-ID") => DebugOp::ChangeReplId,
        3 if is(name, "LISTPACK") => DebugOp::Listpack { key: args.get(2).into() },
        3..=4 if is(name, "QUICKLIST") => DebugOp::Quicklist {
            key: args.get(2).into(),
            full: args.try_get(3).is_some_and(is_set),
        },
        3 if is(name, "SET-SKIP-CHECKSUM-VALIDATION") => {
            DebugOp::SkipChecksums(is_set(args.get(2)))
        }
        3 if is(name, "QUICKLIST-PACKED-THRESHOLD") => {
            DebugOp::QuicklistPackedThreshold { size: args.get(2).into() }
        }
        3 if is(name, "HTSTATS") => {
            DebugOp::HtStats { db: parse_i64(args.get(2)).ok_or(Error::NotInteger)? }
        }
        3 if is(name, "HTSTATS-KEY") => DebugOp::HtStatsKey { key: args.get(2).into() },
        3 if is(name, "DICT-RESIZING") => DebugOp::DictResizing(is_set(args.get(2))),
        2 if is(name, "DIGEST") => DebugOp::Digest,
        2.. if is(name, "DIGEST-VALUE") => {
            DebugOp::DigestValue(args.from(2).iter().map(Bytes::from).collect())
        }
        3 if is(name, "ERROR") => DebugOp::Error(args.get(2).into()),
        3 if is(name, "LOG") => DebugOp::Log(args.get(2).into()),
        2 if is(name, "STRUCTSIZE") => DebugOp::StructSize,
        2.. if is(name, "RELOAD") => reload(args)?,
        2.. if is(name, "LOADAOF") => DebugOp::LoadAof,
        3 if is(name, "SDSLEN") => DebugOp::SdsLen { key: args.get(2).into() },
        3 if is(name, "PAUSE-CRON") => DebugOp::PauseCron(is_set(args.get(2))),
        3 if is(name, "MOVE-CLIENTS") => DebugOp::MoveClients(is_set(args.get(2))),
        3 if is(name, "LEAK") => DebugOp::Leak(args.get(2).into()),
        3 if is(name, "PROTOCOL") => DebugOp::Protocol(sample(args.get(2))?),
        4 if is(name, "STRINGMATCH-LEN") => string_match(args)?,
        3..=5 if is(name, "POPULATE") => DebugOp::Populate(populate(args)?),
        2..=5 if is(name, "PANIC-IN-COMMAND") => panic_in_command(args, false)?,
        3..=5 if is(name, "FAIL-IN-COMMAND") => panic_in_command(args, true)?,
        3 if is(name, "SAFE-UP-TO") => DebugOp::SafeUpTo(safe_up_to(args.get(2))?),
        _ => return Err(Error::subcommand_syntax("DEBUG", name)),
    };
    Ok(ServerOp::Debug(op))
}

/// Whether a request is one of the `DEBUG` subcommands that do not take the whole keyspace: `HOLD`,
/// `LISTPACK` and `QUICKLIST` take one slot, `SAFE-UP-TO` none, so that its own reply waits for
/// nothing that it has read.
pub fn spares_world(args: Args<'_>) -> bool {
    let begins = |at, word| args.try_get(at).is_some_and(|name| is(name, word));
    let numbers = begins(1, "SAFE-UP-TO") && !begins(2, "ALL");
    let one_slot = ["HOLD", "LISTPACK", "QUICKLIST"].iter().any(|word| begins(1, word));
    begins(0, "DEBUG") && (one_slot || numbers)
}

/// `ALL` or a number.
fn safe_up_to(text: &[u8]) -> Result<Option<u64>, Error> {
    if is(text, "ALL") { Ok(None) } else { positive(text).map(Some) }
}

/// Seconds with decimals; what is no number is none.
fn seconds(text: &[u8]) -> f64 {
    let seconds = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
    seconds.filter(|s| *s > 0.0).unwrap_or(0.0).min(SLEEP_SECONDS_MAX)
}

/// A number other than 0; what is no number is 0.
fn is_set(text: &[u8]) -> bool {
    parse_i64(text).is_some_and(|n| n != 0)
}

fn positive(text: &[u8]) -> Result<u64, Error> {
    parse_i64(text).and_then(|n| u64::try_from(n).ok()).ok_or(Error::NotPositive)
}

fn string_match(args: Args<'_>) -> Result<DebugOp, Error> {
    let len = positive(args.get(2))? as usize;
    Ok(DebugOp::StringMatchLen { len, pattern: args.get(3).into() })
}

fn populate(args: Args<'_>) -> Result<Populate, Error> {
    let count = positive(args.get(2))?;
    let prefix = args.try_get(3).unwrap_or(POPULATE_PREFIX).into();
    let value_len = args.try_get(4).map_or(Ok(0), positive)?;
    Ok(Populate { count, prefix, value_len })
}

/// MERGE says that keys which are there are replaced, which they are in any case. (Redis 7.0 aborts
/// where it finds one.)
fn reload(args: Args<'_>) -> Result<DebugOp, Error> {
    let (mut saves, mut flushes) = (true, true);
    for word in args.from(2) {
        match word {
            _ if is(word, "NOSAVE") => saves = false,
            _ if is(word, "NOFLUSH") => flushes = false,
            _ if is(word, "MERGE") => {}
            _ => return Err(Error::DebugReload),
        }
    }
    Ok(DebugOp::Reload { saves, flushes })
}

fn panic_in_command(args: Args<'_>, is_error: bool) -> Result<DebugOp, Error> {
    let command = args.try_get(2).map(|name| Bytes::from(name.to_ascii_lowercase()));
    let number = |at| {
        let number = args.try_get(at).map_or(Ok(0), positive)?;
        u32::try_from(number).map_err(|_| Error::NotPositive)
    };
    let (after_changes, after_runs) = (number(3)?, number(4)?);
    Ok(DebugOp::PanicInCommand { command, after_changes, after_runs, is_error })
}

const SAMPLES: [(&str, ProtocolSample); 13] = [
    ("STRING", ProtocolSample::String),
    ("INTEGER", ProtocolSample::Integer),
    ("DOUBLE", ProtocolSample::Double),
    ("BIGNUM", ProtocolSample::BigNumber),
    ("NULL", ProtocolSample::Null),
    ("ARRAY", ProtocolSample::Array),
    ("SET", ProtocolSample::Set),
    ("MAP", ProtocolSample::Map),
    ("ATTRIB", ProtocolSample::Attribute),
    ("PUSH", ProtocolSample::Push),
    ("VERBATIM", ProtocolSample::Verbatim),
    ("TRUE", ProtocolSample::Bool(true)),
    ("FALSE", ProtocolSample::Bool(false)),
];

fn sample(name: &[u8]) -> Result<ProtocolSample, Error> {
    let found = SAMPLES.into_iter().find(|(word, _)| is(name, word));
    found.map(|(_, sample)| sample).ok_or(Error::DebugProtocolType)
}

/// `DEBUG STRINGMATCH-LEN`: 1 if the pattern matches so many `a`s.
pub fn reply_string_match(reply: &mut Reply<'_>, len: usize, pattern: &[u8], len_max: usize) {
    let text = vec![b'a'; len.min(len_max)];
    reply.integer(matches(pattern, &text, Case::Sensitive).into());
}

/// `DEBUG PROTOCOL`: a sample of one kind of reply.
pub fn reply_sample(reply: &mut Reply<'_>, sample: ProtocolSample) -> Result<(), Error> {
    match sample {
        ProtocolSample::String => reply.bulk(b"Hello World"),
        ProtocolSample::Integer => reply.integer(12_345),
        ProtocolSample::Double => reply.double_text(b"3.141"),
        ProtocolSample::BigNumber => reply.big_number(b"1234567999999999999999999999999999999"),
        ProtocolSample::Null => reply.null(),
        ProtocolSample::Array => {
            reply.array(3);
            (0..3).for_each(|n| reply.integer(n));
        }
        ProtocolSample::Set => {
            reply.set(3);
            (0..3).for_each(|n| reply.integer(n));
        }
        ProtocolSample::Map => {
            reply.map(3);
            for n in 0..3 {
                reply.integer(n);
                reply.bool(n == 1);
            }
        }
        ProtocolSample::Attribute => {
            if reply.attribute(1) {
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.integer(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        ProtocolSample::Push => {
            if reply.proto() == Proto::Resp2 {
                return Err(Error::Resp3Only);
            }
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.integer(42);
            reply.bulk(b"Some real reply following the push reply");
        }
        ProtocolSample::Verbatim => reply.verbatim(*b"txt", b"This is a verbatim\nstring"),
        ProtocolSample::Bool(value) => reply.bool(value),
    }
    Ok(())
}
