//! Very many sets are combined one after the other: a merge of all of them would open each in every
//! step.

use keyspace::{Captured, Keyspace};
use value::Big;
use value::keyed::Key;
use value::packed::{Elem, Packed};
use value::set::Set;
use value::string::IntText;

use super::few::SetSnapshot;
use super::operation::Operation;

/// So many sets are merged: a step opens each, which takes 0.3 us.
const MERGED_MAX: usize = 256;
/// A first set of more members is merged in any case.
const SIEVED_MAX: u64 = 1_000;
/// What a search in a set counts for beside the members of a packed one, of which a budget of
/// members allows some.
const SEARCH_COST: u64 = 1;

/// Sets on their way to the result.
pub(super) struct Gathering {
    operation: Operation,
    /// Those that are left, the next one last.
    rest: Vec<SetSnapshot>,
    /// Of a union: how many members of the next one were taken.
    taken: u64,
    /// The union so far; or what is left of the first set.
    result: Captured,
    /// The same members by themselves, if they are not united.
    left: Vec<Vec<u8>>,
}

impl Gathering {
    /// True if these sets are gathered. The first is the smallest of an intersection.
    pub fn is_for(operation: Operation, sets: &[SetSnapshot]) -> bool {
        let sieves = operation == Operation::Union || sets[0].len() <= SIEVED_MAX;
        sets.len() > MERGED_MAX && sieves
    }

    /// Of at least one set.
    pub fn new(keyspace: &Keyspace, operation: Operation, mut sets: Vec<SetSnapshot>) -> Self {
        sets.reverse();
        let mut left = Vec::new();
        if operation != Operation::Union {
            let first = sets.pop().expect("many sets");
            each_from(&first, 0, |member| {
                left.push(member.to_vec());
                true
            });
        }
        let result = keyspace.capture_owned(Big::Set(Set::new()));
        Self { operation, rest: sets, taken: 0, result, left }
    }

    /// Members to be looked at.
    pub fn work(&self) -> u64 {
        match self.operation {
            Operation::Union => self.rest.iter().map(SetSnapshot::len).sum(),
            _ => self.left.len() as u64 * self.rest.len() as u64,
        }
    }

    /// Looks at up to `budget` members, and some more of the last set; true if nothing is left.
    pub fn step(&mut self, budget: u64) -> bool {
        let mut seen = 0;
        while seen < budget
            && let Some(next) = self.rest.last()
        {
            seen += SEARCH_COST;
            if self.operation == Operation::Union {
                let set = set_mut(&mut self.result);
                let before = self.taken;
                each_from(next, before, |member| {
                    set.build(Key::hashed(member));
                    self.taken += 1;
                    seen += 1;
                    seen < budget
                });
                if self.taken < next.len() {
                    return false;
                }
                self.taken = 0;
            } else {
                let stays = self.operation == Operation::Intersection;
                let mut stored = Vec::new();
                seen += self.left.len() as u64;
                self.left.retain(|member| {
                    stored.clear();
                    Elem::of(member).push(&mut stored);
                    next.has(&stored, member) == stays
                });
                if self.left.is_empty() {
                    self.rest.clear();
                    return true;
                }
            }
            self.rest.pop();
        }
        if self.rest.is_empty() {
            let set = set_mut(&mut self.result);
            for member in self.left.drain(..) {
                set.build(Key::hashed(&member));
            }
        }
        self.rest.is_empty()
    }

    /// The result, when nothing is left.
    pub fn into_result(self) -> Captured {
        self.result
    }
}

fn set_mut(result: &mut Captured) -> &mut Set {
    match result.value_mut() {
        Big::Set(set) => set,
        _ => unreachable!("a set is gathered"),
    }
}

/// Calls `f` with the members of a set from one on, until it says `false`.
fn each_from(set: &SetSnapshot, from: u64, mut f: impl FnMut(&[u8]) -> bool) {
    match set {
        SetSnapshot::Packed(bytes, _) => {
            let mut text = IntText::default();
            let mut members = Packed::new(bytes).iter().skip(from as usize);
            let _ = members.all(|member| f(member.bytes(&mut text)));
        }
        SetSnapshot::Big(big) => match &**big {
            Big::Set(set) => _ = set.iter_at(from).all(f),
            _ => unreachable!("a set was captured"),
        },
    }
}
