//! The grammars: the commands of each family and how their replies are compared.
//!
//! A family is one file: a table of weighted templates, and a table of the commands whose replies
//! are not determined byte by byte. [`ENABLED`] lists the families which the server under test must
//! know; a new family is enabled by adding its name there.

mod bigstring;
mod bitmap;
mod blocking;
mod database;
mod dump;
mod generic;
mod geo;
mod hash;
mod hyperloglog;
mod list;
mod pubsub;
mod set;
mod sort;
mod stream;
mod string;
mod tracking;
mod transactions;
mod zset;

use std::collections::BTreeSet;

use super::dice::{Args, Dice};
use super::judge::Mode;

/// The families which the server under test supports. A test fails if a supported family is missing
/// here or a listed one is not supported.
pub const ENABLED: &[&str] = &[
    "string",
    "generic",
    "database",
    "transactions",
    "bitmap",
    "bigstring",
    "hyperloglog",
    "list",
    "hash",
    "set",
    "zset",
    "geo",
    "sort",
    "dump",
    "blocking",
    "stream",
    "pubsub",
    "tracking",
];

/// All grammars, whether enabled or not.
pub static FAMILIES: &[&Family] = &[
    &string::FAMILY,
    &list::FAMILY,
    &hash::FAMILY,
    &set::FAMILY,
    &zset::FAMILY,
    &geo::FAMILY,
    &bitmap::FAMILY,
    &bigstring::FAMILY,
    &hyperloglog::FAMILY,
    &sort::FAMILY,
    &dump::FAMILY,
    &blocking::FAMILY,
    &stream::FAMILY,
    &generic::FAMILY,
    &database::FAMILY,
    &transactions::FAMILY,
    &pubsub::FAMILY,
    &tracking::FAMILY,
];

/// The weight of a template within its family, and the template.
///
/// Words are separated by spaces, commands of one template by ` ; ` (they stay together). In a word
/// `A|B` is one of the alternatives and `+` stands for a space. `[X]` appears with probability 1/2,
/// `{X}` one to three times, `<X>` a hundred times or more, enough to change an encoding. `$x` is
/// drawn by [`Dice`]; `$1` and `$2` are keys which stay the same within the template.
pub type Template = (usize, &'static str);

/// A grammar.
pub struct Family {
    /// Its name in [`ENABLED`] and in `DIFF_FAMILY`.
    pub name: &'static str,
    /// Whether a sequence may be about it; other families only accompany a sequence.
    pub leads: bool,
    /// Whether its commands have any number of replies, on any connection. Its sequences have no
    /// commands of others but transactions, and others none of these.
    pub gathers: bool,
    /// Its commands.
    pub templates: &'static [Template],
    /// How replies which are not exact are compared, by command.
    pub replies: &'static [(&'static str, Mode)],
    /// Commands whose replies are determined only as their templates write them: no mistakes are
    /// added to them, and shrinking keeps their arguments.
    pub brittle: &'static [&'static str],
    /// Whether the outcome of this command is undetermined, given whether keys may expire.
    pub open: fn(&[Vec<u8>], bool) -> bool,
}

impl Family {
    /// Defaults of all families.
    const BASE: Family = Family {
        name: "",
        leads: true,
        gathers: false,
        templates: &[],
        replies: &[],
        brittle: &[],
        open: |_, _| false,
    };

    /// The grammar of this name.
    pub fn named(name: &str) -> Option<&'static Family> {
        FAMILIES.iter().copied().find(|family| family.name == name)
    }

    /// The commands that its templates contain, in upper case.
    pub fn commands(&self) -> BTreeSet<&'static str> {
        let texts = self.templates.iter().flat_map(|(_, text)| text.split(" ; "));
        texts.flat_map(|text| text.split(' ').next().unwrap_or_default().split('|')).collect()
    }

    /// The commands of a template drawn by weight, none of them undetermined.
    pub fn draw(&self, dice: &mut Dice) -> Vec<Args> {
        loop {
            let total: usize = self.templates.iter().map(|(weight, _)| weight).sum();
            let mut at = dice.rng.below(total);
            let mut text = "";
            for (weight, template) in self.templates {
                text = template;
                if at < *weight {
                    break;
                }
                at -= weight;
            }
            dice.begin();
            let mut commands = Vec::new();
            for part in text.split(" ; ") {
                let text = expand(dice, part);
                commands.push(words(dice, &text));
            }
            if !commands.iter().any(|args| is_open(args, dice.expiring)) {
                return commands;
            }
        }
    }
}

/// What sequences are made of.
#[derive(Clone)]
pub struct Mix {
    /// Each sequence is about one of these.
    pub leading: Vec<&'static Family>,
    /// These accompany.
    pub all: Vec<&'static Family>,
}

