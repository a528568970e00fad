//! The groups of a stream, by name.
//!
//! ```text
//! few, up to 64   a page of references; a change copies it, if a clone of the stream shares it
//! many            a tree of such pages; a change copies O(log n) of what a clone shares
//! ```
//!
//! A command that may be undone keeps a clone, so it always finds the groups shared.

use super::group::Group;
use super::name_key::with_key;
use super::weight::Weight;
use crate::keyed::Key;
use crate::tree::{End, Leaf, Separator, Tree, Walk, Way};
use base::shared::Shared;
use std::cmp::Ordering;

/// Groups of a page, and those up to which there is no tree.
const PAGE_MAX: usize = 64;

/// A group with its name.
#[derive(Clone)]
pub(super) struct Named {
    pub name: Box<[u8]>,
    pub group: Group,
}

impl Named {
    /// Heap bytes which a copy does not share.
    fn copied_bytes(&self) -> usize {
        self.name.len() + self.group.copied_bytes()
    }

    fn weight(&self) -> Weight {
        let weight = self.group.weight();
        let name = size_of::<Box<[u8]>>() + self.name.len();
        Weight { bytes: weight.bytes + name, ..weight }
    }
}

/// Groups in the order of their names.
#[derive(Clone, Default)]
pub(super) struct Page(Vec<Shared<Named>>);

impl Page {
    #[inline]
    fn seek(&self, name: &[u8]) -> Result<usize, usize> {
        self.0.binary_search_by(|named| named.name.as_ref().cmp(name))
    }

    fn insert(&mut self, named: Named) {
        let at = self.seek(&named.name).expect_err("a group is added once");
        self.0.insert(at, Shared::new(named));
    }

    /// Changes a group, or a copy of it if a clone shares it; what it took before and takes now.
    #[inline]
    fn edit<R>(&mut self, at: usize, f: impl FnOnce(&mut Group) -> R) -> (Weight, Weight, R) {
        let named = self.0[at].make_mut(Named::copied_bytes);
        let before = named.weight();
        let result = f(&mut named.group);
        (before, named.weight(), result)
    }
}

impl Leaf for Page {
    type Key<'a> = Key<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn memory(&self) -> usize {
        self.0.capacity() * size_of::<Shared<Named>>()
    }

    fn is_over(&self) -> bool {
        self.0.len() > PAGE_MAX
    }

    fn is_under(&self) -> bool {
        self.0.len() < PAGE_MAX / 4
    }

    fn split(&mut self) -> Self {
        let right = Self(self.0.split_off(self.0.len() / 2));
        self.0.shrink_to_fit();
        right
    }

    fn absorb(&mut self, right: &Self) -> bool {
        let fits = self.0.len() + right.0.len() <= PAGE_MAX * 3 / 4;
        if fits {
            self.0.extend_from_slice(&right.0);
        }
        fits
    }

    /// The shortest start of the first key here that is above the last one there.
    fn separator(&self, left: &Self) -> Separator {
        let last = left.0.last().expect("a page after a split has groups");
        with_key(&self.0[0].name, |first| {
            with_key(&last.name, |last| {
                if first.head != last.head {
                    return Separator::new(first.head, &[]);
                }
                let same = first.tail.iter().zip(last.tail).take_while(|(a, b)| a == b).count();
                Separator::new(first.head, &first.tail[..=same])
            })
        })
    }

    fn number(key: Key<'_>) -> u64 {
        crate::tree::number(key.head, key.tail)
    }

    fn compare(key: Key<'_>, separator: &End) -> Ordering {
        separator.compare(key.tail)
    }
}

#[derive(Clone)]
enum Pages {
    Few(Page),
    Many(Tree<Page>),
}

/// The groups of a stream.
#[derive(Clone)]
pub struct Groups {
    pages: Pages,
    /// What all groups take.
    weight: Weight,
}

impl Default for Groups {
    fn default() -> Self {
        Self { pages: Pages::Few(Page::default()), weight: Weight::default() }
    }
}

