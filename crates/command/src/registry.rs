//! Names of commands to small numbers, and back: the index of statistics and of the dispatcher's
//! tables.
//!
//! Lookup is a perfect hash found at compile time: two words of the name, folded to lower case, one
//! multiplication, one byte of an index of 1 KiB, one comparison of 24 bytes. Nothing is allocated.

use resp::Args;

use crate::error::{Arity, Error};
use crate::spec::CommandSpec;
use crate::table::{COMMANDS, ENTRIES, GROUPS};

/// A command or subcommand of this build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(u16);

impl CommandId {
    /// As an index, below [`ENTRIES`].
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The facts.
    #[inline(always)]
    pub fn spec(self) -> &'static CommandSpec {
        BY_ID[self.index()]
    }

    /// The subcommands of a container, as commands.
    pub fn subcommands(self) -> impl Iterator<Item = CommandId> {
        let first = self.0 + 1;
        (first..first + self.spec().subcommands.len() as u16).map(CommandId)
    }

    /// The command with this index.
    pub fn from_index(index: usize) -> Option<CommandId> {
        (index < ENTRIES).then_some(CommandId(index as u16))
    }
}

/// All commands and subcommands: each container is followed by its subcommands.
pub fn all() -> impl ExactSizeIterator<Item = CommandId> {
    (0..ENTRIES as u16).map(CommandId)
}

/// The command of this name, in any case. Subcommands are found by [`resolve`].
#[inline]
pub fn lookup(name: &[u8]) -> Option<CommandId> {
    let words = words(name);
    let entry = LOOKUP.get(INDEX[hash(words, name.len(), SEED)] as usize)?;
    let same = entry.words == words
        && entry.len as usize == name.len()
        && (!entry.whole || name.eq_ignore_ascii_case(entry.id.spec().name.as_bytes()));
    same.then_some(entry.id)
}

/// Replaces a container by the subcommand that the request names.
#[inline]
pub fn resolve(id: CommandId, args: Args<'_>) -> Result<CommandId, Error> {
    let spec = id.spec();
    if !spec.has_subcommands() || args.len() < 2 {
        return Ok(id);
    }
    let name = args.get(1);
    subcommand(id, name).ok_or_else(|| Error::unknown_subcommand(spec.name, name))
}

/// The command or subcommand of this full name (`get`, `config|get`), in any case.
pub fn by_full_name(name: &[u8]) -> Option<CommandId> {
    match name.iter().position(|b| *b == b'|') {
        None => lookup(name),
        Some(bar) => subcommand(lookup(&name[..bar])?, &name[bar + 1..]),
    }
}

/// The command that a request names, its subcommand resolved and its arity checked. The request
/// has at least one argument.
pub fn find(args: Args<'_>) -> Result<CommandId, Error> {
    let id = lookup(args.get(0)).ok_or_else(|| Error::unknown_command(args))?;
    let id = resolve(id, args)?;
    let spec = id.spec();
    if spec.accepts(args.len()) { Ok(id) } else { Err(Arity { command: spec.full_name }.into()) }
}

fn subcommand(container: CommandId, name: &[u8]) -> Option<CommandId> {
    let subs = container.spec().subcommands;
    let at = subs.iter().position(|sub| sub.name.as_bytes().eq_ignore_ascii_case(name))?;
    Some(CommandId(container.0 + 1 + at as u16))
}

/// One name of the lookup.
#[derive(Clone, Copy)]
struct Name {
    words: (u64, u64),
    len: u8,
    /// The words are not the whole truth: it is longer, or has a `_`, which folds.
    whole: bool,
    id: CommandId,
}

/// Up to this length the two words of a name are the whole name.
const EXACT_MAX: usize = 16;
/// Places of the index: so many that a seed without a meeting is found soon. Only the lines of
/// commands in use are read.
const INDEX_BITS: u32 = 14;
/// "No command" in the index.
const EMPTY: u16 = u16::MAX;

static LOOKUP: [Name; COMMANDS] = names();
static BY_ID: [&CommandSpec; ENTRIES] = by_id();
const SEED: u64 = seed();
static INDEX: [u16; 1 << INDEX_BITS] = match index(SEED) {
    Some(index) => index,
    None => panic!("the seed was chosen so that no two names meet"),
};

