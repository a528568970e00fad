//! `COMMAND`: the table shown to clients.

use base::glob::{self, Case};
use resp::{Args, Reply};

use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::keys;
use crate::parse::is;
use crate::registry::{self, CommandId};
use crate::spec::{
    Acl, Arg, ArgKind, BeginSearch, CommandSpec, Docs, FindKeys, KeyAt, KeyFlags, KeySpec,
};
use crate::table;

/// `COMMAND`.
pub fn command(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    reply_all(&mut ctx.reply);
    Ok(Done::Replied)
}

/// `COMMAND COUNT`.
pub fn count(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    ctx.reply.integer(table::COMMANDS as i64);
    Ok(Done::Replied)
}

/// `COMMAND INFO [name ...]`.
pub fn info(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    reply_info(&mut ctx.reply, ctx.args.from(2));
    Ok(Done::Replied)
}

/// `COMMAND DOCS [name ...]`.
pub fn docs(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    reply_docs(&mut ctx.reply, ctx.args.from(2));
    Ok(Done::Replied)
}

/// `COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern]`.
pub fn list(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    reply_list(&mut ctx.reply, ctx.args)?;
    Ok(Done::Replied)
}

/// `COMMAND GETKEYS command [arg ...]`.
pub fn getkeys(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    reply_keys(&mut ctx.reply, ctx.args.from(2))?;
    Ok(Done::Replied)
}

/// `COMMAND GETKEYSANDFLAGS command [arg ...]`.
pub fn getkeysandflags(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    reply_keys_and_flags(&mut ctx.reply, ctx.args.from(2))?;
    Ok(Done::Replied)
}

/// The details of all commands.
pub fn reply_all(reply: &mut Reply<'_>) {
    reply.array(table::COMMANDS);
    table::commands().for_each(|spec| entry(reply, spec));
}

/// The details of the named commands, null for those that do not exist; of all if none is named.
pub fn reply_info(reply: &mut Reply<'_>, names: Args<'_>) {
    if names.is_empty() {
        return reply_all(reply);
    }
    reply.array(names.len());
    for name in names {
        if let Some(id) = registry::by_full_name(name) {
            entry(reply, id.spec());
        } else {
            reply.null();
        }
    }
}

fn entry(reply: &mut Reply<'_>, spec: &CommandSpec) {
    reply.array(10);
    reply.bulk(spec.full_name.as_bytes());
    reply.integer(spec.arity.into());
    words(reply, spec.flags.names());
    let (first, last, step) = range(spec.keys);
    reply.integer(first);
    reply.integer(last);
    reply.integer(step);
    words(reply, spec.categories().names().map(|name| format!("@{name}")));
    reply.set(spec.tips.len());
    spec.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(spec.keys.len());
    spec.keys.iter().for_each(|keys| key_spec(reply, keys));
    // None is an empty set, some are an array: so it is in Redis, and clients are used to it.
    if spec.subcommands.is_empty() {
        reply.set(0);
    } else {
        reply.array(spec.subcommands.len());
    }
    spec.subcommands.iter().for_each(|sub| entry(reply, sub));
}

/// A set of simple strings.
fn words(reply: &mut Reply<'_>, words: impl Iterator<Item = impl AsRef<str>> + Clone) {
    reply.set(words.clone().count());
    words.for_each(|word| reply.simple(word.as_ref()));
}

/// First key, last key and step, as clients from before key specs read them: the specs that stand
/// at a fixed argument, joined as long as one goes on where the other ends.
fn range(specs: &[KeySpec]) -> (i64, i64, i64) {
    let mut joined: Option<(i64, i64, i64)> = None;
    for spec in specs {
        let (BeginSearch::Index(at), FindKeys::Range { last, step, .. }) = (spec.begin, spec.find)
        else {
            continue;
        };
        let first = i64::from(at);
        let last = if last >= 0 { first + i64::from(last) } else { last.into() };
        joined = match joined {
            None => Some((first, last, step.into())),
            Some((start, end, step)) if first == end + 1 => Some((start, last, step)),
            Some(range) => Some(range),
        };
    }
    joined.unwrap_or_default()
}

