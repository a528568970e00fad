//! Keys, whatever they hold.

use super::{Template, draw};
use crate::differential::generate::{Args, Dice};

const TEMPLATES: &[Template] = &[
    (8, "DEL|UNLINK {$k}"),
    (6, "EXISTS|TOUCH {$k}"),
    (4, "TYPE $k"),
    (6, "TTL|PTTL|EXPIRETIME|PEXPIRETIME $k"),
    (6, "EXPIRE $k $s [NX|XX|GT|LT]"),
    (6, "PEXPIRE $k $ms [NX|XX|GT|LT]"),
    (5, "EXPIREAT $k $S [NX|XX|GT|LT]"),
    (5, "PEXPIREAT $k $MS [NX|XX|GT|LT]"),
    (2, "EXPIRE|PEXPIRE $k $s {NX|XX|GT|LT|ZZ}"),
    (4, "PERSIST $k"),
    (6, "RENAME|RENAMENX $k $k"),
    (6, "COPY $k $k [DB+$d] [REPLACE]"),
    (1, "COPY $k $k {DB+$d|REPLACE|BOGUS}"),
    (5, "MOVE $k $d"),
    (4, "KEYS *|?|[a-c]|{t}*|\\*|[^a]|a*|*b*|h[e-|**a"),
    (3, "RANDOMKEY"),
    (3, "SCAN 0 COUNT 100000 [MATCH+*] [TYPE+string|TYPE+list]"),
    (1, "SCAN x|0|-1 COUNT|MATCH|TYPE|BOGUS $n"),
    (3, "OBJECT ENCODING $k"),
    (1, "OBJECT REFCOUNT|FREQ|HELP|NOSUCH [$k]"),
];

/// One command. RANDOMKEY and whole scans see keys that are about to expire; where some may, they
/// are left out.
pub fn command(dice: &mut Dice) -> Args {
    loop {
        let args = draw(dice, TEMPLATES);
        let name = args[0].to_ascii_uppercase();
        let refcount = name == b"OBJECT" && args[1].eq_ignore_ascii_case(b"REFCOUNT");
        // A reference count tells how a value is shared inside the server.
        if refcount || (dice.expiring && (name == b"SCAN" || name == b"RANDOMKEY")) {
            continue;
        }
        return args;
    }
}
