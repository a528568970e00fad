//! The writer on a little disk which executes what it returns: each operation may fail, also in
//! part, and whatever is in flight completes in any order. At every moment a crash would leave what
//! the writer has promised.

mod disk;
mod history;
mod lost;

use super::*;
use base::Blob;
use base::out::{BlobPart, OutPos};
use base::prng::Prng;
use disk::{Disk, Loss};
use journal::Moment;
use keyspace::journal::Run;
use std::path::Path;

const NAME: &str = "a.aof";
const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

fn position() -> Position {
    Position { id: ReplId::parse(&[b'a'; 40]).expect("40 digits"), offset: 0 }
}

fn terms(fsync: Fsync) -> Terms {
    Terms { fsync, timestamps: false, spares_syncs: false, keep: Retention::Nothing }
}

/// The bytes of a record. Each says which it is.
fn record(number: u64) -> Vec<u8> {
    let text = format!("<{number}{}>", ".".repeat((number * 7 % 40) as usize));
    // Some numbers have no command.
    if number.is_multiple_of(11) { Vec::new() } else { text.into_bytes() }
}

fn batch(from: u64, to: u64, is_cut: bool) -> Batch {
    let mut batch = Batch::default();
    (from..=to).filter(|_| !is_cut).for_each(|n| batch.out.bytes.extend(record(n)));
    let end = OutPos { bytes: batch.out.bytes.len(), blobs: 0 };
    let (first, count) = (SeqNo(from), (to + 1 - from) as u32);
    batch.runs.push(Run { first, count, db_in: None, db_out: None, end, cut: u32::from(is_cut) });
    batch
}

/// A writer, its disk, and what was recorded.
struct Run1 {
    writer: Writer,
    disk: Disk,
    terms: Terms,
    /// `appendfsync` at the beginning.
    began: Fsync,
    now: MonoNs,
    /// The last number.
    last: u64,
    cuts: Vec<u64>,
    /// Bytes of all records.
    recorded: usize,
    in_flight: Vec<(Part, FileOp)>,
    is_ending: bool,
}

impl Run1 {
    /// A writer which goes on with an empty folder that is complete.
    fn new(fsync: Fsync) -> Self {
        let place = Place { dir: "/d".into(), folder: "f".into(), name: NAME.into() };
        let found = Found { place, ..Found::default() };
        let mut writer = Writer::new(found, SeqNo(1), position());
        writer.resume();
        Self {
            writer,
            disk: Disk::default(),
            terms: terms(fsync),
            began: fsync,
            now: MonoNs(5 * S),
            last: 0,
            cuts: Vec::new(),
            recorded: 0,
            in_flight: Vec::new(),
            is_ending: false,
        }
    }

    fn push(&mut self, count: u64) {
        let batch = batch(self.last + 1, self.last + count, false);
        self.recorded += batch.len();
        self.last += count;
        self.writer.push(batch);
    }

    /// The moment of a rewrite. Returns the path of its base.
    fn cut(&mut self) -> PathBuf {
        self.last += 1;
        self.cuts.push(self.last);
        let moment = Moment { number: self.last, unix_ms: (self.now.0 / MS) as i64 };
        let base = self.writer.begin_rewrite(BaseFormat::Rdb, moment);
        let path = Path::new("/d/f").join(String::from_utf8_lossy(&base.name).as_ref());
        self.disk.install(&path, self.last);
        self.writer.push(batch(self.last, self.last, true));
        // (The writer compares it with what it has counted when it comes to the cut.)
        assert!(self.writer.locate_rewrite().is_some_and(|extent| extent.position.is_some()));
        path
    }