impl Groups {
    /// Heap bytes which a copy does not share.
    pub(super) fn copied_bytes(&self) -> usize {
        match &self.pages {
            Pages::Few(page) => page.memory(),
            Pages::Many(_) => 0,
        }
    }

    /// Groups. O(1), as is what they take.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.pages {
            Pages::Few(page) => page.0.len(),
            Pages::Many(tree) => tree.len() as usize,
        }
    }

    pub(super) fn weight(&self) -> Weight {
        let (bytes, nodes) = match &self.pages {
            Pages::Few(page) => (page.0.len() * size_of::<Shared<Named>>(), 0),
            Pages::Many(tree) => (tree.memory(), tree.nodes()),
        };
        Weight { bytes: self.weight.bytes + bytes, nodes: self.weight.nodes + nodes }
    }

    /// How many names are before this one, if it is there. O(log n), as all below.
    #[inline]
    pub(super) fn find(&self, name: &[u8]) -> Option<usize> {
        match &self.pages {
            Pages::Few(page) => page.seek(name).ok(),
            Pages::Many(tree) => {
                let (page, before) = with_key(name, |key| tree.find(Way::Key(key)));
                page.seek(name).ok().map(|at| before as usize + at)
            }
        }
    }

    /// The group with so many names before its own.
    #[inline]
    pub(super) fn at(&self, rank: usize) -> Option<&Named> {
        match &self.pages {
            Pages::Few(page) => page.0.get(rank).map(|named| &**named),
            Pages::Many(tree) => {
                let (page, before) = tree.find(Way::Rank(rank as u64));
                page.0.get(rank - before as usize).map(|named| &**named)
            }
        }
    }

    /// Adds a group, which is not there.
    pub(super) fn insert(&mut self, name: &[u8], group: Group) {
        let named = Named { name: name.into(), group };
        self.weight.swap(Weight::default(), named.weight());
        if let Pages::Few(page) = &self.pages
            && page.0.len() == PAGE_MAX
        {
            let mut tree = Tree::default();
            tree.edit(Way::Rank(0), |leaf, _| *leaf = page.clone());
            self.pages = Pages::Many(tree);
        }
        match &mut self.pages {
            Pages::Few(page) => page.insert(named),
            Pages::Many(tree) => {
                with_key(name, |key| tree.edit(Way::Key(key), |page, _| page.insert(named)));
            }
        }
    }

    /// Removes the group at a place.
    pub(super) fn remove(&mut self, rank: usize) {
        let named = match &mut self.pages {
            Pages::Few(page) => page.0.remove(rank),
            Pages::Many(tree) => tree
                .edit(Way::Rank(rank as u64), |page, before| page.0.remove(rank - before as usize)),
        };
        self.weight.swap(named.weight(), Weight::default());
    }

    /// Changes the group at a place.
    #[inline]
    pub(super) fn edit<R>(&mut self, rank: usize, f: impl FnOnce(&mut Group) -> R) -> R {
        let (before, after, result) = match &mut self.pages {
            Pages::Few(page) => page.edit(rank, f),
            Pages::Many(tree) => tree
                .edit(Way::Rank(rank as u64), |page, before| page.edit(rank - before as usize, f)),
        };
        self.weight.swap(before, after);
        result
    }

    /// All, by name.
    pub(super) fn iter(&self) -> Iter<'_> {
        let (walk, page) = match &self.pages {
            Pages::Few(page) => (None, page),
            Pages::Many(tree) => {
                let walk = tree.walk(Way::Rank(0));
                let page = walk.leaf();
                (Some(walk), page)
            }
        };
        Iter { walk, page: page.0.iter(), left: self.len() }
    }
}

