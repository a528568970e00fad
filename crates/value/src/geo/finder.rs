//! Which of many places are inside an area, without a sine for each.
//!
//! The haversine formula is monotone in `a = sin²(Δlat/2) + cos(lat) cos(lat') sin²(Δlon/2)`, so a
//! place is inside a circle if its `a` is at most that of the radius. Small angles have short
//! series, and the cosine of a latitude follows from the middle's. The errors of both stay below a
//! margin; only what is so near to the edge is judged by [`Area::distance`], which is what the
//! reference computes.

use std::f64::consts::{FRAC_PI_2, PI};

use super::area::{Area, Shape};
use super::place::{EARTH_RADIUS, LAT_MAX, Place, STEPS, gather, hash_of_score};

/// Half angles up to which the series are exact to 14 digits.
const HALF_ANGLE_MAX: f64 = 0.1;
/// Share of a limit within which it is not decided here.
const MARGIN: f64 = 1e-9;
/// The same, of half angles in radians: what rounding does to coordinates, many times over.
const MARGIN_ANGLE: f64 = 1e-14;

/// An area that is asked about many places.
#[derive(Clone, Copy, Debug)]
pub struct Finder {
    area: Area,
    /// What a place must meet, if the area is small.
    limits: Option<Limits>,
    /// Half the middle's coordinates in radians, from the map's south-west corner.
    lon: f64,
    lat: f64,
    /// Of the middle's latitude.
    sin_lat: f64,
    cos_lat: f64,
}

#[derive(Clone, Copy, Debug)]
enum Limits {
    /// Sine of half the radius' angle.
    Circle(f64),
    /// Sine of half the angle of half the width; half the angle of half the height.
    Box(f64, f64),
}

/// Half the angle of so many metres, if it is small.
fn half_angle(metres: f64) -> Option<f64> {
    let half = metres / (2.0 * EARTH_RADIUS);
    (0.0..HALF_ANGLE_MAX).contains(&half).then_some(half)
}

/// The sine of a small angle.
#[inline]
fn sine(x: f64) -> f64 {
    let x2 = x * x;
    x * (1.0 - x2 / 6.0 * (1.0 - x2 / 20.0 * (1.0 - x2 / 42.0)))
}

/// Whether the value is below the limit; `None` if it is too near to decide.
#[inline]
fn below(value: f64, limit: f64, margin: f64) -> Option<bool> {
    if value < limit - margin {
        Some(true)
    } else if value > limit + margin {
        Some(false)
    } else {
        None
    }
}

impl Finder {
    /// Makes an area ready.
    pub fn new(area: Area) -> Self {
        let limits = match area.shape {
            Shape::Circle(radius) => half_angle(radius).map(|half| Limits::Circle(half.sin())),
            Shape::Box { width, height } => half_angle(width / 2.0)
                .zip(half_angle(height / 2.0))
                .map(|(width, height)| Limits::Box(width.sin(), height)),
        };
        let lat = area.center.lat.to_radians();
        Self {
            area,
            limits,
            lon: FRAC_PI_2 + area.center.lon.to_radians() / 2.0,
            lat: f64::midpoint(LAT_MAX.to_radians(), lat),
            sin_lat: lat.sin(),
            cos_lat: lat.cos(),
        }
    }

    /// Is the place of a score inside? The same as asking [`Area::distance`].
    #[inline]
    pub fn has(&self, score: f64) -> bool {
        let bits = hash_of_score(score);
        self.quick(gather(bits >> 1), gather(bits))
            .unwrap_or_else(|| self.area.distance(Place::of_score(score)).is_some())
    }