    fn proceed(&mut self) {
        let unix_ms = (self.now.0 / MS) as i64;
        self.writer.proceed(self.terms, self.now, unix_ms, self.is_ending);
        if self.terms.fsync == Fsync::No && !self.is_ending {
            self.writer.forget_written();
        }
        _ = self.writer.take_done().count();
        self.in_flight.extend(self.writer.take_ops());
        let of = |part| self.in_flight.iter().filter(|(p, _)| *p == part).count();
        let (steps, writes, syncs) = (of(Part::Step), of(Part::Write), of(Part::Sync));
        assert!(steps <= 1 && writes <= 1 && syncs <= 1, "{:?}", self.in_flight);
        assert!(of(Part::Takeover) <= 1, "{:?}", self.in_flight);
        let is_alone = steps == 0 || writes + syncs == 0;
        assert!(is_alone, "beside a step on the segment: {:?}", self.in_flight);
        let next = self.writer.next_wake(self.terms, self.now);
        assert!(next.is_none_or(|at| at > self.now), "woken for what cannot begin: {next:?}");
        self.check();
        self.disk.check_history();
    }

    /// Completes one of what is in flight.
    fn complete(&mut self, at: usize, loss: Option<Loss>) {
        let (part, op) = self.in_flight.remove(at);
        let done = self.disk.run(op, loss);
        self.writer.complete(part, done, self.now);
    }

    /// Completes everything until nothing more happens by itself. The operation with this number
    /// fails, and so many behind it.
    fn settle(&mut self, fails: Option<(u64, u64, Loss)>) {
        for _ in 0..1000 {
            self.proceed();
            if !self.in_flight.is_empty() {
                let number = self.disk.operations;
                let is_failing =
                    |(from, count, _): &(u64, u64, Loss)| (*from..from + count).contains(&number);
                self.complete(0, fails.filter(is_failing).map(|(_, _, loss)| loss));
                continue;
            }
            match self.writer.next_wake(self.terms, self.now) {
                Some(at) => self.now = at.max(self.now.plus(1)),
                None => return,
            }
        }
        panic!("it never ends: {:?}", self.writer.trouble());
    }

    /// The stream of the records behind `after`, up to `to`.
    fn stream(&self, after: u64, to: u64) -> Vec<u8> {
        let is_record = |n: &u64| !self.cuts.contains(n);
        (after + 1..=to).filter(is_record).flat_map(record).collect()
    }

    /// What must be true at every moment.
    fn check(&self) {
        if self.disk.is_lost {
            return; // what is durable is in a base to come
        }
        let durable = self.writer.durable().0;
        assert!(durable <= self.last);
        let freed = self.recorded - self.writer.backlog();
        assert!(freed <= self.stream(0, durable).len(), "freed before it is durable");
        assert_eq!(self.stream(0, self.last).len(), self.recorded);
        let synced = self.writer.synced().0;
        assert!(synced == durable || synced < durable && self.began == Fsync::No);
        if self.writer.is_complete() {
            // Without syncs, what is forgotten is not durable.
            self.check_crash(synced);
        }
        self.check_segments();
    }

    /// A crash now leaves everything up to this number.
    fn check_crash(&self, durable: u64) {
        let Some((base, found)) = self.disk.crash() else {
            return assert!(durable == 0 || self.terms.fsync == Fsync::No, "no manifest");
        };
        let first = self.disk.segments.iter().position(|path| *path == found[0].0);
        let first = first.expect("a segment that was opened");
        let after = first.checked_sub(1).map_or(0, |at| self.cuts[at]);
        assert_eq!(base, after, "the changes do not begin where the base ends");
        if self.terms.fsync == Fsync::No {
            let ended = found.len() - 1;
            for (at, (path, bytes)) in found[..ended].iter().enumerate() {
                let wanted = self.segment(first + at);
                assert!(self.disk.has_lost || *bytes == wanted, "{}", path.display());
            }
            if self.disk.has_lost {
                return;
            }
        }
        let bytes: Vec<u8> = found.into_iter().flat_map(|(_, bytes)| bytes).collect();
        let wanted = self.stream(after, durable.max(after));
        assert!(bytes.starts_with(&wanted), "{durable} is durable, and a crash leaves less");
    }

