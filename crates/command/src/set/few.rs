//! Intersection, union and difference of few members: each is looked for in the other sets where it
//! stands, which costs about a nanosecond for each member that it is compared with, a hundredth of
//! what putting it into a tree would.

use keyspace::{Captured, Keyspace};
use value::Big;
use value::keyed::Key;
use value::packed::Elem;
use value::set::{Set, has_stored};
use value::string::IntText;

use super::operation::Operation;
use super::view::View;

/// Comparisons for each member, up to which no trees are made.
const COMPARED_PER_MEMBER: u64 = 100;
/// Comparisons in all, for they are made in one step.
const COMPARED_MAX: u64 = 50_000;
/// What a search in a tree costs, in comparisons.
const TREE_COST: u64 = 100;

/// A set as it was.
pub(super) enum SetSnapshot {
    /// A copy of its bytes, and how many members.
    Packed(Vec<u8>, u64),
    Big(Captured),
}

impl SetSnapshot {
    /// Keeps a set. O(1), but for the bytes of a packed one.
    pub fn of(keyspace: &Keyspace, view: View<'_>) -> Self {
        match view {
            View::Packed(packed, _) => Self::Packed(packed.to_vec(), view.len()),
            View::Big(big, _) => Self::Big(keyspace.capture(big)),
        }
    }

    /// Members.
    pub fn len(&self) -> u64 {
        match self {
            Self::Packed(_, len) => *len,
            Self::Big(big) => big.len(),
        }
    }

    /// As a tree.
    pub fn into_tree(self, keyspace: &Keyspace) -> Captured {
        match self {
            Self::Packed(bytes, ..) => keyspace.capture(&Big::Set(Set::of_packed(&bytes))),
            Self::Big(big) => big,
        }
    }

    /// Comparisons of a search.
    fn cost(&self) -> u64 {
        match self {
            Self::Packed(_, len) => *len,
            Self::Big(_) => TREE_COST,
        }
    }

    /// Whether it has a member: as it is packed, and its text.
    #[inline]
    pub fn has(&self, stored: &[u8], text: &[u8]) -> bool {
        match self {
            Self::Packed(bytes, _) => has_stored(bytes, stored),
            Self::Big(big) => match &**big {
                Big::Set(set) => set.contains(text),
                _ => unreachable!("a set was captured"),
            },
        }
    }

    fn packed(&self) -> Option<&[u8]> {
        match self {
            Self::Packed(bytes, ..) => Some(bytes),
            Self::Big(_) => None,
        }
    }
}

/// Is it cheaper to look for members one by one, and short enough to be done at once? The sets
/// whose members are looked for must be packed: the first one, of a union all.
pub(super) fn is_few(operation: Operation, sets: &[SetSnapshot]) -> bool {
    let leading = if operation == Operation::Union { sets.len() } else { 1 };
    if sets.iter().take(leading).any(|set| set.packed().is_none()) {
        return false;
    }
    let (mut compared, mut searched, mut members) = (0, 0, 0);
    for (n, set) in sets.iter().enumerate() {
        match operation {
            Operation::Union => compared += set.len() * searched,
            _ if n > 0 => compared += sets[0].len() * set.cost(),
            _ => {}
        }
        searched += set.cost();
        members += set.cost();
    }
    compared <= COMPARED_MAX.min(COMPARED_PER_MEMBER * members)
}

/// Calls `f` with the members of the result, each once, until it says `false`.
pub(super) fn each(operation: Operation, sets: &[SetSnapshot], mut f: impl FnMut(Key<'_>) -> bool) {
    let leading = if operation == Operation::Union { sets.len() } else { 1 };
    for (n, set) in sets.iter().take(leading).enumerate() {
        let mut rest = set.packed().expect("it is packed: is_few");
        while let Some((member, len)) = Elem::first(rest) {
            let (stored, behind) = rest.split_at(len);
            rest = behind;
            let mut scratch = IntText::default();
            let text = member.bytes(&mut scratch);
            let has = |other: &SetSnapshot| other.has(stored, text);
            let is_in = match operation {
                Operation::Union => !sets[..n].iter().any(has),
                Operation::Intersection => sets[1..].iter().all(has),
                Operation::Difference => !sets[1..].iter().any(has),
            };
            if is_in && !f(Key::hashed(text)) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    type Members = BTreeSet<Vec<u8>>;

    fn source(members: &Members) -> SetSnapshot {
        let mut bytes = Vec::new();
        for member in members {
            Elem::of(member).push(&mut bytes);
        }
        SetSnapshot::Packed(bytes, members.len() as u64)
    }

    fn result(operation: Operation, sets: &[SetSnapshot]) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        each(operation, sets, |key| {
            assert_eq!(key, Key::hashed(key.tail));
            all.push(key.tail.to_vec());
            true
        });
        all.sort();
        all
    }

    proptest! {
        #[test]
        fn combining_few_members_agrees_with_sets(sets in proptest::collection::vec(
            proptest::collection::btree_set("[a-b0-1-]{0,3}".prop_map(String::into_bytes), 0..20), 1..5)
        ) {
            let sources: Vec<SetSnapshot> = sets.iter().map(source).collect();
            let (first, others) = sets.split_first().expect("one at least");
            let fold = |f: fn(&Members, &Members) -> Members| -> Vec<Vec<u8>> {
                others.iter().fold(first.clone(), |a, b| f(&a, b)).into_iter().collect()
            };
            prop_assert_eq!(result(Operation::Intersection, &sources), fold(|a, b| a & b));
            prop_assert_eq!(result(Operation::Union, &sources), fold(|a, b| a | b));
            prop_assert_eq!(result(Operation::Difference, &sources), fold(|a, b| a - b));
        }
    }

    #[test]
    fn many_members_take_the_general_path() {
        let set = |members: u64| {
            let names = (0..members).map(|n| format!("member:{n}").into_bytes());
            source(&names.collect())
        };
        let is_few = |operation, sizes: &[u64]| {
            is_few(operation, &sizes.iter().map(|size| set(*size)).collect::<Vec<_>>())
        };
        assert!(is_few(Operation::Intersection, &[100, 128]));
        assert!(!is_few(Operation::Intersection, &[300, 300]));
        assert!(is_few(Operation::Union, &[20, 20, 20]));
        assert!(!is_few(Operation::Union, &[20; 100]), "each would be looked for in all before it");
        assert!(!is_few(Operation::Difference, &[100; 10]));
    }
}
