//! The libraries of functions that a file had.

use base::sync::Arc;
use resp::Args;
use std::collections::BTreeMap;

/// Libraries, each once, in the order in which they came. A file may have millions of them, so they
/// are not searched for a library from the beginning.
pub(crate) struct Functions<T = Arc<[u8]>> {
    in_order: BTreeMap<u64, T>,
    known: BTreeMap<T, u64>,
    names: BTreeMap<Vec<u8>, u64>,
    next: u64,
}

impl<T> Default for Functions<T> {
    fn default() -> Self {
        Self { in_order: BTreeMap::new(), known: BTreeMap::new(), names: BTreeMap::new(), next: 0 }
    }
}

impl<T: Ord + Clone> Functions<T> {
    /// Keeps a library, whose name may be known, unless it is there. O(log of their number)
    /// comparisons.
    pub fn add(&mut self, name: Option<Vec<u8>>, library: T) {
        if self.known.contains_key(&library) {
            return;
        }
        let number = self.next;
        self.next += 1;
        self.known.insert(library.clone(), number);
        self.in_order.insert(number, library);
        if let Some(name) = name {
            self.names.insert(name, number);
        }
    }

    /// Forgets the library of this name.
    fn remove(&mut self, name: &[u8]) {
        let number = self.names.remove(name);
        if let Some(library) = number.and_then(|number| self.in_order.remove(&number)) {
            self.known.remove(&library);
        }
    }

    /// All of them.
    pub fn to_vec(&self) -> Vec<T> {
        self.in_order.values().cloned().collect()
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Functions {
    /// Does what a command of an append-only file says.
    pub fn apply(&mut self, op: Op) {
        match op {
            Op::Load { name, replaces, library } => {
                if replaces {
                    self.remove(&name);
                }
                if !self.names.contains_key(&name) {
                    self.add(Some(name), library.into());
                }
            }
            Op::Delete(name) => self.remove(&name),
            Op::Flush => self.clear(),
            Op::Nothing => {}
        }
    }
}

/// The name of a library: its text begins with `#!ENGINE name=NAME`.
pub(crate) fn name_of(library: &[u8]) -> Option<Vec<u8>> {
    let line = library.split(|byte| *byte == b'\n').next()?.strip_prefix(b"#!")?;
    let mut words = line.split(u8::is_ascii_whitespace);
    words.find_map(|word| word.strip_prefix(b"name=")).map(<[u8]>::to_vec)
}

/// What a command of an append-only file does to the libraries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Load {
        name: Vec<u8>,
        replaces: bool,
        library: Vec<u8>,
    },
    Delete(Vec<u8>),
    Flush,
    /// SCRIPT, which changes no data.
    Nothing,
}

impl Op {
    /// What the command does; `None` if it is about neither functions nor scripts, whose commands
    /// this version does not have.
    pub fn read(args: Args<'_>) -> Option<Result<Self, String>> {
        if args.get(0).eq_ignore_ascii_case(b"SCRIPT") {
            return Some(Ok(Self::Nothing));
        }
        if !args.get(0).eq_ignore_ascii_case(b"FUNCTION") {
            return None;
        }
        let is = |at: usize, word: &[u8]| {
            args.try_get(at).is_some_and(|arg| arg.eq_ignore_ascii_case(word))
        };
        let replaces = is(2, b"REPLACE");
        let library = args.try_get(2 + usize::from(replaces));
        Some(match (library, args.len()) {
            (Some(library), 3 | 4) if is(1, b"LOAD") => match name_of(library) {
                Some(name) => Ok(Self::Load { name, replaces, library: library.to_vec() }),
                None => Err("FUNCTION LOAD of a library without a name".to_owned()),
            },
            (_, 3) if is(1, b"DELETE") => Ok(Self::Delete(args.get(2).to_vec())),
            (_, 2 | 3) if is(1, b"FLUSH") => Ok(Self::Flush),
            _ => Err(format!(
                "FUNCTION {}: this version keeps libraries only from FUNCTION LOAD",
                args.try_get(1).unwrap_or_default().escape_ascii()
            )),
        })
    }
}

#[cfg(test)]
mod tests;
