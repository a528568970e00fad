//! Streams with the highest and lowest numbers that a payload can hold. RESTORE and snapshot files
//! bring them in, so no command may overflow on them.

use crate::common::Value;
use crate::common::session::Session;
use base::prng::Prng;
use rdb::{Options, Owned, Saver, Shape, VERSION_VALKEY};
use value::stream::{Group, Marks, Page, Pending};
use value::{Stream, StreamId};

const TIMES: [i64; 4] = [i64::MIN, -1, 0, i64::MAX];
const COUNTS: [u64; 5] = [0, 1, i64::MAX as u64, u64::MAX - 1, u64::MAX];

/// Every command on streams; `{time}` is one of the extreme times.
const COMMANDS: &str = "
XINFO STREAM s FULL COUNT 0
XINFO STREAM s
XINFO GROUPS s
XINFO CONSUMERS s g
XPENDING s g
XPENDING s g IDLE 1 - + 10
XPENDING s g IDLE 9223372036854775807 - + 10 c
XPENDING s g - + 10 c
XLEN s
XRANGE s - +
XREVRANGE s + -
XRANGE s (18446744073709551615-18446744073709551614 +
XREADGROUP GROUP g c COUNT 1 STREAMS s >
XREADGROUP GROUP g c STREAMS s 0
XREADGROUP GROUP g new STREAMS s >
XAUTOCLAIM s g d 1 0 COUNT 1
XAUTOCLAIM s g d 9223372036854775807 0
XCLAIM s g d 1 1-0
XCLAIM s g d 9223372036854775807 1-0 5-5
XCLAIM s g c 0 1-0 5-5 FORCE IDLE 9223372036854775807 RETRYCOUNT 9223372036854775807
XCLAIM s g c 0 1-0
XNACK s g FAIL IDS 1 1-0
XREADGROUP GROUP g c STREAMS s 0
XADD s * f v
XADD s MAXLEN 1 * f v
XADD s 18446744073709551615-18446744073709551615 f v
XGROUP SETID s g $
XGROUP SETID s g 0 ENTRIESREAD 9223372036854775807
XREADGROUP GROUP g e STREAMS s >
XGROUP CREATE s h 0 ENTRIESREAD 9223372036854775807
XINFO STREAM s FULL
XACK s g 1-0
XDEL s 1-0 18446744073709551615-18446744073709551615
XTRIM s MAXLEN 0
XSETID s 18446744073709551615-18446744073709551615
XINFO GROUPS s
DUMP s
";

/// A stream whose times, counts and last id are drawn from the extremes.
fn extreme(prng: &mut Prng) -> Stream {
    let mut time = || TIMES[prng.below(TIMES.len() as u64) as usize];
    let times: Vec<i64> = (0..6).map(|_| time()).collect();
    let mut count = || COUNTS[prng.below(COUNTS.len() as u64) as usize];
    let (added, read, delivered) = (count(), count(), count());
    let mut stream = Stream::new();
    let pair = [(&b"f"[..], &b"v"[..])];
    let mut page = Page::named(StreamId::new(1, 0), [&b"f"[..]].into_iter());
    page.push(StreamId::new(1, 0), pair.into_iter());
    page.push(StreamId::new(5, 5), pair.into_iter());
    stream.add_page(page);
    let last = [StreamId::new(5, 5), StreamId::MAX, StreamId::new(5, u64::MAX)];
    let (last, max_deleted) = (last[count() as usize % 3], last[count() as usize % 3]);
    stream.set_marks(Marks { last, max_deleted, added });
    let at = [StreamId::MIN, StreamId::new(1, 0), StreamId::MAX][count() as usize % 3];
    let mut group = Group::new(at, Some(read).filter(|read| *read != u64::MAX));
    let consumer = group.add_consumer(b"c", times[0], times[1]);
    group.add_consumer(b"d", times[2], times[3]);
    group.put(Pending { id: StreamId::new(1, 0), at_ms: times[4], count: delivered, consumer });
    group.put(Pending { id: StreamId::MAX, at_ms: times[5], count: 1, consumer });
    assert!(stream.add_group(b"g", group));
    stream
}

#[test]
fn no_command_overflows_on_a_stream_of_extreme_numbers() {
    let mut prng = Prng::new(21);
    let mut saver = Saver::new(Options { compress: false, version: VERSION_VALKEY });
    for round in 0..200 {
        let payload = saver.dump(&Owned::Stream(extreme(&mut prng)).shaped(Shape::Plain));
        let mut session = Session::new();
        let restored = session.ask(&[b"RESTORE", b"s", b"0", &payload]);
        assert_eq!(restored, Value::Simple("OK".to_owned()), "round {round}");
        for line in COMMANDS.lines().filter(|line| !line.is_empty()) {
            if line.starts_with("DUMP") {
                let words = crate::common::words(line);
                crate::common::with_args(&words, |args| session.reply_to(args));
            } else {
                session.ask_line(line);
            }
        }
    }
}

/// Idle times beyond what a reply can hold are the highest number; the count of added entries wraps
/// as in Redis; a count of entries read which would be the mark of an unknown one is unknown.
#[test]
fn extreme_numbers_are_replied() {
    let mut stream = Stream::new();
    let mut page = Page::named(StreamId::new(1, 0), [&b"f"[..]].into_iter());
    page.push(StreamId::new(1, 0), [(&b"f"[..], &b"v"[..])].into_iter());
    stream.add_page(page);
    let last = StreamId::new(1, 0);
    stream.set_marks(Marks { last, max_deleted: StreamId::MIN, added: u64::MAX });
    let mut group = Group::new(StreamId::MIN, Some(u64::MAX - 1));
    let consumer = group.add_consumer(b"c", i64::MIN, -1);
    group.put(Pending { id: StreamId::new(1, 0), at_ms: i64::MIN, count: 1, consumer });
    assert!(stream.add_group(b"g", group));
    let mut saver = Saver::new(Options { compress: false, version: VERSION_VALKEY });
    let payload = saver.dump(&Owned::Stream(stream).shaped(Shape::Plain));
    let mut session = Session::new();
    session.ask(&[b"RESTORE", b"s", b"0", &payload]);
    let consumers = format!("{:?}", session.ask_line("XINFO CONSUMERS s g"));
    let idle = format!("Bulk(\"idle\"), Integer({})", i64::MAX);
    assert!(consumers.contains(&idle), "{consumers}");
    assert!(consumers.contains("Bulk(\"inactive\"), Integer(-1)"), "{consumers}");
    let pending = format!("{:?}", session.ask_line("XPENDING s g IDLE 1 - + 10"));
    assert!(pending.contains(&format!("Integer({})", i64::MAX)), "{pending}");
    let claimed = format!("{:?}", session.ask_line("XCLAIM s g c 9223372036854775807 1-0 JUSTID"));
    assert_eq!(claimed, "Array([Bulk(\"1-0\")])");
    session.ask_line("XADD s 2-0 f v");
    let about = format!("{:?}", session.ask_line("XINFO STREAM s"));
    assert!(about.contains("Bulk(\"entries-added\"), Integer(0)"), "{about}");
    session.ask_line("XADD s 3-0 f v");
    session.ask_line("XREADGROUP GROUP g c COUNT 1 STREAMS s >");
    let groups = format!("{:?}", session.ask_line("XINFO GROUPS s"));
    assert!(groups.contains("Bulk(\"entries-read\"), Null"), "{groups}");
}
