//! Commands of transactions outside their order; whole transactions come from the generator.

use super::{Family, Template};

const TEMPLATES: &[Template] =
    &[(4, "MULTI"), (4, "EXEC"), (2, "DISCARD"), (4, "WATCH {$k}"), (2, "UNWATCH"), (1, "RESET")];

/// RESET switches both servers back to RESP2.
pub const FAMILY: Family =
    Family { name: "transactions", leads: false, templates: TEMPLATES, ..Family::BASE };
