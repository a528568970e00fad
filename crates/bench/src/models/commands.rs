//! The commands of a model: enough for load generators and clients, each as Redis documents it. SET
//! takes no options, and there is one database.

use resp::{Args, OutBuf, Proto, Reply};

use super::context::Context;
use super::table::{NoIncrement, Table};

/// Longest part of an unknown command that its error shows.
const SHOWN_MAX: usize = 128;

/// A command: its name, its least and its most arguments (the name included), what it does.
struct Command {
    name: &'static str,
    args: (usize, usize),
    run: fn(&mut Call<'_>, &mut Reply<'_>),
}

/// A request under execution.
struct Call<'a> {
    args: Args<'a>,
    table: &'a Table,
    context: &'a Context,
}

const ANY: usize = usize::MAX;

/// All commands.
#[rustfmt::skip]
const COMMANDS: &[Command] = &[
    Command { name: "get", args: (2, 2), run: get },
    Command { name: "set", args: (3, ANY), run: set },
    Command { name: "incr", args: (2, 2), run: incr },
    Command { name: "del", args: (2, ANY), run: del },
    Command { name: "exists", args: (2, ANY), run: exists },
    Command { name: "mset", args: (3, ANY), run: mset },
    Command { name: "ping", args: (1, 2), run: ping },
    Command { name: "echo", args: (2, 2), run: |call, reply| reply.bulk(call.args.get(1)) },
    Command { name: "info", args: (1, ANY), run: info },
    Command { name: "dbsize", args: (1, 1), run: |call, reply| reply.integer(call.table.keys() as i64) },
    Command { name: "flushall", args: (1, 2), run: flush },
    Command { name: "flushdb", args: (1, 2), run: flush },
    Command { name: "select", args: (2, 2), run: select },
    Command { name: "hello", args: (1, ANY), run: hello },
    Command { name: "quit", args: (1, ANY), run: |_, reply| reply.ok() },
    Command { name: "config", args: (2, ANY), run: config },
    Command { name: "command", args: (1, ANY), run: command },
    Command { name: "client", args: (2, ANY), run: client },
];

/// Executes one request, whose arguments are not empty, and writes its reply.
pub fn execute(args: Args<'_>, proto: Proto, table: &Table, context: &Context, out: &mut OutBuf) {
    let mut reply = Reply::new(out, proto);
    let name = args.get(0);
    let known = |command: &&Command| command.name.as_bytes().eq_ignore_ascii_case(name);
    match COMMANDS.iter().find(known) {
        None => unknown(name, &mut reply),
        Some(command) if args.len() < command.args.0 || args.len() > command.args.1 => {
            arity(command.name, &mut reply);
        }
        Some(command) => (command.run)(&mut Call { args, table, context }, &mut reply),
    }
}

/// True if nothing behind this request is to be read.
pub fn is_quit(args: Args<'_>) -> bool {
    args.get(0).eq_ignore_ascii_case(b"quit")
}

/// The protocol version from this request's reply on.
pub fn proto_after(args: Args<'_>, before: Proto) -> Proto {
    if !args.get(0).eq_ignore_ascii_case(b"hello") {
        return before;
    }
    match (args.try_get(1), valid_hello(args)) {
        (Some(b"2"), true) => Proto::Resp2,
        (Some(b"3"), true) => Proto::Resp3,
        _ => before,
    }
}

fn unknown(name: &[u8], reply: &mut Reply<'_>) {
    let mut text = b"ERR unknown command '".to_vec();
    text.extend_from_slice(&name[..name.len().min(SHOWN_MAX)]);
    text.push(b'\'');
    reply.error_bytes(&text);
}

fn arity(name: &str, reply: &mut Reply<'_>) {
    reply.error(&format!("ERR wrong number of arguments for '{name}' command"));
}

fn ping(call: &mut Call<'_>, reply: &mut Reply<'_>) {
    match call.args.try_get(1) {
        Some(text) => reply.bulk(text),
        None => reply.simple("PONG"),
    }
}

fn get(call: &mut Call<'_>, reply: &mut Reply<'_>) {
    call.table.get(call.args.get(1), |value| match value {
        Some(value) => reply.bulk(value),
        None => reply.null(),
    });
}

fn set(call: &mut Call<'_>, reply: &mut Reply<'_>) {
    if call.args.len() > 3 {
        return reply.error("ERR syntax error");
    }
    call.table.set(call.args.get(1), call.args.get(2));
    reply.ok();
}

fn incr(call: &mut Call<'_>, reply: &mut Reply<'_>) {
    match call.table.increment(call.args.get(1)) {
        Ok(value) => reply.integer(value),
        Err(NoIncrement::NotAnInteger) => {
            reply.error("ERR value is not an integer or out of range");
        }
        Err(NoIncrement::Overflow) => reply.error("ERR increment or decrement would overflow"),
    }
}