    /// What belongs into a segment.
    fn segment(&self, at: usize) -> Vec<u8> {
        let after = at.checked_sub(1).map_or(0, |at| self.cuts[at]);
        self.stream(after, self.cuts.get(at).map_or(self.last, |cut| cut - 1))
    }

    /// Segments hold the stream between their cuts, and nothing twice. (A failed write may leave
    /// a part of a record, a failed sync what is about to be cut off.)
    fn check_segments(&self) {
        for (at, path) in self.disk.segments.iter().enumerate() {
            let (bytes, wanted) = (self.disk.current(path), self.segment(at));
            if !self.writer.is_dirty {
                let shown = String::from_utf8_lossy(bytes);
                assert!(wanted.starts_with(bytes), "{}: {shown}", path.display());
            }
        }
    }

    /// Everything is written, and stands where it must.
    fn check_end(&self) {
        let (writer, last) = (&self.writer, self.last);
        assert!(writer.is_idle() && writer.trouble().is_none());
        assert_eq!((writer.durable().0, writer.backlog(), writer.unwritten()), (last, 0, 0));
        assert_eq!(self.disk.segments.len(), self.cuts.len() + 1);
        for (at, path) in self.disk.segments.iter().enumerate() {
            if !self.disk.is_there(path) {
                continue; // a base has taken its place
            }
            assert_eq!(self.disk.current(path), self.segment(at), "{}", path.display());
            let is_durable = self.disk.is_durable(path);
            assert!(is_durable || self.disk.has_lost, "{}", path.display());
        }
    }
}

/// Records, a rewrite that fails, one that succeeds, and the end; where an operation fails.
fn story(fsync: Fsync, fails: Option<(u64, u64, Loss)>) -> u64 {
    let mut run = Run1::new(fsync);
    run.settle(fails);
    for base in [None, Some(None), None, Some(Some(100)), None] {
        run.push(3);
        run.proceed();
        run.push(12);
        run.settle(fails);
        if let Some(bytes) = base {
            run.cut();
            run.push(2);
            run.proceed();
            run.writer.end_rewrite(bytes, run.now);
            run.settle(fails);
        }
    }
    run.is_ending = true;
    run.settle(fails);
    run.check_end();
    if fails.is_none() {
        // (A file that cannot be removed stays.)
        let names = ["a.aof.1.base.rdb", "a.aof.3.incr.aof", "a.aof.manifest"];
        assert_eq!(run.disk.files(), names);
    }
    run.disk.operations
}

#[test]
fn each_operation_may_fail_and_nothing_is_lost_or_written_twice() {
    for fsync in [Fsync::Always, Fsync::EverySecond, Fsync::No] {
        let count = story(fsync, None);
        assert!(count > 30, "{count}");
        for number in 0..count {
            for loss in Loss::ALL {
                for times in [1, 2, 5] {
                    story(fsync, Some((number, times, loss)));
                }
            }
        }
    }
}

#[test]
fn operations_complete_in_any_order_and_fail_at_random() {
    let mut most = 0;
    for seed in 0..400 {
        let p = &mut Prng::new(seed);
        let fsync = [Fsync::Always, Fsync::EverySecond, Fsync::No][p.below(3) as usize];
        let one_in = [0, 3, 20][p.below(3) as usize];
        let mut run = Run1::new(fsync);
        for _ in 0..200 {
            match p.below(12) {
                0..3 => run.push(1 + p.below(5)),
                3 if !run.writer.is_rewriting() => _ = run.cut(),
                4 if run.writer.is_rewriting() => {
                    let bytes = [None, Some(7)][p.below(2) as usize];
                    run.writer.end_rewrite(bytes, run.now);
                }
                5 => run.now = run.now.plus(p.below(S)),
                6 => run.proceed(),
                _ => {
                    let count = run.in_flight.len() as u64;
                    if count > 0 {
                        let fails = one_in > 0 && p.chance(1, one_in);
                        let loss = Loss::ALL[p.below(Loss::ALL.len() as u64) as usize];
                        run.complete(p.below(count) as usize, fails.then_some(loss));
                    }
                    run.proceed();
                }
            }
        }
        run.is_ending = true;
        run.writer.end_rewrite(None, run.now);
        run.settle(None);
        run.check_end();
        most = most.max(run.cuts.len());
    }
    assert!(most > 3, "{most} cuts");
}

