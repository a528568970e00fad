//! The connection: PING and ECHO, and the arguments of AUTH, HELLO, SELECT, QUIT and RESET.

pub mod client;
mod client_filter;

use base::num::parse_i64;
use resp::Args;

use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::{Arity, Error, HelloOption};
use crate::ops::{Credentials, Hello, SessionOp};
use crate::parse::{self, is};

/// `PING [message]`. A RESP2 client with subscriptions gets an array, as it does for messages.
pub fn ping(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    match ctx.args.len() {
        n @ (1 | 2) if ctx.is_in_subscribed_mode() => {
            ctx.reply.array(2);
            ctx.reply.bulk(b"pong");
            match n {
                1 => ctx.reply.bulk(b""),
                _ => reply_argument(ctx, 1),
            }
        }
        1 => ctx.reply.simple("PONG"),
        2 => reply_argument(ctx, 1),
        _ => return Err(Arity { command: "ping" }.into()),
    }
    Ok(Done::Replied)
}

/// `ECHO message`.
pub fn echo(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    reply_argument(ctx, 1);
    Ok(Done::Replied)
}

/// An argument as a bulk string; a big one by reference.
fn reply_argument(ctx: &mut Ctx<'_, '_>, at: usize) {
    match ctx.args.blob(at) {
        Some(blob) => ctx.reply.bulk_blob(blob),
        None => ctx.reply.bulk(ctx.args.get(at)),
    }
}

/// `AUTH [user] password`.
pub fn auth(args: Args<'_>) -> Result<SessionOp, Error> {
    let (user, password) = match args.len() {
        2 => (None, args.get(1)),
        3 => (Some(args.get(1).into()), args.get(2)),
        _ => return Err(Error::Syntax),
    };
    Ok(SessionOp::Auth(Credentials { user, password: password.into() }))
}

/// `HELLO [version [AUTH user password] [SETNAME name]]`.
pub fn hello(args: Args<'_>) -> Result<SessionOp, Error> {
    let mut hello = Hello { proto: None, auth: None, name: None };
    if let Some(version) = args.try_get(1) {
        hello.proto = Some(match parse_i64(version).ok_or(Error::ProtoNotInteger)? {
            2 => 2,
            3 => 3,
            _ => return Err(Error::NoProto),
        });
    }
    let mut at = 2;
    while at < args.len() {
        let option = args.get(at);
        let left = args.len() - at - 1;
        if is(option, "AUTH") && left >= 2 {
            let user = Some(args.get(at + 1).into());
            hello.auth = Some(Credentials { user, password: args.get(at + 2).into() });
            at += 3;
        } else if is(option, "SETNAME") && left >= 1 {
            hello.name = Some(client::name(args.get(at + 1))?);
            at += 2;
        } else {
            return Err(HelloOption { word: option.into() }.into());
        }
    }
    Ok(SessionOp::Hello(hello))
}

/// `SELECT index`.
pub fn select(args: Args<'_>) -> Result<SessionOp, Error> {
    parse::int(args.get(1)).map(SessionOp::Select)
}

/// `QUIT`.
pub fn quit(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Quit)
}

/// `RESET`.
pub fn reset(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Reset)
}

/// `MONITOR`.
pub fn monitor(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Monitor)
}
