//! Registers of 6 bits, one after the other.

use super::layout::{DENSE_LEN, HEADER, REGISTERS, Registers};

/// The registers of a dense sketch, header not included.
#[derive(Clone, Copy, Debug)]
pub struct Dense<'a>(&'a [u8; DENSE_LEN - HEADER]);

impl<'a> Dense<'a> {
    /// The registers behind the header of a dense sketch.
    pub(super) fn new(registers: &'a [u8]) -> Option<Self> {
        Some(Self(registers.try_into().ok()?))
    }

    /// One register.
    #[inline]
    pub fn get(self, index: usize) -> u8 {
        let (at, shift) = position(index);
        let low = u16::from(self.0[at]);
        let high = u16::from(self.0.get(at + 1).copied().unwrap_or(0));
        ((low | high << 8) >> shift & 63) as u8
    }

    /// All of them, sixteen out of every twelve bytes.
    pub fn unpack(self, out: &mut Registers) {
        let (groups, _) = self.0.as_chunks::<12>();
        let (outs, _) = out.as_chunks_mut::<16>();
        for (group, out) in groups.iter().zip(outs) {
            for (three, four) in group.as_chunks::<3>().0.iter().zip(out.as_chunks_mut::<4>().0) {
                let [a, b, c] = *three;
                *four = [a & 63, (a >> 6 | b << 2) & 63, (b >> 4 | c << 4) & 63, c >> 2];
            }
        }
    }
}

/// Where a register begins: the byte of the registers, and the bit in it.
const fn position(index: usize) -> (usize, u32) {
    (index * 6 / 8, (index * 6 % 8) as u32)
}

/// What must be written into a dense sketch, and where, to set one register.
#[inline]
pub fn patch_of(sketch: &[u8], index: usize, rank: u8) -> (usize, [u8; 2], usize) {
    let (at, shift) = position(index);
    let at = HEADER + at;
    let len = if at + 1 < sketch.len() { 2 } else { 1 };
    let mut bytes = [0; 2];
    bytes[..len].copy_from_slice(&sketch[at..at + len]);
    let word = u16::from_le_bytes(bytes) & !(63 << shift) | u16::from(rank) << shift;
    (at, word.to_le_bytes(), len)
}

/// Sets one register of a dense sketch.
pub(super) fn set(sketch: &mut [u8], index: usize, rank: u8) {
    let (at, bytes, len) = patch_of(sketch, index, rank);
    sketch[at..at + len].copy_from_slice(&bytes[..len]);
}

/// Packs all registers behind the header of a dense sketch.
pub(super) fn pack(registers: &Registers, sketch: &mut [u8]) {
    let (groups, _) = sketch[HEADER..].as_chunks_mut::<3>();
    for (three, four) in groups.iter_mut().zip(registers.as_chunks::<4>().0) {
        let [a, b, c, d] = *four;
        *three = [a | b << 6, b >> 2 | c << 4, c >> 4 | d << 2];
    }
}

const _: () = assert!(REGISTERS.is_multiple_of(16));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_unpacked_and_single_registers_agree() {
        let mut dice = base::prng::Prng::new(3);
        let mut registers = [0; REGISTERS];
        registers.fill_with(|| (dice.draw() % 52) as u8);
        let mut sketch = vec![0; DENSE_LEN];
        pack(&registers, &mut sketch);
        let mut one_by_one = vec![0xff; DENSE_LEN];
        for (index, rank) in registers.iter().enumerate() {
            set(&mut one_by_one, index, *rank);
        }
        assert_eq!(sketch[HEADER..], one_by_one[HEADER..]);
        let dense = Dense::new(&sketch[HEADER..]).expect("the right length");
        let mut back = [0; REGISTERS];
        dense.unpack(&mut back);
        assert_eq!(back, registers);
        assert!((0..REGISTERS).all(|index| dense.get(index) == registers[index]));
    }
}
