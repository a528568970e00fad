//! Which places are inside a polygon, whose sides are straight lines on the square map.
//!
//! A place is inside if a ray to the east crosses the sides an odd number of times, so a polygon
//! may cross itself, and what it covers twice is outside. Only the sides at the place's latitude
//! are asked: the polygon is cut into bands of equal height, and each lists the sides that reach
//! into it.

use std::ops::Range;

use super::cells::{cells, column, is_few, row};
use super::place::{LAT_MAX, LON_MAX, Place, STEPS};

/// Sides listed in all bands together, for each side. Sides that reach through many bands lead to
/// fewer bands.
const LISTED_MAX: usize = 8;
/// Bands at most.
const BANDS_MAX: usize = 4096;

/// A polygon that is asked about many places.
#[derive(Clone, Debug)]
pub struct Polygon {
    center: Place,
    /// Both ends of each side that is not horizontal.
    sides: Vec<[Place; 2]>,
    /// Where each band's sides begin in `listed`, and where the last one's end.
    bands: Vec<u32>,
    /// Numbers of sides.
    listed: Vec<u32>,
    south_west: Place,
    north_east: Place,
}

impl Polygon {
    /// Makes a polygon of its vertices, the last of which is joined to the first. Its memory is in
    /// proportion to them.
    ///
    /// # Panics
    /// Without a vertex, or with more than fit into 2^32 - 1 numbers of sides.
    #[allow(clippy::float_cmp)] // what is level to the bit is crossed by no ray
    pub fn new(vertices: &[Place]) -> Self {
        let before = vertices.iter().cycle().skip(vertices.len() - 1);
        let sides = vertices.iter().zip(before).map(|(&to, &from)| [to, from]);
        let least = |f: fn(&Place) -> f64| vertices.iter().map(f).fold(f64::INFINITY, f64::min);
        let most = |f: fn(&Place) -> f64| vertices.iter().map(f).fold(f64::NEG_INFINITY, f64::max);
        let mut polygon = Self {
            center: middle(vertices),
            sides: sides.filter(|[a, b]| a.lat != b.lat).collect(),
            bands: Vec::new(),
            listed: Vec::new(),
            south_west: Place { lon: least(|v| v.lon), lat: least(|v| v.lat) },
            north_east: Place { lon: most(|v| v.lon), lat: most(|v| v.lat) },
        };
        polygon.list_sides();
        polygon
    }

    /// Lists the sides of each band.
    fn list_sides(&mut self) {
        let mut count = self.sides.len().clamp(1, BANDS_MAX);
        while count > 1
            && self.reached(count).map(|bands| bands.len()).sum::<usize>()
                > LISTED_MAX * self.sides.len()
        {
            count /= 2;
        }
        let mut bands = vec![0_u32; count + 1];
        for band in self.reached(count).flatten() {
            bands[band + 1] += 1;
        }
        for band in 0..count {
            bands[band + 1] += bands[band];
        }
        let mut free = bands.clone();
        let mut listed = vec![0; bands[count] as usize];
        for (number, reached) in self.reached(count).enumerate() {
            for band in reached {
                listed[free[band] as usize] = u32::try_from(number).expect("arguments are fewer");
                free[band] += 1;
            }
        }
        (self.bands, self.listed) = (bands, listed);
    }

    /// The band of a latitude, of so many. It never falls while the latitude rises.
    fn band(&self, lat: f64, count: usize) -> usize {
        let (south, north) = (self.south_west.lat, self.north_east.lat);
        let band = (lat - south) / (north - south) * count as f64;
        (band as usize).min(count - 1)
    }

    fn bands_of(&self, [a, b]: &[Place; 2], count: usize) -> Range<usize> {
        self.band(a.lat.min(b.lat), count)..self.band(a.lat.max(b.lat), count) + 1
    }

    /// The bands of each side, if there are so many.
    fn reached(&self, count: usize) -> impl Iterator<Item = Range<usize>> {
        self.sides.iter().map(move |side| self.bands_of(side, count))
    }

    /// With how many sides a place is compared at most.
    pub fn sides(&self) -> usize {
        self.sides.len()
    }

    /// The middle of the vertices on the sphere: distances are measured from there.
    pub fn center(&self) -> Place {
        self.center
    }

    /// Is a place inside?
    pub fn has(&self, place: Place) -> bool {
        if !(self.south_west.lat..self.north_east.lat).contains(&place.lat) {
            return false;
        }
        let band = self.band(place.lat, self.bands.len() - 1);
        let listed = &self.listed[self.bands[band] as usize..self.bands[band + 1] as usize];
        let crossed = listed.iter().filter(|&&side| {
            let [a, b] = self.sides[side as usize];
            let is_beside = (a.lat > place.lat) != (b.lat > place.lat);
            let lon = || (b.lon - a.lon) * (place.lat - a.lat) / (b.lat - a.lat) + a.lon;
            is_beside && place.lon < lon()
        });
        crossed.count() % 2 == 1
    }

