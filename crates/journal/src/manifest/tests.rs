//! Tests of the manifest.

use proptest::prelude::*;

use super::*;

const BASE: &str = "file appendonly.aof.1.base.rdb seq 1 type b\n";
const INCR: &str = "file appendonly.aof.1.incr.aof seq 1 type i\n";

fn refused(text: &str) -> (usize, Fault) {
    let error = Manifest::parse(text.as_bytes()).expect_err(text);
    (error.line, error.fault)
}

/// What Redis 7.0.15 wrote while two rewrites left their files (`aof-disable-auto-gc yes`).
#[test]
fn a_manifest_of_redis_is_read_and_written() {
    let text = "file appendonly.aof.2.base.rdb seq 2 type b\n\
                file appendonly.aof.1.incr.aof seq 1 type h\n\
                file appendonly.aof.1.base.rdb seq 1 type h\n\
                file appendonly.aof.2.incr.aof seq 2 type i\n";
    let manifest = Manifest::parse(text.as_bytes()).expect("it is one");
    assert_eq!(manifest.text(), text.as_bytes());
    assert_eq!(manifest.base.as_ref().map(|file| file.seq), Some(2));
    assert_eq!((manifest.incr.len(), manifest.history.len()), (1, 2));
    let names: Vec<_> = manifest.loaded().map(|file| file.name.as_slice()).collect();
    assert_eq!(names, [&b"appendonly.aof.2.base.rdb"[..], b"appendonly.aof.2.incr.aof"]);
    assert_eq!(manifest.last(), manifest.incr.last());
}