fn del(call: &mut Call<'_>, reply: &mut Reply<'_>) {
    reply.integer(call.table.remove_all(call.args.from(1).iter()) as i64);
}

fn exists(call: &mut Call<'_>, reply: &mut Reply<'_>) {
    reply.integer(call.table.count(call.args.from(1).iter()) as i64);
}

fn mset(call: &mut Call<'_>, reply: &mut Reply<'_>) {
    let args = call.args;
    if args.len().is_multiple_of(2) {
        return arity("mset", reply);
    }
    call.table.set_all((1..args.len()).step_by(2).map(|at| (args.get(at), args.get(at + 1))));
    reply.ok();
}

fn flush(call: &mut Call<'_>, reply: &mut Reply<'_>) {
    match call.args.try_get(1) {
        Some(mode) if !is_one_of(mode, &["sync", "async"]) => reply.error("ERR syntax error"),
        _ => {
            call.table.clear();
            reply.ok();
        }
    }
}

fn select(call: &mut Call<'_>, reply: &mut Reply<'_>) {
    match base::num::parse_i64(call.args.get(1)) {
        Some(0) => reply.ok(),
        Some(_) => reply.error("ERR DB index is out of range"),
        None => reply.error("ERR value is not an integer or out of range"),
    }
}

/// `HELLO [2|3 [AUTH user password] [SETNAME name]]`. There is no password, so any is right.
fn hello(call: &mut Call<'_>, reply: &mut Reply<'_>) {
    match call.args.try_get(1) {
        None | Some(b"2" | b"3") => {}
        Some(_) => return reply.error("NOPROTO unsupported protocol version"),
    }
    if !valid_hello(call.args) {
        return reply.error("ERR Syntax error in HELLO");
    }
    let proto = if reply.proto() == Proto::Resp3 { 3 } else { 2 };
    reply.map(4);
    reply.bulk(b"server");
    reply.bulk(b"sheafdb-bench");
    reply.bulk(b"version");
    reply.bulk(env!("CARGO_PKG_VERSION").as_bytes());
    reply.bulk(b"proto");
    reply.integer(proto);
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
}

fn valid_hello(args: Args<'_>) -> bool {
    let mut at = 2;
    while let Some(option) = args.try_get(at) {
        at += match option.to_ascii_lowercase().as_slice() {
            b"auth" => 3,
            b"setname" => 2,
            _ => return false,
        };
        if at > args.len() {
            return false;
        }
    }
    true
}

/// There are no settings to be read.
fn config(call: &mut Call<'_>, reply: &mut Reply<'_>) {
    match call.args.get(1).to_ascii_lowercase().as_slice() {
        b"get" if call.args.len() > 2 => reply.map(0),
        b"get" => arity("config|get", reply),
        _ => subcommand(call, reply),
    }
}

/// No command is described.
fn command(call: &mut Call<'_>, reply: &mut Reply<'_>) {
    match call.args.try_get(1).map(<[u8]>::to_ascii_lowercase).as_deref() {
        None => reply.array(0),
        Some(b"docs") => reply.map(0),
        Some(b"count") => reply.integer(COMMANDS.len() as i64),
        Some(_) => subcommand(call, reply),
    }
}

fn client(call: &mut Call<'_>, reply: &mut Reply<'_>) {
    if is_one_of(call.args.get(1), &["setname", "setinfo"]) {
        reply.ok();
    } else {
        subcommand(call, reply);
    }
}

fn subcommand(call: &Call<'_>, reply: &mut Reply<'_>) {
    let name = call.args.get(1);
    let mut text = b"ERR unknown subcommand '".to_vec();
    text.extend_from_slice(&name[..name.len().min(SHOWN_MAX)]);
    text.extend_from_slice(b"'");
    reply.error_bytes(&text);
}

/// The sections asked for, all by default. `model` is what an experiment reads.
fn info(call: &mut Call<'_>, reply: &mut Reply<'_>) {
    let asked = call.args.from(1);
    let all = asked.is_empty()
        || asked.iter().any(|name| is_one_of(name, &["all", "default", "everything"]));
    let keys = call.table.keys();
    let mut text = String::new();
    for (name, lines) in call.context.info(keys) {
        if !all && !asked.iter().any(|asked| asked.eq_ignore_ascii_case(name.as_bytes())) {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        text += &["# ", name, "\r\n"].concat();
        for (name, value) in lines {
            text += &[name, ":", &value, "\r\n"].concat();
        }
    }
    reply.verbatim(*b"txt", text.as_bytes());
}

fn is_one_of(word: &[u8], names: &[&str]) -> bool {
    names.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
}