/// Segments change exactly at the number of the cut: nothing behind it is in the old one, and
/// nothing is written before the manifest lists the new one.
#[test]
fn a_cut_switches_segments_at_its_number() {
    let mut run = Run1::new(Fsync::Always);
    run.settle(None);
    run.push(3);
    run.cut();
    run.push(2);
    run.settle(None);
    let [old, new] = &run.disk.segments[..] else { panic!("{:?}", run.disk.segments) };
    assert_eq!(run.disk.current(old), run.stream(0, 3));
    assert_eq!(run.disk.current(new), run.stream(4, 6));
    assert!(run.writer.is_rewriting() && run.writer.durable() == SeqNo(6));
}

#[test]
fn without_syncs_a_cut_makes_durable_what_is_before_it() {
    let mut run = Run1::new(Fsync::No);
    run.push(12);
    run.settle(None);
    assert_eq!((run.writer.durable(), run.writer.synced()), (SeqNo(12), SeqNo(0)));
    run.cut();
    run.push(5);
    run.settle(None);
    // Also if the rewrite fails then.
    assert_eq!((run.writer.durable(), run.writer.synced()), (SeqNo(18), SeqNo(13)));
    // The first sync behind a change of the setting covers what nobody has in memory any more.
    run.terms = terms(Fsync::EverySecond);
    run.now = run.now.plus(2 * S);
    run.settle(None);
    assert_eq!(run.writer.synced(), SeqNo(18));
}

#[test]
fn everysec_syncs_once_a_second_and_no_never_does() {
    let mut run = Run1::new(Fsync::EverySecond);
    run.settle(None);
    let syncs = |run: &Run1| run.in_flight.iter().filter(|(part, _)| *part == Part::Sync).count();
    run.push(1);
    run.proceed();
    run.complete(0, None);
    run.proceed();
    assert_eq!(syncs(&run), 1, "none was made for a second");
    let began = run.now;
    run.push(1);
    run.proceed();
    run.complete(1, None);
    run.complete(0, None);
    run.proceed();
    assert_eq!((syncs(&run), run.writer.durable()), (0, SeqNo(1)));
    assert_eq!(run.writer.next_wake(run.terms, run.now), Some(began.plus(S)));
    run.now = began.plus(S - 1);
    run.proceed();
    assert_eq!(syncs(&run), 0);
    run.now = began.plus(S);
    run.proceed();
    assert_eq!((syncs(&run), run.writer.next_wake(run.terms, run.now)), (1, None));

    let mut run = Run1::new(Fsync::No);
    run.settle(None);
    run.push(5);
    run.proceed();
    run.complete(0, None);
    run.proceed();
    assert_eq!((run.in_flight.len(), run.writer.next_wake(run.terms, run.now)), (0, None));
    assert_eq!((run.writer.durable(), run.writer.backlog()), (SeqNo(5), 0), "as good as it gets");
}

/// A durable write covers only itself: what `everysec` has written before is synced as well.
#[test]
fn what_was_written_before_always_is_synced() {
    let mut run = Run1::new(Fsync::EverySecond);
    run.push(1);
    run.settle(None);
    run.push(1);
    run.proceed();
    run.complete(0, None);
    run.proceed();
    assert_eq!((run.writer.durable(), run.in_flight.len()), (SeqNo(1), 0), "written, not synced");
    run.terms.fsync = Fsync::Always;
    run.push(1);
    run.settle(None);
    assert_eq!((run.writer.durable(), run.writer.backlog()), (SeqNo(3), 0));
}

