//! A sorted set to be read, small or big.

use super::big::{Scored, Zset};
use super::small;
use crate::packed::Elem;
use crate::string::IntText;
use std::ops::Range;

/// A sorted set to be read.
#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
    /// The packed bytes.
    Small(&'a [u8]),
    /// The trees.
    Big(&'a Zset),
}

/// An interval of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreRange {
    /// The lower end.
    pub min: f64,
    /// The lower end is outside.
    pub min_excluded: bool,
    /// The upper end.
    pub max: f64,
    /// The upper end is outside.
    pub max_excluded: bool,
}

impl ScoreRange {
    /// Is the score in it?
    pub fn contains(&self, score: f64) -> bool {
        self.reaches(score) && self.admits(score)
    }

    /// Not below the lower end.
    fn reaches(&self, score: f64) -> bool {
        if self.min_excluded { score > self.min } else { score >= self.min }
    }

    /// Not above the upper end.
    fn admits(&self, score: f64) -> bool {
        if self.max_excluded { score < self.max } else { score <= self.max }
    }
}

/// An end of an interval of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexBound<'a> {
    /// Before all members.
    Min,
    /// Behind all members.
    Max,
    /// This one, inside.
    Included(&'a [u8]),
    /// This one, outside.
    Excluded(&'a [u8]),
}

impl LexBound<'_> {
    /// As a lower end: not above the member.
    fn is_reached(self, member: &[u8]) -> bool {
        match self {
            Self::Min => true,
            Self::Max => false,
            Self::Included(bound) => member >= bound,
            Self::Excluded(bound) => member > bound,
        }
    }

    /// As an upper end: not below the member.
    fn admits(self, member: &[u8]) -> bool {
        match self {
            Self::Min => false,
            Self::Max => true,
            Self::Included(bound) => member <= bound,
            Self::Excluded(bound) => member < bound,
        }
    }
}

/// An interval of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexRange<'a> {
    /// The lower end.
    pub min: LexBound<'a>,
    /// The upper end.
    pub max: LexBound<'a>,
}

