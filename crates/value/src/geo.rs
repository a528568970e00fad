//! Places on the globe as scores of sorted sets: 52-bit geohashes.
//!
//! ```text
//! score: 26 bits of the longitude and 26 of the latitude by turns, the longitude's first; an integer below 2^52
//! ```
//! A longitude is the fraction of the way from -180 to 180 degrees, a latitude of the way from
//! -85.05112878 to 85.05112878 (the square map of Web Mercator). A place that is read back is the
//! middle of its cell.

mod finder;
mod polygon;

pub use finder::Finder;
pub use polygon::Polygon;
use std::ops::{Range, RangeInclusive};

/// Bits of each coordinate.
pub const STEPS: u32 = 26;
/// The bounds of longitudes.
pub const LON_MAX: f64 = 180.0;
/// The bounds of latitudes.
pub const LAT_MAX: f64 = 85.051_128_78;
/// Radius of the earth in metres, for distances.
const EARTH_RADIUS: f64 = 6_372_797.560_856;

/// A place in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// The longitude.
    pub lon: f64,
    /// The latitude.
    pub lat: f64,
}

/// An interval of a coordinate.
#[derive(Clone, Copy)]
struct Scale {
    min: f64,
    max: f64,
}

const LON: Scale = Scale { min: -LON_MAX, max: LON_MAX };
const LAT: Scale = Scale { min: -LAT_MAX, max: LAT_MAX };
/// Latitudes of the standard's geohash texts.
const LAT_STANDARD: Scale = Scale { min: -90.0, max: 90.0 };

impl Scale {
    /// The number of the cell that a coordinate is in.
    fn cell(self, value: f64, steps: u32) -> u64 {
        let fraction = (value - self.min) / (self.max - self.min);
        (fraction * f64::from(1_u32 << steps)) as u64
    }

    /// The middle of a cell, which may lie outside for a score that is no geohash.
    fn middle(self, cell: u32) -> f64 {
        let size = f64::from(1_u32 << STEPS);
        let span = self.max - self.min;
        let low = self.min + (f64::from(cell) / size) * span;
        let high = self.min + ((f64::from(cell) + 1.0) / size) * span;
        f64::midpoint(low, high).clamp(self.min, self.max)
    }
}

/// Every second bit: bit `i` of the number is bit `2 i` of the result.
fn spread(cell: u32) -> u64 {
    let mut bits = u64::from(cell);
    for (shift, mask) in [
        (16, 0x0000_FFFF_0000_FFFF_u64),
        (8, 0x00FF_00FF_00FF_00FF),
        (4, 0x0F0F_0F0F_0F0F_0F0F),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ] {
        bits = (bits | bits << shift) & mask;
    }
    bits
}

/// The inverse of [`spread`], other bits ignored.
fn gather(bits: u64) -> u32 {
    let mut bits = bits & 0x5555_5555_5555_5555;
    for (shift, mask) in [
        (1, 0x3333_3333_3333_3333_u64),
        (2, 0x0F0F_0F0F_0F0F_0F0F),
        (4, 0x00FF_00FF_00FF_00FF),
        (8, 0x0000_FFFF_0000_FFFF),
        (16, 0x0000_0000_FFFF_FFFF),
    ] {
        bits = (bits | bits >> shift) & mask;
    }
    bits as u32
}

fn interleave(lon: u32, lat: u32) -> u64 {
    spread(lon) << 1 | spread(lat)
}

impl Place {
    /// A place, if it is on the map.
    pub fn new(lon: f64, lat: f64) -> Option<Self> {
        let on_map = lon.abs() <= LON_MAX && lat.abs() <= LAT_MAX;
        on_map.then_some(Self { lon, lat })
    }

    /// Its geohash.
    pub fn hash(self) -> u64 {
        let (lon, lat) = (LON.cell(self.lon, STEPS), LAT.cell(self.lat, STEPS));
        interleave(lon as u32, lat as u32)
    }

    /// Its score.
    pub fn score(self) -> f64 {
        self.hash() as f64
    }

    /// The place that a score stands for; any score stands for one.
    pub fn of_score(score: f64) -> Self {
        let bits = hash_of_score(score);
        Self { lon: LON.middle(gather(bits >> 1)), lat: LAT.middle(gather(bits)) }
    }

    /// Metres to another place along the surface.
    pub fn distance(self, other: Self) -> f64 {
        let (lat, other_lat) = (self.lat.to_radians(), other.lat.to_radians());
        let v = ((other.lon.to_radians() - self.lon.to_radians()) / 2.0).sin();
        if v == 0.0 {
            return EARTH_RADIUS * (other_lat - lat).abs();
        }
        let u = ((other_lat - lat) / 2.0).sin();
        let a = u * u + lat.cos() * other_lat.cos() * v * v;
        2.0 * EARTH_RADIUS * a.sqrt().asin()
    }

    /// The eleven letters of the standard's geohash.
    pub fn text(self) -> [u8; 11] {
        const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        let (lon, lat) = (LON.cell(self.lon, STEPS), LAT_STANDARD.cell(self.lat, STEPS));
        let bits = interleave(lon as u32, lat as u32);
        let mut text = [b'0'; 11];
        for (n, letter) in text.iter_mut().take(10).enumerate() {
            let shift = 52 - 5 * (n + 1);
            *letter = ALPHABET[(bits >> shift & 31) as usize];
        }
        text
    }
}

