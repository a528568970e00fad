//! The folder, or the segment's name in it, goes while the writer writes: it is noticed, nothing is
//! acknowledged from there on, and a new base makes everything durable again.

use super::disk::{Gone, Loss};
use super::{Fsync, Part, Run1, S, before_takeover};
use base::SeqNo;

impl Run1 {
    /// Looks whether the segment has its name, as worker 0 does each second.
    fn look(&mut self) {
        if let Some(op) = self.writer.look() {
            let done = self.disk.run(op, None);
            self.writer.on_look(done.outcome, self.now);
        }
    }

    fn is_lost(&self) -> bool {
        self.writer.lost.is_some()
    }

    /// Rewrites which succeed if the disk works, as long as a base is missing.
    fn mend(&mut self, fails: Option<(u64, u64, Loss)>) {
        for _ in 0..20 {
            self.now = self.now.plus(6 * S);
            self.look();
            self.settle(fails);
            if !self.is_lost() {
                return;
            }
            if self.writer.needs_base(self.now) {
                self.rewrite(Some(100), fails);
            }
        }
        panic!("no base succeeds: {:?}", self.writer.trouble());
    }

    /// A rewrite whose base is written if its folder is there all the time.
    fn rewrite(&mut self, bytes: Option<u64>, fails: Option<(u64, u64, Loss)>) {
        let base = self.cut();
        self.push(2);
        self.settle(fails);
        let bytes = bytes.filter(|_| self.disk.is_there(&base));
        self.writer.end_rewrite(bytes, self.now);
        self.push(1);
        self.settle(fails);
    }

    /// A crash leaves everything.
    fn check_restart(&self) {
        if self.terms.fsync == Fsync::No && self.disk.has_lost {
            return;
        }
        let (base, found) = self.disk.crash().expect("there is a manifest");
        let bytes: Vec<u8> = found.into_iter().flat_map(|(_, bytes)| bytes).collect();
        assert_eq!(bytes, self.stream(base, self.last), "behind the base of {base}");
    }
}

#[test]
fn a_folder_that_is_gone_is_noticed_and_made_again() {
    for fsync in [Fsync::Always, Fsync::EverySecond, Fsync::No] {
        for gone in Gone::ALL {
            let mut run = Run1::new(fsync);
            run.push(5);
            run.settle(None);
            run.rewrite(Some(100), None);
            run.look();
            assert!(!run.is_lost(), "it is there");
            run.disk.lose(gone);
            // Until somebody looks nobody can know.
            run.push(1);
            run.settle(None);
            let known = run.writer.durable();
            assert_eq!((known.0, run.writer.trouble()), (run.last, None));
            run.look();
            assert!(run.writer.trouble().is_some(), "{gone:?}");
            run.push(3);
            run.settle(None);
            assert_eq!(run.writer.durable(), known, "{gone:?}: nothing is acknowledged");
            assert!(!run.writer.is_idle() && run.disk.has_folder());
            assert!(run.writer.needs_base(run.now), "{gone:?}");
            run.cut();
            run.push(2);
            run.settle(None);
            assert_eq!(run.writer.durable(), known, "{gone:?}: the base is missing");
            assert!(!run.writer.needs_base(run.now), "one is being made");
            run.writer.end_rewrite(Some(100), run.now);
            run.settle(None);
            assert_eq!((run.writer.trouble(), run.is_lost()), (None, false), "{gone:?}");
            assert_eq!(run.writer.durable(), SeqNo(run.last));
            // It goes on as before.
            run.rewrite(None, None);
            run.push(4);
            run.is_ending = true;
            run.settle(None);
            assert!(run.writer.is_idle() && run.writer.backlog() == 0);
            run.check_restart();
        }
    }
}

/// Records, two rewrites, and something that goes behind an operation.
fn story(fsync: Fsync, gone: Gone, at: u64, fails: Option<(u64, u64, Loss)>) -> u64 {
    let mut run = Run1::new(fsync);
    run.disk.loses_at = Some((at, gone));
    run.settle(fails);
    for bytes in [Some(100), None, Some(200)] {
        run.push(3);
        run.proceed();
        run.push(12);
        run.settle(fails);
        if !run.writer.is_rewriting() {
            run.rewrite(bytes, fails);
        }
    }
    run.disk.loses_at = None;
    run.mend(fails);
    run.push(1);
    run.is_ending = true;
    run.settle(fails);
    assert!(run.writer.is_idle() && run.writer.trouble().is_none());
    assert_eq!(run.writer.durable().0, run.last);
    run.check_restart();
    run.disk.operations
}

#[test]
fn the_folder_may_go_behind_each_operation() {
    for fsync in [Fsync::Always, Fsync::EverySecond, Fsync::No] {
        let count = story(fsync, Gone::Folder, u64::MAX, None);
        for gone in Gone::ALL {
            for at in 0..count {
                story(fsync, gone, at, None);
                for loss in Loss::ALL {
                    // What mends it fails at first.
                    story(fsync, gone, at, Some((at + 2, 3, loss)));
                }
            }
        }
    }
}

/// A parent which is gone as well is waited for, and not asked for in a loop.
#[test]
fn a_folder_that_cannot_be_made_is_tried_once_a_second() {
    let mut run = Run1::new(Fsync::Always);
    run.push(5);
    run.settle(None);
    run.disk.lose(Gone::Parent);
    run.look();
    let before = run.disk.operations;
    let end = run.now.plus(20 * S);
    while run.now < end {
        run.proceed();
        if run.in_flight.is_empty() {
            let at = run.writer.next_wake(run.terms, run.now).expect("it is tried again");
            run.now = at.max(run.now.plus(1));
        } else {
            run.complete(0, None);
        }
    }
    let operations = run.disk.operations - before;
    assert!((18..=60).contains(&operations), "{operations} in 20 s");
    assert!(run.writer.trouble().is_some() && !run.writer.needs_base(run.now));
    run.disk.find_parent();
    run.mend(None);
    run.check_restart();
}

/// History whose files are gone is not listed any more; what is replaced then is not kept.
#[test]
fn history_that_is_gone_is_forgotten() {
    let mut run = Run1::new(Fsync::Always);
    run.terms.keep = config::Retention::Bytes(1 << 40);
    run.settle(None);
    for _ in 0..3 {
        run.push(10);
        run.rewrite(Some(100), None);
    }
    assert_eq!(run.disk.history().generations.len(), 2);
    run.disk.lose(Gone::Folder);
    run.mend(None);
    assert_eq!((run.disk.history().generations.len(), run.writer.history_bytes()), (0, 0));
    run.push(10);
    run.rewrite(Some(100), None);
    assert_eq!(run.disk.history().generations.len(), 1);
    run.check_restart();
}

/// Regression: what was being removed when the segment was lost stayed for ever.
#[test]
fn what_is_replaced_is_removed_although_the_segment_is_lost() {
    for steps in 0..12 {
        let mut run = before_takeover();
        for _ in 0..steps {
            let at = run.in_flight.iter().position(|(part, _)| *part == Part::Takeover);
            run.complete(at.expect("it is under way"), None);
            run.proceed();
        }
        run.disk.lose(Gone::Segment);
        run.look();
        run.mend(None);
        run.rewrite(Some(300), None);
        assert_eq!(run.disk.files().len(), 3, "behind {steps}: {:?}", run.disk.files());
        run.check_restart();
    }
}
