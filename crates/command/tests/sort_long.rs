//! SORT whose patterns name strings of many pages, and SORT of such elements: beside a live
//! redis-server, and with references to the pages instead of copies.

use crate::common::session::Session;
use crate::common::{Oracle, Value, with_args, words};
use base::Blob;
use base::blob::{BLOCK_MAX, PAGE_BYTES};
use value::list::Item;
use value::{Big, Str};

const LONG: usize = BLOCK_MAX + PAGE_BYTES + 1;

struct Pair {
    session: Session,
    oracle: Oracle,
}

impl Pair {
    fn new() -> Self {
        Self { session: Session::new(), oracle: Oracle::start() }
    }

    /// Asks both, which must agree. The reply may be too long to be printed.
    fn ask(&mut self, request: &[&[u8]], what: &str) -> Value {
        let (ours, theirs) = (self.session.ask(request), self.oracle.ask(request));
        assert!(ours == theirs, "{what}");
        ours
    }

    fn line(&mut self, line: &str) -> Value {
        self.ask(&words(line), line)
    }

    /// Asks both a line, once with the elements sorted at once, and once in steps.
    fn sort(&mut self, line: &str) {
        for few in [u64::MAX, 1] {
            self.session.settings.at_once_elements = few;
            self.line(line);
            if line.contains("STORE to") {
                self.line("LRANGE to 0 -1");
                self.line("OBJECT ENCODING to");
            }
        }
    }
}

/// Texts which differ at the borders of pages and blocks, and at their ends. All are different.
fn texts() -> Vec<Vec<u8>> {
    let changed = |at: usize, byte: u8| {
        let mut text = vec![b'm'; LONG];
        text[at] = byte;
        text
    };
    let mut texts = vec![vec![b'm'; LONG], vec![b'm'; LONG - 1], vec![b'm'; BLOCK_MAX]];
    for at in [0, PAGE_BYTES - 1, PAGE_BYTES, BLOCK_MAX, LONG - 1] {
        texts.extend([changed(at, b'a'), changed(at, b'z')]);
    }
    texts.extend([b"m".to_vec(), vec![b'm'; 20_000], vec![b'm'; 2000]]);
    texts
}

#[test]
fn long_weights_and_results_equal_those_of_redis() {
    let mut pair = Pair::new();
    for (n, text) in texts().iter().enumerate() {
        let (weight, hash) = (format!("w_{n}"), format!("h_{n}"));
        pair.ask(&[b"SET", weight.as_bytes(), text], "SET");
        pair.ask(&[b"HSET", hash.as_bytes(), b"f", text], "HSET");
        pair.line(&format!("RPUSH l {n}"));
        pair.line(&format!("SADD s {n}"));
        pair.ask(&[b"RPUSH", b"t", text], "RPUSH");
    }
    pair.line("RPUSH l none");
    pair.ask(&[b"SET", &[b"k_", &texts()[0][..]].concat(), b"found"], "SET");
    for key in ["l", "s"] {
        for by in ["BY w_*", "BY h_*->f"] {
            for words in [
                "ALPHA",
                "ALPHA DESC",
                "ALPHA LIMIT 3 4 GET # GET w_*",
                "ALPHA DESC LIMIT 2 5 GET h_*->f GET w_* STORE to",
                "STORE to",
            ] {
                pair.sort(&format!("SORT {key} {by} {words}"));
            }
        }
    }
    for line in [
        "SORT t ALPHA",
        "SORT t ALPHA DESC LIMIT 1 6",
        "SORT t ALPHA GET # GET k_*",
        "SORT t BY k_* ALPHA LIMIT 15 1",
        "SORT t ALPHA STORE to",
        "SORT t BY nosort DESC LIMIT 0 5",
        "SORT t BY nosort GET # STORE to",
        "SORT t",
        "SORT t STORE to",
        "SORT l BY nosort GET w_* STORE to",
    ] {
        pair.sort(line);
    }
}

