//! Small cases with known results, and what holds of every cache.

use base::prng::Prng;

use super::belady::Belady;
use super::lfu::Lfu;
use super::lru::Lru;
use super::random::Random;
use super::s3_fifo::S3Fifo;
use super::w_tiny_lfu::WTinyLfu;
use super::*;

/// The reference string of the textbooks on operating systems (Silberschatz, Galvin, Gagne).
const TEXTBOOK: [u32; 20] = [7, 0, 1, 2, 0, 3, 0, 4, 2, 3, 0, 3, 2, 1, 2, 0, 1, 7, 0, 1];

fn misses(policy: &mut dyn Policy, keys: &[u32]) -> usize {
    keys.iter().filter(|key| !policy.access(**key, 1)).count()
}

fn next_uses(keys: &[u32]) -> Vec<u32> {
    let next = |at: usize| keys[at + 1..].iter().position(|key| *key == keys[at]);
    (0..keys.len()).map(|at| next(at).map_or(u32::MAX, |more| (at + 1 + more) as u32)).collect()
}

fn belady(capacity: u64, keys: &[u32]) -> Belady {
    Belady::new(capacity, 1_000, next_uses(keys))
}

/// Reads which favour low keys.
fn skewed(count: usize, seed: u64) -> Vec<u32> {
    let mut prng = Prng::new(seed);
    (0..count).map(|_| (prng.below(30).min(prng.below(30)) * prng.below(3) / 2) as u32).collect()
}

fn all(capacity: u64) -> Vec<Box<dyn Policy>> {
    vec![
        Box::new(Lru::new(capacity, 1_000)),
        Box::new(Lfu::new(capacity, 1_000)),
        Box::new(Random::new(capacity, 1_000)),
        Box::new(S3Fifo::new(capacity, 1_000)),
        Box::new(WTinyLfu::new(capacity, capacity, 1_000)),
    ]
}

#[test]
fn the_textbook_string_faults_as_in_the_textbook() {
    assert_eq!(misses(&mut belady(3, &TEXTBOOK), &TEXTBOOK), 9);
    assert_eq!(misses(&mut Lru::new(3, 8), &TEXTBOOK), 12);
}

#[test]
fn a_larger_lru_holds_all_that_a_smaller_one_does() {
    let (mut small, mut large) = (Lru::new(5, 1_000), Lru::new(9, 1_000));
    for key in skewed(2_000, 3) {
        let is_hit = small.access(key, 1);
        assert!(large.access(key, 1) || !is_hit, "a hit of the smaller is one of the larger");
        assert!((0..100).all(|key| large.holds(key) || !small.holds(key)));
    }
    assert!(small.mean_age().expect("it evicted") < large.mean_age().expect("it evicted"));
}

#[test]
fn a_loop_larger_than_the_cache_gives_lru_nothing_and_the_optimum_most() {
    let keys: Vec<u32> = (0..1_100).map(|at| at % 11).collect();
    assert_eq!(misses(&mut Lru::new(10, 11), &keys), 1_100);
    // One of eleven is always missing: a miss in each ten reads.
    let optimum = misses(&mut belady(10, &keys), &keys);
    assert!((110..=121).contains(&optimum), "{optimum}");
    assert!(misses(&mut Random::new(10, 11), &keys) < 400);
}

#[test]
fn nothing_has_more_hits_than_the_optimum() {
    for seed in 0..20 {
        let keys = skewed(500, seed);
        for capacity in [2, 5, 11] {
            let best = misses(&mut belady(capacity, &keys), &keys);
            for (at, policy) in all(capacity).iter_mut().enumerate().take(4) {
                let seen = misses(policy.as_mut(), &keys);
                assert!(seen >= best, "policy {at}, seed {seed}: {seen} below {best}");
            }
        }
    }
}

#[test]
fn lfu_keeps_what_was_read_most() {
    let mut lfu = Lfu::new(2, 10);
    assert_eq!(misses(&mut lfu, &[1, 1, 1, 2, 2, 3, 4, 5]), 5);
    // 2 went for 3, then 3 for 4, 4 for 5.
    assert!(lfu.access(1, 1) && lfu.access(5, 1) && !lfu.access(2, 1));
}

#[test]
fn s3_fifo_lets_keys_into_main_that_were_read_twice_or_come_back() {
    let mut cache = S3Fifo::new(10, 1_000);
    let hot = [1, 2, 3, 4];
    (0..3).for_each(|_| {
        misses(&mut cache, &hot);
    });
    let scan: Vec<u32> = (100..200).collect();
    assert_eq!(misses(&mut cache, &scan), 100);
    assert_eq!(misses(&mut cache, &hot), 0, "a scan does not push out what was read thrice");
    assert_eq!(misses(&mut Lru::new(10, 1_000), &[&hot[..], &scan, &hot].concat()), 108);
    // 190 has left by the small queue and is remembered; it comes back into main.
    assert!(!cache.access(190, 1));
    misses(&mut cache, &(200..206).collect::<Vec<u32>>());
    assert!(cache.access(190, 1), "it is in main, so the six did not push it out");
}

#[test]
fn w_tiny_lfu_does_not_admit_what_is_read_once() {
    let mut cache = WTinyLfu::new(100, 100, 1_000);
    let hot: Vec<u32> = (0..90).collect();
    (0..3).for_each(|_| {
        misses(&mut cache, &hot);
    });
    misses(&mut cache, &(200..600).collect::<Vec<u32>>());
    let missed = misses(&mut cache, &hot);
    assert!(missed <= 3, "{missed} of the working set went for a scan");
    assert_eq!(misses(&mut Lru::new(100, 1_000), &(200..600).collect::<Vec<u32>>()), 400);
}

#[test]
fn every_cache_keeps_to_its_capacity_in_weight() {
    for (at, policy) in all(100).iter_mut().enumerate() {
        // Ten keys of 30: three fit, so one round after another hits at most three of ten.
        let hits = (0..50).filter(|round| policy.access(round % 10, 30)).count();
        assert!(hits <= 15, "policy {at}: {hits}");
        assert!(!policy.access(500, 101) && !policy.access(500, 101), "it is larger than all");
        assert!(!policy.access(501, 20) && policy.access(501, 20) || at == 4, "policy {at}");
    }
}
