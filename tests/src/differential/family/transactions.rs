//! Commands of transactions outside their order; whole transactions come from the generator.

use super::{Family, Template};

const TEMPLATES: &[Template] =
    &[(4, "MULTI"), (4, "EXEC"), (2, "DISCARD"), (4, "WATCH {$k}"), (2, "UNWATCH"), (1, "RESET")];

/// RESET goes back to RESP2, which is fine: both servers do.
pub const FAMILY: Family =
    Family { name: "transactions", leads: false, templates: TEMPLATES, ..Family::BASE };
