//! Commands on places, which are members of sorted sets whose scores are geohashes
//! ([`value::geo`]).

mod add;
mod ask;
mod long_search;
mod query;
mod reply;
mod search;
mod text;

pub use add::geoadd;
pub use ask::{geodist, geohash, geopos};
pub use query::{georadius_keys, georadiusbymember_keys};
pub use search::{
    georadius, georadius_ro, georadiusbymember, georadiusbymember_ro, geosearch, geosearchstore,
};
