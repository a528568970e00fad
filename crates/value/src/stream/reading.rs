//! Reading a stream: by id, by rank, in both directions.

use super::id::StreamId;
use super::page::{Cursor, Entry, Page};
use super::root::Stream;
use crate::tree::{Leaf, Walk, Way};

impl Stream {
    /// Whether an entry is there. O(log n).
    pub fn contains(&self, id: StreamId) -> bool {
        self.get(id).is_some()
    }

    /// An entry. O(log n).
    pub fn get(&self, id: StreamId) -> Option<Entry<'_>> {
        let page = self.entries.find_key(id);
        let (entry, _) = page.read(page.seek(id).1)?;
        (entry.id == id).then_some(entry)
    }

    /// How many entries have a lower id. O(log n).
    #[inline]
    pub fn rank(&self, id: StreamId) -> u64 {
        if id > self.last {
            return self.len();
        }
        let (page, before) = self.entries.find(Way::Key(id));
        before + page.seek(id).0 as u64
    }

    /// Of the first `count` entries, those that fill whole pages. O(log n).
    pub fn in_whole_pages(&self, count: u64) -> u64 {
        if count >= self.len() { self.len() } else { self.entries.find(Way::Rank(count)).1 }
    }

    /// The highest id of an entry that is there. O(log n).
    #[inline]
    pub fn top_id(&self) -> Option<StreamId> {
        (!self.is_empty()).then(|| self.entries.find(Way::Last).0.last())
    }

    /// The lowest id; 0-0 if there is none. O(log n).
    pub fn first_id(&self) -> StreamId {
        self.iter_from(0).next().map_or(StreamId::MIN, |entry| entry.id)
    }

    /// The entries from a rank on, upwards.
    pub fn iter_from(&self, rank: u64) -> Iter<'_> {
        let walk = self.entries.walk(Way::Rank(rank.min(self.len())));
        let at = walk.leaf().place((rank.min(self.len()) - walk.before()) as usize);
        Iter { walk, at }
    }

    /// The entries of this id or a higher one, upwards.
    pub fn iter_from_id(&self, id: StreamId) -> Iter<'_> {
        let walk = self.entries.walk(Way::Key(id));
        let at = walk.leaf().seek(id).1;
        Iter { walk, at }
    }

    /// All entries.
    pub fn iter(&self) -> Iter<'_> {
        self.iter_from(0)
    }

    /// The entries before a rank, downwards: the first is that of `rank - 1`.
    pub fn iter_back_from(&self, rank: u64) -> IterBack<'_> {
        let rank = rank.min(self.len());
        let walk = self.entries.walk(Way::Rank(rank));
        let mut places = Vec::new();
        places_of(walk.leaf(), (rank - walk.before()) as usize, &mut places);
        IterBack { walk, places }
    }

    /// The pages from the first on.
    pub fn pages(&self) -> impl Iterator<Item = &Page> {
        self.pages_from(0)
    }

    /// The pages from the one that has the entry of a rank.
    pub fn pages_from(&self, rank: u64) -> impl Iterator<Item = &Page> {
        let mut walk = Some(self.entries.walk(Way::Rank(rank)));
        std::iter::from_fn(move || {
            let now = walk.as_mut()?;
            let page = now.leaf();
            if !now.forward() {
                walk = None;
            }
            Some(page)
        })
        .filter(|page| !page.is_empty())
    }
}

/// The places before the first entries of a page.
fn places_of(page: &Page, count: usize, out: &mut Vec<Cursor>) {
    let mut at = page.first();
    for _ in 0..count {
        out.push(at);
        at = page.read(at).expect("a rank of the page").1;
    }
}

impl Page {
    /// Its entries.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut at = self.first();
        std::iter::from_fn(move || {
            let (entry, next) = self.read(at)?;
            at = next;
            Some(entry)
        })
    }

    /// Appends the entries of a page which is in no tree yet.
    pub(super) fn follow(&mut self, page: Page) {
        if self.is_empty() {
            *self = page;
        } else {
            self.set_following(page);
        }
    }
}

/// Entries upwards.
#[derive(Clone)]
pub struct Iter<'a> {
    walk: Walk<'a, Page>,
    at: Cursor,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            if let Some((entry, next)) = self.walk.leaf().read(self.at) {
                self.at = next;
                return Some(entry);
            }
            if !self.walk.forward() {
                return None;
            }
            self.at = self.walk.leaf().first();
        }
    }
}

/// Entries downwards. A page is read once from its front.
#[derive(Clone)]
pub struct IterBack<'a> {
    walk: Walk<'a, Page>,
    places: Vec<Cursor>,
}

impl<'a> Iterator for IterBack<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        while self.places.is_empty() {
            if !self.walk.backward() {
                return None;
            }
            let page = self.walk.leaf();
            places_of(page, page.len(), &mut self.places);
        }
        let page = self.walk.leaf();
        let at = self.places.pop()?;
        page.read(at).map(|(entry, _)| entry)
    }
}
