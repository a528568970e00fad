//! The Universal Scalability Law: throughput at concurrency `N` is `X(N) = λN / (1 + σ(N-1) +
//! κN(N-1))`, with `λ` the throughput of one, `σ` the share that waits its turn (contention) and
//! `κ` the cost of each pair agreeing (coherency).
//!
//! N. J. Gunther, "Guerrilla Capacity Planning", Springer 2007, chapters 4 to 6; the form with `λ`
//! free is in B. Schwartz, "Practical Scalability Analysis with the Universal Scalability Law",
//! 2015.

use super::least_squares::{Params, descend, solve};

/// Fewer different concurrencies than this leave no residual to judge three parameters by.
pub const LEVELS_MIN: usize = 4;
/// Below this share of explained variance the law does not describe the data; its peak is not
/// quoted.
pub const GOOD_R_SQUARED: f64 = 0.8;

/// The law fitted to measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usl {
    /// Throughput of one alone, per second.
    pub lambda: f64,
    /// Contention: the share of work that is serial, 0 for none.
    pub sigma: f64,
    /// Coherency: the cost of a pair, 0 for none.
    pub kappa: f64,
    /// Share of the variance that the law explains, at most 1; 1 too where all values are equal and
    /// met.
    pub r_squared: f64,
}

impl Usl {
    /// Throughput that the law expects at `concurrency`.
    pub fn throughput(&self, concurrency: f64) -> f64 {
        law(concurrency, &[self.lambda, self.sigma, self.kappa]).map_or(0.0, |(value, _)| value)
    }

    /// The concurrency with the highest throughput, `sqrt((1-σ)/κ)` (Gunther 2007, eq. 4.33), not
    /// below 1. `None` if throughput only grows (`κ` = 0).
    pub fn peak(&self) -> Option<f64> {
        if self.kappa > 0.0 {
            Some(((1.0 - self.sigma).max(0.0) / self.kappa).sqrt().max(1.0))
        } else {
            None
        }
    }

    /// True if the law describes the data well enough to quote its peak.
    pub fn is_good(&self) -> bool {
        self.r_squared >= GOOD_R_SQUARED
    }
}

/// Fits the law to pairs of concurrency and throughput by non-linear least squares, `σ` and `κ` not
/// below 0.
///
/// Pairs that are not positive and finite are left out. `None` if fewer than [`LEVELS_MIN`]
/// different concurrencies are left. The constrained optimum is the free one or lies on a face
/// where `σ` or `κ` is 0; all four faces are searched from several starts, one of them Gunther's
/// linearised regression. O(points) with a constant of some thousand.
pub fn fit(points: &[(f64, f64)]) -> Option<Usl> {
    let (points, scale) = normalised(points)?;
    let starts = starts(&points);
    let mut best: Option<(Params, f64)> = None;
    for (sigma_free, kappa_free) in [(true, true), (true, false), (false, true), (false, false)] {
        for start in &starts {
            let start = [
                start[0],
                if sigma_free { start[1] } else { 0.0 },
                if kappa_free { start[2] } else { 0.0 },
            ];
            let Some((at, squares)) = descend(&points, law, start, [true, sigma_free, kappa_free])
            else {
                continue;
            };
            let allowed = at[0] > 0.0 && at[1] >= 0.0 && at[2] >= 0.0;
            // A face with fewer parameters comes later and must be better to replace a fuller one.
            if allowed && best.is_none_or(|(_, least)| squares < least) {
                best = Some((at, squares));
            }
        }
    }
    let ([lambda, sigma, kappa], squares) = best?;
    let count = points.len() as f64;
    let mean = points.iter().map(|p| p.1).sum::<f64>() / count;
    let variance = points.iter().map(|p| (p.1 - mean).powi(2)).sum::<f64>();
    let r_squared = if variance > 1e-12 {
        1.0 - squares / variance
    } else {
        f64::from(u8::from(squares < 1e-9))
    };
    Some(Usl { lambda: lambda * scale, sigma, kappa, r_squared })
}

/// The pairs that can be used with the largest throughput scaled to 1, and that throughput.
fn normalised(points: &[(f64, f64)]) -> Option<(Vec<(f64, f64)>, f64)> {
    let usable = |p: &&(f64, f64)| p.0.is_finite() && p.1.is_finite() && p.0 > 0.0 && p.1 > 0.0;
    let mut points: Vec<(f64, f64)> = points.iter().filter(usable).copied().collect();
    let scale = points.iter().map(|p| p.1).fold(0.0, f64::max);
    for point in &mut points {
        point.1 /= scale;
    }
    let mut levels: Vec<f64> = points.iter().map(|p| p.0).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    (levels.len() >= LEVELS_MIN).then_some((points, scale))
}

/// Value and gradient of the law in `λ`, `σ`, `κ`; `None` where the denominator is not positive.
fn law(n: f64, &[lambda, sigma, kappa]: &Params) -> Option<(f64, Params)> {
    let below = 1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0);
    if below <= 0.0 || lambda <= 0.0 {
        return None;
    }
    let value = lambda * n / below;
    let by_sigma = -value * (n - 1.0) / below;
    Some((value, [n / below, by_sigma, by_sigma * n]))
}

fn starts(points: &[(f64, f64)]) -> Vec<Params> {
    let alone = points.iter().map(|(n, x)| x / n).fold(0.0, f64::max);
    let at_most = points.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(1.0, |p| p.0);
    let kappa = 1.0 / at_most.max(1.0).powi(2);
    let mut starts = vec![[alone, 0.01, kappa], [alone, 0.3, kappa], [alone, 0.05, kappa / 1e4]];
    starts.extend(linearised(points));
    starts
}

