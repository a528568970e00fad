//! A circle or a box around a place.

use super::cells::{cells, column, is_few, row};
use super::place::{EARTH_RADIUS, LAT_MAX, LON_MAX, Place, STEPS};
use std::ops::Range;

/// What is searched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// So many metres around.
    Circle(f64),
    /// So many metres wide and high.
    Box {
        /// From west to east.
        width: f64,
        /// From south to north.
        height: f64,
    },
}

/// A shape around a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// The middle.
    pub center: Place,
    /// The shape.
    pub shape: Shape,
}

impl Area {
    /// The distance from the middle in metres, if a place is inside.
    pub fn distance(&self, place: Place) -> Option<f64> {
        match self.shape {
            Shape::Circle(radius) => {
                Some(self.center.distance(place)).filter(|distance| *distance <= radius)
            }
            Shape::Box { width, height } => {
                let beside = Place { lon: self.center.lon, lat: place.lat };
                let high =
                    EARTH_RADIUS * (place.lat.to_radians() - self.center.lat.to_radians()).abs();
                let inside = high <= height / 2.0 && beside.distance(place) <= width / 2.0;
                inside.then(|| self.center.distance(place))
            }
        }
    }

    /// Half the height and the largest half width that the area has anywhere, in degrees.
    fn reach(&self) -> (f64, f64) {
        // A little more than what is inside: rounding must not lose a place at the edge.
        const MORE: f64 = 1.000_001;
        let (half_width, half_height) = match self.shape {
            Shape::Circle(radius) => (radius, radius),
            Shape::Box { width, height } => (width / 2.0, height / 2.0),
        };
        let lat = (half_height * MORE / EARTH_RADIUS).to_degrees() + 1e-6;
        let farthest = (self.center.lat.abs() + lat).min(LAT_MAX);
        // A chord of this length, at the latitude where it spans most degrees.
        let sine =
            (half_width * MORE / (2.0 * EARTH_RADIUS)).min(1.0).sin() / farthest.to_radians().cos();
        let lon = if half_width >= EARTH_RADIUS || sine >= 1.0 {
            2.0 * LON_MAX
        } else {
            2.0 * sine.asin().to_degrees() + 1e-6
        };
        (lon, lat)
    }

    /// The scores of all cells that the area touches, in few intervals: at most [`RANGES_MAX`].
    pub fn ranges(&self) -> Vec<Range<u64>> {
        let (lon, lat) = self.reach();
        let south = (self.center.lat - lat).max(-LAT_MAX);
        let north = (self.center.lat + lat).min(LAT_MAX);
        let (west, east) = (self.center.lon - lon, self.center.lon + lon);
        // The finest cells of which a few cover the area.
        let mut steps = STEPS;
        while steps > 1 && !is_few(steps, lon, north - south) {
            steps -= 1;
        }
        let count = 1_i64 << steps;
        let (mut rows, mut columns) =
            ((row(south, steps), row(north, steps)), (column(west, steps), column(east, steps)));
        // Places on the eastern or northern edge have cells of their own, which are found only from
        // there, and from there only what is on the same half.
        let (is_east, is_north) = (self.center.lon >= LON_MAX, self.center.lat >= LAT_MAX);
        if is_east {
            columns = (columns.0.max(count / 2), count);
        } else {
            columns.1 = columns.1.min(columns.0 + count - 1);
        }
        if is_north {
            rows = (rows.0.max(count / 2), count);
        }
        cells(steps, rows.0..=rows.1, columns.0..=columns.1, is_east)
    }
}
