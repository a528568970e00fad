//! Which key comes next.

use base::prng::Prng;

use super::spec::Pattern;

/// Draws numbers of a range `0..count` by a pattern. Set up once, O(1) per draw.
#[derive(Clone, Debug)]
pub struct Sampler {
    pattern: Pattern,
    count: u64,
    /// For [`Pattern::Zipf`]; other patterns leave it alone.
    zipf: Zipf,
    /// How many keys are hot, for [`Pattern::HotSet`].
    hot: u64,
}

/// The position of a thread or a connection in a sequence, and its share of the range.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    next: u64,
    first: u64,
    end: u64,
}

impl Walk {
    /// The share number `index` of `of` equal ones of `0..count`, never empty.
    pub fn share(index: usize, of: usize, count: u64) -> Self {
        let cut = |n: usize| (u128::from(count) * n as u128 / of as u128) as u64;
        let first = cut(index).min(count - 1);
        Self { next: first, first, end: cut(index + 1).max(first + 1) }
    }

    /// The next number of the share, again from its beginning after its end.
    #[inline]
    fn inside(&mut self) -> u64 {
        let now = self.next;
        self.next = if now + 1 >= self.end { self.first } else { now + 1 };
        now
    }

    /// The next number of the whole range.
    #[inline]
    fn through(&mut self, count: u64) -> u64 {
        let now = self.next;
        self.next = if now + 1 >= count { 0 } else { now + 1 };
        now
    }
}

impl Sampler {
    /// The sampler of a pattern over `count` keys, at least one.
    pub fn new(pattern: Pattern, count: u64) -> Self {
        let (exponent, share) = match pattern {
            Pattern::Zipf { exponent } => (exponent, 1.0),
            Pattern::HotSet { keys, .. } => (1.0, keys),
            _ => (1.0, 1.0),
        };
        let hot = ((count as f64 * share).round() as u64).clamp(1, count);
        Self { pattern, count, zipf: Zipf::new(count, exponent), hot }
    }

    /// Does each connection walk by itself?
    pub fn is_parallel(&self) -> bool {
        self.pattern == Pattern::Parallel
    }

    /// The next number.
    #[inline]
    pub fn draw(&self, prng: &mut Prng, walk: &mut Walk) -> u64 {
        let (count, hot) = (self.count, self.hot);
        match self.pattern {
            Pattern::Uniform => below(prng, count),
            Pattern::Zipf { .. } => self.zipf.draw(prng) - 1,
            Pattern::HotSet { requests, .. } if hot == count || unit(prng) < requests => {
                below(prng, hot)
            }
            Pattern::HotSet { .. } => hot + below(prng, count - hot),
            Pattern::Gaussian => gaussian(prng, count),
            Pattern::Sequential => walk.through(count),
            Pattern::Parallel => walk.inside(),
        }
    }
}

/// A number in `0..end`: the high half of a product. Some numbers come more often than others by at
/// most `end`/2^64, which nobody sees in a key range; [`Prng::below`] avoids that with a division.
#[inline]
fn below(prng: &mut Prng, end: u64) -> u64 {
    ((u128::from(prng.draw()) * u128::from(end)) >> 64) as u64
}

/// A number in [0, 1), 53 bits of it.
#[inline]
pub fn unit(prng: &mut Prng) -> f64 {
    (prng.draw() >> 11) as f64 / (1u64 << 53) as f64
}

/// Box and Muller (1958), drawn again outside the range: three standard deviations to either side.
fn gaussian(prng: &mut Prng, count: u64) -> u64 {
    loop {
        let radius = (-2.0 * (1.0 - unit(prng)).ln()).sqrt();
        let deviation = radius * (std::f64::consts::TAU * unit(prng)).cos();
        let at = count as f64 * (0.5 + deviation / 6.0);
        if (0.0..count as f64).contains(&at) {
            return at as u64;
        }
    }
}

/// Zipf's distribution over ranks 1 to n, by rejection-inversion: W. Hörmann and G. Derflinger,
/// "Rejection-inversion to generate variates from monotone discrete distributions", ACM TOMACS
/// 6(3), 1996. No table: constant memory and, on average, less than 1.2 tries per draw.
#[derive(Clone, Debug)]
pub struct Zipf {
    count: f64,
    exponent: f64,
    lowest: f64,
    highest: f64,
    accepted: f64,
}