    /// The answer for the cell of a place, if it is not near the edge.
    #[inline]
    fn quick(&self, lon_cell: u32, lat_cell: u32) -> Option<bool> {
        const CELLS: f64 = (1_u32 << STEPS) as f64;
        let limits = self.limits?;
        let lon = (f64::from(lon_cell) + 0.5) * (PI / CELLS) - self.lon;
        let lat = (f64::from(lat_cell) + 0.5) * (LAT_MAX.to_radians() / CELLS) - self.lat;
        let is_off_map = (lon_cell | lat_cell) >> STEPS != 0;
        if is_off_map || lon.abs() > HALF_ANGLE_MAX || lat.abs() > HALF_ANGLE_MAX {
            return None;
        }
        let (u, v) = (sine(lat), sine(lon));
        // Of the sum of the middle's latitude and twice `lat`.
        let cos_lat =
            self.cos_lat * (1.0 - 2.0 * u * u) - self.sin_lat * 2.0 * u * (1.0 - u * u).sqrt();
        match limits {
            Limits::Circle(limit) => {
                let a = u * u + self.cos_lat * cos_lat * v * v;
                let margin = limit * limit * MARGIN + (2.0 * limit + MARGIN_ANGLE) * MARGIN_ANGLE;
                below(a, limit * limit, margin)
            }
            Limits::Box(width, height) => {
                let margin = |limit: f64| limit * MARGIN + MARGIN_ANGLE;
                let is_low = below(lat.abs(), height, margin(height))?;
                let is_near = below((cos_lat * v).abs(), width, margin(width))?;
                Some(is_low && is_near)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place() -> impl Strategy<Value = Place> {
        (-180.0..180.0, -LAT_MAX..LAT_MAX).prop_map(|(lon, lat)| Place { lon, lat })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Areas whose edge runs through or next to a place, and places anywhere.
        #[test]
        fn the_finder_agrees_with_the_exact_formula(
            center in place(),
            other in place(),
            near in 0.0..1.0_f64,
            off in prop_oneof![Just(0.0), -1e-15..1e-15_f64, -1e-9..1e-9_f64, -1.0..1.0_f64],
            by in 0..3,
        ) {
            let near = near.powi(8);
            let place = Place {
                lon: center.lon + (other.lon - center.lon) * near,
                lat: center.lat + (other.lat - center.lat) * near,
            };
            let score = place.score();
            let place = Place::of_score(score);
            let edge = (1.0 + off) * center.distance(place);
            let beside = Place { lon: center.lon, lat: place.lat }.distance(place);
            let high = EARTH_RADIUS * (place.lat.to_radians() - center.lat.to_radians()).abs();
            let shape = match by {
                0 => Shape::Circle(edge),
                1 => Shape::Box { width: 2.0 * beside * (1.0 + off), height: 3.0 * high },
                _ => Shape::Box { width: 3.0 * beside, height: 2.0 * high * (1.0 + off) },
            };
            let area = Area { center, shape };
            prop_assert_eq!(Finder::new(area).has(score), area.distance(place).is_some());
        }
    }

    #[test]
    fn most_places_are_decided_without_the_exact_formula() {
        let center = Place { lon: 5.0, lat: 50.0 };
        let finder = Finder::new(Area { center, shape: Shape::Circle(15_000.0) });
        let mut decided = [0, 0];
        for n in 0..10_000 {
            let share = |n: i32| f64::from(n % 100) * 0.005 - 0.25;
            let place = Place { lon: 5.0 + share(n), lat: 50.0 + share(n / 100) };
            let bits = place.hash();
            let found = finder.quick(gather(bits >> 1), gather(bits));
            decided[usize::from(found.expect("it is not so near to the edge"))] += 1;
        }
        assert!(decided[0] > 1000 && decided[1] > 1000, "{decided:?}");
    }

    #[test]
    fn degenerate_areas_and_scores_agree_with_the_exact_formula() {
        let center = Place { lon: 180.0, lat: 0.0 };
        for shape in [
            Shape::Circle(0.0),
            Shape::Circle(f64::INFINITY),
            Shape::Circle(f64::NAN),
            Shape::Circle(1e300),
            Shape::Box { width: 0.0, height: 0.0 },
            Shape::Box { width: 100.0, height: f64::INFINITY },
        ] {
            let area = Area { center, shape };
            for score in [-5.0, 0.0, 0.5, 4.5e15, 1e16, 1e300, f64::INFINITY, center.score()] {
                let exact = area.distance(Place::of_score(score)).is_some();
                assert_eq!(Finder::new(area).has(score), exact, "{area:?} {score}");
            }
        }
    }
}