impl Mix {
    /// All families of these names.
    ///
    /// # Panics
    /// If there is no family of such a name.
    pub fn of(names: &[&str]) -> Mix {
        let named = |name: &&str| {
            Family::named(name).unwrap_or_else(|| panic!("there is no family '{name}'"))
        };
        let all: Vec<&'static Family> = names.iter().map(named).collect();
        let leading = all.iter().copied().filter(|family| family.leads).collect();
        Mix { leading, all }
    }

    /// All enabled families whose replies come one for each request: without messages.
    pub fn of_changes() -> Mix {
        let mut mix = Mix::of(ENABLED);
        for list in [&mut mix.leading, &mut mix.all] {
            list.retain(|family| !family.gathers);
        }
        mix
    }

    /// Sequences about one family, accompanied by what is enabled for keys of any type.
    pub fn about(name: &str) -> Mix {
        let mut names = vec!["string", "generic", "database", "transactions"];
        names.retain(|other| *other != name);
        names.push(name);
        let mut mix = Mix::of(&names);
        mix.leading.retain(|family| family.name == name);
        mix
    }
}

/// How the reply to this command is compared.
pub fn mode(args: &[Vec<u8>]) -> Mode {
    let tables = FAMILIES.iter().flat_map(|family| family.replies);
    match find(args, tables.map(|(name, mode)| (*name, *mode))) {
        Some(Mode::By(choose)) => choose(args),
        Some(mode) => mode,
        None => Mode::Exact,
    }
}

/// Whether this command must stay as its template wrote it.
pub fn is_brittle(args: &[Vec<u8>]) -> bool {
    let tables = FAMILIES.iter().flat_map(|family| family.brittle);
    find(args, tables.map(|name| (*name, ()))).is_some()
}

/// Whether the outcome of this command is undetermined.
pub fn is_open(args: &[Vec<u8>], expiring: bool) -> bool {
    FAMILIES.iter().any(|family| (family.open)(args, expiring))
}

/// Whether `args` is a command of this name.
pub fn is(args: &[Vec<u8>], name: &str) -> bool {
    args.first().is_some_and(|first| first.eq_ignore_ascii_case(name.as_bytes()))
}

/// Whether this word is among the arguments.
pub fn has(args: &[Vec<u8>], word: &str) -> bool {
    args.iter().skip(1).any(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
}

fn find<T>(args: &[Vec<u8>], mut table: impl Iterator<Item = (&'static str, T)>) -> Option<T> {
    table.find(|(name, _)| is(args, name)).map(|(_, found)| found)
}

fn words(dice: &mut Dice, text: &str) -> Args {
    let mut args = Args::new();
    for word in text.split_whitespace() {
        dice.word(word, &mut args);
    }
    args
}

fn expand(dice: &mut Dice, template: &str) -> String {
    let mut out = Vec::new();
    let mut rest = template.trim_start();
    while !rest.is_empty() {
        let close = match rest.as_bytes()[0] {
            b'[' => ']',
            b'{' => '}',
            b'<' => '>',
            _ => ' ',
        };
        if close == ' ' {
            let end = rest.find(' ').unwrap_or(rest.len());
            let choices: Vec<&str> = rest[..end].split('|').collect();
            out.push(dice.rng.pick(&choices).replace('+', " "));
            rest = rest[end..].trim_start();
            continue;
        }
        let end = rest.find(close).expect("templates are balanced");
        let times = match close {
            ']' => dice.rng.below(2),
            '}' => 1 + dice.rng.below(3),
            _ => dice.many(),
        };
        for _ in 0..times {
            let inner = expand(dice, &rest[1..end]);
            out.push(inner);
        }
        rest = rest[end + 1..].trim_start();
    }
    out.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn templates_expand() {
        let mut dice = Dice::new(Rng::new(1));
        let mut seen = BTreeSet::new();
        for _ in 0..200 {
            seen.insert(expand(&mut dice, "SET a [NX|EX+5] {b}"));
        }
        for wanted in ["SET a b", "SET a NX b", "SET a EX 5 b b b"] {
            assert!(seen.contains(wanted), "{wanted} in {seen:?}");
        }
        assert_eq!(seen.len(), 9);
    }

    #[test]
    fn enabled_names_are_families_and_names_are_unique() {
        assert_eq!(Mix::of(ENABLED).all.len(), ENABLED.len());
        let names: BTreeSet<&str> = FAMILIES.iter().map(|family| family.name).collect();
        assert_eq!(names.len(), FAMILIES.len());
    }

    #[test]
    fn commands_of_a_family_come_from_its_templates() {
        let commands = Family::named("set").expect("there is one").commands();
        for name in ["SADD", "SPOP", "SINTERSTORE", "SMEMBERS"] {
            assert!(commands.contains(name), "{name} in {commands:?}");
        }
    }
}
