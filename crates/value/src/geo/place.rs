//! Places on the globe and their geohashes.

/// Bits of each coordinate.
pub const STEPS: u32 = 26;
/// The bounds of longitudes.
pub const LON_MAX: f64 = 180.0;
/// The bounds of latitudes.
pub const LAT_MAX: f64 = 85.051_128_78;
/// Radius of the earth in metres, for distances.
pub(super) const EARTH_RADIUS: f64 = 6_372_797.560_856;

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
pub(super) struct Scale {
    min: f64,
    max: f64,
}

pub(super) const LON: Scale = Scale { min: -LON_MAX, max: LON_MAX };
pub(super) const LAT: Scale = Scale { min: -LAT_MAX, max: LAT_MAX };
/// Latitudes of the standard's geohash texts.
const LAT_STANDARD: Scale = Scale { min: -90.0, max: 90.0 };

impl Scale {
    /// The number of the cell that a coordinate is in.
    pub fn cell(self, value: f64, steps: u32) -> u64 {
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
pub(super) fn gather(bits: u64) -> u32 {
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

pub(super) fn interleave(lon: u32, lat: u32) -> u64 {
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