fn key_spec(reply: &mut Reply<'_>, spec: &KeySpec) {
    reply.map(3 + usize::from(!spec.notes.is_empty()));
    if !spec.notes.is_empty() {
        field(reply, "notes", spec.notes);
    }
    reply.bulk(b"flags");
    words(reply, spec.flags.names());
    reply.bulk(b"begin_search");
    match spec.begin {
        BeginSearch::Index(at) => search(reply, "index", &[("index", at.into())]),
        BeginSearch::Keyword { word, from } => {
            reply.map(2);
            field(reply, "type", "keyword");
            reply.bulk(b"spec");
            reply.map(2);
            field(reply, "keyword", word);
            reply.bulk(b"startfrom");
            reply.integer(from.into());
        }
        BeginSearch::Unknown => search(reply, "unknown", &[]),
    }
    reply.bulk(b"find_keys");
    match spec.find {
        FindKeys::Range { last, step, limit } => {
            let facts =
                [("lastkey", last.into()), ("keystep", step.into()), ("limit", limit.into())];
            search(reply, "range", &facts);
        }
        FindKeys::KeyNum { at, first, step } => {
            let facts =
                [("keynumidx", at.into()), ("firstkey", first.into()), ("keystep", step.into())];
            search(reply, "keynum", &facts);
        }
        FindKeys::Unknown => search(reply, "unknown", &[]),
    }
}

fn search(reply: &mut Reply<'_>, kind: &str, facts: &[(&str, i64)]) {
    reply.map(2);
    field(reply, "type", kind);
    reply.bulk(b"spec");
    reply.map(facts.len());
    for (name, value) in facts {
        reply.bulk(name.as_bytes());
        reply.integer(*value);
    }
}

fn field(reply: &mut Reply<'_>, name: &str, text: &str) {
    reply.bulk(name.as_bytes());
    reply.bulk(text.as_bytes());
}

/// The documentation of the named commands, those that do not exist left out; of all if none is
/// named.
pub fn reply_docs(reply: &mut Reply<'_>, names: Args<'_>) {
    if names.is_empty() {
        reply.map(table::COMMANDS);
        table::commands().for_each(|spec| documentation(reply, spec));
        return;
    }
    let found = names.iter().filter_map(registry::by_full_name);
    reply.map(found.clone().count());
    found.for_each(|id| documentation(reply, id.spec()));
}

fn documentation(reply: &mut Reply<'_>, spec: &CommandSpec) {
    let docs = spec.docs;
    reply.bulk(spec.full_name.as_bytes());
    reply.map(documentation_fields(spec));
    field(reply, "summary", docs.summary);
    field(reply, "since", spec.since);
    field(reply, "group", spec.group.name());
    if !docs.complexity.is_empty() {
        field(reply, "complexity", docs.complexity);
    }
    document_flags(reply, docs);
    if !docs.history.is_empty() {
        reply.bulk(b"history");
        reply.set(docs.history.len());
        for (version, change) in docs.history {
            reply.array(2);
            reply.bulk(version.as_bytes());
            reply.bulk(change.as_bytes());
        }
    }
    if !docs.args.is_empty() {
        reply.bulk(b"arguments");
        arguments(reply, docs.args);
    }
    if !spec.subcommands.is_empty() {
        reply.bulk(b"subcommands");
        reply.map(spec.subcommands.len());
        spec.subcommands.iter().for_each(|sub| documentation(reply, sub));
    }
}

/// Number of fields that [`documentation`] writes.
fn documentation_fields(spec: &CommandSpec) -> usize {
    let docs = spec.docs;
    let optional = [
        !docs.complexity.is_empty(),
        docs.syscmd || docs.deprecated.is_some(),
        !docs.history.is_empty(),
        !docs.args.is_empty(),
        !spec.subcommands.is_empty(),
    ];
    let deprecation = if docs.deprecated.is_some() { 2 } else { 0 };
    3 + deprecation + optional.into_iter().filter(|there| *there).count()
}

fn document_flags(reply: &mut Reply<'_>, docs: &Docs) {
    if !docs.syscmd && docs.deprecated.is_none() {
        return;
    }
    reply.bulk(b"doc_flags");
    reply.set(usize::from(docs.deprecated.is_some()) + usize::from(docs.syscmd));
    if docs.deprecated.is_some() {
        reply.simple("deprecated");
    }
    if docs.syscmd {
        reply.simple("syscmd");
    }
    if let Some(deprecated) = docs.deprecated {
        field(reply, "deprecated_since", deprecated.since);
        field(reply, "replaced_by", deprecated.replaced_by);
    }
}

