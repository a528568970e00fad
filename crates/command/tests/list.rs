//! Lists of every layout compared with a deque, and replies which are written in steps.

use crate::common::Value;
use crate::common::session::Session;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;

fn bulk(bytes: &[u8]) -> Value {
    Value::Bulk(String::from_utf8_lossy(bytes).into_owned())
}

fn array<'a>(texts: impl IntoIterator<Item = &'a Vec<u8>>) -> Value {
    Value::Array(texts.into_iter().map(|text| bulk(text)).collect())
}

fn ask(session: &mut Session, words: &[&[u8]]) -> Value {
    session.ask_at(words)
}

#[derive(Clone, Debug)]
enum Op {
    Push(bool, Vec<Vec<u8>>),
    Pop(bool, usize),
    Set(usize, Vec<u8>),
    Insert(usize, Vec<u8>),
    Trim(usize, usize),
    Remove(usize, i64),
    Rotate(bool, bool),
    Move(bool, bool),
    Many(Many),
    Limit(i64),
}

/// LMOVEM to the same list or to another one.
#[derive(Clone, Copy, Debug)]
struct Many {
    from: bool,
    to: bool,
    count: usize,
    is_exact: bool,
    in_bulk: bool,
    is_itself: bool,
}

/// Small texts which repeat, and larger ones which are stored in pages, on their own, or in shared
/// buffers.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (0..20u32).prop_map(|n| n.to_string().into_bytes()),
        4 => (0..20usize).prop_map(|n| vec![b'e'; n]),
        2 => (100..1100usize).prop_map(|n| vec![b'p'; n]),
        1 => (1100..70_000usize).prop_map(|n| vec![b'f'; n]),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (any::<bool>(), prop::collection::vec(text(), 1..40)).prop_map(|(f, t)| Op::Push(f, t)),
        4 => (any::<bool>(), 0..60usize).prop_map(|(f, n)| Op::Pop(f, n)),
        2 => (any::<usize>(), text()).prop_map(|(n, t)| Op::Set(n, t)),
        2 => (any::<usize>(), text()).prop_map(|(n, t)| Op::Insert(n, t)),
        1 => (0..30usize, 0..200usize).prop_map(|(f, n)| Op::Trim(f, n)),
        2 => (any::<usize>(), -3..4i64).prop_map(|(n, c)| Op::Remove(n, c)),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(f, t)| Op::Rotate(f, t)),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(f, t)| Op::Move(f, t)),
        3 => (1..60usize, any::<[bool; 5]>()).prop_map(|(count, [from, to, is_exact, in_bulk, is_itself])| {
            Op::Many(Many { from, to, count, is_exact, in_bulk, is_itself })
        }),
        1 => prop_oneof![Just(-2), Just(-1), Just(5), Just(100)].prop_map(Op::Limit),
    ]
}

fn end(front: bool) -> &'static [u8] {
    if front { b"LEFT" } else { b"RIGHT" }
}

fn pop(model: &mut VecDeque<Vec<u8>>, front: bool) -> Option<Vec<u8>> {
    if front { model.pop_front() } else { model.pop_back() }
}

fn push(model: &mut VecDeque<Vec<u8>>, front: bool, text: Vec<u8>) {
    if front { model.push_front(text) } else { model.push_back(text) }
}

/// Removes the elements which LREM removes. Returns their number.
fn remove(model: &mut VecDeque<Vec<u8>>, text: &[u8], count: i64) -> i64 {
    let max = if count == 0 { usize::MAX } else { count.unsigned_abs() as usize };
    let mut found: Vec<usize> = (0..model.len()).filter(|at| model[*at] == text).collect();
    if count < 0 {
        found.reverse();
    }
    found.truncate(max);
    found.sort_unstable();
    for at in found.iter().rev() {
        model.remove(*at);
    }
    found.len() as i64
}