#[test]
fn what_was_written_without_a_sync_is_synced_when_the_setting_changes() {
    for fsync in [Fsync::Always, Fsync::EverySecond] {
        let mut run = Run1::new(Fsync::No);
        run.settle(None);
        run.push(5);
        run.settle(None);
        assert_eq!((run.writer.durable(), run.writer.synced()), (SeqNo(5), SeqNo(0)));
        run.terms = terms(fsync);
        run.now = run.now.plus(S);
        run.proceed();
        assert_eq!((run.in_flight.len(), run.writer.synced()), (1, SeqNo(0)), "{fsync:?}");
        run.complete(0, None);
        assert_eq!(run.writer.synced(), SeqNo(5), "{fsync:?}");
    }
}

/// Regression: on a full disk each second one write fitted, the trouble was called over, and more
/// changes were acknowledged, none of which became durable.
#[test]
fn the_trouble_is_over_when_nothing_waits_any_more() {
    let mut run = Run1::new(Fsync::EverySecond);
    run.settle(None);
    run.push(1);
    run.proceed();
    run.complete(0, None);
    run.proceed();
    run.push(1);
    run.proceed();
    let write = run.in_flight.iter().position(|(part, _)| *part == Part::Write).expect("there");
    run.complete(write, Some(Loss::Half));
    assert!(run.writer.trouble().is_some());
    // The sync beside it has ended well: what was written before is durable.
    run.complete(0, None);
    assert_eq!(run.writer.durable(), SeqNo(1));
    run.push(1);
    run.now = run.now.plus(2 * S);
    while run.writer.unwritten() > 0 {
        run.proceed();
        assert!(run.writer.trouble().is_some(), "something waits");
        run.complete(0, None);
    }
    assert!(run.writer.trouble().is_none());
    run.settle(None);
    run.check();
    assert_eq!(run.writer.durable(), SeqNo(3));
}

/// Regression: with no-appendfsync-on-rewrite, and while a step or a write was under way, the
/// writer was to be woken at a time that had passed, again and again.
#[test]
fn nobody_is_woken_for_what_cannot_begin() {
    let mut run = Run1::new(Fsync::EverySecond);
    run.settle(None);
    run.terms.spares_syncs = true;
    run.push(1);
    run.proceed();
    run.complete(0, None);
    run.now = run.now.plus(9 * S);
    run.proceed();
    assert_eq!((run.in_flight.len(), run.writer.next_wake(run.terms, run.now)), (0, None));
    run.terms.spares_syncs = false;
    run.push(1);
    run.proceed();
    assert_eq!(run.in_flight.len(), 2, "a write and a sync");
    let sync = run.in_flight.iter().position(|(part, _)| *part == Part::Sync).expect("there");
    run.complete(sync, Some(Loss::Dirty));
    run.now = run.now.plus(9 * S);
    run.proceed();
    assert_eq!(run.writer.next_wake(run.terms, run.now), None, "the write is still under way");
    assert!(run.writer.trouble().is_some());
    run.complete(0, None);
    run.settle(None);
    run.check();
    assert!(run.writer.trouble().is_none() && run.writer.durable() == SeqNo(2));
}

/// Regression: a timestamp was written into the middle of a record of more than one write.
#[test]
fn a_timestamp_stands_between_records() {
    let mut run = Run1::new(Fsync::Always);
    run.settle(None);
    run.terms.timestamps = true;
    let mut batch = batch(1, 1, false);
    let value = vec![b'v'; 3 * WRITE_BYTES];
    batch.out.blobs.push(BlobPart::whole(1, Blob::from(value.as_slice())));
    batch.runs[0].end = batch.out.position();
    let record = [&record(1)[..1], &value, &record(1)[1..]].concat();
    run.writer.push(batch);
    for _ in 0..20 {
        run.writer.proceed(run.terms, run.now, (run.now.0 / MS) as i64, false);
        run.in_flight.extend(run.writer.take_ops());
        if !run.in_flight.is_empty() {
            run.complete(0, None);
        }
        run.now = run.now.plus(S);
    }
    assert_eq!(run.writer.durable(), SeqNo(1));
    let bytes = run.disk.current(&run.disk.segments[0]);
    assert!(bytes.starts_with(b"#TS:5\r\n") && bytes[7..] == record, "{} bytes", bytes.len());
}

