//! What a reply must be, and the judgement over what it is.

use std::collections::VecDeque;

use base::num::parse_i64;

use super::scan::{Kind, Sink};
use super::values;
use crate::result::Failures;

/// What the reply to a request must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Anything but an error.
    Any,
    /// Anything but an error and nil.
    Present,
    /// Nil.
    Nil,
    /// `+OK` or `+PONG`.
    Simple(&'static str),
    /// This integer.
    Integer(i64),
    /// The value of a key in a version.
    Value {
        /// The key's number.
        key: u64,
        /// How often it was written.
        version: u32,
    },
    /// An aggregate; what its members must be stands behind it.
    Members(u32),
}

/// How a thread's requests ended.
#[derive(Debug, Default)]
pub struct Tally {
    /// Replies, right or not.
    pub replies: u64,
    /// Those that were not right.
    pub failures: Failures,
}

impl Tally {
    /// Keeps the first explanation.
    pub fn explain(&mut self, why: impl FnOnce() -> String) {
        if self.failures.first_error.is_empty() {
            self.failures.first_error = why();
        }
    }
}

/// The worst that was seen in a reply so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Verdict {
    #[default]
    Right,
    Nil,
    Wrong,
    Error,
}

/// A connection's reply that is coming in.
#[derive(Debug, Default)]
pub struct Judge {
    expects: VecDeque<Expect>,
    verdict: Verdict,
    /// Members of the reply whose expectations are still in the queue.
    members: u32,
}

impl Judge {
    /// The expectations, to append those of a request.
    pub fn expects(&mut self) -> &mut VecDeque<Expect> {
        &mut self.expects
    }
}

/// Counts replies: errors fail, nil fails if that is asked for.
pub struct Count<'a> {
    /// The connection's reply so far.
    pub judge: &'a mut Judge,
    /// Where to count.
    pub tally: &'a mut Tally,
    /// Nil is a failure.
    pub nil_fails: bool,
}

impl Sink for Count<'_> {
    const WHOLE: bool = false;

    #[inline]
    fn value(&mut self, kind: Kind, text: &[u8], _nested: bool) {
        match kind {
            Kind::Error => error(self.judge, self.tally, text),
            Kind::Nil if self.nil_fails && self.judge.verdict == Verdict::Right => {
                self.judge.verdict = Verdict::Nil;
            }
            _ => {}
        }
    }

    #[inline]
    fn reply(&mut self) {
        self.tally.replies += 1;
        if self.judge.verdict != Verdict::Right {
            close(self.judge, self.tally);
        }
    }
}

/// Compares every reply with what was expected.
pub struct Check<'a> {
    /// The connection's expectations.
    pub judge: &'a mut Judge,
    /// Where to count.
    pub tally: &'a mut Tally,
    /// The range of the values' lengths.
    pub data: (usize, usize),
}

impl Sink for Check<'_> {
    const WHOLE: bool = true;

    fn value(&mut self, kind: Kind, text: &[u8], nested: bool) {
        if kind == Kind::Error {
            return error(self.judge, self.tally, text);
        }
        if nested {
            if self.judge.members == 0 {
                return; // a member of an aggregate that may hold anything
            }
            self.judge.members -= 1;
        }
        let expect = self.judge.expects.pop_front().unwrap_or(Expect::Any);
        if let Expect::Members(len) = expect {
            self.judge.members = len;
        }
        let verdict = judged(expect, kind, text, self.data);
        if verdict == Verdict::Right || self.judge.verdict != Verdict::Right {
            return;
        }
        self.judge.verdict = verdict;
        self.tally.explain(|| explained(expect, kind, text));
    }

    fn reply(&mut self) {
        self.tally.replies += 1;
        if self.judge.members > 0 {
            // Fewer members than promised, or something else instead of them.
            let left = self.judge.members as usize;
            self.judge.expects.drain(..left.min(self.judge.expects.len()));
            self.judge.members = 0;
            if self.judge.verdict == Verdict::Right {
                self.judge.verdict = Verdict::Wrong;
            }
        }
        if self.judge.verdict != Verdict::Right {
            close(self.judge, self.tally);
        }
    }
}

/// An error takes the place of whatever was expected of the reply.
#[cold]
fn error(judge: &mut Judge, tally: &mut Tally, text: &[u8]) {
    if judge.members == 0
        && judge.verdict != Verdict::Error
        && let Some(Expect::Members(len)) = judge.expects.pop_front()
    {
        judge.members = len;
    }
    judge.verdict = Verdict::Error;
    tally.explain(|| text.escape_ascii().to_string());
}

#[cold]
fn close(judge: &mut Judge, tally: &mut Tally) {
    match std::mem::take(&mut judge.verdict) {
        Verdict::Right => {}
        Verdict::Nil => {
            tally.failures.nil += 1;
            tally.explain(|| "nil where a value must be".to_owned());
        }
        Verdict::Wrong => tally.failures.wrong += 1,
        Verdict::Error => tally.failures.errors += 1,
    }
}

#[inline]
fn judged(expect: Expect, kind: Kind, text: &[u8], data: (usize, usize)) -> Verdict {
    let right = match expect {
        Expect::Any => true,
        Expect::Nil => kind == Kind::Nil,
        _ if kind == Kind::Nil => return Verdict::Nil,
        Expect::Present => true,
        Expect::Simple(wanted) => kind == Kind::Simple && text == wanted.as_bytes(),
        Expect::Integer(wanted) => kind == Kind::Integer && parse_i64(text) == Some(wanted),
        Expect::Value { key, version } => {
            kind == Kind::Bulk
                && text.len() == values::len(key, version, data)
                && values::matches(key, version, text)
        }
        Expect::Members(len) => kind == Kind::Aggregate(u64::from(len)),
    };
    if right { Verdict::Right } else { Verdict::Wrong }
}

