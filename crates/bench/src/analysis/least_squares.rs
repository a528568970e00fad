//! Non-linear least squares in three parameters: Levenberg-Marquardt with Marquardt's scaling.
//!
//! D. W. Marquardt, "An Algorithm for Least-Squares Estimation of Nonlinear Parameters", SIAM J.
//! 11(2), 1963.

/// Parameters of a model.
pub type Params = [f64; 3];

/// A model with its derivatives: value and gradient at `x`; `None` where it is not defined.
pub type Model = fn(x: f64, &Params) -> Option<(f64, Params)>;

/// More are never needed from a start in the right valley; each costs one pass over the points.
const STEPS_MAX: usize = 200;
/// A step that improves the sum of squares by less, relatively, is the last.
const GAIN_MIN: f64 = 1e-13;
/// Damping grows tenfold per refused step; beyond this there is no way down.
const DAMPING_MAX: f64 = 1e12;

/// Walks down from `start`, moving only the `free` parameters. Returns the parameters and their sum
/// of squared residuals, or `None` where the start is not defined. O(steps * points).
pub fn descend(
    points: &[(f64, f64)],
    model: Model,
    start: Params,
    free: [bool; 3],
) -> Option<(Params, f64)> {
    let mut at = start;
    let mut squares = sum_of_squares(points, model, &at)?;
    let mut damping = 1e-3;
    for _ in 0..STEPS_MAX {
        let (curvature, slope) = normal_equations(points, model, &at, free)?;
        let before = squares;
        while damping < DAMPING_MAX {
            let mut damped = curvature;
            for i in 0..3 {
                damped[i][i] += damping * curvature[i][i].max(f64::MIN_POSITIVE);
            }
            let trial = solve(damped, slope).map(|step| std::array::from_fn(|i| at[i] + step[i]));
            let found = trial.and_then(|p| Some((p, sum_of_squares(points, model, &p)?)));
            if let Some((better, less)) = found.filter(|(_, less)| *less <= squares) {
                (at, squares) = (better, less);
                damping = (damping / 10.0).max(1e-12);
                break;
            }
            damping *= 10.0;
        }
        if damping >= DAMPING_MAX || before - squares <= GAIN_MIN * before {
            break;
        }
    }
    Some((at, squares))
}

/// The sum of squared residuals; `None` where the model is not defined.
pub fn sum_of_squares(points: &[(f64, f64)], model: Model, at: &Params) -> Option<f64> {
    let mut sum = 0.0;
    for &(x, y) in points {
        sum += (y - model(x, at)?.0).powi(2);
    }
    sum.is_finite().then_some(sum)
}

/// `JᵀJ` and `Jᵀr`; a parameter that is not free gets an equation that keeps it where it is.
fn normal_equations(
    points: &[(f64, f64)],
    model: Model,
    at: &Params,
    free: [bool; 3],
) -> Option<([Params; 3], Params)> {
    let mut curvature = [[0.0; 3]; 3];
    let mut slope = [0.0; 3];
    for &(x, y) in points {
        let (value, gradient) = model(x, at)?;
        for i in (0..3).filter(|i| free[*i]) {
            slope[i] += gradient[i] * (y - value);
            for j in (0..3).filter(|j| free[*j]) {
                curvature[i][j] += gradient[i] * gradient[j];
            }
        }
    }
    for i in (0..3).filter(|i| !free[*i]) {
        curvature[i][i] = 1.0;
    }
    Some((curvature, slope))
}

/// Solves `a x = b` by elimination with partial pivoting; `None` if `a` is singular.
pub fn solve(mut a: [Params; 3], mut b: Params) -> Option<Params> {
    for column in 0..3 {
        let largest = |i: &usize, j: &usize| a[*i][column].abs().total_cmp(&a[*j][column].abs());
        let pivot = (column..3).max_by(largest).expect("three rows");
        if a[pivot][column] == 0.0 || !a[pivot][column].is_finite() {
            return None;
        }
        a.swap(column, pivot);
        b.swap(column, pivot);
        for row in column + 1..3 {
            let factor = a[row][column] / a[column][column];
            let above = a[column];
            for (cell, from) in a[row].iter_mut().zip(above).skip(column) {
                *cell -= factor * from;
            }
            b[row] -= factor * b[column];
        }
    }
    let mut x = [0.0; 3];
    for row in (0..3).rev() {
        let known: f64 = (row + 1..3).map(|k| a[row][k] * x[k]).sum();
        x[row] = (b[row] - known) / a[row][row];
    }
    x.iter().all(|v: &f64| v.is_finite()).then_some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_which_needs_a_pivot_is_solved() {
        let x = solve([[0.0, 2.0, 1.0], [1.0, -2.0, -3.0], [-1.0, 1.0, 2.0]], [-8.0, 0.0, 3.0]);
        let x = x.expect("the system is regular");
        for (got, want) in x.iter().zip([-4.0, -5.0, 2.0]) {
            assert!((got - want).abs() < 1e-12, "{x:?}");
        }
        assert!(solve([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 0.0]], [1.0; 3]).is_none());
    }

    #[test]
    fn a_fixed_parameter_is_not_changed() {
        let line: Model = |x, p| Some((p[0] + p[1] * x + p[2] * x * x, [1.0, x, x * x]));
        let points: Vec<(f64, f64)> =
            (0..9).map(f64::from).map(|x| (x, 2.0 + 3.0 * x + 0.5 * x * x)).collect();
        let (free, squares) = descend(&points, line, [0.0; 3], [true; 3]).expect("defined");
        assert!(squares < 1e-12 && (free[2] - 0.5).abs() < 1e-6, "{free:?}");
        let (fixed, more) = descend(&points, line, [0.0; 3], [true, true, false]).expect("defined");
        assert!(fixed[2].abs() < f64::EPSILON && more > 1.0, "{fixed:?} {more}");
    }
}
