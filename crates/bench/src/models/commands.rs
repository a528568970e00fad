//! The commands of a model: enough for load generators and clients, each as Redis documents it. SET
//! takes no options, and there is one database. The in-process table of `load` has the same.

use std::sync::Arc;

use resp::{Args, OutBuf, Proto, Reply};

use super::context::Context;
use super::session::{Executor, Step, valid_hello};
use super::table::{NoIncrement, Table};

/// Longest part of an unknown command that its error shows.
const SHOWN_MAX: usize = 128;

/// What executes a command.
type Run = fn(&Call<'_>, &mut Reply<'_>);

/// A request under execution.
struct Call<'a> {
    args: Args<'a>,
    table: &'a Table,
    context: Option<&'a Context>,
}

const ANY: usize = usize::MAX;

/// All commands: their names, their least and most arguments (the name included), what they do.
const COMMANDS: &[(&str, (usize, usize), Run)] = &[
    ("get", (2, 2), |call, reply| get(call, call.args.get(1), reply)),
    ("set", (3, ANY), set),
    ("incr", (2, 2), incr),
    ("del", (2, ANY), del),
    ("unlink", (2, ANY), del),
    ("exists", (2, ANY), exists),
    ("strlen", (2, 2), strlen),
    ("mget", (2, ANY), mget),
    ("mset", (3, ANY), mset),
    ("ping", (1, 2), ping),
    ("echo", (2, 2), |call, reply| reply.bulk(call.args.get(1))),
    ("info", (1, ANY), info),
    ("dbsize", (1, 1), |call, reply| reply.integer(call.table.keys() as i64)),
    ("flushall", (1, 2), flush),
    ("flushdb", (1, 2), flush),
    ("select", (2, 2), select),
    ("hello", (1, ANY), hello),
    ("quit", (1, ANY), |_, reply| reply.ok()),
    ("config", (2, ANY), config),
    ("command", (1, ANY), command),
    ("client", (2, ANY), client),
];

/// Executes where it stands: what all models do but one.
#[derive(Clone)]
pub struct Local {
    context: Option<Arc<Context>>,
    table: Arc<Table>,
}

impl Local {
    /// On this table, for a model.
    pub fn new(context: &Arc<Context>, table: &Arc<Table>) -> Self {
        Self { context: Some(Arc::clone(context)), table: Arc::clone(table) }
    }

    /// On this table, without a server around it: INFO tells only of the keys.
    pub fn alone(table: &Arc<Table>) -> Self {
        Self { context: None, table: Arc::clone(table) }
    }
}

impl Executor for Local {
    fn execute(&mut self, args: Args<'_>, proto: Proto, out: &mut OutBuf) -> Step {
        execute(args, proto, &self.table, self.context.as_deref(), out);
        Step::Replied
    }
}

/// Executes one request, whose arguments are not empty, and writes its reply.
pub fn execute(
    args: Args<'_>,
    proto: Proto,
    table: &Table,
    context: Option<&Context>,
    out: &mut OutBuf,
) {
    let mut reply = Reply::new(out, proto);
    let name = args.get(0);
    let known = COMMANDS.iter().find(|(known, ..)| name.eq_ignore_ascii_case(known.as_bytes()));
    match known {
        None => unknown("command", name, &mut reply),
        Some((name, (least, most), run)) => {
            if (*least..=*most).contains(&args.len()) {
                run(&Call { args, table, context }, &mut reply);
            } else {
                arity(name, &mut reply);
            }
        }
    }
}

fn unknown(what: &str, name: &[u8], reply: &mut Reply<'_>) {
    let shown = &name[..name.len().min(SHOWN_MAX)];
    reply.error_bytes(&[b"ERR unknown ", what.as_bytes(), b" '", shown, b"'"].concat());
}

fn arity(name: &str, reply: &mut Reply<'_>) {
    reply.error(&format!("ERR wrong number of arguments for '{name}' command"));
}

fn ping(call: &Call<'_>, reply: &mut Reply<'_>) {
    match call.args.try_get(1) {
        Some(text) => reply.bulk(text),
        None => reply.simple("PONG"),
    }
}

fn get(call: &Call<'_>, key: &[u8], reply: &mut Reply<'_>) {
    call.table.get(key, |value| match value {
        Some(value) => reply.bulk(value),
        None => reply.null(),
    });
}

