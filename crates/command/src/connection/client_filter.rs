//! The filters of `CLIENT LIST` and `CLIENT KILL`: those of Redis 7.2, and those that Valkey 9 adds
//! (<https://valkey.io/commands/client-list/>, <https://valkey.io/commands/client-kill/>).

use base::num::parse_i64;
use resp::Args;

use crate::error::{self, ClientFlags, Error, NoSuchUser};
use crate::ops::{Bytes, ClientFact, ClientFilters, ClientRule, ClientType};
use crate::parse::{self, is};

/// The letters of `flags=` that are documented.
const FLAGS: &[u8] = b"AbcdeiMNOPrSuUxtTRBI";
/// What begins a filter, without `NOT-`.
const WORDS: [&str; 15] = [
    "ID", "TYPE", "USER", "ADDR", "LADDR", "SKIPME", "MAXAGE", "IDLE", "FLAGS", "NAME", "LIB-NAME",
    "LIB-VER", "DB", "IP", "CAPA",
];

/// What the filters are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// To show clients.
    List,
    /// To close them.
    Kill,
}

/// The filters from the third word on.
///
/// # Errors
/// Syntax, and the errors of each filter's value.
pub fn parse(args: Args<'_>, purpose: Use) -> Result<ClientFilters, Error> {
    let mut filters = ClientFilters { rules: Vec::new(), skip_me: purpose == Use::Kill };
    let mut at = 2;
    while at < args.len() {
        let (word, is_not) = without_not(args.get(at));
        let value = args.try_get(at + 1).ok_or(Error::Syntax)?;
        at += 2;
        if is(word, "SKIPME") && !is_not {
            filters.skip_me = is(value, "YES");
            if !filters.skip_me && !is(value, "NO") {
                return Err(Error::Syntax);
            }
            continue;
        }
        let fact = if is(word, "ID") {
            let (ids, next) = ids(args, at - 1, purpose)?;
            at = next;
            ClientFact::Ids(ids)
        } else {
            fact(word, value, purpose)?
        };
        if is_not && matches!(fact, ClientFact::Age { .. } | ClientFact::Idle { .. }) {
            return Err(Error::Syntax);
        }
        // Ids add up; of everything else the last one of its kind counts.
        if let ClientFact::Ids(ids) = &fact
            && let Some(known) = filters.ids_mut(is_not)
        {
            known.extend(ids);
            continue;
        }
        let rule = ClientRule { fact, is_not };
        let is_same = |r: &ClientRule| {
            r.is_not == is_not
                && std::mem::discriminant(&r.fact) == std::mem::discriminant(&rule.fact)
        };
        filters.rules.retain(|r| !is_same(r));
        filters.rules.push(rule);
    }
    Ok(filters)
}

impl ClientFilters {
    /// The ids asked for so far, in or out.
    fn ids_mut(&mut self, is_not: bool) -> Option<&mut Vec<i64>> {
        self.rules.iter_mut().find_map(|rule| match &mut rule.fact {
            ClientFact::Ids(ids) if rule.is_not == is_not => Some(ids),
            _ => None,
        })
    }
}

/// A filter's word without `NOT-`, and whether it had that.
fn without_not(word: &[u8]) -> (&[u8], bool) {
    match word.split_at_checked(4) {
        Some((not, rest)) if is(not, "NOT-") => (rest, true),
        _ => (word, false),
    }
}

fn begins_filter(word: &[u8]) -> bool {
    let (word, _) = without_not(word);
    WORDS.iter().any(|known| is(word, known))
}

/// One id or more, and where the filters go on.
fn ids(args: Args<'_>, from: usize, purpose: Use) -> Result<(Vec<i64>, usize), Error> {
    let mut ids = Vec::new();
    for at in from..args.len() {
        let word = args.get(at);
        let id = parse_i64(word);
        if !ids.is_empty() && id.is_none() && (purpose == Use::Kill || begins_filter(word)) {
            return Ok((ids, at));
        }
        ids.push(match purpose {
            Use::List => id.ok_or(Error::ClientId)?,
            Use::Kill => id.filter(|id| *id > 0).ok_or(Error::ClientIdPositive)?,
        });
    }
    Ok((ids, args.len()))
}

fn fact(word: &[u8], value: &[u8], purpose: Use) -> Result<ClientFact, Error> {
    let text = || Bytes::from(value);
    Ok(if is(word, "TYPE") {
        ClientFact::Type(kind(value)?)
    } else if is(word, "USER") {
        ClientFact::User(user(value)?)
    } else if is(word, "ADDR") {
        ClientFact::Address(text())
    } else if is(word, "LADDR") {
        ClientFact::LocalAddress(text())
    } else if is(word, "MAXAGE") {
        let age: i64 = parse::integer(value)?;
        // Documented so: LIST takes milliseconds, KILL seconds.
        let unit = if purpose == Use::List { 1 } else { 1000 };
        ClientFact::Age { at_least_ms: age.saturating_mul(unit) }
    } else if is(word, "IDLE") {
        ClientFact::Idle { at_least_s: parse::integer(value)? }
    } else if is(word, "FLAGS") {
        let is_known = !value.is_empty() && value.iter().all(|letter| FLAGS.contains(letter));
        ClientFact::Flags(if is_known {
            text()
        } else {
            return Err(ClientFlags { word: value.into() }.into());
        })
    } else if is(word, "NAME") {
        ClientFact::Name(text())
    } else if is(word, "LIB-NAME") {
        ClientFact::LibraryName(text())
    } else if is(word, "LIB-VER") {
        ClientFact::LibraryVersion(text())
    } else if is(word, "DB") {
        ClientFact::Database(parse::integer(value)?)
    } else if is(word, "IP") {
        ClientFact::Ip(text())
    } else if is(word, "CAPA") {
        ClientFact::Capabilities(text())
    } else {
        return Err(Error::Syntax);
    })
}

fn kind(word: &[u8]) -> Result<ClientType, Error> {
    if is(word, "NORMAL") {
        Ok(ClientType::Normal)
    } else if is(word, "SLAVE") || is(word, "REPLICA") {
        Ok(ClientType::Replica)
    } else if is(word, "PUBSUB") {
        Ok(ClientType::PubSub)
    } else if is(word, "MASTER") || is(word, "PRIMARY") {
        Ok(ClientType::Master)
    } else {
        Err(error::ClientType { word: word.into() }.into())
    }
}

/// A user that exists: this version has only the default one.
fn user(name: &[u8]) -> Result<Bytes, Error> {
    if name == b"default" { Ok(name.into()) } else { Err(NoSuchUser { name: name.into() }.into()) }
}
