//! A trace: which keys a client of a cache reads, in order. And the file that holds one.
//!
//! ```text
//! # a comment
//! KEY
//! KEY SIZE
//! time,KEY,key size,SIZE,client,operation,ttl
//! ```
//!
//! One access per line. Traces with one block number per line, as those of LIRS, are read as they
//! are. The last form is that of Twitter's published cache traces; of these only reads (`get`,
//! `gets`) are accesses.

use std::collections::HashMap;
use std::fmt::Write as _;

/// Longest key in a file, bytes.
const KEY_MAX: usize = 512;
/// Largest value in a file, bytes.
const SIZE_MAX: u32 = 16 << 20;
/// Most accesses in a file.
const ACCESSES_MAX: usize = 100_000_000;
/// What an entry takes beside its value, where sizes count: about what servers need for a key, its
/// entry and its share of a table.
pub const OVERHEAD: u64 = 64;

/// One read of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The key's number.
    pub key: u32,
    /// Bytes of its value, which a miss writes.
    pub size: u32,
}

/// The reads of a client, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// What it is called in tables.
    pub name: String,
    /// The keys, by their numbers.
    pub keys: Vec<String>,
    /// The reads.
    pub accesses: Vec<Access>,
    /// Whether values have different sizes, so that a limit counts bytes, not entries.
    pub is_sized: bool,
}

impl Trace {
    /// A trace of these reads.
    pub fn new(name: &str, keys: Vec<String>, accesses: Vec<Access>) -> Self {
        let is_sized = accesses.windows(2).any(|pair| pair[0].size != pair[1].size);
        Self { name: name.to_owned(), keys, accesses, is_sized }
    }

    /// Reads the text of a file. Values without a size have `size` bytes.
    pub fn parse(name: &str, text: &str, size: u32) -> Result<Self, String> {
        let (mut keys, mut accesses) = (Vec::new(), Vec::new());
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        for (at, line) in text.lines().enumerate() {
            let parsed = parse_line(line).map_err(|why| format!("{name}, line {}: {why}", at + 1));
            let Some((key, own)) = parsed? else { continue };
            if accesses.len() == ACCESSES_MAX {
                return Err(format!("{name}: a trace has at most {ACCESSES_MAX} accesses"));
            }
            let number = *numbers.entry(key).or_insert_with(|| {
                keys.push(key.to_owned());
                keys.len() as u32 - 1
            });
            accesses.push(Access { key: number, size: own.unwrap_or(size) });
        }
        if accesses.is_empty() {
            return Err(format!("{name}: there is no access in it"));
        }
        Ok(Self::new(name, keys, accesses))
    }

    /// The text of a file that holds it, with comments of one line each.
    pub fn render(&self, comments: &[String]) -> String {
        let mut text = String::new();
        // (Writing to a string does not fail.)
        for comment in comments {
            let _ = writeln!(text, "# {comment}");
        }
        for access in &self.accesses {
            let key = &self.keys[access.key as usize];
            let _ = if self.is_sized {
                writeln!(text, "{key} {}", access.size)
            } else {
                writeln!(text, "{key}")
            };
        }
        text
    }

    /// What an access takes of the capacity of a cache: one entry, or bytes.
    pub fn weight(&self, access: Access) -> u64 {
        if self.is_sized { u64::from(access.size) + OVERHEAD } else { 1 }
    }

    /// The first access of each key that is read, in order.
    pub fn firsts(&self) -> impl Iterator<Item = Access> {
        let mut seen = vec![false; self.keys.len()];
        self.accesses
            .iter()
            .copied()
            .filter(move |access| !std::mem::replace(&mut seen[access.key as usize], true))
    }

    /// The capacity that holds so many entries, in entries or in bytes.
    pub fn capacity(&self, entries: u64) -> u64 {
        let (count, sum) = self
            .firsts()
            .fold((0, 0), |(count, sum), access| (count + 1, sum + self.weight(access)));
        (u128::from(sum) * u128::from(entries) / u128::from(count.max(1u64))) as u64
    }

    /// For each access when its key is read next; `u32::MAX` for never.
    pub fn next_uses(&self) -> Vec<u32> {
        let mut next = vec![u32::MAX; self.keys.len()];
        let mut uses = vec![u32::MAX; self.accesses.len()];
        for (at, access) in self.accesses.iter().enumerate().rev() {
            uses[at] = std::mem::replace(&mut next[access.key as usize], at as u32);
        }
        uses
    }

