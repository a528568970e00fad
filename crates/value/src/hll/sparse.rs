//! Runs of equal registers.

use super::hash::Place;
use super::layout::{HEADER, Invalid, REGISTERS, Registers};

/// The largest value a run can hold.
const RANK_MAX: u8 = 32;
/// Registers of the longest run with a value.
const VALUE_RUN_MAX: usize = 4;
/// Registers of the longest run of zeros in one byte.
const ZERO_RUN_MAX: usize = 64;
/// Runs after a change that may join their neighbours.
const JOIN_RUNS: usize = 5;
/// Bytes of the longest replacement of one run: three runs, two of them of two bytes.
const SPLIT_MAX: usize = 5;

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// The value of its registers.
    rank: u8,
    /// How many registers.
    len: usize,
    /// Bytes it takes.
    bytes: usize,
}

impl Run {
    /// The run at the beginning of some bytes; none if there is not all of it.
    #[inline]
    fn read(bytes: &[u8]) -> Option<Run> {
        let first = *bytes.first()?;
        Some(match first >> 6 {
            0 => Run { rank: 0, len: usize::from(first & 0x3f) + 1, bytes: 1 },
            1 => {
                let len = usize::from(first & 0x3f) << 8 | usize::from(*bytes.get(1)?);
                Run { rank: 0, len: len + 1, bytes: 2 }
            }
            _ => Run { rank: (first >> 2 & 0x1f) + 1, len: usize::from(first & 3) + 1, bytes: 1 },
        })
    }
}

/// Writes a run; one without registers is nothing.
fn write(out: &mut Vec<u8>, rank: u8, len: usize) {
    match (rank, len) {
        (_, 0) => {}
        (0, 1..=ZERO_RUN_MAX) => out.push(len as u8 - 1),
        (0, _) => {
            let len = len as u16 - 1;
            out.extend_from_slice(&[0x40 | (len >> 8) as u8, len as u8]);
        }
        _ => out.push(0x80 | (rank - 1) << 2 | (len as u8 - 1)),
    }
}

/// The runs of a sparse sketch, header not included.
#[derive(Clone, Copy, Debug)]
pub struct Sparse<'a>(pub(super) &'a [u8]);

/// The result of adding an element to runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// The register was as high already.
    Nothing,
    /// The runs have changed.
    Changed,
    /// The sketch must become dense first.
    TooBig,
}

/// Where a register was found.
struct Spot {
    /// Where its run begins.
    at: usize,
    /// Where the run before it begins.
    previous: Option<usize>,
    /// The run's first register.
    first: usize,
    run: Run,
}

impl Sparse<'_> {
    fn find(self, index: usize) -> Result<Spot, Invalid> {
        let (mut at, mut first, mut previous) = (0, 0, None);
        loop {
            let run = Run::read(&self.0[at..]).ok_or(Invalid::Corrupt)?;
            if index < first + run.len {
                return Ok(Spot { at, previous, first, run });
            }
            previous = Some(at);
            at += run.bytes;
            first += run.len;
        }
    }

    /// Whether an element would change anything.
    pub fn is_news(self, place: Place) -> Result<bool, Invalid> {
        Ok(self.find(place.index)?.run.rank < place.rank)
    }

    /// Raises `registers` to what the runs say; together they must be all registers.
    pub fn raise(self, registers: &mut Registers) -> Result<(), Invalid> {
        let (mut at, mut first) = (0, 0);
        while at < self.0.len() {
            let run = Run::read(&self.0[at..]).ok_or(Invalid::Corrupt)?;
            let part = registers.get_mut(first..first + run.len).ok_or(Invalid::Corrupt)?;
            if run.rank > 0 {
                for register in part {
                    *register = (*register).max(run.rank);
                }
            }
            at += run.bytes;
            first += run.len;
        }
        if first == REGISTERS { Ok(()) } else { Err(Invalid::Corrupt) }
    }
}

/// The runs in words: `z:` and `Z:` for zeros in one and two bytes, `v:` for a value and how often.
pub fn words(sparse: Sparse<'_>) -> String {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(run) = sparse.0.get(at..).and_then(Run::read) {
        words.push(match (run.rank, run.bytes) {
            (0, 1) => format!("z:{}", run.len),
            (0, _) => format!("Z:{}", run.len),
            (rank, _) => format!("v:{rank},{}", run.len),
        });
        at += run.bytes;
    }
    words.join(" ")
}

/// Adds an element to a sparse sketch of at most `max` bytes, header included.
pub(super) fn add(sketch: &mut Vec<u8>, place: Place, max: usize) -> Result<Added, Invalid> {
    if place.rank > RANK_MAX {
        let news = Sparse(&sketch[HEADER..]).is_news(place)?;
        return Ok(if news { Added::TooBig } else { Added::Nothing });
    }
    let Spot { at, previous, first, run } = Sparse(&sketch[HEADER..]).find(place.index)?;
    if run.rank >= place.rank {
        return Ok(Added::Nothing);
    }
    let mut new = Vec::with_capacity(SPLIT_MAX);
    let before = place.index - first;
    write(&mut new, run.rank, before);
    write(&mut new, place.rank, 1);
    write(&mut new, run.rank, run.len - before - 1);
    if new.len() > run.bytes && sketch.len() + new.len() - run.bytes > max {
        return Ok(Added::TooBig);
    }
    let at = HEADER + at;
    sketch.splice(at..at + run.bytes, new);
    join(sketch, previous.map_or(HEADER, |previous| HEADER + previous));
    Ok(Added::Changed)
}

/// Joins neighbours with the same value among the next few runs.
fn join(sketch: &mut Vec<u8>, mut at: usize) {
    for _ in 0..JOIN_RUNS {
        let Some(run) = sketch.get(at..).and_then(Run::read) else { return };
        let next = sketch.get(at + run.bytes..).and_then(Run::read);
        match next {
            Some(next)
                if run.rank > 0 && next.rank == run.rank && run.len + next.len <= VALUE_RUN_MAX =>
            {
                sketch[at + 1] = 0x80 | (run.rank - 1) << 2 | (run.len + next.len - 1) as u8;
                sketch.remove(at);
            }
            _ => at += run.bytes,
        }
    }
}