impl View<'_> {
    /// Members. O(n) of a small one, O(1) of a big one.
    pub fn len(self) -> u64 {
        match self {
            Self::Small(bytes) => small::pairs(bytes).count() as u64,
            Self::Big(zset) => zset.len(),
        }
    }

    /// True if there is none.
    pub fn is_empty(self) -> bool {
        match self {
            Self::Small(bytes) => bytes.is_empty(),
            Self::Big(zset) => zset.is_empty(),
        }
    }

    /// A member's score.
    #[inline]
    pub fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            Self::Small(bytes) => small::find(bytes, member).map(|pair| pair.score),
            Self::Big(zset) => zset.score(member),
        }
    }

    /// How many members are before this one, and its score.
    pub fn rank(self, member: &[u8]) -> Option<(u64, f64)> {
        match self {
            Self::Small(bytes) => {
                let member = Elem::of(member);
                let mut pairs = small::pairs(bytes).zip(0..);
                pairs.find(|(pair, _)| pair.member == member).map(|(pair, at)| (at, pair.score))
            }
            Self::Big(zset) => {
                let score = zset.score(member)?;
                Some((zset.rank_of(score, member), score))
            }
        }
    }

    /// The ranks of the scores in an interval.
    pub fn score_ranks(self, range: &ScoreRange) -> Range<u64> {
        let (from, to) = match self {
            Self::Small(bytes) => {
                let scores = || small::pairs(bytes).map(|pair| pair.score);
                let from = scores().take_while(|score| !range.reaches(*score)).count();
                let to = scores().take_while(|score| range.admits(*score)).count();
                (from as u64, to as u64)
            }
            Self::Big(zset) => {
                let below = |score| zset.rank_of(score, b"");
                let up_to = |score| zset.rank_above(score);
                (
                    if range.min_excluded { up_to(range.min) } else { below(range.min) },
                    if range.max_excluded { below(range.max) } else { up_to(range.max) },
                )
            }
        };
        from..to.max(from)
    }

    /// The ranks of the members in an interval, without the first `skip` of them; `rev` searches
    /// and skips from the upper end. If scores differ, members are in no order. The result is then
    /// the run which starts at the first member not below the interval, and ends before the next
    /// member above it.
    pub fn lex_ranks(self, range: &LexRange<'_>, rev: bool, skip: u64) -> Range<u64> {
        match self {
            Self::Small(bytes) => small_lex(bytes, range, rev, skip),
            Self::Big(zset) => {
                let from = zset.lex_rank(|member| !range.min.is_reached(member), range.min);
                let to = zset.lex_rank(|member| range.max.admits(member), range.max);
                let to = to.max(from);
                if rev {
                    from..to.saturating_sub(skip).max(from)
                } else {
                    from.saturating_add(skip).min(to)..to
                }
            }
        }
    }

    /// Calls `f` with the members of these scores in their order, until it says `false`.
    pub fn each_score(self, scores: &Range<f64>, mut f: impl FnMut(Elem<'_>, f64) -> bool) {
        match self {
            Self::Small(bytes) => {
                let _ = small::pairs(bytes)
                    .skip_while(|pair| pair.score < scores.start)
                    .take_while(|pair| pair.score < scores.end)
                    .all(|pair| f(pair.member, pair.score));
            }
            Self::Big(zset) => {
                let _ = zset
                    .iter_from_score(scores.start)
                    .take_while(|scored| scored.score < scores.end)
                    .all(|scored| f(Elem::Bytes(scored.member), scored.score));
            }
        }
    }

    /// Calls `f` with the members of these ranks in their order, or the other way round, until it
    /// returns `false`; returns for how many it was called.
    pub fn each(
        self,
        ranks: Range<u64>,
        rev: bool,
        mut f: impl FnMut(Elem<'_>, f64) -> bool,
    ) -> u64 {
        let len = ranks.end.saturating_sub(ranks.start);
        let mut seen = 0;
        let mut visit = |member: Elem<'_>, score| {
            seen += 1;
            f(member, score)
        };
        let mut visit_scored = |scored: Scored<'_>| visit(Elem::Bytes(scored.member), scored.score);
        if len == 0 {
            return 0;
        }
        let take = len as usize;
        match (self, rev) {
            (Self::Small(bytes), false) => {
                let mut pairs = small::pairs(bytes).skip(ranks.start as usize).take(take);
                let _ = pairs.all(|pair| visit(pair.member, pair.score));
            }
            (Self::Small(bytes), true) => {
                let all: Vec<u16> = small::pairs(bytes)
                    .take(ranks.end as usize)
                    .map(|p| p.at.start as u16)
                    .collect();
                let _ = all.iter().rev().take(take).all(|at| {
                    let pair = small::pairs_at(bytes, usize::from(*at)).next();
                    let pair = pair.expect("it was there a moment ago");
                    visit(pair.member, pair.score)
                });
            }
            (Self::Big(zset), false) => {
                let _ = zset.iter_from(ranks.start).take(take).all(&mut visit_scored);
            }
            (Self::Big(zset), true) => {
                let _ = zset.iter_back_from(ranks.end).take(take).all(&mut visit_scored);
            }
        }
        seen
    }
}

fn small_lex(bytes: &[u8], range: &LexRange<'_>, rev: bool, skip: u64) -> Range<u64> {
    let skip = usize::try_from(skip).unwrap_or(usize::MAX);
    let mut text = IntText::default();
    let facts: Vec<(bool, bool)> = small::pairs(bytes)
        .map(|pair| {
            let member = pair.member.bytes(&mut text);
            (range.min.is_reached(member), range.max.admits(member))
        })
        .collect();
    let outside = !facts.last().is_some_and(|last| last.0) || !facts[0].1;
    if outside {
        return 0..0;
    }
    let (from, to) = if rev {
        let to = facts.iter().rposition(|fact| fact.1).map_or(0, |at| at + 1);
        let to = to.saturating_sub(skip);
        let run = facts[..to].iter().rev().take_while(|fact| fact.0).count();
        (to - run, to)
    } else {
        let from = facts.iter().position(|fact| fact.0).unwrap_or(facts.len());
        let from = from.saturating_add(skip).min(facts.len());
        (from, from + facts[from..].iter().take_while(|fact| fact.1).count())
    };
    from as u64..to as u64
}

