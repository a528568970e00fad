//! A text as a sketch: what it says, and what it becomes when elements are added.

use super::dense::{self, Dense};
use super::estimate::estimate;
use super::hash::{Place, place};
use super::layout::{
    COUNT_AT, DENSE_LEN, HEADER, Invalid, REGISTERS, Registers, SPARSE_MAX_DEFAULT, STALE, STALE_AT,
};
use super::sparse::{self, Added, Sparse};

const MAGIC: &[u8; 4] = b"HYLL";
const DENSE: u8 = 0;
const SPARSE: u8 = 1;
const ENCODING_AT: usize = 4;

/// A text that begins like a sketch.
#[derive(Clone, Copy, Debug)]
pub enum Hll<'a> {
    /// Every register has its place.
    Dense(Dense<'a>),
    /// Runs of registers.
    Sparse(Sparse<'a>),
}

impl<'a> Hll<'a> {
    /// Reads the header.
    #[inline]
    pub fn new(text: &'a [u8]) -> Result<Self, Invalid> {
        let (header, registers) = text.split_first_chunk::<HEADER>().ok_or(Invalid::NotOne)?;
        if !header.starts_with(MAGIC) {
            return Err(Invalid::NotOne);
        }
        match header[ENCODING_AT] {
            DENSE => Dense::new(registers).map(Hll::Dense).ok_or(Invalid::NotOne),
            SPARSE => Ok(Hll::Sparse(Sparse(registers))),
            _ => Err(Invalid::NotOne),
        }
    }

    /// The estimate in the header, if it is up to date.
    #[inline]
    pub fn cached(text: &[u8]) -> Option<u64> {
        let bytes = text.get(COUNT_AT..HEADER)?.try_into().ok()?;
        let count = u64::from_le_bytes(bytes);
        (count >> 63 == 0).then_some(count)
    }

    /// Whether an element would change a register.
    #[inline]
    pub fn is_news(self, place: Place) -> Result<bool, Invalid> {
        match self {
            Hll::Dense(dense) => Ok(dense.get(place.index) < place.rank),
            Hll::Sparse(sparse) => sparse.is_news(place),
        }
    }

    /// Raises `registers` to what the sketch says.
    pub fn raise(self, registers: &mut Registers) -> Result<(), Invalid> {
        match self {
            Hll::Sparse(sparse) => sparse.raise(registers),
            Hll::Dense(dense) => {
                let mut own = [0; REGISTERS];
                dense.unpack(&mut own);
                registers.iter_mut().zip(own).for_each(|(a, b)| *a = (*a).max(b));
                Ok(())
            }
        }
    }

    /// The estimate, computed.
    pub fn count(self) -> Result<u64, Invalid> {
        let mut registers = [0; REGISTERS];
        match self {
            Hll::Dense(dense) => dense.unpack(&mut registers),
            Hll::Sparse(sparse) => sparse.raise(&mut registers)?,
        }
        Ok(estimate(&registers))
    }

    /// The estimate for registers that several sketches have raised.
    pub fn count_registers(registers: &Registers) -> u64 {
        estimate(registers)
    }
}

/// An empty sketch.
pub fn new_sparse() -> Vec<u8> {
    let mut text = vec![0; HEADER];
    text[..4].copy_from_slice(MAGIC);
    text[ENCODING_AT] = SPARSE;
    text.extend_from_slice(&[0x7f, 0xff]); // 16384 zeros
    text
}

/// A dense sketch with the header of this one.
pub fn to_dense(text: &[u8]) -> Result<Vec<u8>, Invalid> {
    let mut registers = [0; REGISTERS];
    Hll::new(text)?.raise(&mut registers)?;
    let mut out = vec![0; DENSE_LEN];
    out[..HEADER].copy_from_slice(&text[..HEADER]);
    out[ENCODING_AT] = DENSE;
    dense::pack(&registers, &mut out);
    Ok(out)
}

/// Raises one register of a sketch, which becomes dense when its runs would not hold it or pass
/// `sparse_max` bytes; says whether that changed anything. The header's estimate is the caller's.
pub fn raise_one(text: &mut Vec<u8>, place: Place, sparse_max: usize) -> Result<bool, Invalid> {
    if let Hll::Sparse(_) = Hll::new(text)? {
        match sparse::add(text, place, sparse_max)? {
            Added::Nothing => return Ok(false),
            Added::Changed => return Ok(true),
            Added::TooBig => *text = to_dense(text)?,
        }
    }
    let news = Hll::new(text)?.is_news(place)?;
    if news {
        dense::set(text, place.index, place.rank);
    }
    Ok(news)
}

/// Says in the header that the estimate is out of date.
pub fn mark_stale(text: &mut [u8]) {
    text[STALE_AT] |= STALE;
}

/// Raises a sketch to these registers; `dense` asks for that encoding.
pub fn merge_into(
    text: &mut Vec<u8>,
    registers: &Registers,
    dense: bool,
    sparse_max: usize,
) -> Result<(), Invalid> {
    if dense && matches!(Hll::new(text)?, Hll::Sparse(_)) {
        *text = to_dense(text)?;
    }
    for (index, rank) in registers.iter().enumerate().filter(|(_, rank)| **rank > 0) {
        if let Hll::Dense(_) = Hll::new(text)? {
            // The sketch is among those that made the registers: nothing of it is lost.
            let mut all = *registers;
            Hll::new(text)?.raise(&mut all)?;
            dense::pack(&all, text);
            break;
        }
        raise_one(text, Place { index, rank: *rank }, sparse_max)?;
    }
    mark_stale(text);
    Ok(())
}

/// Additions to a sparse and to a dense sketch must agree with plain registers, and the estimate
/// with the truth; says what does not.
pub fn self_test() -> Result<(), String> {
    const ELEMENTS: u64 = 20_000;
    let mut plain = [0u8; REGISTERS];
    let mut growing = new_sparse();
    let mut dense = to_dense(&growing).map_err(|why| format!("{why:?}"))?;
    for n in 1..=ELEMENTS {
        let place = place(&n.to_le_bytes());
        plain[place.index] = plain[place.index].max(place.rank);
        for text in [&mut growing, &mut dense] {
            raise_one(text, place, SPARSE_MAX_DEFAULT).map_err(|why| format!("{why:?}"))?;
        }
        if !(n.is_power_of_two() || n == ELEMENTS) {
            continue;
        }
        for text in [&growing, &dense] {
            let mut seen = [0; REGISTERS];
            let raised = Hll::new(text).and_then(|sketch| sketch.raise(&mut seen));
            if raised.is_err() || seen != plain {
                return Err(format!("registers differ after {n} elements"));
            }
        }
        let count = estimate(&plain);
        if count.abs_diff(n) * 100 > n * 5 + 100 {
            return Err(format!("{n} elements were estimated as {count}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_self_test_passes() {
        assert_eq!(self_test(), Ok(()));
    }

    #[test]
    fn strings_which_are_no_sketch_are_refused() {
        let sparse = new_sparse();
        assert!(matches!(Hll::new(&sparse), Ok(Hll::Sparse(_))));
        assert_eq!(Hll::new(&sparse[..15]).err(), Some(Invalid::NotOne));
        let mut other = sparse.clone();
        other[ENCODING_AT] = DENSE;
        assert_eq!(Hll::new(&other).err(), Some(Invalid::NotOne));
        other[ENCODING_AT] = 2;
        assert_eq!(Hll::new(&other).err(), Some(Invalid::NotOne));
        let cut = &sparse[..=HEADER];
        assert_eq!(Hll::new(cut).and_then(Hll::count), Err(Invalid::Corrupt));
        let mut long = sparse;
        long.push(0);
        assert_eq!(Hll::new(&long).and_then(Hll::count), Err(Invalid::Corrupt));
    }

    proptest! {
        #[test]
        fn any_string_is_read_without_a_panic(mut text in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut whole = new_sparse();
            whole.truncate(HEADER);
            whole.append(&mut text);
            for n in 0u64..20 {
                let _ = raise_one(&mut whole, place(&n.to_le_bytes()), 3000);
                let _ = Hll::new(&whole).and_then(Hll::count);
            }
            let _ = to_dense(&whole);
        }

        #[test]
        fn sparse_runs_agree_with_plain_registers(
            raises in proptest::collection::vec((0usize..120, 1u8..=51), 0..200),
            scale in prop_oneof![Just(1usize), Just(136)],
            sparse_max in prop_oneof![Just(40usize), Just(3000)],
        ) {
            let mut plain = [0u8; REGISTERS];
            let mut text = new_sparse();
            for (index, rank) in raises {
                let place = Place { index: index * scale, rank };
                let news = plain[place.index] < rank;
                plain[place.index] = plain[place.index].max(rank);
                prop_assert_eq!(raise_one(&mut text, place, sparse_max), Ok(news));
                if let Hll::Sparse(_) = Hll::new(&text).expect("a sketch") {
                    prop_assert!(text.len() <= sparse_max);
                }
            }
            let mut seen = [0; REGISTERS];
            Hll::new(&text).expect("a sketch").raise(&mut seen).expect("whole");
            prop_assert!(seen == plain);
        }
    }
}
