//! Intersection, union and difference by merging: big sets are all in the order of one hash, so
//! each is read once from its beginning to its end, and one that is much larger than the first is
//! searched instead. Each step ends at a member, from which the next step resumes.
//!
//! Few members in packed sets are not worth a tree: they are looked for one by one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;

use keyspace::{Captured, Kind};
use value::Big;
use value::keyed::Key;
use value::set::Set;

use super::few::{self, SetSnapshot};
use super::gather::Gathering;
use super::operation::Operation;
use super::view::View;
use crate::ctx::Ctx;
use crate::error::Error;

/// A set with at least this many times the members of the leading set is searched for each of them.
/// A smaller one is read in parallel.
const ASK_RATIO: u64 = 8;

/// An operation under way, on sets as they were.
pub(super) struct Merge {
    operation: Operation,
    /// Trees, or nothing if there are so few members that they stand in `few`.
    sets: Vec<Captured>,
    few: Vec<SetSnapshot>,
    /// So many sets that they become one first.
    gathering: Option<Gathering>,
    /// Where to resume: a hash and a member.
    next: (u32, Box<[u8]>),
    /// Something is left to do.
    more: bool,
}

impl Merge {
    /// Captures the sets in these arguments; a key that does not exist is an empty set.
    pub fn new(
        ctx: &mut Ctx<'_, '_>,
        operation: Operation,
        keys: std::ops::Range<usize>,
    ) -> Result<Self, Error> {
        let keyspace = ctx.guard.keyspace();
        let mut sources = Vec::with_capacity(keys.len());
        let mut more = true;
        let are_many = ctx.has_many_keys();
        for (n, i) in keys.enumerate() {
            if are_many {
                ctx.warm_keys(n);
            }
            match ctx.read_kind(i, Kind::Set)? {
                Some(entry) => sources.push(SetSnapshot::of(keyspace, View::of(entry))),
                None => match operation {
                    Operation::Union => {}
                    Operation::Difference => more &= n > 0,
                    Operation::Intersection => more = false,
                },
            }
        }
        more &= !sources.is_empty();
        if operation == Operation::Intersection {
            sources.sort_by_key(SetSnapshot::len);
        }
        let mut merge = Self {
            operation,
            sets: Vec::new(),
            few: Vec::new(),
            gathering: None,
            next: (0, Box::default()),
            more,
        };
        if more && few::is_few(operation, &sources) {
            merge.few = sources;
        } else if more && Gathering::is_for(operation, &sources) {
            merge.gathering = Some(Gathering::new(keyspace, operation, sources));
        } else if more {
            merge.sets = sources.into_iter().map(|source| source.into_tree(keyspace)).collect();
        }
        Ok(merge)
    }

    /// Members of trees that are looked at in all.
    pub fn work(&self) -> u64 {
        let gathered = self.gathering.as_ref().map_or(0, Gathering::work);
        let merged: u64 = self.sets.iter().map(|set| set.len()).sum();
        if self.more { merged + gathered } else { 0 }
    }

    /// Looks at up to `budget` members of the leading set, or of the union. Calls `f` with the
    /// members of the result, in order; `f` returns false to stop. Returns true if there is more to
    /// do.
    pub fn step(&mut self, budget: u64, mut f: impl FnMut(Key<'_>) -> bool) -> bool {
        if !self.more {
            return false;
        }
        if !self.few.is_empty() {
            few::each(self.operation, &self.few, f);
            self.more = false;
            return false;
        }
        if let Some(gathering) = &mut self.gathering
            && !gathering.step(budget)
        {
            return true;
        }
        if let Some(gathering) = self.gathering.take() {
            // What is left is to go through the one set.
            (self.operation, self.sets) = (Operation::Union, vec![gathering.into_result()]);
            if budget < u64::MAX {
                return true;
            }
        }
        let from = Key { head: self.next.0, tail: &self.next.1 };
        let next = match self.operation {
            Operation::Union => union(&self.sets, from, budget, &mut f),
            Operation::Intersection => along(&self.sets, from, budget, true, &mut f),
            Operation::Difference => along(&self.sets, from, budget, false, &mut f),
        };
        self.more = next.is_some();
        if let Some(next) = next {
            self.next = next;
        }
        self.more
    }
}

type Next = Option<(u32, Box<[u8]>)>;

fn set_of(captured: &Captured) -> &Set {
    match &**captured {
        Big::Set(set) => set,
        _ => unreachable!("a set was captured"),
    }
}

/// The members of the first set that are in all others, or in none.
fn along(
    sets: &[Captured],
    from: Key<'_>,
    budget: u64,
    in_all: bool,
    f: &mut impl FnMut(Key<'_>) -> bool,
) -> Next {
    let (first, others) = sets.split_first()?;
    let first = set_of(first);
    let mut others: Vec<_> =
        others.iter().map(|other| Follower::new(set_of(other), from, first.len())).collect();
    let mut left = budget;
    for key in first.keys_from(from) {
        if left == 0 {
            return Some((key.head, key.tail.into()));
        }
        left -= 1;
        let holds = if in_all {
            others.iter_mut().all(|other| other.has(key))
        } else {
            !others.iter_mut().any(|other| other.has(key))
        };
        if holds && !f(key) {
            return None;
        }
    }
    None
}

/// A set that is asked for members in their order.
enum Follower<'a, I: Iterator<Item = Key<'a>>> {
    Along(Peekable<I>),
    Asked(&'a Set),
}

impl<'a> Follower<'a, std::iter::Empty<Key<'a>>> {
    #[allow(clippy::new_ret_no_self)] // the iterator's type has no name
    fn new(
        set: &'a Set,
        from: Key<'_>,
        leading: u64,
    ) -> Follower<'a, impl Iterator<Item = Key<'a>>> {
        if set.len() / ASK_RATIO > leading {
            Follower::Asked(set)
        } else {
            Follower::Along(set.keys_from(from).peekable())
        }
    }
}

impl<'a, I: Iterator<Item = Key<'a>>> Follower<'a, I> {
    #[inline]
    fn has(&mut self, key: Key<'_>) -> bool {
        match self {
            Follower::Asked(set) => set.contains_key(key),
            Follower::Along(keys) => {
                while keys.next_if(|there| *there < key).is_some() {}
                keys.peek() == Some(&key)
            }
        }
    }
}

/// The members of any set, each once.
fn union(
    sets: &[Captured],
    from: Key<'_>,
    budget: u64,
    f: &mut impl FnMut(Key<'_>) -> bool,
) -> Next {
    let mut walks: Vec<_> = sets.iter().map(|set| set_of(set).keys_from(from)).collect();
    let heads =
        walks.iter_mut().enumerate().filter_map(|(i, walk)| Some(Reverse((walk.next()?, i))));
    let mut heads: BinaryHeap<_> = heads.collect();
    let mut last = None;
    let mut left = budget;
    while let Some(mut head) = heads.peek_mut() {
        let Reverse((key, i)) = *head;
        if last != Some(key) {
            if left == 0 {
                return Some((key.head, key.tail.into()));
            }
            left -= 1;
            last = Some(key);
            if !f(key) {
                return None;
            }
        }
        match walks[i].next() {
            Some(key) => *head = Reverse((key, i)),
            None => {
                std::collections::binary_heap::PeekMut::pop(head);
            }
        }
    }
    None
}