/// What Redis 7.0.15 wrote with such an `appendfilename`.
#[test]
fn names_are_quoted_as_in_redis() {
    let names: [(&[u8], &str); 6] = [
        (b"a b", r#""a b.1.incr.aof""#),
        (b"a\"b", r#""a\"b.1.incr.aof""#),
        ("a\u{fc}b".as_bytes(), r#""a\xc3\xbcb.1.incr.aof""#),
        (b"a\x07\x08\r", r#""a\a\b\r.1.incr.aof""#),
        (b"a\x7fb", r#""a\x7fb.1.incr.aof""#),
        (b"#x", "#x.1.incr.aof"),
    ];
    for (name, quoted) in names {
        let mut manifest = Manifest::default();
        manifest.next_incr(name);
        let text = manifest.text();
        assert_eq!(String::from_utf8_lossy(&text), format!("file {quoted} seq 1 type i\n"));
        assert_eq!(Manifest::parse(&text), Ok(manifest));
    }
    // Redis writes this one without quotes, and does not start again.
    let mut manifest = Manifest::default();
    manifest.next_incr(b"a'b");
    assert_eq!(Manifest::parse(&manifest.text()), Ok(manifest));
}

/// Redis 7.0.15 takes the same.
#[test]
fn the_form_of_a_line_is_free() {
    let same = Manifest::parse(INCR.as_bytes());
    assert!(same.is_ok());
    for text in [
        INCR.replace('\n', "\r\n"),
        INCR.replace(' ', "\t "),
        format!("  {INCR}"),
        format!("# comment\n{INCR}#\n"),
        format!("#{}\n{INCR}", "x".repeat(LINE_MAX - 2)),
        INCR.replace("file", "FILE"),
        "seq 1 type i file appendonly.aof.1.incr.aof\n".to_owned(),
        INCR.replace("type i", "type i further 'a b'"),
        INCR.replace("appendonly.aof.1.incr.aof", r#""appendonly\x2eaof.1.incr.aof""#),
        INCR.replace("appendonly.aof.1.incr.aof", "'appendonly.aof.1.incr.aof'"),
    ] {
        assert_eq!(Manifest::parse(text.as_bytes()), same, "{text}");
    }
}

#[test]
fn offsets_of_redis_8_are_kept() {
    let text = INCR.replace("type i", "type i startoffset 0 endoffset 4294967296");
    let manifest = Manifest::parse(text.as_bytes()).expect("it is one");
    assert_eq!(manifest.incr[0].start_offset, Some(0));
    assert_eq!(manifest.incr[0].end_offset, Some(1 << 32));
    assert_eq!(manifest.text(), text.as_bytes());
}

/// Redis 7.0.15 refuses the same.
#[test]
fn what_is_no_manifest_is_refused_with_its_line() {
    assert_eq!(refused(""), (0, Fault::Empty));
    assert_eq!(refused(&INCR[..INCR.len() - 1]), (1, Fault::Unended));
    assert_eq!(refused(&format!("{INCR}\n")), (2, Fault::Format));
    assert_eq!(refused(&format!("   \n{INCR}")), (1, Fault::Format));
    assert_eq!(refused(&format!("  # x\n{INCR}")), (1, Fault::Format));
    assert_eq!(refused(&INCR.replace("type i", "type I")), (1, Fault::Type));
    assert_eq!(refused(&INCR.replace("type i", "type x")), (1, Fault::Type));
    assert_eq!(refused(&INCR.replace("type i", "type i foo")), (1, Fault::Format));
    assert_eq!(refused("seq 1 type i\n"), (1, Fault::Format));
    assert_eq!(refused("file a type i\n"), (1, Fault::Format));
    assert_eq!(refused("file a seq 1\n"), (1, Fault::Format));
    for seq in ["0", "-1", "x", "''"] {
        assert_eq!(refused(&INCR.replace("seq 1", &format!("seq {seq}"))), (1, Fault::Seq));
    }
    assert_eq!(refused(&[BASE, BASE].concat().replacen(".1.", ".2.", 1)), (2, Fault::SecondBase));
    let earlier = "file x.1 seq 1 type i\n";
    assert_eq!(refused(&[INCR, earlier].concat()), (2, Fault::Order));
    let later = "file x.2 seq 2 type i\n";
    assert_eq!(refused(&[later, earlier].concat()), (2, Fault::Order));
    for name in ["./a", "../x", "/etc/x", "''", r#""a\\b""#] {
        assert_eq!(refused(&format!("file {name} seq 1 type i\n")), (1, Fault::Path));
    }
    assert_eq!(refused("file \"a seq 1 type i\n"), (1, Fault::Format));
    assert_eq!(refused(&format!("#{}\n", "x".repeat(LINE_MAX - 1))), (1, Fault::LongLine));
    assert_eq!(refused("file a\0 seq 1 type i\n"), (1, Fault::Format));
}

/// Redis 7.0.15 takes these: the last of two values, digits before a letter, a file which is loaded
/// twice or which is a folder, and a manifest which lists nothing.
#[test]
fn more_is_refused_than_by_redis() {
    assert_eq!(refused("# only a comment\n"), (0, Fault::Empty));
    assert_eq!(refused(&INCR.replace("seq 1", "seq 1x")), (1, Fault::Seq));
    assert_eq!(refused(&INCR.replace("seq 1", "seq 99999999999999999999")), (1, Fault::Seq));
    assert_eq!(refused(&INCR.replace("seq 1", "seq 4611686018427387905")), (1, Fault::Seq));
    assert_eq!(refused(&INCR.replace("type i", "type i seq 2")), (1, Fault::Repeated));
    assert_eq!(refused(&INCR.replace("type i", "type incr")), (1, Fault::Type));
    let twice = [INCR, &INCR.replace("seq 1", "seq 2")].concat();
    assert_eq!(refused(&twice), (2, Fault::SameName));
    for name in [".", "..", r#""a\x00b""#] {
        assert_eq!(refused(&format!("file {name} seq 1 type i\n")), (1, Fault::Path));
    }
    assert_eq!(refused(&INCR.replace("type i", "type i startoffset x")), (1, Fault::Offset));
}

#[test]
fn an_error_is_a_sentence() {
    let error = Manifest::parse(b"# x\nfile a seq 1 type x\n").expect_err("a type");
    let text = "line 2: the type is none of b (base), h (history) and i (incremental)";
    assert_eq!((error.to_string().as_str(), error.text.as_str()), (text, "file a seq 1 type x"));
}

/// As Redis 7.0.15: the changes go to a new file when a rewrite begins; when it ends, its file is
/// the base, and what it holds is history.
#[test]
fn a_rewrite_replaces_the_base_and_the_changes_before_it() {
    let mut manifest = Manifest::default();
    let name = b"appendonly.aof";
    assert_eq!(manifest.next_base(name, BaseFormat::Rdb).name, b"appendonly.aof.1.base.rdb");
    assert_eq!(manifest.next_incr(name).name, b"appendonly.aof.1.incr.aof");
    let begun = manifest.next_incr(name);
    assert_eq!(begun.name, b"appendonly.aof.2.incr.aof");
    let base = manifest.next_base(name, BaseFormat::Commands);
    assert_eq!(base.name, b"appendonly.aof.2.base.aof");
    manifest.retire(begun.seq);
    let text = "file appendonly.aof.2.base.aof seq 2 type b\n\
                file appendonly.aof.1.base.rdb seq 1 type h\n\
                file appendonly.aof.1.incr.aof seq 1 type h\n\
                file appendonly.aof.2.incr.aof seq 2 type i\n";
    assert_eq!(String::from_utf8_lossy(&manifest.text()), text);
    manifest.history.clear();
    assert_eq!(Manifest::parse(&manifest.text()), Ok(manifest));
}

/// The files that an upgrade of Redis 7.0.15 has listed.
#[test]
fn an_old_file_becomes_the_base() {
    let mut manifest = Manifest::of_old_file(b"appendonly.aof");
    manifest.next_incr(b"appendonly.aof");
    let text = "file appendonly.aof seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n";
    assert_eq!(String::from_utf8_lossy(&manifest.text()), text);
    assert_eq!(manifest_name(b"appendonly.aof"), b"appendonly.aof.manifest");
}

/// A new file must not have the name of one which is removed afterwards.
#[test]
fn listed_names_are_not_given_again() {
    let text = "file a.1.incr.aof seq 9 type h\nfile a.2.incr.aof seq 8 type b\n";
    let mut manifest = Manifest::parse(text.as_bytes()).expect("it is one");
    assert_eq!(manifest.next_incr(b"a").name, b"a.3.incr.aof");
    let largest = format!("file x seq {SEQ_MAX} type i\nfile y seq {SEQ_MAX} type b\n");
    let mut manifest = Manifest::parse(largest.as_bytes()).expect("it is one");
    assert_eq!(manifest.next_incr(b"a").seq, SEQ_MAX + 1);
    assert_eq!(manifest.next_base(b"a", BaseFormat::Rdb).seq, SEQ_MAX + 1);
}

proptest! {
    #[test]
    fn what_is_written_is_read(names in prop::collection::hash_set("[^/\\\\\0]{1,12}", 1..6)) {
        let mut manifest = Manifest::default();
        for name in names {
            manifest.next_base(name.as_bytes(), BaseFormat::Rdb);
            manifest.next_incr(name.as_bytes());
        }
        prop_assert_eq!(Manifest::parse(&manifest.text()), Ok(manifest));
    }
}