/// Groups upwards.
pub struct Iter<'a> {
    walk: Option<Walk<'a, Page>>,
    page: std::slice::Iter<'a, Shared<Named>>,
    left: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a [u8], &'a Group);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(named) = self.page.next() {
                self.left -= 1;
                return Some((&named.name, &named.group));
            }
            let walk = self.walk.as_mut().filter(|_| self.left > 0)?;
            if !walk.forward() {
                return None;
            }
            self.page = walk.leaf().0.iter();
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

#[cfg(test)]
mod tests {
    use super::super::id::StreamId;
    use super::*;
    use base::prng::Prng;
    use std::collections::BTreeMap;

    fn group(ms: u64) -> Group {
        Group::new(StreamId::new(ms, 0), None)
    }

    /// A name of up to six bytes from a small set, some with zero bytes.
    fn name(prng: &mut Prng) -> Vec<u8> {
        let len = prng.below(7) as usize;
        (0..len).map(|_| [0, 1, b'a', 0xff][prng.below(4) as usize]).collect()
    }

    fn all(groups: &Groups) -> Vec<(Vec<u8>, u64)> {
        groups.iter().map(|(name, group)| (name.to_vec(), group.last.ms)).collect()
    }

    #[test]
    fn groups_behave_like_a_map() {
        let mut prng = Prng::new(5);
        let (mut groups, mut model) = (Groups::default(), BTreeMap::new());
        let mut longest = 0;
        for round in 0..20_000_u64 {
            let name = name(&mut prng);
            let kept = (round % 50 == 0).then(|| (groups.clone(), all(&groups)));
            let rank = model.keys().position(|other| *other == name);
            assert_eq!(groups.find(&name), rank);
            let grows = round % 4000 < 2500;
            match rank {
                None if grows => {
                    groups.insert(&name, group(round));
                    model.insert(name, round);
                }
                Some(rank) if !grows => {
                    assert_eq!(*groups.at(rank).expect("it is there").name, *name);
                    groups.remove(rank);
                    model.remove(&name);
                }
                Some(rank) => {
                    groups.edit(rank, |group| group.last = StreamId::new(round, 0));
                    model.insert(name, round);
                }
                None => {}
            }
            longest = longest.max(model.len());
            assert_eq!(groups.len(), model.len());
            if let Some((kept, was)) = kept {
                assert_eq!(all(&kept), was, "a clone stays as it was");
                assert_eq!(groups.iter().len(), model.len());
                assert_eq!(all(&groups), model.clone().into_iter().collect::<Vec<_>>());
                assert!(groups.at(model.len()).is_none());
                let mut weight = Weight::default();
                for rank in 0..groups.len() {
                    weight.swap(Weight::default(), groups.at(rank).expect("as many").weight());
                }
                assert_eq!(groups.weight, weight);
            }
        }
        assert!(longest > 2 * PAGE_MAX && matches!(groups.pages, Pages::Many(_)));
    }

    /// The memory copied by a change to a shared table does not grow with the number of groups.
    #[test]
    fn a_change_to_a_shared_table_copies_little() {
        for count in [1000, 100_000_u32] {
            let mut groups = Groups::default();
            (0..count).for_each(|n| groups.insert(&n.to_be_bytes(), group(0)));
            let pages = |groups: &Groups| {
                let Pages::Many(tree) = &groups.pages else { panic!("many") };
                let (mut walk, mut pages) = (tree.walk(Way::Rank(0)), Vec::new());
                loop {
                    pages.push(walk.leaf().0.as_ptr().addr());
                    if !walk.forward() {
                        return pages;
                    }
                }
            };
            let changes: [fn(&mut Groups); 3] = [
                |groups| groups.insert(b"one more", group(0)),
                |groups| groups.remove(500),
                |groups| groups.edit(500, |group| _ = group.add_consumer(b"c", 1, -1)),
            ];
            for change in changes {
                let clone = groups.clone();
                let before = pages(&clone);
                change(&mut groups);
                let copied = pages(&groups).iter().filter(|page| !before.contains(page)).count();
                assert!(copied <= 2, "{copied} pages of {count} groups");
            }
        }
    }
}
