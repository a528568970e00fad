//! What of the changes that are not durable survives a crash.

use base::prng::Prng;

/// What a crash leaves of the changes that are not durable; `None`: it is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// Changes of names.
    pub names: Option<Survival>,
    /// Contents and lengths of files.
    pub contents: Option<Survival>,
    /// Whether the operations in flight have happened.
    pub in_flight: Option<bool>,
}

/// How the changes of one file, or all changes of names, fare. Both extremes are frequent: the
/// worst cases are a file without a single write beside another one with all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// All survive.
    All,
    /// None survives.
    None,
    /// Each is drawn.
    Mixed,
}

impl Survival {
    /// A fate: each extreme in a quarter of the cases.
    pub fn draw(prng: &mut Prng) -> Self {
        match prng.below(4) {
            0 => Self::All,
            1 => Self::None,
            _ => Self::Mixed,
        }
    }

    /// Whether one change survives.
    pub fn keeps(self, prng: &mut Prng) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Mixed => prng.chance(1, 2),
        }
    }

    /// How many of `count` changes survive that reach the disk in order.
    pub fn prefix(self, count: usize, prng: &mut Prng) -> usize {
        match self {
            Self::All => count,
            Self::None => 0,
            Self::Mixed => prng.below(count as u64 + 1) as usize,
        }
    }

    /// Which sectors of a write survive: all, none, or some of them (a torn write).
    pub fn sectors(self, count: usize, prng: &mut Prng) -> Vec<bool> {
        match self {
            Self::Mixed if prng.chance(1, 3) => (0..count).map(|_| prng.chance(1, 2)).collect(),
            _ => vec![self.keeps(prng); count],
        }
    }
}
