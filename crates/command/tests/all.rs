//! The tests of all commands.
//! One program: each program builds what it calls anew.

mod common;

mod big_strings;
mod collections;
mod command_file;
mod documentation;
mod dump;
mod events;
mod extreme_streams;
mod generic;
mod getkeys;
mod handlers;
mod hash_expiry;
mod introspect;
mod kinds;
mod list;
mod operations;
mod pour;
mod readable;
mod recorded;
mod records;
mod repeating;
mod replayed;
mod snapshot_file;
mod sort;
mod sort_long;
mod string;
mod table;
mod touched;