fn mget(call: &Call<'_>, reply: &mut Reply<'_>) {
    let keys = call.args.from(1);
    reply.array(keys.len());
    keys.iter().for_each(|key| get(call, key, reply));
}

fn strlen(call: &Call<'_>, reply: &mut Reply<'_>) {
    let len = call.table.get(call.args.get(1), |value| value.map_or(0, <[u8]>::len));
    reply.integer(len as i64);
}

fn set(call: &Call<'_>, reply: &mut Reply<'_>) {
    if call.args.len() > 3 {
        return reply.error("ERR syntax error");
    }
    call.table.set(call.args.get(1), call.args.get(2));
    reply.ok();
}

fn incr(call: &Call<'_>, reply: &mut Reply<'_>) {
    match call.table.increment(call.args.get(1)) {
        Ok(value) => reply.integer(value),
        Err(NoIncrement::NotAnInteger) => {
            reply.error("ERR value is not an integer or out of range");
        }
        Err(NoIncrement::Overflow) => reply.error("ERR increment or decrement would overflow"),
    }
}

fn del(call: &Call<'_>, reply: &mut Reply<'_>) {
    reply.integer(call.table.remove_all(call.args.from(1).iter()) as i64);
}

fn exists(call: &Call<'_>, reply: &mut Reply<'_>) {
    reply.integer(call.table.count(call.args.from(1).iter()) as i64);
}

fn mset(call: &Call<'_>, reply: &mut Reply<'_>) {
    let args = call.args;
    if args.len().is_multiple_of(2) {
        return arity("mset", reply);
    }
    call.table.set_all((1..args.len()).step_by(2).map(|at| (args.get(at), args.get(at + 1))));
    reply.ok();
}

fn flush(call: &Call<'_>, reply: &mut Reply<'_>) {
    match call.args.try_get(1) {
        Some(mode) if !is_one_of(mode, &["sync", "async"]) => reply.error("ERR syntax error"),
        _ => {
            call.table.clear();
            reply.ok();
        }
    }
}

fn select(call: &Call<'_>, reply: &mut Reply<'_>) {
    match base::num::parse_i64(call.args.get(1)) {
        Some(0) => reply.ok(),
        Some(_) => reply.error("ERR DB index is out of range"),
        None => reply.error("ERR value is not an integer or out of range"),
    }
}

/// `HELLO [2|3 [AUTH user password] [SETNAME name]]`. There is no password, so any is right.
fn hello(call: &Call<'_>, reply: &mut Reply<'_>) {
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

/// There are no settings to be read.
fn config(call: &Call<'_>, reply: &mut Reply<'_>) {
    match call.args.get(1).to_ascii_lowercase().as_slice() {
        b"get" if call.args.len() > 2 => reply.map(0),
        b"get" => arity("config|get", reply),
        _ => subcommand(call, reply),
    }
}

/// No command is described.
fn command(call: &Call<'_>, reply: &mut Reply<'_>) {
    match call.args.try_get(1).map(<[u8]>::to_ascii_lowercase).as_deref() {
        None => reply.array(0),
        Some(b"docs") => reply.map(0),
        Some(b"count") => reply.integer(COMMANDS.len() as i64),
        Some(_) => subcommand(call, reply),
    }
}

fn client(call: &Call<'_>, reply: &mut Reply<'_>) {
    if is_one_of(call.args.get(1), &["setname", "setinfo"]) {
        reply.ok();
    } else {
        subcommand(call, reply);
    }
}

fn subcommand(call: &Call<'_>, reply: &mut Reply<'_>) {
    unknown("subcommand", call.args.get(1), reply);
}

/// The sections asked for, all by default. `model` is what an experiment reads.
fn info(call: &Call<'_>, reply: &mut Reply<'_>) {
    let asked = call.args.from(1);
    let all = asked.is_empty()
        || asked.iter().any(|name| is_one_of(name, &["all", "default", "everything"]));
    let keyspace = match call.table.keys() {
        0 => vec![],
        keys => vec![("db0", format!("keys={keys},expires=0,avg_ttl=0"))],
    };
    let mut sections = call.context.map_or_else(Vec::new, Context::info);
    sections.push(("Keyspace", keyspace));
    let mut text = String::new();
    for (name, lines) in sections {
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