/// Sends LMOVEM. Returns its reply, and the elements moved out of the model.
fn move_many(
    s: &mut Session,
    model: &mut VecDeque<Vec<u8>>,
    many: Many,
) -> (Value, Option<Vec<Vec<u8>>>) {
    let (selector, order): (&[u8], &[u8]) = (
        if many.is_exact { b"EXACTLY" } else { b"COUNT" },
        if many.in_bulk { b"BULK" } else { b"OBO" },
    );
    let (to, count) = (if many.is_itself { b"l" } else { &b"other"[..] }, many.count.to_string());
    let ends = [end(many.from), end(many.to)];
    let reply = ask(s, &[b"LMOVEM", b"l", to, ends[0], ends[1], selector, count.as_bytes(), order]);
    if many.is_exact && model.len() < many.count {
        return (reply, None);
    }
    let mut moved: Vec<_> = (0..many.count).map_while(|_| pop(model, many.from)).collect();
    // Moved one after the other and pushed to the front, the last one is first.
    if !many.in_bulk && many.to || many.in_bulk && !many.from {
        moved.reverse();
    }
    (reply, Some(moved))
}

fn put_many(target: &mut VecDeque<Vec<u8>>, in_front: bool, texts: Vec<Vec<u8>>) {
    if in_front {
        texts.into_iter().rev().for_each(|text| target.push_front(text));
    } else {
        target.extend(texts);
    }
}