/// The first and the last bytes of a name, which overlap or leave none out up to [`EXACT_MAX`],
/// letters in lower case. Other characters above `?` may fold together; of them, names of the table
/// have only the `_`, and such a name is compared once more.
#[inline(always)]
const fn words(name: &[u8]) -> (u64, u64) {
    let (a, b) = if let (Some(a), Some(b)) = (name.first_chunk::<8>(), name.last_chunk::<8>()) {
        (u64::from_le_bytes(*a), u64::from_le_bytes(*b))
    } else if let (Some(a), Some(b)) = (name.first_chunk::<4>(), name.last_chunk::<4>()) {
        (u32::from_le_bytes(*a) as u64, u32::from_le_bytes(*b) as u64)
    } else {
        match name {
            [a, b, c] => (*a as u64 | (*b as u64) << 8, *c as u64),
            [a, b] => (*a as u64, *b as u64),
            [a] => (*a as u64, 0),
            _ => (0, 0),
        }
    };
    (fold(a), fold(b))
}

/// Bytes from `@` on to the row of small letters.
#[inline(always)]
const fn fold(word: u64) -> u64 {
    word | (word & 0x4040_4040_4040_4040) >> 1
}

#[inline(always)]
const fn hash(words: (u64, u64), len: usize, seed: u64) -> usize {
    let mixed = words.0 ^ words.1.rotate_left(29) ^ ((len as u64) << 59);
    (mixed.wrapping_mul(seed) >> (u64::BITS - INDEX_BITS)) as usize
}

const fn names() -> [Name; COMMANDS] {
    assert!(COMMANDS < EMPTY as usize);
    let mut names = [Name { words: (0, 0), len: 0, whole: false, id: CommandId(0) }; COMMANDS];
    let (mut at, mut id, mut group) = (0, 0, 0);
    while group < GROUPS.len() {
        let mut i = 0;
        while i < GROUPS[group].len() {
            let spec = &GROUPS[group][i];
            let name = spec.name.as_bytes();
            assert!(is_plain(name), "a name has a character that folding could confuse");
            names[at] = Name {
                words: words(name),
                len: name.len() as u8,
                whole: name.len() > EXACT_MAX || has_underscore(name),
                id: CommandId(id),
            };
            at += 1;
            id += 1 + spec.subcommands.len() as u16;
            i += 1;
        }
        group += 1;
    }
    names
}

const fn is_plain(name: &[u8]) -> bool {
    let mut i = 0;
    while i < name.len() {
        if !matches!(name[i], b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_') {
            return false;
        }
        i += 1;
    }
    !name.is_empty()
}

const fn has_underscore(name: &[u8]) -> bool {
    let mut i = 0;
    while i < name.len() {
        if name[i] == b'_' {
            return true;
        }
        i += 1;
    }
    false
}

const fn by_id() -> [&'static CommandSpec; ENTRIES] {
    let mut all = [&CommandSpec::BASE; ENTRIES];
    let (mut at, mut group) = (0, 0);
    while group < GROUPS.len() {
        let mut i = 0;
        while i < GROUPS[group].len() {
            let spec = &GROUPS[group][i];
            all[at] = spec;
            at += 1;
            let mut sub = 0;
            while sub < spec.subcommands.len() {
                all[at] = &spec.subcommands[sub];
                at += 1;
                sub += 1;
            }
            i += 1;
        }
        group += 1;
    }
    all
}

/// The index under `seed`, if no two names meet.
#[allow(clippy::large_stack_arrays)] // the compiler's stack
const fn index(seed: u64) -> Option<[u16; 1 << INDEX_BITS]> {
    let names = names();
    let mut index = [EMPTY; 1 << INDEX_BITS];
    let mut i = 0;
    while i < names.len() {
        let slot = hash(names[i].words, names[i].len as usize, seed);
        if index[slot] != EMPTY {
            return None;
        }
        index[slot] = i as u16;
        i += 1;
    }
    Some(index)
}

/// The first odd multiplier of a fixed sequence under which no two names meet. With too many
/// commands for the index the search does not end and the compiler says so.
const fn seed() -> u64 {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    while index(seed).is_none() {
        seed = seed.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(2) | 1;
    }
    seed
}