/// Regression: a timestamp was written ahead of a cut, for which there was no segment yet: the
/// server loaded for ever.
#[test]
fn numbers_without_a_command_have_no_timestamp() {
    let place = Place { dir: "/d".into(), folder: "f".into(), name: NAME.into() };
    let mut run = Run1::new(Fsync::Always);
    run.writer = Writer::new(Found { place, ..Found::default() }, SeqNo(1), position());
    run.terms.timestamps = true;
    run.cut();
    for round in 0..40 {
        run.writer.proceed(run.terms, run.now, 1, false);
        run.in_flight.extend(run.writer.take_ops());
        if !run.in_flight.is_empty() {
            run.complete(0, None);
        }
        if round == 9 {
            run.writer.end_rewrite(Some(1), run.now);
        }
    }
    assert!(run.writer.is_complete() && run.writer.is_idle());
    assert_eq!(run.disk.current(&run.disk.segments[0]), b"");
}

#[test]
fn what_is_durable_need_not_be_in_the_page_cache() {
    let mut run = Run1::new(Fsync::EverySecond);
    run.settle(None);
    assert_eq!(run.writer.take_advice(), None);
    let grow = |run: &mut Run1| (0..100).for_each(|_| run.push(1000));
    grow(&mut run);
    run.proceed();
    assert_eq!(run.writer.take_advice(), None, "nothing of it is durable");
    run.settle(None);
    let Some(FileOp::Forget { to, .. }) = run.writer.take_advice() else { panic!("advice") };
    assert_eq!((to, run.writer.durable().0), (run.writer.size(), run.last));
    assert_eq!(run.writer.take_advice(), None, "once");
    run.push(1);
    run.settle(None);
    assert_eq!(run.writer.take_advice(), None, "not worth it yet");
}

#[test]
fn with_everysec_no_change_waits_for_more_than_three_seconds_unnoticed() {
    let mut run = Run1::new(Fsync::EverySecond);
    run.settle(None);
    let late = |run: &Run1| run.writer.late_at(run.terms);
    assert_eq!(late(&run), None, "nothing waits");
    run.now = MonoNs(20 * S);
    run.push(1);
    run.proceed();
    assert_eq!(late(&run), Some(MonoNs(23 * S)));
    run.complete(0, None);
    run.now = MonoNs(21 * S);
    run.proceed();
    assert!(matches!(run.in_flight[..], [(Part::Sync, _)]), "{:?}", run.in_flight);
    // Written beside the sync, which does not cover it. The sync takes two seconds.
    run.push(1);
    run.proceed();
    run.complete(1, None);
    run.now = MonoNs(23 * S);
    run.proceed();
    assert_eq!(late(&run), Some(run.now), "the first change still waits");
    run.complete(0, None);
    run.proceed();
    assert_eq!(late(&run), Some(MonoNs(24 * S)), "the second came with the sync");
    run.complete(0, None);
    run.proceed();
    assert_eq!(late(&run), None, "both are durable");
    run.terms.fsync = Fsync::Always;
    run.push(1);
    run.proceed();
    assert_eq!(late(&run), None, "their replies wait");
}

