//! Small sorted sets: members and scores by turns in one buffer ([`crate::packed`]), in the order
//! of the scores and, where they are equal, of the members.
//!
//! A score that is a whole number inside 2^52 is an integer element, any other the eight bytes of
//! the double: so scores are exact, minus zero included.

use super::score::score_in;
use crate::packed::Elem;
use crate::string::IntText;
use std::cmp::Ordering;
use std::ops::Range;

const WHOLE_END: f64 = (1_u64 << 52) as f64;

/// A member with its score, and their place in the buffer.
#[derive(Clone, Debug)]
pub struct Pair<'a> {
    /// The member.
    pub member: Elem<'a>,
    /// Its score.
    pub score: f64,
    /// Its bytes and those of the score.
    pub at: Range<usize>,
}

/// The pairs of a buffer from an offset on.
#[derive(Clone, Debug)]
pub struct Pairs<'a> {
    buffer: &'a [u8],
    at: usize,
}

/// All pairs of a buffer.
#[inline]
pub fn pairs(buffer: &[u8]) -> Pairs<'_> {
    pairs_at(buffer, 0)
}

/// The pairs from the one that starts at this offset.
#[inline]
pub fn pairs_at(buffer: &[u8], at: usize) -> Pairs<'_> {
    Pairs { buffer, at }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Pair<'a>;

    #[inline]
    fn next(&mut self) -> Option<Pair<'a>> {
        let start = self.at;
        let (member, len) = Elem::first(&self.buffer[start..])?;
        let (score, score_len) =
            Elem::first(&self.buffer[start + len..]).expect("a score follows its member");
        self.at = start + len + score_len;
        Some(Pair { member, score: score_of(score), at: start..self.at })
    }
}

fn score_of(elem: Elem<'_>) -> f64 {
    match elem {
        Elem::Int(value) => value as f64,
        Elem::Bytes(bytes) => score_in(bytes),
    }
}

/// Calls `f` with the element that a score is stored as.
fn with_score<R>(score: f64, f: impl FnOnce(Elem<'_>) -> R) -> R {
    let is_whole = score.abs() < WHOLE_END && score.fract() == 0.0;
    if is_whole && (score != 0.0 || score.is_sign_positive()) {
        f(Elem::Int(score as i64))
    } else {
        f(Elem::Bytes(&score.to_le_bytes()))
    }
}

/// Bytes that a member with its score takes.
#[inline]
pub fn size(member: &[u8], score: f64) -> usize {
    let mut size = Elem::of(member).size();
    with_score(score, |score| size += score.size());
    size
}

/// Finds a member. O(n), as all here.
#[inline]
pub fn find<'a>(buffer: &'a [u8], member: &[u8]) -> Option<Pair<'a>> {
    let member = Elem::of(member);
    pairs(buffer).find(|pair| pair.member == member)
}

/// Appends a pair that belongs behind all others.
pub fn push(buffer: &mut Vec<u8>, member: &[u8], score: f64) {
    Elem::of(member).push(buffer);
    with_score(score, |score| score.push(buffer));
}

/// Puts a member in its place; it is not there yet.
pub fn insert(buffer: &mut Vec<u8>, member: &[u8], score: f64) {
    let mut text = IntText::default();
    let before = |pair: &Pair<'_>| compare(pair, score, member, &mut text) == Ordering::Less;
    let at = pairs(buffer).take_while(before).last().map_or(0, |pair| pair.at.end);
    let len = buffer.len();
    push(buffer, member, score);
    let size = buffer.len() - len;
    buffer[at..].rotate_right(size);
}

fn compare(pair: &Pair<'_>, score: f64, member: &[u8], text: &mut IntText) -> Ordering {
    let by_score = pair.score.partial_cmp(&score).expect("scores are numbers");
    by_score.then_with(|| pair.member.bytes(text).cmp(member))
}

/// Removes the pairs of these ranks.
pub fn remove(buffer: &mut Vec<u8>, ranks: Range<u64>) {
    let start = offset(buffer, ranks.start);
    let len = ranks.end.saturating_sub(ranks.start);
    let end = start + offset(&buffer[start..], len);
    buffer.drain(start..end);
}

fn offset(buffer: &[u8], rank: u64) -> usize {
    pairs(buffer).take(rank as usize).last().map_or(0, |pair| pair.at.end)
}
