//! From registers to a number: Otmar Ertl, *New cardinality estimation algorithms for HyperLogLog
//! sketches* (arXiv:1702.01284), the improved raw estimator (algorithm 6). It needs only how often
//! each value occurs, and no tables.

use super::layout::{RANK_BITS, REGISTERS, Registers};

/// 1 / (2 ln 2)
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// The estimated number of different elements that were added to these registers.
pub(super) fn estimate(registers: &Registers) -> u64 {
    let histogram = histogram(registers);
    let m = REGISTERS as f64;
    let mut z = m * tau((m - f64::from(histogram[RANK_BITS as usize + 1])) / m);
    for rank in (1..=RANK_BITS as usize).rev() {
        z += f64::from(histogram[rank]);
        z *= 0.5;
    }
    z += m * sigma(f64::from(histogram[0]) / m);
    (ALPHA * m * m / z).round() as u64
}

/// How often each value occurs; four tables, so that equal neighbours do not wait for each other.
fn histogram(registers: &Registers) -> [u32; 64] {
    let mut tables = [[0u32; 64]; 4];
    for four in registers.as_chunks::<4>().0 {
        for (table, rank) in tables.iter_mut().zip(four) {
            table[usize::from(rank & 63)] += 1;
        }
    }
    std::array::from_fn(|rank| tables.iter().map(|table| table[rank]).sum())
}

/// x + the sum of x^(2^k) 2^(k-1) for k from 1.
fn sigma(mut x: f64) -> f64 {
    if same(x, 1.0) {
        return f64::INFINITY;
    }
    let mut y = 1.0;
    let mut z = x;
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if same(z, before) {
            return z;
        }
    }
}

/// (1 - x - the sum of (1 - x^(2^-k))^2 2^-k for k from 1) / 3.
fn tau(mut x: f64) -> f64 {
    if same(x, 0.0) || same(x, 1.0) {
        return 0.0;
    }
    let mut y = 1.0;
    let mut z = 1.0 - x;
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        if same(z, before) {
            return z / 3.0;
        }
    }
}

/// Exactly equal. Of a series: it has ended, what was added is less than a double can hold.
fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits()
}

#[cfg(test)]
mod tests {
    use super::super::hash::place;
    use super::*;

    #[test]
    fn small_counts_are_exact_and_large_ones_within_three_percent() {
        let mut registers = [0; REGISTERS];
        assert_eq!(estimate(&registers), 0);
        for n in 1..=300_000u64 {
            let place = place(n.to_string().as_bytes());
            registers[place.index] = registers[place.index].max(place.rank);
            if n.is_power_of_two() || n == 300_000 {
                let off = estimate(&registers).abs_diff(n);
                assert!(off * 100 <= n * 3, "{n} elements, off by {off}");
            }
        }
    }

    #[test]
    fn full_registers_do_not_divide_by_zero() {
        assert!(estimate(&[RANK_BITS as u8 + 1; REGISTERS]) > 1 << 60);
    }
}
