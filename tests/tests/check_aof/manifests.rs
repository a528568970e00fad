//! Manifests.

use super::*;

const INCR: &str = "file appendonly.aof.1.incr.aof seq 1 type i\n";
const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";

/// What both say about a manifest beside three files.
fn statuses(manifest: &str) -> (Option<i32>, Option<i32>, String) {
    let folder = folder("manifest");
    for name in ["appendonly.aof.1.incr.aof", "appendonly.aof.2.incr.aof", "base"] {
        fs::write(folder.at(name), SET).expect("a file");
    }
    fs::write(folder.at(MANIFEST), manifest).expect("a file");
    let (redis, ours) = both(&[], &folder.at(MANIFEST), "");
    let text = format!("{manifest}\n{}\n{}", redis.text, ours.text);
    (redis.verdict.status, ours.verdict.status, text)
}

#[test]
fn manifests_are_judged_alike() {
    let second = INCR.replace("aof.1", "aof.2");
    let (base, long) = ("file base seq 1 type b\n", "x".repeat(2000));
    let cases = [
        (INCR.to_owned(), 0),
        (INCR.replace('\n', "\r\n"), 0),
        (format!("# comment\n{INCR}"), 0),
        (INCR.replace(' ', "  "), 0),
        (INCR.replace("type i", "type i startoffset 0"), 0),
        (INCR.replace("appendonly.aof.1.incr.aof", r#""appendonly\x2eaof.1.incr.aof""#), 0),
        (format!("{base}{INCR}{}", second.replace("seq 1", "seq 7")), 0),
        (format!("{INCR}{base}file gone seq 1 type h\n"), 0),
        (INCR.trim_end().to_owned(), 1),
        (format!("{INCR}\n"), 1),
        (INCR.replace("type i", "type x"), 1),
        (INCR.replace("type i", "type"), 1),
        (INCR.replace("seq 1", "seq 0"), 1),
        (INCR.replace("seq 1", "seq -1"), 1),
        (INCR.replace("file ", "file ./"), 1),
        (INCR.replace("aof.1", "aof.9"), 1),
        (format!("{INCR}{second}"), 1),
        (format!("{base}{base}{INCR}"), 1),
        (format!("{INCR}{INCR}"), 1),
        (format!("#{long}\n{INCR}"), 1),
        ("file \"appendonly.aof.1.incr.aof seq 1 type i\n".to_owned(), 1),
        ("file '' seq 1 type i\n".to_owned(), 1),
    ];
    for (manifest, expected) in cases {
        let (redis, ours, text) = statuses(&manifest);
        assert_eq!((redis, ours), (Some(expected), Some(expected)), "{text}");
    }
}

/// `redis-check-aof` takes an empty file for an old one, which may be empty; a server refuses it as
/// a manifest. A file that is listed twice would be loaded twice.
#[test]
fn more_manifests_are_refused_than_by_redis() {
    let twice = [INCR, &INCR.replace("seq 1", "seq 2")].concat();
    for manifest in ["", "# comment\n", &twice, &INCR.replace("type i", "type i seq 2")] {
        let (redis, ours, text) = statuses(manifest);
        assert_eq!((redis, ours), (Some(0), Some(1)), "{text}");
    }
}

#[test]
fn names_with_spaces_are_those_of_redis() {
    let folder = folder("names");
    let words = [
        ["--dir", folder.path()],
        ["--appendonly", "yes"],
        ["--appendfilename", "a b\"\u{fc}\t.aof"],
    ];
    let mut server = ServerProcess::start(&redis(), words.as_flattened());
    change(&server, "one");
    server.terminate();
    server.wait_exit(Duration::from_secs(30)).expect("it ends");
    let manifest = folder.at("appendonlydir/a b\"\u{fc}\t.aof.manifest");
    let text = fs::read_to_string(&manifest).expect("it is there");
    assert!(text.contains(r#"file "a b\"\xc3\xbc\t.aof.1.incr.aof" seq 1 type i"#), "{text}");
    let verdict = assert_same(&manifest, &text);
    assert_eq!(verdict.status, Some(0));
}