/// A score as a geohash: what C makes of it as an unsigned integer.
pub fn hash_of_score(score: f64) -> u64 {
    const END: f64 = 18_446_744_073_709_551_616.0;
    if score < 0.0 {
        score as i64 as u64
    } else if score < END {
        score as u64
    } else {
        0
    }
}

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

/// The row of cells that a latitude is in.
fn row(lat: f64, steps: u32) -> i64 {
    (LAT.cell(lat, steps) as i64).min((1 << steps) - 1)
}

/// The column of cells that a longitude is in, which may lie beyond the date line.
fn column(lon: f64, steps: u32) -> i64 {
    ((lon + LON_MAX) / (2.0 * LON_MAX) * f64::from(1_u32 << steps)).floor() as i64
}

/// The scores of these cells in intervals, ascending. Beyond the date line the columns go on at the
/// other side, but not where the eastern edge has a column of its own.
fn cells(
    steps: u32,
    rows: RangeInclusive<i64>,
    columns: RangeInclusive<i64>,
    is_east: bool,
) -> Vec<Range<u64>> {
    let (count, shift) = (1_i64 << steps, 2 * (STEPS - steps));
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for row in rows {
        for column in columns.clone() {
            let column = if is_east { column } else { column.rem_euclid(count) };
            let cell = interleave(column as u32, row as u32);
            ranges.push(cell << shift..(cell + 1) << shift);
        }
    }
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, range| {
        let joined = next.start <= range.end;
        if joined {
            range.end = range.end.max(next.end);
        }
        joined
    });
    ranges
}

/// Cells that cover an area, in each direction.
const CELLS_MAX: f64 = 6.0;
/// Intervals of [`Area::ranges`] at most: one more column and row where the area begins inside a
/// cell, and whole circles of longitude at a coarse step.
pub const RANGES_MAX: usize = 16 * 16;

fn is_few(steps: u32, lon: f64, height: f64) -> bool {
    let cells = f64::from(1_u32 << steps);
    let wide = (2.0 * lon).min(2.0 * LON_MAX) / (2.0 * LON_MAX) * cells;
    let high = height / (2.0 * LAT_MAX) * cells;
    wide <= CELLS_MAX && high <= CELLS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place() -> impl Strategy<Value = Place> {
        (-180.0..180.0, -LAT_MAX..LAT_MAX).prop_map(|(lon, lat)| Place { lon, lat })
    }

    /// As the reference answers for the places of its documentation.
    #[test]
    fn two_towns() {
        let palermo = Place::new(13.361_389, 38.115_556).expect("on the map");
        let catania = Place::new(15.087_269, 37.502_669).expect("on the map");
        assert_eq!(
            (palermo.hash(), catania.hash()),
            (3_479_099_956_230_698, 3_479_447_370_796_909)
        );
        let [palermo, catania] = [palermo, catania].map(|town| Place::of_score(town.score()));
        assert_eq!(format!("{:.4}", palermo.distance(catania)), "166274.1516");
        assert_eq!(&palermo.text(), b"sqc8b49rny0");
        assert_eq!(format!("{:.17}", palermo.lon), "13.36138933897018433");
    }

    /// Scores that are no geohashes, as the reference takes them.
    #[test]
    fn other_scores() {
        assert_eq!(Place::of_score(-5.0), Place { lon: LON_MAX, lat: LAT_MAX });
        assert_eq!(&Place::of_score(-5.0).text(), b"bp05b5048p0");
        for score in [0.0, 0.5, 1e300, f64::INFINITY] {
            assert_eq!(&Place::of_score(score).text(), b"00bh0hbj200", "{score}");
        }
        assert_eq!(Place::new(180.1, 0.0), None);
        assert_eq!(Place::new(0.0, 85.1), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn a_place_is_near_its_score(place in place()) {
            let read = Place::of_score(place.score());
            prop_assert!((read.lon - place.lon).abs() <= 180.0 / f64::from(1 << STEPS));
            prop_assert!((read.lat - place.lat).abs() <= LAT_MAX / f64::from(1 << STEPS));
            prop_assert_eq!(read.hash(), place.hash());
        }

        #[test]
        fn what_is_inside_is_searched(
            center in place(),
            others in proptest::collection::vec(place(), 100),
            size in (1.0..7.4_f64, 1.0..7.4_f64),
            is_box: bool,
        ) {
            let (width, height) = (10_f64.powf(size.0), 10_f64.powf(size.1));
            let shape = if is_box { Shape::Box { width, height } } else { Shape::Circle(width) };
            let area = Area { center, shape };
            let ranges = area.ranges();
            prop_assert!(ranges.len() <= RANGES_MAX);
            prop_assert!(ranges.is_sorted_by(|a, b| a.end < b.start));
            for other in others {
                // Some of them near, where small areas are.
                let near = Place {
                    lon: center.lon + (other.lon - center.lon) * width / 4e7,
                    lat: center.lat + (other.lat - center.lat) * width / 4e7,
                };
                for place in [other, near].into_iter().filter_map(|p| Place::new(p.lon, p.lat)) {
                    let place = Place::of_score(place.score());
                    let is_searched = ranges.iter().any(|range| range.contains(&place.hash()));
                    prop_assert!(is_searched || area.distance(place).is_none());
                }
            }
        }
    }
}
