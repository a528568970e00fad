//! The command table: every fact about a command is written once, in the entries of the modules
//! below. From them are derived the lookup, `COMMAND`, the dispatcher's gates and
//! `docs/commands.md`. A command that is not built is not in it and so unknown.

mod bitmap;
mod connection;
mod diagnostics;
mod fragments;
mod generic;
mod geo;
mod hash;
mod hyperloglog;
mod keys;
mod list;
mod pubsub;
mod server;
mod set;
mod stream;
mod string;
mod transactions;
mod zset;

use crate::spec::CommandSpec;

pub(crate) static GROUPS: [&[CommandSpec]; 15] = [
    string::COMMANDS,
    bitmap::COMMANDS,
    hyperloglog::COMMANDS,
    list::COMMANDS,
    hash::COMMANDS,
    set::COMMANDS,
    zset::COMMANDS,
    geo::COMMANDS,
    stream::COMMANDS,
    generic::COMMANDS,
    transactions::COMMANDS,
    pubsub::COMMANDS,
    connection::COMMANDS,
    server::COMMANDS,
    diagnostics::COMMANDS,
];

/// Number of commands, subcommands not counted: what `COMMAND COUNT` says.
pub const COMMANDS: usize = count(false);
/// Number of commands and subcommands.
pub const ENTRIES: usize = count(true);

/// All commands in the order of the table, subcommands not among them.
pub fn commands() -> impl Iterator<Item = &'static CommandSpec> {
    GROUPS.iter().flat_map(|group| group.iter())
}

const fn count(with_subcommands: bool) -> usize {
    let mut total = 0;
    let mut group = 0;
    while group < GROUPS.len() {
        let mut i = 0;
        while i < GROUPS[group].len() {
            total += 1;
            if with_subcommands {
                total += GROUPS[group][i].subcommands.len();
            }
            i += 1;
        }
        group += 1;
    }
    total
}