/// A number may have a long text, and may end at a zero byte of one.
#[test]
fn long_numbers_equal_those_of_redis() {
    let many = |byte: u8, count: usize| vec![byte; count];
    let tail = many(b'x', LONG);
    let numbers = [
        [&many(b'0', LONG)[..], b"7"].concat(),
        [&many(b'0', LONG)[..], b"7z"].concat(),
        [&b"1"[..], &many(b'0', LONG)].concat(),
        [&b"0."[..], &many(b'0', LONG), b"1"].concat(),
        [&many(b' ', LONG)[..], b"5"].concat(),
        [&many(b' ', LONG)[..], b"-infinity"].concat(),
        many(b' ', LONG),
        many(0, LONG),
        many(b'-', LONG),
        many(b'x', LONG),
        [&b"3\0"[..], &tail].concat(),
        [&b"12"[..], &tail].concat(),
        [&b"nan\0"[..], &tail].concat(),
        [&many(b' ', PAGE_BYTES - 2)[..], b"inf\0", &tail].concat(),
        [&many(b'\t', PAGE_BYTES - 1)[..], b"-0x1p3\0", &tail].concat(),
        [&many(b' ', PAGE_BYTES)[..], b"\0", &tail].concat(),
        [&many(b' ', PAGE_BYTES)[..], b"1 2\0", &tail].concat(),
        [&many(b' ', PAGE_BYTES - 3)[..], b" 1", &many(b'0', PAGE_BYTES)[..], b"\0", &tail]
            .concat(),
    ];
    let (mut sorted, mut refused) = (0, 0);
    for (n, number) in numbers.iter().enumerate() {
        // Redis may refuse good numbers, too, after one which was out of range.
        let mut pair = Pair::new();
        pair.line("MSET n_a -8.5 n_b -1 n_c 0.5 n_d 2 n_e 4 n_f 6 n_g 100");
        pair.line("RPUSH l a b number c d e f g");
        pair.line("RPUSH t -8.5 -1 0.5 2 4 6 100");
        pair.ask(&[b"RPUSH", b"t", number], "RPUSH");
        pair.ask(&[b"SET", b"n_number", number], "SET");
        for line in ["SORT l BY n_*", "SORT l BY n_* DESC", "SORT t"] {
            for few in [u64::MAX, 1] {
                pair.session.settings.at_once_elements = few;
                match pair.ask(&words(line), &format!("{line} with number {n}")) {
                    Value::Error(_) => refused += 1,
                    _ => sorted += 1,
                }
            }
        }
    }
    assert!(sorted > 40 && refused > 40, "{sorted} and {refused}");
}

fn string_of(session: &mut Session, key: &[u8]) -> Blob {
    session.entry(key, |entry| match entry.expect("it is there").str() {
        Str::Blob(blob) => blob.clone(),
        _ => panic!("it is long"),
    })
}

fn element_of(session: &mut Session, key: &[u8], at: u64) -> Blob {
    session.entry(key, |entry| match entry.expect("it is there").big() {
        Some(Big::List(list)) => match list.get(at) {
            Some(Item::Far(blob)) => blob.clone(),
            item => panic!("{item:?} is long"),
        },
        _ => panic!("it is a big list"),
    })
}

/// Replies and stored lists share the pages of what they show, and nothing else keeps them.
/// A break which was seen here: texts which are always copied.
#[test]
fn results_share_the_pages_and_release_them() {
    let mut session = Session::new();
    let long = vec![b'a'; LONG];
    assert_eq!(session.ask(&[b"SET", b"w_1", &long]), Value::Simple("OK".to_owned()));
    assert_eq!(session.ask(&[b"RPUSH", b"t", &long, b"short"]), Value::Integer(2));
    session.ask_line("RPUSH l 1 2");
    for few in [u64::MAX, 1] {
        session.settings.at_once_elements = few;
        for (line, key) in [
            ("SORT l BY w_* ALPHA GET w_*", "w_1"),
            ("SORT t ALPHA", "t"),
            ("SORT t BY nosort DESC", "t"),
            ("SORT l BY w_* ALPHA GET w_* STORE to", "w_1"),
            ("SORT t ALPHA STORE to", "t"),
        ] {
            let source = |session: &mut Session| match key {
                "t" => element_of(session, b"t", 0),
                _ => string_of(session, key.as_bytes()),
            };
            let out = with_args(&words(line), |args| session.reply_to(args));
            if line.contains("STORE") {
                let at = u64::from(key == "w_1");
                let stored = element_of(&mut session, b"to", at);
                assert!(stored.is_same(&source(&mut session)), "{line}");
                session.ask_line("DEL to");
            } else {
                let [part] = &out.blobs[..] else { panic!("{} parts of {line}", out.blobs.len()) };
                assert!(part.blob.is_same(&source(&mut session)), "{line}");
            }
            drop(out);
            session.access.leave();
            assert!(session.access.enter());
            // One reference is the test's, so a copy of it is needed to see no other.
            let is_kept = session.entry(key.as_bytes(), |entry| {
                let entry = entry.expect("it is there");
                match (entry.big(), key) {
                    (Some(Big::List(list)), "t") => match list.get(0) {
                        Some(Item::Far(blob)) => blob.is_shared(),
                        _ => panic!("it is long"),
                    },
                    _ => matches!(entry.str(), Str::Blob(blob) if blob.is_shared()),
                }
            });
            assert!(!is_kept, "{line} keeps its string");
        }
    }
}