/// Gunther's regression (2007, section 5.5): `N/X` is linear in `1/λ`, `σ/λ` and `κ/λ`.
fn linearised(points: &[(f64, f64)]) -> Option<Params> {
    let mut a = [[0.0; 3]; 3];
    let mut b = [0.0; 3];
    for &(n, x) in points {
        let row = [1.0, n - 1.0, n * (n - 1.0)];
        for i in 0..3 {
            b[i] += row[i] * n / x;
            for j in 0..3 {
                a[i][j] += row[i] * row[j];
            }
        }
    }
    let [inverse, sigma, kappa] = solve(a, b)?;
    (inverse > 0.0)
        .then(|| [1.0 / inverse, (sigma / inverse).max(1e-6), (kappa / inverse).max(1e-12)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::prng::Prng;

    fn close(got: f64, want: f64, relative: f64) {
        assert!((got - want).abs() <= relative * want.abs(), "{got} is not {want}");
    }

    fn made(lambda: f64, sigma: f64, kappa: f64, levels: &[f64]) -> Vec<(f64, f64)> {
        let model = Usl { lambda, sigma, kappa, r_squared: 1.0 };
        levels.iter().map(|n| (*n, model.throughput(*n))).collect()
    }

    const LEVELS: [f64; 12] =
        [1.0, 2.0, 5.0, 6.0, 15.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 5000.0, 10_000.0];

    /// The Cisco benchmark of Schwartz 2015, and the coefficients published there.
    #[test]
    fn published_data_yield_the_published_coefficients() {
        let throughput = [
            955.16, 1878.91, 2688.01, 3548.68, 4315.54, 5130.43, 5931.37, 6531.08, 7219.8, 7867.61,
            8278.71, 8646.7, 9047.84, 9426.55, 9645.37, 9897.24, 10097.6, 10240.5, 10532.39,
            10798.52, 11151.43, 11518.63, 11806.0, 12089.37, 12075.41, 12177.29, 12211.41,
            12158.93, 12155.27, 12118.04, 12140.4, 12074.39,
        ];
        let points: Vec<(f64, f64)> =
            (1..).zip(throughput).map(|(n, x)| (f64::from(n), x)).collect();
        let fit = fit(&points).expect("there are 32 levels");
        close(fit.lambda, 995.6486, 1e-5);
        close(fit.sigma, 0.026_715_91, 1e-5);
        close(fit.kappa, 7.690_945e-4, 1e-5);
        assert_eq!(fit.peak().expect("it has a peak").floor() as u32, 35);
        assert!(fit.is_good());
    }

    #[test]
    fn constructed_data_yield_their_coefficients() {
        for (lambda, sigma, kappa) in [
            (15_000.0, 0.03, 1e-4),
            (50_000.0, 0.4, 1e-8),
            (1.0, 0.0, 0.01),
            (900.0, 0.0, 1e-6),
            (12.0, 0.9, 0.5),
        ] {
            let found = fit(&made(lambda, sigma, kappa, &LEVELS)).expect("enough levels");
            close(found.lambda, lambda, 1e-3);
            assert!((found.sigma - sigma).abs() <= 1e-3 * sigma + 1e-6, "{found:?}");
            close(found.kappa, kappa, 1e-2);
            assert!(found.r_squared > 0.999_999, "{found:?}");
        }
    }

    #[test]
    fn noise_hardly_changes_the_coefficients() {
        let mut prng = Prng::new(1);
        let mut points = made(15_000.0, 0.05, 2e-5, &LEVELS);
        for point in &mut points {
            point.1 *= 0.95 + prng.below(1001) as f64 / 10_000.0;
        }
        let found = fit(&points).expect("enough levels");
        close(found.lambda, 15_000.0, 0.25);
        close(found.sigma, 0.05, 0.35);
        close(found.kappa, 2e-5, 0.35);
        close(found.peak().expect("it has a peak"), 218.0, 0.25);
        assert!(found.r_squared > 0.97, "{found:?}");
    }

    #[test]
    fn linear_data_have_neither_contention_nor_peak() {
        let points: Vec<(f64, f64)> =
            (1..=16).map(|n| (f64::from(n), 1000.0 * f64::from(n))).collect();
        let found = fit(&points).expect("enough levels");
        close(found.lambda, 1000.0, 1e-9);
        assert!(found.sigma < 1e-9 && found.kappa < 1e-9, "{found:?}");
    }

    #[test]
    fn data_above_linear_stay_within_the_constraints() {
        let points: Vec<(f64, f64)> =
            (1..=16).map(|n| (f64::from(n), 100.0 * f64::from(n).powf(1.2))).collect();
        let found = fit(&points).expect("enough levels");
        assert!(found.sigma >= 0.0 && found.kappa >= 0.0, "{found:?}");
    }

    #[test]
    fn a_flat_line_is_pure_contention() {
        let points: Vec<(f64, f64)> = LEVELS.iter().map(|n| (*n, 70_000.0)).collect();
        let found = fit(&points).expect("enough levels");
        close(found.sigma, 1.0, 1e-3);
        close(found.throughput(500.0), 70_000.0, 1e-3);
    }

    #[test]
    fn too_few_data_are_not_fitted() {
        assert!(fit(&[(1.0, 1.0), (2.0, 2.0), (2.0, 2.1), (3.0, 3.0)]).is_none());
        assert!(fit(&[(1.0, f64::NAN), (2.0, 2.0), (3.0, 2.1), (4.0, 0.0)]).is_none());
        assert!(fit(&[]).is_none());
    }
}