/// Applies an operation to the list and the model, and compares the replies.
fn apply(s: &mut Session, model: &mut VecDeque<Vec<u8>>, other: &mut VecDeque<Vec<u8>>, op: Op) {
    match op {
        Op::Push(front, texts) => {
            let mut words: Vec<&[u8]> = vec![if front { b"LPUSH" } else { b"RPUSH" }, b"l"];
            words.extend(texts.iter().map(Vec::as_slice));
            let reply = ask(s, &words);
            for text in &texts {
                push(model, front, text.clone());
            }
            assert_eq!(reply, Value::Integer(model.len() as i64));
        }
        Op::Pop(front, n) => {
            let name: &[u8] = if front { b"LPOP" } else { b"RPOP" };
            let reply = ask(s, &[name, b"l", n.to_string().as_bytes()]);
            if !model.is_empty() {
                let popped: Vec<_> = (0..n).map_while(|_| pop(model, front)).collect();
                assert_eq!(reply, array(&popped));
            }
        }
        Op::Set(at, text) if !model.is_empty() => {
            let at = at % model.len();
            ask(s, &[b"LSET", b"l", at.to_string().as_bytes(), &text]);
            model[at] = text;
        }
        Op::Insert(at, text) if !model.is_empty() => {
            let pivot = model[at % model.len()].clone();
            let at = model.iter().position(|text| *text == pivot).expect("it is there");
            let reply = ask(s, &[b"LINSERT", b"l", b"AFTER", &pivot, &text]);
            model.insert(at + 1, text);
            assert_eq!(reply, Value::Integer(model.len() as i64));
        }
        Op::Trim(from, back) => {
            let stop = -1 - back as i64 / 20;
            ask(s, &[b"LTRIM", b"l", from.to_string().as_bytes(), stop.to_string().as_bytes()]);
            let to = (model.len() as i64 + stop + 1).max(0) as usize;
            model.truncate(to);
            model.drain(..from.min(model.len()));
        }
        Op::Remove(at, count) if !model.is_empty() => {
            let text = model[at % model.len()].clone();
            let reply = ask(s, &[b"LREM", b"l", count.to_string().as_bytes(), &text]);
            assert_eq!(reply, Value::Integer(remove(model, &text, count)));
        }
        Op::Rotate(from, to) => {
            let reply = ask(s, &[b"LMOVE", b"l", b"l", end(from), end(to)]);
            if let Some(text) = pop(model, from) {
                assert_eq!(reply, bulk(&text));
                push(model, to, text);
            }
        }
        Op::Move(from, to) => {
            let reply = ask(s, &[b"LMOVE", b"l", b"other", end(from), end(to)]);
            if let Some(text) = pop(model, from) {
                assert_eq!(reply, bulk(&text));
                push(other, to, text);
            }
        }
        Op::Many(many) => {
            let (reply, moved) = move_many(s, model, many);
            let expected = moved.as_ref().map_or(Value::Null, array);
            assert_eq!(reply, expected, "{many:?}");
            let target = if many.is_itself { model } else { other };
            put_many(target, many.to, moved.unwrap_or_default());
        }
        Op::Limit(setting) => s.settings.list_max_listpack_size = setting,
        Op::Set(..) | Op::Insert(..) | Op::Remove(..) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn a_list_behaves_like_a_deque(ops in prop::collection::vec(op(), 1..60)) {
        let mut session = Session::new();
        let (mut model, mut other) = (VecDeque::new(), VecDeque::new());
        for op in ops {
            apply(&mut session, &mut model, &mut other, op);
            let len = session.ask_line("LLEN l");
            prop_assert_eq!(len, Value::Integer(model.len() as i64));
            prop_assert_eq!(session.ask_line("LRANGE l 0 -1"), array(&model));
            if let Some(text) = model.back() {
                prop_assert_eq!(session.ask_line("LINDEX l -1"), bulk(text));
                let Value::Integer(at) = session.ask_at(&[b"LPOS", b"l", text]) else { panic!("a position") };
                prop_assert_eq!(Some(at as usize), model.iter().position(|other| other == text));
                let backwards: [&[u8]; 5] = [b"LPOS", b"l", text, b"RANK", b"-1"];
                prop_assert_eq!(session.ask_at(&backwards), Value::Integer(model.len() as i64 - 1));
            }
        }
        prop_assert_eq!(session.ask_line("LRANGE other 0 -1"), array(&other));
        session.ask_line("DEL l other");
        let keyspace = Arc::clone(session.access.keyspace());
        prop_assert_eq!(keyspace.memory().entries, 0, "every byte was accounted for");
    }
}

/// A list of this many elements, which are their numbers.
fn long(session: &mut Session, len: usize) -> Vec<Vec<u8>> {
    let texts: Vec<Vec<u8>> = (0..len).map(|n| format!("element:{n}").into_bytes()).collect();
    for part in texts.chunks(5000) {
        let words: Vec<&[u8]> =
            [&b"RPUSH"[..], b"l"].into_iter().chain(part.iter().map(Vec::as_slice)).collect();
        session.ask_at(&words);
    }
    texts
}

#[test]
fn large_replies_in_steps_show_the_state_at_the_request() {
    let mut session = Session::new();
    let mut texts = long(&mut session, 30_000);
    assert_eq!(session.ask_line("LRANGE l 0 -1"), array(&texts));
    assert!(session.steps > 5, "{} steps", session.steps);
    assert_eq!(session.ask_line("LRANGE l 10 1009"), array(&texts[10..1010]));
    assert_eq!(session.steps, 1);
    let popped: Vec<_> = texts.drain(..6000).collect();
    assert_eq!(session.ask_line("LPOP l 6000"), array(&popped));
    assert!(session.steps > 1);
    let popped: Vec<_> = texts.drain(18_000..).rev().collect();
    assert_eq!(session.ask_line("RPOP l 6000"), array(&popped));
    assert_eq!(session.ask_line("LRANGE l 0 -1"), array(&texts));
    let all = Value::Array(vec![bulk(b"l"), array(&texts)]);
    assert_eq!(session.ask_line("LMPOP 1 l LEFT COUNT 1000000"), all);
    assert_eq!(session.ask_line("EXISTS l"), Value::Integer(0));
    assert_eq!(session.access.keyspace().memory().entries, 0);
}

#[test]
fn many_elements_are_moved_at_once_and_written_in_steps() {
    let mut session = Session::new();
    let texts = long(&mut session, 30_000);
    let words = "LMOVEM l other RIGHT RIGHT COUNT 29999 OBO";
    let moved: Vec<_> = texts[1..].iter().rev().cloned().collect();
    assert_eq!(session.ask_line(words), array(&moved));
    assert!(session.steps > 5, "{} steps", session.steps);
    assert_eq!(session.ask_line("LRANGE other 0 -1"), array(&moved));
    assert_eq!(session.ask_line("LRANGE l 0 -1"), array(&texts[..1]));
    // All elements move, and the key keeps its expiry.
    session.ask_line("EXPIRE other 100");
    let words = "LMOVEM other other LEFT LEFT EXACTLY 29999 OBO";
    assert_eq!(session.ask_line(words), array(&texts[1..]));
    assert_eq!(session.ask_line("LRANGE other 0 -1"), array(&texts[1..]));
    assert_eq!(session.ask_line("TTL other"), Value::Integer(100));
    let words = "LMOVEM other l LEFT RIGHT EXACTLY 29999 BULK";
    assert_eq!(session.ask_line(words), array(&texts[1..]));
    assert_eq!(session.ask_line("LRANGE l 0 -1"), array(&texts));
    assert_eq!(session.ask_line("EXISTS other"), Value::Integer(0));
}

/// Regression (seed 50038): a packed list with more elements than one step writes had no pages to
/// continue with.
#[test]
fn a_packed_list_of_many_tiny_elements_is_written_in_steps() {
    let mut session = Session::new();
    let texts = vec![b"7".to_vec(); 2000];
    let words: Vec<&[u8]> =
        [&b"RPUSH"[..], b"l"].into_iter().chain(texts.iter().map(Vec::as_slice)).collect();
    assert_eq!(session.ask_at(&words), Value::Integer(2000));
    assert!(session.entry(b"l", |entry| entry.expect("it is there").packed().is_some()));
    assert_eq!(session.ask_line("LRANGE l 0 -1"), array(&texts));
    assert_eq!(session.ask_line("LPOP l 1500"), array(&texts[..1500]));
    assert_eq!(session.ask_line("RPOP l 500"), array(&texts[..500]));
}

/// Trim, removal and rebuild of long lists, which are not logged element by element.
#[test]
fn changes_of_long_lists_agree_with_a_model() {
    let mut session = Session::new();
    let mut texts: VecDeque<Vec<u8>> = long(&mut session, 20_000).into();
    for line in ["LTRIM l 100 -101", "LTRIM l 9000 -3", "LTRIM l 5 9", "LTRIM l 0 1"] {
        let words: Vec<i64> =
            line.split(' ').skip(2).map(|n| n.parse().expect("a number")).collect();
        session.ask_line(line);
        let to = if words[1] < 0 { texts.len() as i64 + words[1] + 1 } else { words[1] + 1 };
        texts.truncate(to as usize);
        texts.drain(..words[0] as usize);
        assert_eq!(session.ask_line("LRANGE l 0 -1"), array(&texts), "{line}");
    }
    assert!(session.entry(b"l", |entry| entry.expect("it is there").packed().is_some()));
    for every in [2, 7, 100] {
        session.ask_line("DEL l");
        let mut texts = VecDeque::new();
        for n in 0..20_000 {
            let text: &[u8] = if n % every == 0 { b"x" } else { b"other" };
            session.ask_at(&[b"RPUSH", b"l", text]);
            texts.push_back(text.to_vec());
        }
        for (count, other) in [(3, "x"), (-200, "x"), (0, "x"), (-5, "other"), (0, "other")] {
            let removed = remove(&mut texts, other.as_bytes(), count);
            assert_eq!(
                session.ask_line(&format!("LREM l {count} {other}")),
                Value::Integer(removed)
            );
            assert_eq!(session.ask_line("LRANGE l 0 -1"), array(&texts), "{every} {count} {other}");
        }
    }
    assert_eq!(session.access.keyspace().memory().entries, 0);
}
