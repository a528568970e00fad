//! Places and distances as arguments and replies write them.

use base::double;
use resp::Reply;
use value::geo::Place;

use crate::error::{Error, InvalidPlace};
use crate::parse::is;

/// A longitude and a latitude.
pub(super) fn place(lon: &[u8], lat: &[u8]) -> Result<Place, Error> {
    let number = |text| double::parse(text).ok_or(Error::NotFloat);
    let (lon, lat) = (number(lon)?, number(lat)?);
    Place::new(lon, lat)
        .ok_or_else(|| InvalidPlace { pair: format!("{lon:.6},{lat:.6}").into() }.into())
}

/// Metres of a unit.
pub(super) fn unit(word: &[u8]) -> Result<f64, Error> {
    let units = [("M", 1.0), ("KM", 1000.0), ("FT", 0.3048), ("MI", 1609.34)];
    let found = units.into_iter().find(|(name, _)| is(word, name));
    found.map(|(_, metres)| metres).ok_or(Error::UnknownUnit)
}

/// Replies a distance with four decimals.
pub(super) fn write_distance(reply: &mut Reply<'_>, distance: f64) {
    reply.bulk(format!("{distance:.4}").as_bytes());
}

/// Replies a longitude and a latitude, with up to 17 decimals.
pub(super) fn write_place(reply: &mut Reply<'_>, place: Place) {
    reply.array(2);
    for value in [place.lon, place.lat] {
        let text = format!("{value:.17}");
        reply.double_text(text.trim_end_matches('0').trim_end_matches('.').as_bytes());
    }
}