    /// The scores of all cells that the polygon touches, in few intervals. (The cells of the map's
    /// eastern and northern edges are left out: what is there is inside no polygon.)
    pub fn ranges(&self) -> Vec<Range<u64>> {
        // As much more as rounding can bring a place beyond a vertex.
        const MORE: f64 = 1e-9;
        let (south_west, north_east) = (self.south_west, self.north_east);
        let south = (south_west.lat - MORE).max(-LAT_MAX);
        let north = (north_east.lat + MORE).min(LAT_MAX);
        let west = (south_west.lon - MORE).max(-LON_MAX);
        let east = (north_east.lon + MORE).min(LON_MAX);
        let mut steps = STEPS;
        while steps > 1 && !is_few(steps, (east - west) / 2.0, north - south) {
            steps -= 1;
        }
        let last = (1_i64 << steps) - 1;
        let rows = row(south, steps)..=row(north, steps).min(last);
        let columns = column(west, steps)..=column(east, steps).min(last);
        cells(steps, rows, columns, false)
    }
}

/// The middle of places: that of their directions from the middle of the earth.
fn middle(places: &[Place]) -> Place {
    let (mut x, mut y, mut z) = (0.0, 0.0, 0.0);
    for place in places {
        let ((sin_lon, cos_lon), (sin_lat, cos_lat)) =
            (place.lon.to_radians().sin_cos(), place.lat.to_radians().sin_cos());
        x += cos_lat * cos_lon;
        y += cos_lat * sin_lon;
        z += sin_lat;
    }
    Place { lon: y.atan2(x).to_degrees(), lat: z.atan2(x.hypot(y)).to_degrees() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn coordinate(max: f64) -> impl Strategy<Value = f64> {
        // Often from few values, so that sides are vertical or horizontal and share latitudes with
        // places.
        prop_oneof![(-4..=4_i32).prop_map(move |n| f64::from(n) / 4.0 * max), -max..max]
    }

    fn place() -> impl Strategy<Value = Place> {
        (coordinate(LON_MAX), coordinate(LAT_MAX)).prop_map(|(lon, lat)| Place { lon, lat })
    }

    /// The maximum number of sides which a place is compared with.
    fn cost(polygon: &Polygon) -> u32 {
        let counts = polygon.bands.windows(2).map(|band| band[1] - band[0]);
        counts.max().expect("there is a band")
    }

    /// Tests all sides one after the other.
    fn is_inside(vertices: &[Place], place: Place) -> bool {
        let mut inside = false;
        for n in 0..vertices.len() {
            let (a, b) = (vertices[n], vertices[(n + vertices.len() - 1) % vertices.len()]);
            if (a.lat > place.lat) != (b.lat > place.lat)
                && place.lon < (b.lon - a.lon) * (place.lat - a.lat) / (b.lat - a.lat) + a.lon
            {
                inside = !inside;
            }
        }
        inside
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn a_polygon_agrees_with_a_test_of_all_sides(
            vertices in proptest::collection::vec(place(), 3..40),
            others in proptest::collection::vec(place(), 50),
            size in 0.0..1.0_f64,
        ) {
            let small = |place: Place| Place { lon: place.lon * size, lat: place.lat * size };
            let vertices: Vec<Place> = vertices.into_iter().map(small).collect();
            let polygon = Polygon::new(&vertices);
            let ranges = polygon.ranges();
            prop_assert!(ranges.len() <= super::super::RANGES_MAX);
            for place in others.iter().flat_map(|&place| [place, small(place)]) {
                let place = Place::of_score(place.score());
                let inside = is_inside(&vertices, place);
                prop_assert_eq!(polygon.has(place), inside);
                let is_searched = ranges.iter().any(|range| range.contains(&place.hash()));
                prop_assert!(is_searched || !inside);
            }
        }
    }

    #[test]
    fn the_lists_of_a_polygon_are_linear_in_its_sides() {
        // Each side reaches from the south to the north.
        let zigzag = |n: i32| Place { lon: f64::from(n) / 1e4, lat: f64::from(n % 2) };
        let zigzag: Vec<Place> = (0..10_000).map(zigzag).collect();
        let polygon = Polygon::new(&zigzag);
        assert!(polygon.listed.len() <= LISTED_MAX * zigzag.len());
        assert!(
            polygon.has(Place { lon: 0.5, lat: 0.9 })
                != polygon.has(Place { lon: 0.5001, lat: 0.9 })
        );
        // The sides of a circle are short in latitude, so few are tested.
        let round = |n: i32| f64::from(n) / 1e4 * std::f64::consts::TAU;
        let circle: Vec<Place> =
            (0..10_000).map(|n| Place { lon: round(n).cos(), lat: round(n).sin() }).collect();
        let polygon = Polygon::new(&circle);
        assert!(cost(&polygon) <= 200, "{}", cost(&polygon));
        assert!(
            polygon.has(Place { lon: 0.0, lat: 0.99 })
                && !polygon.has(Place { lon: 0.9, lat: 0.9 })
        );
    }

    #[test]
    fn a_polygon_without_an_area_contains_no_place() {
        let here = Place { lon: 1.0, lat: 1.0 };
        for vertices in [[here; 3], [here, Place { lon: 2.0, lat: 1.0 }, here]] {
            let polygon = Polygon::new(&vertices);
            assert!(!polygon.has(here) && cost(&polygon) == 0);
        }
    }
}