/// Regression: a rewrite which failed was tried again each second. Each try added a segment and a
/// line to the manifest.
#[test]
fn rewrites_that_fail_do_not_fill_the_folder() {
    let mut run = Run1::new(Fsync::EverySecond);
    run.settle(None);
    let rewrite = |run: &mut Run1, bytes| {
        run.cut();
        run.settle(None);
        run.writer.end_rewrite(bytes, run.now);
        run.settle(None);
    };
    // What asks each second whether one is due.
    let watch = |run: &mut Run1, seconds: u64| {
        let (before, end) = (run.disk.segments.len(), run.now.plus(seconds * S));
        while run.now < end {
            if run.writer.may_rewrite(run.now) {
                rewrite(run, None);
            }
            run.now = run.now.plus(S);
        }
        run.disk.segments.len() - before
    };
    let first = watch(&mut run, 60);
    assert!((3..=4).contains(&first), "{first}: at 0, 5, 15 and 35 s");
    let hours = watch(&mut run, 10 * 3600);
    assert!((10..=16).contains(&hours), "{hours}: at least once an hour, and not often");
    rewrite(&mut run, Some(10));
    assert!(run.writer.may_rewrite(run.now), "it works: the next one is made when it is due");
    run.check_end();
}

/// A run with `always` whose base is complete, before anything of its takeover is done.
fn before_takeover() -> Run1 {
    let mut run = Run1::new(Fsync::Always);
    run.push(5);
    run.settle(None);
    run.cut();
    run.push(2);
    run.settle(None);
    run.writer.end_rewrite(Some(100), run.now);
    run.proceed();
    run
}

/// Completes the write in flight, and nothing else.
fn complete_write(run: &mut Run1) {
    let at = run.in_flight.iter().position(|(part, _)| *part == Part::Write);
    run.complete(at.expect("a write"), None);
    run.proceed();
}

/// Regression: at the end of a rewrite every reply waited for two manifests, and for the removal of
/// the old files between them, which takes long if they are large.
#[test]
fn writes_go_on_while_a_base_takes_over() {
    let mut run = before_takeover();
    for round in 0.. {
        run.push(2);
        run.proceed();
        complete_write(&mut run);
        assert_eq!(run.writer.durable().0, run.last, "round {round}: a reply waits");
        let Some(at) = run.in_flight.iter().position(|(part, _)| *part == Part::Takeover) else {
            assert!(round > 10, "{round} steps");
            break;
        };
        assert!(run.writer.is_rewriting());
        run.complete(at, None);
    }
    run.settle(None);
    run.check_end();
    assert!(!run.writer.is_rewriting() && run.disk.files().len() == 3, "{:?}", run.disk.files());
}

/// The files of before are whole: nothing is refused while the manifest cannot be written.
#[test]
fn writes_go_on_while_a_base_cannot_take_over() {
    let mut run = before_takeover();
    for second in 0..30 {
        while let Some(at) = run.in_flight.iter().position(|(part, _)| *part == Part::Takeover) {
            run.complete(at, Some(Loss::ALL[second % 2]));
            run.proceed();
        }
        run.push(2);
        run.proceed();
        complete_write(&mut run);
        assert_eq!((run.writer.durable().0, run.writer.trouble()), (run.last, None));
        assert!(run.writer.takeover_trouble().is_some() && run.writer.is_rewriting());
        let again_at = run.writer.next_wake(run.terms, run.now).expect("it is tried again");
        assert!(again_at > run.now && again_at <= run.now.plus(S));
        run.now = again_at;
        run.proceed();
    }
    run.settle(None);
    run.check_end();
    assert!(run.writer.takeover_trouble().is_none() && !run.writer.is_rewriting());
}

/// Regression: a file with the name of the new segment was truncated, which a crash could undo. So
/// records came back which were in the base by then.
#[test]
fn what_an_earlier_server_left_does_not_come_back() {
    let mut run = Run1::new(Fsync::Always);
    run.disk.put("a.aof.1.incr.aof", b"old");
    run.settle(None);
    assert_eq!(run.disk.durable("a.aof.1.incr.aof"), Some(&b""[..]), "the manifest names it");
    run.push(1);
    run.settle(None);
    run.check_end();
}
