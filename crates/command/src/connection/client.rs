//! The arguments of `CLIENT`.

use base::num::parse_i64;
use resp::Args;

use crate::error::Error;
use crate::ops::{
    Bytes, ClientFilter, ClientKill, ClientOp, ClientType, KillFilters, LibraryFact, ReplyMode,
    SessionOp,
};
use crate::parse::{self, is};

/// Whether a text can stand in a line of CLIENT LIST: printable, and no space.
fn is_printable(text: &[u8]) -> bool {
    text.iter().all(|b| matches!(b, b'!'..=b'~'))
}

/// A valid name for a client.
pub(super) fn name(text: &[u8]) -> Result<Bytes, Error> {
    if is_printable(text) { Ok(text.into()) } else { Err(Error::ClientName) }
}

/// `CLIENT GETNAME`.
pub fn getname(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Client(ClientOp::GetName))
}

/// `CLIENT SETNAME name`.
pub fn setname(args: Args<'_>) -> Result<SessionOp, Error> {
    name(args.get(2)).map(|name| SessionOp::Client(ClientOp::SetName(name)))
}

/// `CLIENT SETINFO LIB-NAME|LIB-VER text`.
pub fn setinfo(args: Args<'_>) -> Result<SessionOp, Error> {
    let (option, text) = (args.get(2), args.get(3));
    let value = |name| {
        if is_printable(text) { Ok(text.into()) } else { Err(Error::ClientInfoValue(name)) }
    };
    let fact = if is(option, "LIB-NAME") {
        LibraryFact::Name(value("lib-name")?)
    } else if is(option, "LIB-VER") {
        LibraryFact::Version(value("lib-ver")?)
    } else {
        return Err(Error::ClientInfoOption(option.into()));
    };
    Ok(SessionOp::Client(ClientOp::SetInfo(fact)))
}

/// `CLIENT ID`.
pub fn id(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Client(ClientOp::Id))
}

/// `CLIENT INFO`.
pub fn info(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Client(ClientOp::Info))
}

/// `CLIENT LIST [TYPE type | ID id ...]`.
pub fn list(args: Args<'_>) -> Result<SessionOp, Error> {
    let filter = match args.len() {
        2 => ClientFilter::All,
        4 if is(args.get(2), "TYPE") => ClientFilter::Type(kind(args.get(3))?),
        4.. if is(args.get(2), "ID") => {
            let id = |arg| parse_i64(arg).ok_or(Error::ClientId);
            ClientFilter::Ids(args.from(3).iter().map(id).collect::<Result<_, _>>()?)
        }
        _ => return Err(Error::Syntax),
    };
    Ok(SessionOp::Client(ClientOp::List(filter)))
}

fn kind(word: &[u8]) -> Result<ClientType, Error> {
    if is(word, "NORMAL") {
        Ok(ClientType::Normal)
    } else if is(word, "SLAVE") || is(word, "REPLICA") {
        Ok(ClientType::Replica)
    } else if is(word, "PUBSUB") {
        Ok(ClientType::PubSub)
    } else if is(word, "MASTER") {
        Ok(ClientType::Master)
    } else {
        Err(Error::ClientType(word.into()))
    }
}

/// `CLIENT KILL ip:port`, or with filters.
pub fn kill(args: Args<'_>) -> Result<SessionOp, Error> {
    let kill = if args.len() == 3 {
        ClientKill::Address(args.get(2).into())
    } else {
        ClientKill::Filters(kill_filters(args)?)
    };
    Ok(SessionOp::Client(ClientOp::Kill(kill)))
}

fn kill_filters(args: Args<'_>) -> Result<KillFilters, Error> {
    let mut filters = KillFilters {
        id: None,
        kind: None,
        address: None,
        local_address: None,
        user: None,
        skip_me: true,
    };
    let mut at = 2;
    while at < args.len() {
        let option = args.get(at);
        let value = args.try_get(at + 1).ok_or(Error::Syntax)?;
        if is(option, "ID") {
            let id = parse_i64(value).filter(|id| *id > 0).ok_or(Error::ClientIdPositive)?;
            filters.id = Some(id.unsigned_abs());
        } else if is(option, "TYPE") {
            filters.kind = Some(kind(value)?);
        } else if is(option, "ADDR") {
            filters.address = Some(value.into());
        } else if is(option, "LADDR") {
            filters.local_address = Some(value.into());
        } else if is(option, "USER") {
            filters.user = Some(user(value)?);
        } else if is(option, "SKIPME") && is(value, "YES") {
            filters.skip_me = true;
        } else if is(option, "SKIPME") && is(value, "NO") {
            filters.skip_me = false;
        } else {
            return Err(Error::Syntax);
        }
        at += 2;
    }
    Ok(filters)
}

/// A user that exists: this version has only the default one.
fn user(name: &[u8]) -> Result<Bytes, Error> {
    if name == b"default" { Ok(name.into()) } else { Err(Error::NoSuchUser(name.into())) }
}

/// `CLIENT NO-EVICT ON|OFF`.
pub fn no_evict(args: Args<'_>) -> Result<SessionOp, Error> {
    parse::on_off(args.get(2)).map(|on| SessionOp::Client(ClientOp::NoEvict(on)))
}

/// `CLIENT NO-TOUCH ON|OFF`.
pub fn no_touch(args: Args<'_>) -> Result<SessionOp, Error> {
    parse::on_off(args.get(2)).map(|on| SessionOp::Client(ClientOp::NoTouch(on)))
}

/// `CLIENT PAUSE timeout [WRITE|ALL]`.
pub fn pause(args: Args<'_>) -> Result<SessionOp, Error> {
    if args.len() > 4 {
        return Err(Error::subcommand_syntax("CLIENT", args.get(1)));
    }
    let writes_only = match args.try_get(3) {
        None => false,
        Some(mode) if is(mode, "ALL") => false,
        Some(mode) if is(mode, "WRITE") => true,
        Some(_) => return Err(Error::PauseMode),
    };
    let timeout = parse_i64(args.get(2)).ok_or(Error::TimeoutNotInteger)?;
    let timeout_ms = u64::try_from(timeout).map_err(|_| Error::TimeoutNegative)?;
    Ok(SessionOp::Client(ClientOp::Pause { timeout_ms, writes_only }))
}

/// `CLIENT UNPAUSE`.
pub fn unpause(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Client(ClientOp::Unpause))
}

/// `CLIENT REPLY ON|OFF|SKIP`.
pub fn reply(args: Args<'_>) -> Result<SessionOp, Error> {
    let word = args.get(2);
    let mode = if is(word, "ON") {
        ReplyMode::On
    } else if is(word, "OFF") {
        ReplyMode::Off
    } else if is(word, "SKIP") {
        ReplyMode::Skip
    } else {
        return Err(Error::Syntax);
    };
    Ok(SessionOp::Client(ClientOp::Reply(mode)))
}

/// `CLIENT UNBLOCK id [TIMEOUT|ERROR]`.
pub fn unblock(args: Args<'_>) -> Result<SessionOp, Error> {
    if args.len() > 4 {
        return Err(Error::subcommand_syntax("CLIENT", args.get(1)));
    }
    let with_error = match args.try_get(3) {
        None => false,
        Some(reason) if is(reason, "TIMEOUT") => false,
        Some(reason) if is(reason, "ERROR") => true,
        Some(_) => return Err(Error::UnblockReason),
    };
    let id = parse::integer(args.get(2))?;
    Ok(SessionOp::Client(ClientOp::Unblock { id, with_error }))
}