    /// The share of accesses to keys that are read once in the whole trace.
    pub fn read_once(&self) -> f64 {
        let mut reads = vec![0u32; self.keys.len()];
        for access in &self.accesses {
            reads[access.key as usize] += 1;
        }
        let once = reads.iter().filter(|count| **count == 1).count();
        once as f64 / self.accesses.len().max(1) as f64
    }
}

/// The key of a line, and the size if it has one; `None` for a line that is no access.
fn parse_line(line: &str) -> Result<Option<(&str, Option<u32>)>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    if line.contains(',') {
        // (A key may hold commas; the other fields hold none.)
        let fields: Vec<&str> = line.rsplitn(6, ',').collect();
        let [_, operation, _, size, _, front] = fields[..] else {
            return Err("expected 7 fields between commas, or KEY [SIZE]".to_owned());
        };
        let Some((_, key)) = front.split_once(',') else {
            return Err("expected 7 fields between commas, or KEY [SIZE]".to_owned());
        };
        let is_read = matches!(operation, "get" | "gets");
        return if is_read { checked(key, Some(size)).map(Some) } else { Ok(None) };
    }
    let mut words = line.split_whitespace();
    let (Some(key), size, None) = (words.next(), words.next(), words.next()) else {
        return Err("expected KEY [SIZE]".to_owned());
    };
    checked(key, size).map(Some)
}

fn checked<'a>(key: &'a str, size: Option<&str>) -> Result<(&'a str, Option<u32>), String> {
    if key.is_empty() || key.len() > KEY_MAX {
        return Err(format!("a key has 1 to {KEY_MAX} bytes"));
    }
    let parsed = size.map(|size| {
        let parsed = size.parse::<u32>().ok().filter(|size| *size <= SIZE_MAX);
        parsed.ok_or_else(|| format!("'{size}' is no size of 0 to {SIZE_MAX} bytes"))
    });
    Ok((key, parsed.transpose()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(trace: &Trace) -> Vec<&str> {
        trace.accesses.iter().map(|one| trace.keys[one.key as usize].as_str()).collect()
    }

    #[test]
    fn a_trace_is_read_back_as_it_was_written() {
        let text = "# two keys\na\nb\na\n\n";
        let trace = Trace::parse("t", text, 100).expect("it is fine");
        assert_eq!(keys(&trace), ["a", "b", "a"]);
        assert!(!trace.is_sized && trace.accesses[0].size == 100);
        assert_eq!(Trace::parse("t", &trace.render(&["x".to_owned()]), 100), Ok(trace));
        let sized = Trace::parse("t", "a 1\nb 70\na 1\n", 100).expect("it is fine");
        assert!(sized.is_sized && sized.accesses[1].size == 70);
        assert_eq!(Trace::parse("t", &sized.render(&[]), 100), Ok(sized));
    }

    #[test]
    fn reads_of_a_published_trace_are_accesses() {
        let text = "0,nz:u:eeW,10,55,6,get,0\n0,q,1,2,3,set,60\n1,a,b,3,300,1,gets,0\n";
        let trace = Trace::parse("t", text, 1).expect("it is fine");
        assert_eq!(keys(&trace), ["nz:u:eeW", "a,b"]);
        assert_eq!([trace.accesses[0].size, trace.accesses[1].size], [55, 300]);
    }

    #[test]
    fn bad_lines_are_refused_with_their_number() {
        let why = |text: &str| Trace::parse("t", text, 1).expect_err("it is wrong");
        assert!(why("a\nb x\n").starts_with("t, line 2: 'x' is no size"));
        assert!(why("a 1 2\n").contains("expected KEY [SIZE]"));
        assert!(why("a,b\n").contains("expected 7 fields"));
        assert!(why("0,a,1,x,3,get,0\n").contains("'x' is no size"));
        assert!(why("a 99999999\n").contains("is no size"));
        assert!(why(&"k".repeat(KEY_MAX + 1)).contains("a key has"));
        assert!(why("# nothing\n").contains("no access"));
    }

    #[test]
    fn what_policies_ask_of_a_trace() {
        let trace = Trace::parse("t", "a\nb\na\nc\n", 10).expect("it is fine");
        assert_eq!(trace.next_uses(), [2, u32::MAX, u32::MAX, u32::MAX]);
        assert!((trace.read_once() - 0.5).abs() < 1e-9);
        assert_eq!((trace.capacity(2), trace.firsts().count()), (2, 3));
        let sized = Trace::parse("t", "a 36\nb 136\na 36\n", 10).expect("it is fine");
        assert_eq!((sized.weight(sized.accesses[0]), sized.capacity(4)), (100, 600));
    }
}
