//! The arguments of `CLIENT`.

use resp::Args;

use super::client_filter::{self as filter, Use};
use crate::error::{ClientInfoOption, ClientInfoValue, Error};
use crate::ops::{Bytes, ClientKill, ClientOp, LibraryFact, ReplyMode, SessionOp, Tracking};
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
        if is_printable(text) { Ok(text.into()) } else { Err(ClientInfoValue { name }) }
    };
    let fact = if is(option, "LIB-NAME") {
        LibraryFact::Name(value("lib-name")?)
    } else if is(option, "LIB-VER") {
        LibraryFact::Version(value("lib-ver")?)
    } else {
        return Err(ClientInfoOption { word: option.into() }.into());
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

/// `CLIENT LIST [filter value ...]`.
pub fn list(args: Args<'_>) -> Result<SessionOp, Error> {
    filter::parse(args, Use::List).map(|filters| SessionOp::Client(ClientOp::List(filters)))
}

/// `CLIENT KILL ip:port`, or with filters.
pub fn kill(args: Args<'_>) -> Result<SessionOp, Error> {
    let kill = if args.len() == 3 {
        ClientKill::Address(args.get(2).into())
    } else {
        ClientKill::Filters(filter::parse(args, Use::Kill)?)
    };
    Ok(SessionOp::Client(ClientOp::Kill(kill)))
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
    let timeout_ms = parse::timeout_integer(args.get(2))?;
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

/// `CLIENT TRACKING ON|OFF [REDIRECT id] [PREFIX prefix ...] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]`.
/// What is wrong behind a client that does not exist is not looked at, as in Redis.
pub fn tracking(args: Args<'_>) -> Result<SessionOp, Error> {
    let mut asked = Tracking { on: parse::on_off(args.get(2)).ok(), ..Tracking::default() };
    if let Err(e) = tracking_options(args, &mut asked) {
        if asked.redirect.is_none() {
            return Err(e);
        }
        asked.wrong = Some(Box::new(e));
    }
    Ok(SessionOp::Client(ClientOp::Tracking(asked)))
}

fn tracking_options(args: Args<'_>, asked: &mut Tracking) -> Result<(), Error> {
    let mut at = 3;
    while let Some(word) = args.try_get(at) {
        let value = args.try_get(at + 1);
        at += 1;
        if is(word, "BCAST") {
            asked.broadcast = true;
        } else if is(word, "OPTIN") {
            asked.opt_in = true;
        } else if is(word, "OPTOUT") {
            asked.opt_out = true;
        } else if is(word, "NOLOOP") {
            asked.no_loop = true;
        } else if is(word, "REDIRECT")
            && let Some(id) = value
        {
            if asked.redirect.is_some() {
                return Err(Error::SecondRedirection);
            }
            asked.redirect = Some(parse::integer(id)?);
            at += 1;
        } else if is(word, "PREFIX")
            && let Some(prefix) = value
        {
            asked.prefixes.push(prefix.into());
            at += 1;
        } else {
            return Err(Error::Syntax);
        }
    }
    Ok(())
}

/// `CLIENT CACHING YES|NO`.
pub fn caching(args: Args<'_>) -> Result<SessionOp, Error> {
    let word = args.get(2);
    let caches = if is(word, "YES") {
        Some(true)
    } else if is(word, "NO") {
        Some(false)
    } else {
        None
    };
    Ok(SessionOp::Client(ClientOp::Caching(caches)))
}

/// `CLIENT TRACKINGINFO`.
pub fn trackinginfo(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Client(ClientOp::TrackingInfo))
}

/// `CLIENT GETREDIR`.
pub fn getredir(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Client(ClientOp::Redirection))
}

/// `CLIENT CAPA capability ...`: what a client can do, for filters; this server redirects nobody.
/// Unknown ones are ignored, as the documentation demands
/// (<https://valkey.io/commands/client-capa/>).
pub fn capa(args: Args<'_>) -> Result<SessionOp, Error> {
    let redirect = args.from(2).iter().any(|word| is(word, "REDIRECT"));
    Ok(SessionOp::Client(ClientOp::Capa { redirect }))
}

/// `CLIENT IMPORT-SOURCE ON|OFF`. Without import mode any word but OFF is told that, as in Valkey
/// 9.
pub fn import_source(args: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Client(ClientOp::ImportSource(parse::on_off(args.get(2)).ok())))
}
