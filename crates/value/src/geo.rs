//! Places on the globe as scores of sorted sets: 52-bit geohashes.
//!
//! ```text
//! bit  51  50  49  48             3   2   1   0
//!      lon lat lon lat    ...    lon lat lon lat     26 bits of each, the highest first
//! ```
//!
//! The score is this number, an integer below 2^52. A longitude is the fraction of the way from
//! -180 to 180 degrees, a latitude of the way from -85.05112878 to 85.05112878 (the square map of
//! Web Mercator). A place that is read back is the middle of its cell.

mod area;
mod cells;
mod finder;
mod place;
mod polygon;

pub use area::{Area, Shape};
pub use cells::RANGES_MAX;
pub use finder::Finder;
pub use place::{LAT_MAX, LON_MAX, Place, STEPS, hash_of_score};
pub use polygon::Polygon;

#[cfg(test)]
mod tests;
