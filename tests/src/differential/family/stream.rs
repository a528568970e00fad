//! Streams. Ids are never taken from the clock, and consumers are created before they read: Redis
//! 7.0 does not create consumers which get no entries.

use super::super::judge::Mode;
use super::{Family, Template};

const TEMPLATES: &[Template] = &[
    (14, "XADD $k $a {$m+$v}"),
    (2, "XADD $k $a a $v b $v c $v"),
    (6, "XADD $k MAXLEN|MINID =|~|~+ $c $a {$m+$v}"),
    (2, "XADD $k [NOMKSTREAM] MAXLEN ~ $c LIMIT $c $a f $v"),
    (1, "XADD $k $a $m"),
    (2, "XADD $1 $a f x ; XADD $1 $a f <$a>"),
    (
        2,
        "XADD $1 $a f $w ; XADD $1 $a f $w ; XADD $1 $a f $w ; XADD $1 $a f $w ; XADD $1 $a f $w ; XADD $1 $a g $w",
    ),
    (4, "XLEN $k"),
    (5, "XRANGE|XREVRANGE $k $e $e [COUNT+$c]"),
    (2, "XRANGE $k - +"),
    (2, "XREVRANGE $k + - [COUNT+$c]"),
    (4, "XREAD [COUNT+$c] STREAMS $k $e"),
    (2, "XREAD [COUNT+$c] STREAMS $k $k $e $e"),
    (1, "XREAD [COUNT|BOGUS+$c] STREAMS $k $k $e"),
    (5, "XDEL $k {$e}"),
    (4, "XTRIM $k MAXLEN|MINID $c"),
    (2, "XTRIM $k MAXLEN|MINID =|~ $c [LIMIT+$c]"),
    (2, "XTRIM $k MINID $e"),
    (2, "XSETID $k $a [ENTRIESADDED+$n] [MAXDELETEDID+$e]"),
    (1, "XSETID $k $e ENTRIESADDED $c"),
    (5, "XGROUP CREATE $k g|h $e|$|0 [MKSTREAM] [ENTRIESREAD+$c]"),
    (2, "XGROUP SETID $k g|h $e|$ [ENTRIESREAD+$c]"),
    (1, "XGROUP DESTROY $k g|h"),
    (2, "XGROUP CREATECONSUMER $k g|h c|d"),
    (2, "XGROUP DELCONSUMER $k g|h c|d"),
    (1, "XGROUP CREATE|SETID|DESTROY|CREATECONSUMER|BOGUS {$k} g"),
    (10, "XGROUP CREATECONSUMER $1 g c ; XREADGROUP GROUP g c [COUNT+$c] [NOACK] STREAMS $1 >"),
    (5, "XGROUP CREATECONSUMER $1 g d ; XREADGROUP GROUP g d [COUNT+$c] STREAMS $1 >"),
    (5, "XGROUP CREATECONSUMER $1 g c ; XREADGROUP GROUP g c [COUNT+$c] STREAMS $1 $e"),
    (3, "XACK $k g|h {$e}"),
    (3, "XPENDING $k g|h"),
    (3, "XPENDING $k g|h [IDLE+0] $e $e $c [c|d]"),
    (4, "XGROUP CREATECONSUMER $1 g d ; XCLAIM $1 g d 0 {$e} [FORCE] [JUSTID] [RETRYCOUNT+$c]"),
    (
        1,
        "XGROUP CREATECONSUMER $1 g d ; XCLAIM $1 g d 0 $e [IDLE+$c] [TIME+$c] [LASTID+$e] [FORCE]",
    ),
    (3, "XGROUP CREATECONSUMER $1 g c ; XAUTOCLAIM $1 g c 0 $e [COUNT+$c] [JUSTID]"),
    (1, "XCLAIM|XAUTOCLAIM $k nogroup c 0 $e"),
    (3, "XINFO STREAM $k"),
    (2, "XINFO STREAM $k FULL [COUNT+$c]"),
    (3, "XINFO GROUPS $k"),
    (2, "XINFO CONSUMERS $k g|h"),
    (1, "COPY $k $k REPLACE"),
    (1, "OBJECT ENCODING $k"),
];

/// Streams.
pub const FAMILY: Family = Family {
    name: "stream",
    templates: TEMPLATES,
    replies: &[("XPENDING", Mode::Stream), ("XINFO", Mode::Stream)],
    ..Family::BASE
};
