//! The rank-sum test of two independent samples.
//!
//! H. B. Mann, D. R. Whitney, "On a Test of Whether one of Two Random Variables is Stochastically Larger than
//! the Other", Annals of Mathematical Statistics 18(1), 1947. Ties get their mean rank and the exact
//! distribution is that of the ranks as they are (a permutation test), so ties need no correction there.

/// Up to this many values in all the distribution is counted out; beyond it the normal one is as good.
const EXACT_MAX: usize = 40;

/// Two-sided probability that two samples from one distribution differ in their rank sum by at least as
/// much as `a` and `b` do; 1 if either is empty. O(n³) up to 40 values in all, O(n log n) above.
pub fn rank_sum_p(a: &[f64], b: &[f64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let doubled = doubled_ranks(a, b);
    let sum: usize = doubled[..a.len()].iter().sum();
    if doubled.len() <= EXACT_MAX {
        exact(&doubled, a.len(), sum)
    } else {
        normal(&doubled, a.len(), sum)
    }
}

/// Twice the rank of each value of `a`, then of `b`: whole numbers even with ties.
fn doubled_ranks(a: &[f64], b: &[f64]) -> Vec<usize> {
    let values: Vec<f64> = a.iter().chain(b).copied().collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|i, j| values[*i].total_cmp(&values[*j]));
    let mut ranks = vec![0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let equal = order[from..]
            .iter()
            .take_while(|i| values[**i].total_cmp(&values[order[from]]).is_eq())
            .count();
        // Ranks from+1 ..= from+equal, their mean doubled.
        order[from..from + equal].iter().for_each(|i| ranks[*i] = 2 * from + equal + 1);
        from += equal;
    }
    ranks
}

/// Counts, over all ways to choose `chosen` of the ranks, those whose sum is as far from the mean as `sum`.
fn exact(doubled: &[usize], chosen: usize, sum: usize) -> f64 {
    let total: usize = doubled.iter().sum();
    // ways[k][s]: ways to choose k of the ranks so far with the sum s.
    let mut ways = vec![vec![0.0_f64; total + 1]; chosen + 1];
    ways[0][0] = 1.0;
    for rank in doubled {
        for k in (1..=chosen).rev() {
            for s in (*rank..=total).rev() {
                ways[k][s] += ways[k - 1][s - rank];
            }
        }
    }
    // Distances from the mean `total * chosen / n`, times n to stay whole.
    let n = doubled.len();
    let far = |s: usize| (s * n).abs_diff(total * chosen);
    let all: f64 = ways[chosen].iter().sum();
    let extreme: f64 = (0..=total).filter(|s| far(*s) >= far(sum)).map(|s| ways[chosen][s]).sum();
    extreme / all
}

/// The normal approximation with the variance of the ranks as they are and a continuity correction.
fn normal(doubled: &[usize], chosen: usize, sum: usize) -> f64 {
    let n = doubled.len() as f64;
    let (m, rest) = (chosen as f64, n - chosen as f64);
    let ranks = || doubled.iter().map(|r| *r as f64 / 2.0);
    let mean = ranks().sum::<f64>() / n;
    let variance = ranks().map(|r| (r - mean).powi(2)).sum::<f64>() / (n - 1.0) * m * rest / n;
    if variance <= 0.0 {
        return 1.0;
    }
    let distance = (sum as f64 / 2.0 - mean * m).abs();
    let z = (distance - 0.5).max(0.0) / variance.sqrt();
    (2.0 * upper_tail(z)).min(1.0)
}

/// Probability that a standard normal variable exceeds `z` >= 0; absolute error below 7.5e-8 (Abramowitz and
/// Stegun, "Handbook of Mathematical Functions", 26.2.17).
fn upper_tail(z: f64) -> f64 {
    const B: [f64; 5] =
        [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let polynomial = B.iter().rev().fold(0.0, |sum, b| (sum + b) * t);
    (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * polynomial
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, want: f64, within: f64) {
        assert!((got - want).abs() <= within, "{got} is not {want}");
    }

    /// Permeability of tissue at two ages, Hollander and Wolfe, "Nonparametric Statistical Methods", 1973,
    /// p. 69 ff.: the one-sided probability is 0.1272.
    #[test]
    fn a_textbook_example() {
        let x = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let y = [1.15, 0.88, 0.90, 0.74, 1.21];
        close(rank_sum_p(&x, &y), 2.0 * 0.1272, 1e-3);
        close(rank_sum_p(&y, &x), rank_sum_p(&x, &y), 1e-12);
    }

    #[test]
    fn complete_separation_counts_arrangements() {
        close(rank_sum_p(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]), 2.0 / 70.0, 1e-12);
        close(rank_sum_p(&[1.0, 2.0, 3.0], &[5.0, 6.0, 7.0]), 2.0 / 20.0, 1e-12);
        close(rank_sum_p(&[1.0; 5], &[1.0; 5]), 1.0, 1e-12);
        close(rank_sum_p(&[], &[1.0]), 1.0, 1e-12);
    }

    #[test]
    fn the_normal_form_meets_the_exact_one() {
        let a: Vec<f64> = (0..19).map(f64::from).collect();
        let b: Vec<f64> = (0..19).map(|i| f64::from(i) + 4.5).collect();
        let ranks = doubled_ranks(&a, &b);
        let sum = ranks[..19].iter().sum();
        close(normal(&ranks, 19, sum), exact(&ranks, 19, sum), 0.003);
        let far: Vec<f64> = (0..60).map(|i| f64::from(i) + 100.0).collect();
        assert!(rank_sum_p(&a, &far) < 1e-6);
    }

    #[test]
    fn the_tail_of_the_normal_distribution() {
        for (z, p) in [(0.0, 0.5), (1.0, 0.158_655), (1.959_964, 0.025), (3.0, 0.001_349_9)] {
            close(upper_tail(z), p, 1e-6);
        }
    }
}
