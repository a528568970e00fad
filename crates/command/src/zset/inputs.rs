//! What the keys of ZUNION, ZINTER and ZDIFF hold: sorted sets, or sets whose members all have the
//! score 1.

use keyspace::{Captured, Kind};
use value::packed::{Elem, Packed};
use value::zset::View;
use value::{Big, IntText};

use crate::ctx::Ctx;
use crate::error::Error;

/// The score of a member of a set.
const SET_SCORE: f64 = 1.0;

/// What a key holds.
pub(super) enum Input {
    /// Nothing.
    Absent,
    /// The bytes of a packed sorted set.
    SmallZset(Vec<u8>),
    /// The bytes of a packed set.
    SmallSet(Vec<u8>),
    /// Either, outside its entry.
    Big(Captured),
}

impl Input {
    /// What the key in argument `at` holds.
    fn load(ctx: &mut Ctx<'_, '_>, at: usize) -> Result<Self, Error> {
        let keyspace = ctx.guard.keyspace();
        let key = ctx.key(at);
        let entry = ctx.guard.look_up(ctx.db, &key);
        ctx.tally.count(entry.is_some());
        let Some(entry) = entry else { return Ok(Self::Absent) };
        match (entry.kind(), entry.packed(), entry.big()) {
            (Kind::Zset, Some(bytes), _) => Ok(Self::SmallZset(bytes.to_vec())),
            (Kind::Set, Some(bytes), _) => Ok(Self::SmallSet(bytes.to_vec())),
            (Kind::Zset | Kind::Set, _, Some(big)) => Ok(Self::Big(keyspace.capture(big))),
            _ => Err(Error::WrongType),
        }
    }

    /// What the keys in these arguments hold.
    pub fn load_all(
        ctx: &mut Ctx<'_, '_>,
        keys: std::ops::Range<usize>,
    ) -> Result<Vec<Self>, Error> {
        keys.map(|at| Self::load(ctx, at)).collect()
    }

    /// Members.
    pub fn len(&self) -> u64 {
        match self {
            Self::Absent => 0,
            Self::SmallZset(bytes) => View::Small(bytes).len(),
            Self::SmallSet(bytes) => Packed::new(bytes).count() as u64,
            Self::Big(big) => big.len(),
        }
    }

    /// True if it is so small that it is looked at as a whole.
    pub fn is_small(&self) -> bool {
        !matches!(self, Self::Big(_))
    }

    /// A member's score, if it is there.
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        match self {
            Self::Absent => None,
            Self::SmallZset(bytes) => View::Small(bytes).score(member),
            Self::SmallSet(bytes) => {
                let member = Elem::of(member);
                Packed::new(bytes).iter().any(|elem| elem == member).then_some(SET_SCORE)
            }
            Self::Big(big) => match &**big {
                Big::Zset(zset) => zset.score(member),
                Big::Set(set) => set.contains(member).then_some(SET_SCORE),
                _ => unreachable!("the kind was checked"),
            },
        }
    }

    /// Calls `f` with all members and their scores until it says `false`.
    pub fn each(&self, f: impl FnMut(&[u8], f64) -> bool) {
        self.each_from(0, false, f);
    }

    /// As [`Input::each`], from a rank on, in the order of hashes or that of scores. A small one,
    /// whose order is its own, is not begun in the middle.
    pub fn each_from(&self, rank: u64, hashed: bool, mut f: impl FnMut(&[u8], f64) -> bool) {
        let mut text = IntText::default();
        match self {
            Self::Absent => {}
            Self::SmallZset(bytes) => {
                let zset = View::Small(bytes);
                zset.each(0..zset.len(), false, |member, score| f(member.bytes(&mut text), score));
            }
            Self::SmallSet(bytes) => {
                let mut members = Packed::new(bytes).iter();
                let _ = members.all(|member| f(member.bytes(&mut text), SET_SCORE));
            }
            Self::Big(big) => match &**big {
                Big::Zset(zset) if hashed => {
                    let _ = zset.iter_hashed_at(rank).all(|scored| f(scored.member, scored.score));
                }
                Big::Zset(zset) => {
                    let _ = zset.iter_from(rank).all(|scored| f(scored.member, scored.score));
                }
                Big::Set(set) => {
                    let _ = set.iter_at(rank).all(|member| f(member, SET_SCORE));
                }
                _ => unreachable!("the kind was checked"),
            },
        }
    }
}
