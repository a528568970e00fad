//! Kept history: what a rewrite replaces stays, is listed at every moment, and goes when there is
//! too much of it.

use super::disk::{DAMAGED, Loss};
use super::{MS, NAME, Place, Run1, S};
use crate::persist::journal::writer::{Fsync, Writer};
use crate::persist::load::folder::Found;
use crate::persist::load::kept::Kept;
use base::SeqNo;
use config::Retention;
use journal::Manifest;

/// Bytes of each base.
const BASE: u64 = 100;

/// Records of some bytes, and a rewrite behind them.
fn rewrite(run: &mut Run1, fails: Option<(u64, u64, Loss)>) {
    run.push(10);
    run.settle(fails);
    run.cut();
    run.push(1);
    run.settle(fails);
    run.now = run.now.plus(S);
    run.writer.end_rewrite(Some(BASE), run.now);
    run.settle(fails);
}

fn kept(run: &Run1) -> Vec<(String, usize)> {
    let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let all = run.disk.history().generations;
    all.iter().map(|g| (name(&g.base.name), g.incr.len())).collect()
}

/// A server with a bound, which changes, and at last none.
fn story(keep: Retention, fails: Option<(u64, u64, Loss)>) -> u64 {
    let mut run = Run1::new(Fsync::Always);
    run.terms.keep = keep;
    run.settle(fails);
    for _ in 0..4 {
        rewrite(&mut run, fails);
    }
    run.terms.keep = Retention::Nothing;
    rewrite(&mut run, fails);
    run.is_ending = true;
    run.settle(fails);
    run.check_end();
    if fails.is_none() {
        let names = ["a.aof.5.base.rdb", "a.aof.6.incr.aof", "a.aof.manifest"];
        assert_eq!(run.disk.files(), names, "{keep:?}");
        assert_eq!(run.writer.history_bytes(), 0);
    }
    run.disk.operations
}

#[test]
fn a_crash_leaves_no_file_which_nobody_lists() {
    let all = [Retention::Bytes(1 << 40), Retention::Bytes(300), Retention::Bytes(1)];
    for keep in all.into_iter().chain([Retention::Ms(1500)]) {
        let count = story(keep, None);
        for number in 0..count {
            story(keep, Some((number, 2, Loss::ALL[number as usize % 2])));
        }
    }
}

#[test]
fn the_oldest_go_when_there_is_too_much_or_they_are_too_old() {
    let mut run = Run1::new(Fsync::Always);
    run.terms.keep = Retention::Bytes(1 << 40);
    run.settle(None);
    for _ in 0..4 {
        rewrite(&mut run, None);
    }
    let names = |from: u64, to: u64| -> Vec<_> {
        (from..=to).map(|n| (format!("{NAME}.{n}.base.rdb"), 1)).collect()
    };
    assert_eq!(kept(&run), names(1, 3), "the first files had no base");
    let all = run.disk.history().generations;
    let until = |at: usize| all[at].until.expect("it was written");
    assert_eq!(until(1).unix_ms - until(0).unix_ms, 1000, "the moments of the next bases");
    assert_eq!([0, 1, 2].map(|at| until(at).number), [1, 2, 3].map(|at| run.cuts[at]));
    let bytes = run.writer.history_bytes();
    let segment = |n: u64| run.disk.current(&run.disk.segments[n as usize - 1]).len() as u64;
    assert_eq!(bytes, 3 * BASE + (2..=4).map(segment).sum::<u64>());
    run.terms.keep = Retention::Bytes(bytes + BASE);
    rewrite(&mut run, None);
    assert_eq!(kept(&run), names(2, 4));
    assert!(run.writer.history_bytes() <= bytes + BASE && !run.writer.is_history_too_small);
    run.terms.keep = Retention::Ms(1500);
    rewrite(&mut run, None);
    assert_eq!(kept(&run), names(5, 5), "it ended a second ago, the others two and more");
    run.terms.keep = Retention::Bytes(1);
    rewrite(&mut run, None);
    assert_eq!((kept(&run), run.writer.is_history_too_small), (Vec::new(), true));
    assert!(!run.disk.files().contains(&"a.aof.history"));
}

/// What was found in the folder is kept or removed as the setting says then.
#[test]
fn what_was_there_before_goes_on() {
    let list = b"file a.aof.1.base.rdb seq 1 type b until 3:1000\n";
    let manifest = b"file a.aof.2.base.rdb seq 2 type b\n";
    let begin = |keep, list: &[u8]| {
        let mut run = Run1::new(Fsync::Always);
        let manifest = Manifest::parse(manifest).expect("a manifest");
        let history = Kept::of_list(list, Some(&manifest));
        let place = Place { dir: "/d".into(), folder: "f".into(), name: NAME.into() };
        let found = Found { place, manifest: Some(manifest), history, ..Found::default() };
        run.writer = Writer::new(found, SeqNo(1), super::position());
        run.writer.resume();
        run.terms.keep = keep;
        run.now = base::MonoNs(2000 * MS);
        for name in ["a.aof.1.base.rdb", "a.aof.2.base.rdb"] {
            run.disk.install(&std::path::Path::new("/d/f").join(name), 0);
        }
        run.disk.put("a.aof.history", list);
        rewrite(&mut run, None);
        run
    };
    let run = begin(Retention::Ms(60_000), list);
    assert_eq!(kept(&run).len(), 2);
    let run = begin(Retention::Nothing, list);
    assert_eq!(run.disk.files().len(), 3, "{:?}", run.disk.files());
    // A list which cannot be read is replaced, and kept. Its files are left alone.
    let run = begin(Retention::Ms(60_000), DAMAGED);
    assert_eq!(kept(&run), [("a.aof.2.base.rdb".to_owned(), 1)]);
    assert!(run.disk.files().contains(&"a.aof.history.damaged"));
    assert!(run.disk.files().contains(&"a.aof.1.base.rdb"));
    let run = begin(Retention::Nothing, DAMAGED);
    assert!(run.disk.files().contains(&"a.aof.history"));
    assert!(run.disk.files().contains(&"a.aof.1.base.rdb"));
}