fn arguments(reply: &mut Reply<'_>, args: &[Arg]) {
    reply.array(args.len());
    for arg in args {
        let texts = [
            ("token", arg.token),
            ("since", arg.since),
            ("deprecated_since", arg.deprecated_since),
        ];
        // The token of MIGRATE's empty key is empty, and said.
        let is_token = arg.kind == ArgKind::PureToken;
        let is_said =
            |(name, text): &(&str, &str)| !text.is_empty() || is_token && *name == "token";
        let texts = texts.into_iter().filter(is_said);
        let flags = [
            ("optional", arg.optional),
            ("multiple", arg.multiple),
            ("multiple_token", arg.multiple_token),
        ];
        let flags = flags.into_iter().filter(|(_, set)| *set).map(|(name, _)| name);
        let has_flags = flags.clone().next().is_some();
        let has_args = !arg.args.is_empty();
        // One-ofs and blocks are shown by their parts.
        reply.map(
            2 + usize::from(!has_args)
                + usize::from(arg.key_spec.is_some())
                + texts.clone().count()
                + usize::from(has_flags)
                + usize::from(has_args),
        );
        field(reply, "name", arg.name);
        field(reply, "type", arg.kind.name());
        if !has_args {
            field(reply, "display_text", arg.display_text());
        }
        if let Some(key_spec) = arg.key_spec {
            reply.bulk(b"key_spec_index");
            reply.integer(key_spec.into());
        }
        texts.for_each(|(name, text)| field(reply, name, text));
        if has_flags {
            reply.bulk(b"flags");
            words(reply, flags);
        }
        if has_args {
            reply.bulk(b"arguments");
            arguments(reply, arg.args);
        }
    }
}

/// Which names `COMMAND LIST` shows.
enum Filter<'a> {
    All,
    /// There are no modules, so none.
    Module,
    /// Of a category; none if it does not exist.
    Category(Option<Acl>),
    Pattern(&'a [u8]),
}

impl Filter<'_> {
    fn parse(args: Args<'_>) -> Result<Filter<'_>, Error> {
        match args.len() {
            2 => Ok(Filter::All),
            5 if is(args.get(2), "FILTERBY") => {
                let (kind, value) = (args.get(3), args.get(4));
                if is(kind, "MODULE") {
                    Ok(Filter::Module)
                } else if is(kind, "ACLCAT") {
                    Ok(Filter::Category(Acl::named(value)))
                } else if is(kind, "PATTERN") {
                    Ok(Filter::Pattern(value))
                } else {
                    Err(Error::Syntax)
                }
            }
            _ => Err(Error::Syntax),
        }
    }

    fn passes(&self, spec: &CommandSpec) -> bool {
        match self {
            Filter::All => true,
            Filter::Module => false,
            Filter::Category(category) => category.is_some_and(|c| spec.categories().contains(c)),
            Filter::Pattern(pattern) => {
                glob::matches(pattern, spec.full_name.as_bytes(), Case::Insensitive)
            }
        }
    }
}

/// The full names of commands and subcommands.
pub fn reply_list(reply: &mut Reply<'_>, args: Args<'_>) -> Result<(), Error> {
    let filter = Filter::parse(args)?;
    let specs = || registry::all().map(CommandId::spec).filter(|s| filter.passes(s));
    reply.array(specs().count());
    specs().for_each(|spec| reply.bulk(spec.full_name.as_bytes()));
    Ok(())
}

/// The keys of a request.
pub fn reply_keys(reply: &mut Reply<'_>, request: Args<'_>) -> Result<(), Error> {
    let (_, keys) = keys_of(request)?;
    reply.array(keys.len());
    for key in keys {
        reply.bulk(request.get(key.arg));
    }
    Ok(())
}

/// The keys of a request, and what it does to them.
pub fn reply_keys_and_flags(reply: &mut Reply<'_>, request: Args<'_>) -> Result<(), Error> {
    let (spec, keys) = keys_of(request)?;
    reply.array(keys.len());
    for key in keys {
        reply.array(2);
        reply.bulk(request.get(key.arg));
        words(reply, keys::flags_of(spec, request, key.flags).names());
    }
    Ok(())
}

fn keys_of(request: Args<'_>) -> Result<(&'static CommandSpec, Vec<KeyAt>), Error> {
    let id = registry::lookup(request.get(0)).ok_or(Error::InvalidCommand)?;
    let spec = registry::resolve(id, request).map_err(|_| Error::InvalidCommand)?.spec();
    if spec.keys.iter().all(|keys| keys.flags.contains(KeyFlags::NOT_KEY)) {
        return Err(Error::NoKeyArguments);
    }
    if !spec.accepts(request.len()) {
        return Err(Error::InvalidArgumentCount);
    }
    let keys = keys::keys(spec, request).map_err(|_| Error::InvalidArguments)?;
    Ok((spec, keys))
}