impl Zipf {
    /// Over `count` ranks, at least one; `exponent` above 0.
    pub fn new(count: u64, exponent: f64) -> Self {
        let mut zipf =
            Self { count: count as f64, exponent, lowest: 0.0, highest: 0.0, accepted: 0.0 };
        zipf.lowest = zipf.integral(1.5) - 1.0;
        zipf.highest = zipf.integral(zipf.count + 0.5);
        zipf.accepted = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// A rank.
    #[inline]
    pub fn draw(&self, prng: &mut Prng) -> u64 {
        loop {
            let under = self.highest + unit(prng) * (self.lowest - self.highest);
            let at = self.inverse(under);
            let rank = at.round().clamp(1.0, self.count);
            if rank - at <= self.accepted || under >= self.integral(rank + 0.5) - self.density(rank)
            {
                return rank as u64;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// The integral of the density from 1 to x: (x^(1-s) - 1) / (1-s), ln x for s = 1.
    fn integral(&self, x: f64) -> f64 {
        let (log, by) = (x.ln(), 1.0 - self.exponent);
        if by.abs() * log < 1e-9 { log } else { (by * log).exp_m1() / by }
    }

    fn inverse(&self, y: f64) -> f64 {
        let by = 1.0 - self.exponent;
        if by.abs() < 1e-9 {
            return y.exp();
        }
        // Rounding may bring the argument to -1 where x is without bound.
        ((by * y).max(-1.0 + f64::EPSILON).ln_1p() / by).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pattern: Pattern, count: u64, draws: u32) -> Vec<f64> {
        let sampler = Sampler::new(pattern, count);
        let (mut prng, mut walk) = (Prng::new(11), Walk::share(0, 1, count));
        let mut seen = vec![0.0; count as usize];
        for _ in 0..draws {
            seen[sampler.draw(&mut prng, &mut walk) as usize] += 1.0;
        }
        seen
    }

    /// Pearson's statistic for the exact probabilities 1/(k^s H). Ranks with a small expectation
    /// are combined.
    fn chi_squared_of_zipf(exponent: f64, count: u64, draws: u32) -> (f64, f64) {
        let seen = counts(Pattern::Zipf { exponent }, count, draws);
        let weight = |rank: u64| (rank as f64).powf(-exponent);
        let harmonic: f64 = (1..=count).map(weight).sum();
        let (mut sum, mut cells) = (0.0, 0.0);
        let (mut expected, mut got) = (0.0, 0.0);
        for rank in 1..=count {
            expected += f64::from(draws) * weight(rank) / harmonic;
            got += seen[rank as usize - 1];
            if expected >= 20.0 || rank == count {
                sum += (got - expected) * (got - expected) / expected;
                cells += 1.0;
                (expected, got) = (0.0, 0.0);
            }
        }
        (sum, cells - 1.0)
    }

    #[test]
    fn zipf_samples_have_the_defined_probabilities() {
        // Known data: H(10, 1) = 7381/2520, so rank 1 of 10 has 34.14 %.
        let seen = counts(Pattern::Zipf { exponent: 1.0 }, 10, 200_000);
        assert!((seen[0] / 200_000.0 - 2520.0 / 7381.0).abs() < 0.004, "{seen:?}");
        for exponent in [0.3, 0.8, 0.99, 1.0, 1.2, 2.5] {
            for count in [1, 2, 3, 1000, 20_000] {
                let (sum, freedom) = chi_squared_of_zipf(exponent, count, 200_000);
                // Mean `freedom`, standard deviation sqrt(2 freedom): five of them.
                let limit = freedom + 5.0 * (2.0 * freedom).sqrt() + 1e-6;
                assert!(sum <= limit, "s={exponent} n={count}: {sum} against {limit}");
            }
        }
    }

    #[test]
    fn a_hot_set_receives_its_share() {
        let seen = counts(Pattern::HotSet { keys: 0.1, requests: 0.9 }, 1000, 100_000);
        let hot: f64 = seen[..100].iter().sum();
        assert!((hot / 100_000.0 - 0.9).abs() < 0.006, "{hot}");
        assert!(seen[100..].iter().all(|&n| n < 50.0) && seen[999] > 0.0);
        let all = counts(Pattern::HotSet { keys: 1.0, requests: 0.2 }, 10, 1000);
        assert!(all.iter().all(|&n| n > 50.0), "{all:?}");
    }

    #[test]
    fn uniform_and_gaussian_samples_have_their_distributions() {
        let even = counts(Pattern::Uniform, 10, 100_000);
        assert!(even.iter().all(|n| (n - 10_000.0).abs() < 600.0), "{even:?}");
        let bell = counts(Pattern::Gaussian, 600, 100_000);
        let inside: f64 = bell[200..400].iter().sum();
        assert!((inside / 100_000.0 - 0.684_5).abs() < 0.01, "one deviation: {inside}");
    }

    #[test]
    fn sequential_patterns_cover_their_shares() {
        let mut prng = Prng::new(1);
        let (all, own) =
            (Sampler::new(Pattern::Sequential, 10), Sampler::new(Pattern::Parallel, 10));
        let mut walk = Walk::share(1, 2, 10);
        let seen: Vec<u64> = (0..7).map(|_| all.draw(&mut prng, &mut walk)).collect();
        assert_eq!(seen, [5, 6, 7, 8, 9, 0, 1]);
        let mut walk = Walk::share(1, 3, 10);
        let seen: Vec<u64> = (0..5).map(|_| own.draw(&mut prng, &mut walk)).collect();
        assert_eq!(seen, [3, 4, 5, 3, 4]);
        let mut walk = Walk::share(9, 100, 3);
        assert_eq!(own.draw(&mut prng, &mut walk), 0, "a share is never empty");
        let mut walk = Walk::share(99, 100, 3);
        assert_eq!(own.draw(&mut prng, &mut walk), 2);
    }
}
