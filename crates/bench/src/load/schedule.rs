//! The intended send times of an open loop.

use base::prng::Prng;

use super::sampler::unit;
use super::spec::Arrivals;

/// Send times, one after the other. They depend on the rate and on chance alone: neither the server
/// nor the moment of asking changes them.
#[derive(Debug)]
pub struct Schedule {
    prng: Prng,
    arrivals: Arrivals,
    distance_ns: f64,
    next_ns: f64,
}

impl Schedule {
    /// The share number `index` of `of` of a load of `rate` requests per second from `start_ns` on.
    /// Independent Poisson processes add up to one of the whole rate; constant ones are offset so
    /// that together their distances are even.
    pub fn new(
        rate: f64,
        arrivals: Arrivals,
        mut prng: Prng,
        start_ns: u64,
        (index, of): (usize, usize),
    ) -> Self {
        let distance_ns = 1e9 * of as f64 / rate;
        let first = match arrivals {
            Arrivals::Constant => distance_ns * index as f64 / of as f64,
            Arrivals::Poisson => exponential(&mut prng) * distance_ns,
        };
        Self { prng, arrivals, distance_ns, next_ns: start_ns as f64 + first }
    }

    /// The next intended time.
    #[inline]
    pub fn peek(&self) -> u64 {
        self.next_ns as u64
    }

    /// Returns it and moves on to the one after it.
    #[inline]
    pub fn advance(&mut self) -> u64 {
        let now = self.next_ns;
        self.next_ns += match self.arrivals {
            Arrivals::Constant => self.distance_ns,
            Arrivals::Poisson => exponential(&mut self.prng) * self.distance_ns,
        };
        now as u64
    }
}

/// Exponentially distributed with mean 1, by inversion of its distribution function.
#[inline]
fn exponential(prng: &mut Prng) -> f64 {
    -(1.0 - unit(prng)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distances(arrivals: Arrivals, of: usize, count: usize) -> Vec<f64> {
        let mut prng = Prng::new(3);
        let mut times: Vec<u64> = (0..of)
            .flat_map(|at| {
                let mut one = Schedule::new(1000.0, arrivals, prng.fork(), 5_000, (at, of));
                (0..count / of).map(move |_| one.advance()).collect::<Vec<_>>()
            })
            .collect();
        times.sort_unstable();
        assert!(times[0] >= 5_000);
        times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect()
    }

    #[test]
    fn constant_intervals_are_even_over_all_threads() {
        for of in [1, 4] {
            let all = distances(Arrivals::Constant, of, 4000);
            assert!(all.iter().all(|ms| (ms - 1.0).abs() < 1e-4), "{of}: {:?}", &all[..8]);
        }
    }

    #[test]
    fn poisson_intervals_are_exponentially_distributed() {
        for of in [1, 4] {
            let all = distances(Arrivals::Poisson, of, 100_000);
            let all = &all[..90_000]; // the threads' last arrivals are sparse
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            let variance = all.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / all.len() as f64;
            // Five standard errors: 5/sqrt(90000) of the mean, 5 sqrt(8/90000) of the variance.
            assert!((mean - 1.0).abs() < 0.017, "{mean}");
            assert!((variance - 1.0).abs() < 0.048, "{variance}");
            let long = all.iter().filter(|&&d| d > 1.0).count() as f64 / all.len() as f64;
            assert!((long - (-1.0f64).exp()).abs() < 0.008, "{long} are longer than the mean");
        }
    }

    #[test]
    fn peek_returns_the_time_of_the_next_advance() {
        let mut one = Schedule::new(10.0, Arrivals::Poisson, Prng::new(1), 0, (0, 1));
        let peeked = one.peek();
        assert_eq!((one.advance(), one.peek() > peeked), (peeked, true));
    }
}