fn explained(expect: Expect, kind: Kind, text: &[u8]) -> String {
    const SHOWN_MAX: usize = 40;
    let text = text[..text.len().min(SHOWN_MAX)].escape_ascii();
    let got = match kind {
        Kind::Nil => "nil".to_owned(),
        Kind::Aggregate(len) => format!("{len} members"),
        _ => format!("\"{text}\""),
    };
    match expect {
        Expect::Value { key, version } => {
            format!("key {key}: {got} is not the value of its write number {version}")
        }
        other => format!("{got} where {other:?} was expected"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::scan::Scanner;

    fn value(key: u64, version: u32) -> Vec<u8> {
        let mut bytes = vec![0; 10];
        values::fill(key, version, &mut bytes);
        [b"$10\r\n", &bytes[..], b"\r\n"].concat()
    }

    fn checked(expects: &[Expect], input: &[u8]) -> (u64, Failures) {
        let (mut judge, mut tally) = (Judge::default(), Tally::default());
        judge.expects().extend(expects);
        let mut sink = Check { judge: &mut judge, tally: &mut tally, data: (10, 10) };
        let used = Scanner::default().scan(input, &mut sink).expect("these are replies");
        assert_eq!(used, input.len());
        assert!(judge.expects.is_empty(), "what was expected is used up: {judge:?}");
        (tally.replies, tally.failures)
    }

    fn failures(errors: u64, nil: u64, wrong: u64) -> Failures {
        Failures { errors, nil, wrong, ..Failures::default() }
    }

    fn kinds(mut found: Failures) -> Failures {
        found.first_error.clear();
        found
    }

    #[test]
    fn every_expectation_accepts_and_refuses_replies() {
        use Expect::{Any, Integer, Members, Nil, Present, Simple, Value};
        let of = |expect, input: &[u8]| kinds(checked(&[expect], input).1);
        let fine = failures(0, 0, 0);
        let wrong = failures(0, 0, 1);
        let (ours, theirs) = (value(3, 1), value(4, 1));
        assert_eq!(of(Any, b"$-1\r\n"), fine);
        assert_eq!(of(Any, b"*2\r\n:1\r\n_\r\n"), fine);
        assert_eq!(of(Present, b"$-1\r\n"), failures(0, 1, 0));
        assert_eq!(of(Present, b"$0\r\n\r\n"), fine);
        assert_eq!(of(Nil, b"_\r\n"), fine);
        assert_eq!(of(Nil, &ours), wrong);
        assert_eq!(of(Simple("OK"), b"+OK\r\n"), fine);
        assert_eq!(of(Simple("OK"), b"+QUEUED\r\n"), wrong);
        assert_eq!(of(Integer(1), b":1\r\n"), fine);
        assert_eq!(of(Integer(1), b":0\r\n"), wrong);
        assert_eq!(of(Value { key: 3, version: 1 }, &ours), fine);
        assert_eq!(of(Value { key: 3, version: 2 }, &ours), wrong);
        assert_eq!(of(Value { key: 3, version: 1 }, &theirs), wrong);
        assert_eq!(of(Value { key: 3, version: 1 }, b"$-1\r\n"), failures(0, 1, 0));
        assert_eq!(of(Value { key: 3, version: 1 }, b"-LOADING\r\n"), failures(1, 0, 0));
        assert_eq!(of(Members(0), b"*0\r\n"), fine);
    }

    #[test]
    fn elements_are_checked_one_by_one_and_the_next_reply_is_aligned() {
        let next = Expect::Integer(7);
        let two = [Expect::Value { key: 1, version: 1 }, Expect::Value { key: 2, version: 1 }];
        let expects = [&[Expect::Members(2)], &two[..], &[next]].concat();
        let of = |input: &[&[u8]]| {
            let (replies, found) = checked(&expects, &[input, &[b":7\r\n"]].concat().concat());
            assert_eq!(replies, 2);
            kinds(found)
        };
        assert_eq!(of(&[b"*2\r\n", &value(1, 1), &value(2, 1)]), failures(0, 0, 0));
        assert_eq!(of(&[b"*2\r\n", &value(1, 1), &value(1, 1)]), failures(0, 0, 1));
        assert_eq!(of(&[b"*2\r\n", &value(1, 1), b"$-1\r\n"]), failures(0, 1, 0));
        assert_eq!(of(&[b"*1\r\n", &value(1, 1)]), failures(0, 0, 1));
        assert_eq!(of(&[b"*3\r\n", &value(1, 1), &value(2, 1), b":1\r\n"]), failures(0, 0, 1));
        assert_eq!(of(&[b"-ERR no\r\n"]), failures(1, 0, 0));
        assert_eq!(of(&[b"*2\r\n", &value(1, 1), b"-ERR no\r\n"]), failures(1, 0, 0));
        assert_eq!(of(&[b"+OK\r\n"]), failures(0, 0, 1));
    }

    #[test]
    fn errors_and_nil_are_counted_once_per_reply_at_any_depth() {
        let (mut judge, mut tally) = (Judge::default(), Tally::default());
        let mut sink = Count { judge: &mut judge, tally: &mut tally, nil_fails: true };
        let input = b"+OK\r\n-ERR a\r\n*2\r\n-ERR b\r\n-ERR c\r\n*2\r\n_\r\n$-1\r\n:1\r\n";
        Scanner::default().scan(input, &mut sink).expect("these are replies");
        assert_eq!(tally.replies, 5);
        assert_eq!(tally.failures.first_error, "ERR a");
        assert_eq!(kinds(tally.failures), failures(2, 1, 0));
    }
}
