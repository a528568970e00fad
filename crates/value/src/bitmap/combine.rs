//! Texts combined bit by bit. Shorter ones count as if zeros followed.

/// Bytes of the result which should be computed together, so that they stay in the nearest cache
/// while the sources are read one after the other.
pub const BLOCK: usize = 8 << 10;

/// How texts are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Set where all are.
    And,
    /// Set where any is.
    Or,
    /// Set where an odd number is.
    Xor,
    /// Set where the only source is not.
    Not,
}

/// The combination of all sources, as long as the longest.
pub fn combine(operation: Operation, sources: &[&[u8]]) -> Vec<u8> {
    let len = sources.iter().map(|source| source.len()).max().unwrap_or(0);
    let mut out = vec![0; len];
    for (n, block) in out.chunks_mut(BLOCK).enumerate() {
        let (at, end) = (n * BLOCK, n * BLOCK + block.len());
        for (i, source) in sources.iter().enumerate() {
            let part = &source[source.len().min(at)..source.len().min(end)];
            combine_next(operation, i == 0, block, part);
        }
    }
    out
}

/// Combines a block of the result with a part of the next source, which ends before the block where
/// the source does. Before the first source the block's content does not matter.
pub fn combine_next(operation: Operation, is_first: bool, block: &mut [u8], source: &[u8]) {
    if !is_first {
        return apply(operation, block, source);
    }
    let (there, behind) = block.split_at_mut(source.len());
    there.copy_from_slice(source);
    behind.fill(0);
    if operation == Operation::Not {
        for byte in block {
            *byte = !*byte;
        }
    }
}

fn apply(operation: Operation, block: &mut [u8], source: &[u8]) {
    let (both, alone) = block.split_at_mut(source.len());
    let pairs = both.iter_mut().zip(source);
    match operation {
        Operation::And => {
            pairs.for_each(|(a, b)| *a &= b);
            alone.fill(0);
        }
        Operation::Or => pairs.for_each(|(a, b)| *a |= b),
        Operation::Xor => pairs.for_each(|(a, b)| *a ^= b),
        Operation::Not => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(operation: Operation, sources: &[&[u8]]) -> Vec<u8> {
        let len = sources.iter().map(|source| source.len()).max().unwrap_or(0);
        let at = |i: usize| sources.iter().map(move |source| source.get(i).copied().unwrap_or(0));
        (0..len)
            .map(|i| match operation {
                Operation::And => at(i).fold(0xff, |a, b| a & b),
                Operation::Or => at(i).fold(0, |a, b| a | b),
                Operation::Xor => at(i).fold(0, |a, b| a ^ b),
                Operation::Not => !sources[0][i],
            })
            .collect()
    }

    proptest! {
        #[test]
        fn combining_blocks_agrees_with_single_bytes(
            lens in proptest::collection::vec(prop_oneof![0usize..40, 0..3 * BLOCK], 1..5),
            seed: u64,
        ) {
            let mut dice = base::prng::Prng::new(seed);
            let texts: Vec<Vec<u8>> =
                lens.iter().map(|len| (0..*len).map(|_| dice.draw() as u8).collect()).collect();
            let sources: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
            for operation in [Operation::And, Operation::Or, Operation::Xor] {
                prop_assert_eq!(combine(operation, &sources), naive(operation, &sources));
            }
            let one = &sources[..1];
            prop_assert_eq!(combine(Operation::Not, one), naive(Operation::Not, one));
        }
    }
}
