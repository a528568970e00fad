//! The knee of a curve: where more load stops to pay.
//!
//! V. Satopää, J. Albrecht, D. Irwin, B. Raghavan, "Finding a 'Kneedle' in a Haystack: Detecting Knee Points
//! in System Behavior", ICDCS workshops 2011: on axes scaled to 0..1 the knee of a concave curve is where it
//! lies highest above the diagonal.

/// A curve that rises less above the diagonal than this has no knee: a straight line with noise reaches
/// a few per cent.
pub const HEIGHT_MIN: f64 = 0.10;

/// Fewer points cannot show a bend.
const POINTS_MIN: usize = 4;

/// Where a curve bends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// Load at the knee.
    pub load: f64,
    /// Value there.
    pub value: f64,
    /// How far it lies above the diagonal, 0 to 1: how sharp it is.
    pub height: f64,
}

/// The knee of `points` (load, value), up to the highest value; what falls after it is not its business.
/// With `log` the loads are spaced by their ratio, as levels 1, 2, 5, 10 ... are. `None` if there is none,
/// or fewer than four points lead to the highest. O(n log n).
pub fn knee(points: &[(f64, f64)], log: bool) -> Option<Knee> {
    let along = |load: f64| if log { load.ln() } else { load };
    let usable = |p: &&(f64, f64)| along(p.0).is_finite() && p.1.is_finite();
    let mut points: Vec<(f64, f64)> = points.iter().filter(usable).copied().collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let top = points.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
    let end = points.iter().position(|p| p.1 >= top)?;
    // A plateau belongs to the curve: without it a step would have no bend.
    let plateau = points.iter().rposition(|p| p.1 >= 0.9 * top)?;
    points.truncate(end.max(plateau) + 1);
    if points.len() < POINTS_MIN {
        return None;
    }
    let (first, last) = (points[0], points[points.len() - 1]);
    let bottom = points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let (width, rise) = (along(last.0) - along(first.0), top - bottom);
    if width <= 0.0 || rise <= 0.0 {
        return None;
    }
    let height = |p: &(f64, f64)| (p.1 - bottom) / rise - (along(p.0) - along(first.0)) / width;
    let at = points.iter().max_by(|a, b| height(a).total_cmp(&height(b)))?;
    (height(at) >= HEIGHT_MIN).then(|| Knee { load: at.0, value: at.1, height: height(at) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the paper's figure 2: `-1/x + 5` over 0..1 bends at 0.22.
    #[test]
    fn the_papers_example() {
        let points: Vec<(f64, f64)> =
            (1..=10).map(|i| f64::from(i) / 10.0).map(|x| (x, 5.0 - 1.0 / x)).collect();
        let found = knee(&points, false).expect("it bends");
        assert!((0.2..=0.31).contains(&found.load), "{found:?}");
    }

    #[test]
    fn saturation_bends_where_it_saturates() {
        let points: Vec<(f64, f64)> = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
            .map(|n: f64| (n, 10_000.0 * n.min(8.0)))
            .to_vec();
        assert!((knee(&points, false).expect("it bends").load - 8.0).abs() < 1e-9);
    }

    #[test]
    fn a_straight_line_has_no_knee() {
        let straight: Vec<(f64, f64)> =
            (1..=20).map(|n| (f64::from(n), 3.0 * f64::from(n))).collect();
        assert_eq!(knee(&straight, false), None);
        let logarithmic: Vec<(f64, f64)> =
            [1.0, 10.0, 100.0, 1000.0].map(|n: f64| (n, n.ln())).to_vec();
        assert_eq!(knee(&logarithmic, true), None);
        assert!(knee(&logarithmic, false).is_some());
    }

    #[test]
    fn too_little_or_flat_has_none() {
        assert_eq!(knee(&[(1.0, 1.0), (2.0, 2.0), (3.0, 2.0)], false), None);
        assert_eq!(knee(&[(1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (4.0, 1.0)], false), None);
    }
}
