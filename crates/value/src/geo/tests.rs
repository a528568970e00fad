//! Places, their scores, and the score ranges which cover an area.

use super::*;
use proptest::prelude::*;

fn place() -> impl Strategy<Value = Place> {
    (-180.0..180.0, -LAT_MAX..LAT_MAX).prop_map(|(lon, lat)| Place { lon, lat })
}

/// The documentation's example: results of the reference server.
#[test]
fn two_towns_have_the_documented_hashes_and_distance() {
    let palermo = Place::new(13.361_389, 38.115_556).expect("on the map");
    let catania = Place::new(15.087_269, 37.502_669).expect("on the map");
    assert_eq!((palermo.hash(), catania.hash()), (3_479_099_956_230_698, 3_479_447_370_796_909));
    let [palermo, catania] = [palermo, catania].map(|town| Place::of_score(town.score()));
    assert_eq!(format!("{:.4}", palermo.distance(catania)), "166274.1516");
    assert_eq!(&palermo.text(), b"sqc8b49rny0");
    assert_eq!(format!("{:.17}", palermo.lon), "13.36138933897018433");
}

/// Scores which are no geohashes, as the reference server decodes them.
#[test]
fn scores_which_are_no_geohashes_are_decoded() {
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
    fn a_decoded_score_is_near_its_place(place in place()) {
        let read = Place::of_score(place.score());
        prop_assert!((read.lon - place.lon).abs() <= 180.0 / f64::from(1 << STEPS));
        prop_assert!((read.lat - place.lat).abs() <= LAT_MAX / f64::from(1 << STEPS));
        prop_assert_eq!(read.hash(), place.hash());
    }

    #[test]
    fn the_ranges_of_an_area_cover_all_places_inside(
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
            // Some places are near the center, inside small areas.
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