impl Zset {
    /// How many members there are before the first for which `before` is false; of an end of an
    /// interval.
    fn lex_rank(&self, before: impl Fn(&[u8]) -> bool, bound: LexBound<'_>) -> u64 {
        let (Some(first), Some(last)) = (self.at(0), self.at(self.len().saturating_sub(1))) else {
            return 0;
        };
        if let LexBound::Included(member) | LexBound::Excluded(member) = bound
            && first.score.to_bits() == last.score.to_bits()
        {
            let rank = self.rank_of(first.score, member);
            return rank
                + u64::from(self.at(rank).is_some_and(|s| s.member == member && before(member)));
        }
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.at(middle).is_some_and(|scored| before(scored.member)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn members(zset: View<'_>, ranks: Range<u64>, rev: bool) -> Vec<(Vec<u8>, u64)> {
        let mut all = Vec::new();
        zset.each(ranks, rev, |member, score| {
            all.push((member.to_vec(), score.to_bits()));
            true
        });
        all
    }

    fn score(n: u8) -> f64 {
        match n {
            0 => f64::NEG_INFINITY,
            1 => -0.0,
            2 => 1e300,
            3 => f64::INFINITY,
            n => f64::from(n) / 4.0 - 8.0,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// Packed and tree encodings agree on the same members.
        #[test]
        fn packed_and_tree_encodings_agree(
            pairs in proptest::collection::vec(("[a-c0-9]{0,3}", 0..40_u8), 0..60),
            ends in (0..40_u8, 0..40_u8, any::<(bool, bool, bool)>()),
            lex in ("[a-c0-9]{0,2}", "[a-c0-9]{0,2}", any::<bool>(), 0..4_u64),
            removed in (0..60_u64, 0..60_u64),
            flat: bool,
        ) {
            let model: BTreeMap<String, f64> =
                pairs.into_iter().map(|(m, n)| (m, if flat { 1.0 } else { score(n) })).collect();
            let (mut bytes, mut big) = (Vec::new(), Zset::new());
            for (member, score) in &model {
                super::small::insert(&mut bytes, member.as_bytes(), *score);
                big.put(member.as_bytes(), *score);
            }
            let (small, big_view) = (View::Small(&bytes), View::Big(&big));
            let len = model.len() as u64;
            prop_assert_eq!((small.len(), big_view.len()), (len, len));
            prop_assert_eq!(members(small, 0..len, false), members(big_view, 0..len, false));
            prop_assert_eq!(members(small, 1.min(len)..len, true), members(big_view, 1.min(len)..len, true));
            for member in model.keys() {
                let member = member.as_bytes();
                prop_assert_eq!(small.rank(member), big_view.rank(member));
                prop_assert_eq!(small.score(member), big_view.score(member));
            }
            let (min_excluded, max_excluded, rev) = ends.2;
            let range = ScoreRange { min: score(ends.0), min_excluded, max: score(ends.1), max_excluded };
            let ranks = small.score_ranks(&range);
            let expected = model.values().filter(|score| range.contains(**score)).count() as u64;
            if !min_excluded && max_excluded {
                for view in [small, big_view] {
                    let mut seen = Vec::new();
                    view.each_score(&(range.min..range.max), |member, score| {
                        seen.push((member.to_vec(), score.to_bits()));
                        true
                    });
                    prop_assert_eq!(seen, members(view, ranks.clone(), false));
                }
            }
            prop_assert_eq!(ranks.end - ranks.start, expected);
            prop_assert_eq!(big_view.score_ranks(&range).count() as u64, expected);
            if flat {
                let bound = |text| if lex.2 { LexBound::Included(text) } else { LexBound::Excluded(text) };
                let range = LexRange { min: bound(lex.0.as_bytes()), max: bound(lex.1.as_bytes()) };
                let (small, big) = (small.lex_ranks(&range, rev, lex.3), big_view.lex_ranks(&range, rev, lex.3));
                prop_assert_eq!(small.is_empty(), big.is_empty());
                prop_assert!(small.is_empty() || small == big);
            }
            let from = removed.0.min(len);
            let to = removed.1.min(len).max(from);
            let mut left = bytes.clone();
            super::small::remove(&mut left, from..to);
            let mut expected = members(small, 0..len, false);
            expected.drain(from as usize..to as usize);
            prop_assert_eq!(members(View::Small(&left), 0..len, false), expected);
        }
    }
}
