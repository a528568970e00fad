//! Generates new inputs from existing ones.

use base::prng::Prng;

/// Longest generated input.
const LEN_MAX: usize = 96 * 1024;

/// Longest run of one byte, to reach limits on lengths; one input in `RUN_ONE_IN` has such a run.
const RUN_MAX: usize = 70_000;
const RUN_ONE_IN: usize = 400;

/// Makes inputs from a corpus and a dictionary.
pub struct Mutator<'a> {
    rng: Prng,
    corpus: &'a [Vec<u8>],
    dictionary: &'a [&'a [u8]],
}

impl<'a> Mutator<'a> {
    /// The same seed generates the same inputs.
    pub fn new(seed: u64, corpus: &'a [Vec<u8>], dictionary: &'a [&'a [u8]]) -> Self {
        Self { rng: Prng::new(seed), corpus, dictionary }
    }

    /// The next input.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = match self.corpus.len() {
            0 => Vec::new(),
            n => self.corpus[self.below(n)].clone(),
        };
        for _ in 0..=self.below(6) {
            self.change(&mut input);
        }
        if self.below(RUN_ONE_IN) == 0 {
            let at = self.below(input.len() + 1);
            let (byte, len) = (self.below(256) as u8, self.below(RUN_MAX));
            input.splice(at..at, std::iter::repeat_n(byte, len));
        }
        input.truncate(LEN_MAX);
        input
    }

    fn below(&mut self, n: usize) -> usize {
        self.rng.below(n as u64) as usize
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let len = input.len();
        let at = self.below(len + 1);
        let end = (at + 1 + self.below(16)).min(len);
        match self.below(10) {
            0 if at < len => input[at] ^= 1 << self.below(8),
            1 if at < len => input[at] = self.below(256) as u8,
            2 => input.insert(at, self.below(256) as u8),
            3 if at < end => drop(input.drain(at..end)),
            4 if at < end => {
                let piece = input[at..end].to_vec();
                input.splice(at..at, piece);
            }
            5 => input.truncate(at),
            6 if !self.corpus.is_empty() => {
                let other = &self.corpus[self.below(self.corpus.len())];
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            7 => {
                let number = self.number().to_string().into_bytes();
                input.splice(at..at, number);
            }
            _ if !self.dictionary.is_empty() => {
                let word = self.dictionary[self.below(self.dictionary.len())];
                if self.below(2) == 0 {
                    input.splice(at..at, word.iter().copied());
                } else {
                    input.splice(at..(at + word.len()).min(len), word.iter().copied());
                }
            }
            _ => {}
        }
    }

    /// A number near a limit of some integer type.
    fn number(&mut self) -> i128 {
        let edge = 1i128 << self.below(66);
        let near = self.below(5) as i128 - 2;
        if self.below(4) == 0 { -edge + near } else { edge + near }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_repeat_by_seed_and_vary() {
        let corpus = [b"*1\r\n$4\r\nPING\r\n".to_vec()];
        let make = |seed| {
            let mut mutator = Mutator::new(seed, &corpus, &[b"$-1\r\n"]);
            (0..500).map(|_| mutator.next_input()).collect::<Vec<_>>()
        };
        assert_eq!(make(1), make(1));
        let mut seen = make(2);
        seen.sort();
        seen.dedup();
        assert!(seen.len() > 300, "only {} different inputs", seen.len());
    }
}
