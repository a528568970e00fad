//! The blocks that a file occupies.

/// Bytes of a block, the unit in which space is given out.
pub const BLOCK_BYTES: u64 = 4096;

/// A set of block numbers of one file, one bit each.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    words: Vec<u64>,
    count: u64,
}

impl Blocks {
    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Those of bytes `from..to` that are not in the set, ascending.
    pub fn missing(&self, from: u64, to: u64) -> impl Iterator<Item = u64> {
        let end = if from < to { to.div_ceil(BLOCK_BYTES) } else { 0 };
        (from / BLOCK_BYTES..end).filter(|block| !self.contains(*block))
    }

    /// Adds those of bytes `from..to`.
    pub fn add(&mut self, from: u64, to: u64) {
        let missing: Vec<u64> = self.missing(from, to).collect();
        for block in missing {
            self.insert(block);
        }
    }

    /// Removes all blocks behind a file of `len` bytes.
    pub fn truncate(&mut self, len: u64) {
        let kept = len.div_ceil(BLOCK_BYTES);
        self.words.truncate(kept.div_ceil(64) as usize);
        if let Some(last) = self.words.get_mut((kept / 64) as usize) {
            *last &= (1 << (kept % 64)) - 1;
        }
        self.count = self.words.iter().map(|word| u64::from(word.count_ones())).sum();
    }

    fn contains(&self, block: u64) -> bool {
        self.words.get((block / 64) as usize).is_some_and(|word| word >> (block % 64) & 1 == 1)
    }

    fn insert(&mut self, block: u64) {
        let word = (block / 64) as usize;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (block % 64);
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_truncation() {
        let mut blocks = Blocks::default();
        blocks.add(4095, 4097);
        assert_eq!(blocks.count(), 2);
        assert_eq!(blocks.missing(0, 4 * BLOCK_BYTES).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(blocks.missing(5, 5).count(), 0);
        blocks.add(0, 200 * BLOCK_BYTES);
        assert_eq!(blocks.count(), 200);
        blocks.truncate(64 * BLOCK_BYTES);
        assert_eq!(blocks.count(), 64);
        blocks.truncate(1);
        assert_eq!(blocks.missing(0, 2 * BLOCK_BYTES).collect::<Vec<_>>(), [1]);
        blocks.truncate(0);
        assert_eq!(blocks.count(), 0);
    }
}
