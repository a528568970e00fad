//! A trace played to the caches in this process.

use super::policy::Policy;
use super::policy::belady::Belady;
use super::policy::lfu::Lfu;
use super::policy::lru::Lru;
use super::policy::random::Random;
use super::policy::s3_fifo::S3Fifo;
use super::policy::w_tiny_lfu::WTinyLfu;
use super::tally::Tally;
use super::trace::Trace;

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Simulator {
    /// The exact order of last uses.
    Lru,
    /// The exact order of numbers of uses, without aging.
    Lfu,
    /// No order.
    Random,
    /// Belady's optimum.
    Belady,
    /// S3-FIFO.
    S3Fifo,
    /// W-TinyLFU.
    WTinyLfu,
}

impl Simulator {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 6] =
        [Self::Belady, Self::Lru, Self::Lfu, Self::Random, Self::S3Fifo, Self::WTinyLfu];
    /// Those that keep keys which are read once from pushing out others.
    pub const RESISTANT: [Self; 2] = [Self::S3Fifo, Self::WTinyLfu];

    /// What it is called in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lru => "exact LRU",
            Self::Lfu => "exact LFU",
            Self::Random => "random",
            Self::Belady => "Belady",
            Self::S3Fifo => "S3-FIFO",
            Self::WTinyLfu => "W-TinyLFU",
        }
    }

    /// The order that a server's policy approximates; `None` for one that is something else.
    pub fn exact(policy: &str) -> Option<Self> {
        let order = policy.rsplit('-').next()?;
        match order {
            "lru" => Some(Self::Lru),
            "lfu" => Some(Self::Lfu),
            "random" => Some(Self::Random),
            _ => None,
        }
    }

    /// Plays a trace to an empty cache of this weight.
    pub fn play(self, trace: &Trace, capacity: u64) -> Tally {
        let keys = trace.keys.len();
        match self {
            Self::Lru => play(&mut Lru::new(capacity, keys), trace),
            Self::Lfu => play(&mut Lfu::new(capacity, keys), trace),
            Self::Random => play(&mut Random::new(capacity, keys), trace),
            Self::Belady => play(&mut Belady::new(capacity, keys, trace.next_uses()), trace),
            Self::S3Fifo => play(&mut S3Fifo::new(capacity, keys), trace),
            Self::WTinyLfu => {
                let all = trace.capacity(keys as u64).max(1);
                let entries = u128::from(capacity) * keys as u128 / u128::from(all);
                play(&mut WTinyLfu::new(capacity, entries as u64, keys), trace)
            }
        }
    }
}

/// How many accesses a key waits in an exact LRU of this weight before it goes, on average; `None`
/// if nothing goes.
pub fn mean_age(trace: &Trace, capacity: u64) -> Option<f64> {
    let mut lru = Lru::new(capacity, trace.keys.len());
    play(&mut lru, trace);
    lru.mean_age()
}

fn play(policy: &mut dyn Policy, trace: &Trace) -> Tally {
    let mut tally = Tally::of(trace.accesses.len());
    for (at, access) in trace.accesses.iter().enumerate() {
        tally.add(at, policy.access(access.key, trace.weight(*access)));
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::super::generate::{Distribution, Extent};
    use super::*;

    fn ratio(simulator: Simulator, distribution: Distribution) -> f64 {
        let extent = Extent { entries: 500, keys: 5_000, accesses: 40_000, size: 100, seed: 1 };
        let trace = distribution.generate(extent);
        simulator.play(&trace, trace.capacity(500)).ratio()
    }

    #[test]
    fn every_policy_has_its_known_strength() {
        use Simulator::{Belady, Lfu, Lru, Random, S3Fifo, WTinyLfu};
        for distribution in Distribution::USUAL {
            let best = ratio(Belady, distribution);
            for other in Simulator::ALL {
                let seen = ratio(other, distribution);
                assert!(seen <= best, "{}: {}", distribution.name(), other.name());
            }
        }
        let zipf = |simulator| ratio(simulator, Distribution::Zipf(0.9));
        assert!(zipf(Lfu) > zipf(Lru) + 0.05 && zipf(Lru) > zipf(Random));
        for simulator in Simulator::RESISTANT {
            let gain = ratio(simulator, Distribution::Scan) - ratio(Lru, Distribution::Scan);
            assert!(gain > 0.05, "{}: {gain}", simulator.name());
        }
        assert!(ratio(Lru, Distribution::Loop) < 1e-9 && ratio(WTinyLfu, Distribution::Loop) > 0.5);
        let moving = |simulator| ratio(simulator, Distribution::Moving);
        assert!(moving(Lru) > moving(Lfu) && moving(S3Fifo) > moving(Lfu));
    }

    #[test]
    fn policies_of_servers_approximate_an_order() {
        assert_eq!(Simulator::exact("allkeys-lru"), Some(Simulator::Lru));
        assert_eq!(Simulator::exact("volatile-lfu"), Some(Simulator::Lfu));
        assert_eq!(Simulator::exact("allkeys-random"), Some(Simulator::Random));
        assert_eq!(Simulator::exact("volatile-ttl"), None);
        assert_eq!(Simulator::exact("noeviction"), None);
    }

    #[test]
    fn a_loop_waits_its_length_in_lru() {
        let extent = Extent { entries: 100, keys: 0, accesses: 5_000, size: 100, seed: 1 };
        let trace = Distribution::Loop.generate(Extent { keys: 1, ..extent });
        assert_eq!(mean_age(&trace, 100), Some(100.0));
        assert_eq!(mean_age(&trace, 110), None);
    }
}
