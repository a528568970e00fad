//! The order of the elements of each list, and what is wrong with single reads.

use super::{Anomaly, Element, Key, Op, Outcome, Txn};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A read of a list by a transaction.
pub struct ReadOf {
    /// The transaction that read.
    pub reader: usize,
    /// How many elements it saw that are not its own.
    pub others: usize,
}

/// What is known of one list.
#[derive(Default)]
pub struct Versions {
    /// The transaction that appended each element, in the list's order; `None` for an element that
    /// should not be there.
    pub writers: Vec<Option<usize>>,
    /// The transactions that appended an element that no read contains.
    pub unseen: Vec<usize>,
    /// Reads that fit the order.
    pub reads: Vec<ReadOf>,
}

/// The transaction that appended an element, to which list, and whether it appends more to it.
struct Written {
    key: Key,
    txn: usize,
    has_next: bool,
    len: Option<usize>,
}

/// The longest read of a list, and whose it is.
struct Longest<'a> {
    reader: usize,
    seen: &'a [Element],
}

/// The versions of all lists, and the anomalies that are visible without other lists.
pub fn infer(history: &[Txn]) -> (BTreeMap<Key, Versions>, Vec<Anomaly>) {
    let written = written(history);
    let longest = longest(history);
    let mut found = Vec::new();
    let mut versions: BTreeMap<Key, Versions> = BTreeMap::new();
    for (key, longest) in &longest {
        check_elements(*key, longest, &written, history, &mut found);
        let of =
            |element| written.get(element).filter(|w| w.key == *key && commits(history, w.txn));
        let writers = longest.seen.iter().map(|element| of(element).map(|w| w.txn)).collect();
        versions.insert(*key, Versions { writers, ..Versions::default() });
    }
    for (txn, of) in history.iter().enumerate().filter(|(_, t)| t.outcome == Outcome::Committed) {
        check_reads(txn, of, &longest, &written, &mut versions, &mut found);
    }
    add_unseen(history, &longest, &written, &mut versions, &mut found);
    (versions, found)
}

/// True if what it wrote may be seen.
fn commits(history: &[Txn], txn: usize) -> bool {
    history[txn].outcome != Outcome::Aborted
}

fn written(history: &[Txn]) -> HashMap<Element, Written> {
    let mut written: HashMap<Element, Written> = HashMap::new();
    for (txn, of) in history.iter().enumerate() {
        let mut last: HashMap<Key, Element> = HashMap::new();
        for op in &of.ops {
            let Op::Append { key, element, len } = *op else { continue };
            if let Some(before) = last.insert(key, element)
                && let Some(before) = written.get_mut(&before)
            {
                before.has_next = true;
            }
            let own = Written { key, txn, has_next: false, len };
            assert!(written.insert(element, own).is_none(), "{element} is appended twice");
        }
    }
    written
}

fn longest(history: &[Txn]) -> BTreeMap<Key, Longest<'_>> {
    let mut longest: BTreeMap<Key, Longest<'_>> = BTreeMap::new();
    for (reader, txn) in history.iter().enumerate() {
        for op in &txn.ops {
            let Op::Read { key, seen } = op else { continue };
            let so_far = longest.entry(*key).or_insert(Longest { reader, seen });
            if seen.len() > so_far.seen.len() {
                *so_far = Longest { reader, seen };
            }
        }
    }
    longest
}

/// Each element of the longest read was appended once, by a transaction that may be visible.
fn check_elements(
    key: Key,
    longest: &Longest<'_>,
    written: &HashMap<Element, Written>,
    history: &[Txn],
    found: &mut Vec<Anomaly>,
) {
    let (reader, mut before) = (longest.reader, BTreeSet::new());
    for &element in longest.seen {
        if !before.insert(element) {
            found.push(Anomaly::Duplicate { key, element, reader });
        }
        match written.get(&element) {
            Some(w) if w.key == key && !commits(history, w.txn) => {
                found.push(Anomaly::AbortedRead { key, element, reader });
            }
            Some(w) if w.key == key => {}
            _ => found.push(Anomaly::Unwritten { key, element, reader }),
        }
    }
}

/// The reads of one transaction: prefixes of the longest one, with its own appends, and never the
/// middle of another.
fn check_reads(
    txn: usize,
    of: &Txn,
    longest: &BTreeMap<Key, Longest<'_>>,
    written: &HashMap<Element, Written>,
    versions: &mut BTreeMap<Key, Versions>,
    found: &mut Vec<Anomaly>,
) {
    let mut own: BTreeMap<Key, Vec<Element>> = BTreeMap::new();
    let mut others: BTreeMap<Key, &[Element]> = BTreeMap::new();
    for op in &of.ops {
        let (key, seen) = match op {
            Op::Append { key, element, .. } => {
                own.entry(*key).or_default().push(*element);
                continue;
            }
            Op::Read { key, seen } => (*key, seen),
        };
        let long = &longest[&key];
        if !long.seen.starts_with(seen) {
            found.push(Anomaly::Incompatible { key, readers: (long.reader, txn) });
            continue;
        }
        let appended = own.get(&key).map_or(&[][..], Vec::as_slice);
        let Some(foreign) = seen.strip_suffix(appended) else {
            found.push(Anomaly::Internal { key, txn });
            continue;
        };
        let is_own = |e: &Element| written.get(e).is_some_and(|w| w.txn == txn);
        if foreign.iter().any(is_own) || *others.entry(key).or_insert(foreign) != foreign {
            found.push(Anomaly::Internal { key, txn });
            continue;
        }
        if let Some(&element) = foreign.last()
            && written.get(&element).is_some_and(|w| w.key == key && w.has_next)
        {
            found.push(Anomaly::IntermediateRead { key, element, reader: txn });
        }
        let read = ReadOf { reader: txn, others: foreign.len() };
        versions.get_mut(&key).expect("it was read").reads.push(read);
    }
}

/// Committed elements that no read contains come after all that do; lengths must fit their places.
fn add_unseen(
    history: &[Txn],
    longest: &BTreeMap<Key, Longest<'_>>,
    written: &HashMap<Element, Written>,
    versions: &mut BTreeMap<Key, Versions>,
    found: &mut Vec<Anomaly>,
) {
    let seen: BTreeSet<(Key, Element)> =
        longest.iter().flat_map(|(key, l)| l.seen.iter().map(move |e| (*key, *e))).collect();
    let is_seen = |element: Element, w: &Written| seen.contains(&(w.key, element));
    // A transaction without a reply counts as committed once anything of it was seen.
    let shown: BTreeSet<usize> =
        written.iter().filter(|(e, w)| is_seen(**e, w)).map(|(_, w)| w.txn).collect();
    let mut sorted: Vec<(&Element, &Written)> = written.iter().collect();
    sorted.sort_unstable_by_key(|(element, w)| (w.txn, **element));
    for (&element, w) in sorted {
        let (key, txn) = (w.key, w.txn);
        let counts = match history[txn].outcome {
            Outcome::Committed => true,
            Outcome::Aborted => false,
            Outcome::Unknown => shown.contains(&txn),
        };
        if !counts {
            continue;
        }
        if let (Some(len), Some(longest)) = (w.len, longest.get(&key))
            && (len == 0 || longest.seen.get(len - 1).is_some_and(|there| *there != element))
        {
            found.push(Anomaly::WrongLen { key, element, txn });
        }
        if !is_seen(element, w) {
            versions.entry(key).or_default().unseen.push(txn);
        }
    }
}
