//! Order, and the number of comparisons.

use super::*;
use std::cell::Cell;
use std::cmp::Ordering;

#[test]
fn a_library_is_kept_once_and_in_its_place() {
    let mut functions = Functions::default();
    for name in ["b", "a", "b", "c", "a"] {
        functions.add(None, Arc::from(name.as_bytes()));
    }
    let names: Vec<Arc<[u8]>> = functions.to_vec();
    assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), [b"b", b"a", b"c"]);
    functions.clear();
    assert!(functions.to_vec().is_empty());
    functions.add(None, Arc::from(&b"a"[..]));
    assert_eq!(functions.to_vec().len(), 1, "what was forgotten comes again");
}

const LIBRARIES: u32 = 200_000;
/// Comparisons for each library, at most. (A tree makes about 30.)
const COMPARISONS_EACH: u64 = 100;

thread_local! {
    /// Comparisons which are left to this test.
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// A library which counts how often it is compared.
#[derive(Clone, Copy)]
struct Counted(u32);

impl Ord for Counted {
    fn cmp(&self, other: &Self) -> Ordering {
        let left = LEFT.get().checked_sub(1).expect("too many comparisons");
        LEFT.set(left);
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Counted {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Counted {}

/// Earlier each library was compared with all that were there, so the time of a file of millions
/// of small ones grew with the square of their number.
#[test]
fn many_libraries_are_compared_seldom() {
    LEFT.set(u64::from(LIBRARIES) * COMPARISONS_EACH);
    let mut functions = Functions::default();
    for n in 0..LIBRARIES {
        // In any order: an odd number permutes the numbers of 32 bits.
        functions.add(None, Counted(n.wrapping_mul(2_654_435_761)));
    }
    assert_eq!(functions.to_vec().len(), LIBRARIES as usize);
}

fn op(words: &[&str]) -> Option<Result<Op, String>> {
    let (mut base, mut spans) = (Vec::new(), Vec::new());
    for word in words {
        spans.push(resp::Span { start: base.len() as u32, len: word.len() as u32 });
        base.extend(word.bytes());
    }
    Op::read(Args::new(&base, &spans, &[]))
}

#[test]
fn commands_load_replace_and_delete_libraries() {
    let mut functions = Functions::default();
    let (one, two) = ("#!lua name=one\n1", "#!lua  name=two x=y\n2");
    let again = "#!lua name=one\nother";
    for words in [
        &["FUNCTION", "LOAD", one][..],
        &["function", "load", two],
        &["FUNCTION", "LOAD", again], // an error of Redis: it is there
        &["FUNCTION", "LOAD", "REPLACE", again],
        &["SCRIPT", "LOAD", "return 1"],
    ] {
        functions.apply(op(words).expect("about functions").expect("known"));
    }
    let texts = |functions: &Functions| -> Vec<String> {
        let all = functions.to_vec();
        all.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect()
    };
    assert_eq!(texts(&functions), [two, again]);
    functions.apply(op(&["FUNCTION", "DELETE", "two"]).expect("one").expect("known"));
    assert_eq!(texts(&functions), [again]);
    functions.apply(op(&["FUNCTION", "FLUSH", "ASYNC"]).expect("one").expect("known"));
    assert!(functions.to_vec().is_empty());
    assert!(op(&["SET", "a", "1"]).is_none());
    for words in [&["FUNCTION"][..], &["FUNCTION", "LOAD", "no name"], &["FUNCTION", "STATS"]] {
        assert!(op(words).expect("about functions").is_err(), "{words:?}");
    }
}
