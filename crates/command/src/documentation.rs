//! `docs/commands.md`, generated from the table.

use std::fmt::Write;

use crate::spec::{Arg, ArgKind, CommandSpec, Group};
use crate::table;

const HEAD: &str = "\
# Commands

Generated from the command table; do not edit. A version is that of Redis (for `DELIFEQ` and the
`IFEQ` of `SET` that of Valkey) in which a command first appeared. A command that is not listed
here is unknown to this version.
`SUNIONCARD` with `APPROX` counts exactly: the union is counted without being made, and an estimate
would save nothing. `INCREX` is that of Redis, with the conditions `NX` and `XX` of Valkey 9.2.
Left out of the groups below is HIMPORT of Redis 8.10.
";

/// The whole page.
pub fn commands_markdown() -> String {
    let mut page = HEAD.to_owned();
    line(
        &mut page,
        format_args!("\n{} commands, with subcommands {}.", table::COMMANDS, table::ENTRIES),
    );
    for group in Group::ALL.into_iter().filter(|group| is_used(*group)) {
        line(&mut page, format_args!("\n## {}\n", title(group)));
        for spec in table::commands().filter(|spec| spec.group == group) {
            if spec.has_subcommands() && spec.arity < -1 {
                spec.subcommands.iter().for_each(|sub| entry(&mut page, sub));
            } else {
                entry(&mut page, spec);
                spec.subcommands.iter().for_each(|sub| entry(&mut page, sub));
            }
        }
    }
    page
}

fn is_used(group: Group) -> bool {
    table::commands().any(|spec| spec.group == group)
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(page, "{text}").expect("writing to a String does not fail");
}

const fn title(group: Group) -> &'static str {
    match group {
        Group::String => "Strings",
        Group::Bitmap => "Bitmaps",
        Group::Hyperloglog => "HyperLogLog",
        Group::List => "Lists",
        Group::Hash => "Hashes",
        Group::Set => "Sets",
        Group::SortedSet => "Sorted sets",
        Group::Geo => "Places on the globe",
        Group::Stream => "Streams",
        Group::Generic => "Keys of any type",
        Group::Transactions => "Transactions",
        Group::PubSub => "Publish and subscribe",
        Group::Connection => "Connection",
        Group::Server => "Server",
    }
}

fn entry(page: &mut String, spec: &CommandSpec) {
    let docs = spec.docs;
    let summary = docs.summary.trim_end_matches('.');
    line(page, format_args!("- `{}`  ", syntax(spec)));
    line(page, format_args!("  {summary}.  "));
    let deprecation = docs.deprecated.map_or_else(String::new, |deprecated| {
        let instead = deprecated.replaced_by.replace('!', "");
        format!(" Deprecated since {}: use {instead}.", deprecated.since)
    });
    let categories: Vec<_> = spec.categories().names().map(|name| format!("@{name}")).collect();
    let categories = categories.join(" ");
    let complexity = if docs.complexity.is_empty() { "" } else { " " };
    let since = spec.since;
    let facts = format!("Since {since}; {categories}.{deprecation}{complexity}{}", docs.complexity);
    line(page, format_args!("  *{facts}*"));
}

/// `SET key value [NX | XX] ...`
pub fn syntax(spec: &CommandSpec) -> String {
    let mut text = spec.full_name.replace('|', " ").to_ascii_uppercase();
    for arg in spec.docs.args {
        text.push(' ');
        text.push_str(&argument(arg));
    }
    text
}

fn argument(arg: &Arg) -> String {
    let parts: Vec<_> = arg.args.iter().map(argument).collect();
    let value = match arg.kind {
        ArgKind::PureToken => String::new(),
        ArgKind::OneOf if arg.optional && arg.token.is_empty() => parts.join(" | "),
        ArgKind::OneOf => format!("<{}>", parts.join(" | ")),
        ArgKind::Block => parts.join(" "),
        _ => arg.display_text().to_owned(),
    };
    let named = |value: &str| match (arg.token, value) {
        ("", value) => value.to_owned(),
        (token, "") => token.to_owned(),
        (token, value) => format!("{token} {value}"),
    };
    let text = match (arg.multiple, arg.multiple_token) {
        (false, _) => named(&value),
        (true, false) => named(&format!("{value} [{value} ...]")),
        (true, true) => format!("{0} [{0} ...]", named(&value)),
    };
    if arg.optional { format!("[{text}]") } else { text }
}
