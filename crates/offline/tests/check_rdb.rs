//! `check-rdb` on files: what it prints, and whether it says that they are whole.

use std::path::{Path, PathBuf};
use std::process::Command;

use base::{Blob, DbIndex, UnixMs};
use rdb::file::{FileOptions, FileWriter, Meta, ScanOptions};
use rdb::{Owned, Shape};

/// A file which is removed when dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("check-rdb-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).expect("writable");
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn check(file: &Path, skip_unknown: bool) -> (bool, String) {
    let mut out = Vec::new();
    let options = ScanOptions { skip_unknown, verify: true, databases: Some(16), length: None };
    let whole = offline::check_rdb(file, options, &mut out, false).expect("it prints");
    (whole, String::from_utf8(out).expect("text"))
}

fn check_bytes(name: &str, bytes: &[u8]) -> (bool, String) {
    check(&Temporary::new(name, bytes).0, false)
}

fn writer() -> FileWriter {
    let options = FileOptions { compress: true, checksum: true, version: 10 };
    let mut writer = FileWriter::new(options, Vec::new());
    writer.begin(&[("redis-ver", b"7.0.0"), ("redis-bits", b"64")]);
    writer
}

fn finished(mut writer: FileWriter) -> Vec<u8> {
    writer.end();
    writer.take(Vec::new())
}

/// Keys of two databases, one that expires, one that is expired, a long string and a long list.
fn some() -> Vec<u8> {
    let mut writer = writer();
    let none = Meta::default();
    let expires = |at| Meta { expiry: Some(UnixMs(at)), ..none };
    let word = |text: &str| Owned::String(text.as_bytes().to_vec());
    let mut value = |db, name: &[u8], meta: &Meta, value: &Owned| {
        writer.database(DbIndex(db), None);
        writer.value(name, meta, &value.shaped(Shape::Plain)).expect("version 10 has it");
    };
    value(0, b"a", &none, &word("x"));
    value(7, b"b", &expires(1), &word("x"));
    value(0, b"c", &expires(i64::MAX), &Owned::Set(vec![b"1".to_vec(), b"m".to_vec()]));
    let long = (0..200_000).map(|n| n.to_string().into_bytes()).collect();
    value(0, b"long list", &none, &Owned::List(long));
    let mut noise = vec![0; 3 << 20];
    base::prng::Prng::new(1).fill(&mut noise);
    let mut text = writer.begin_text(b"long text", &none, Blob::from(&noise[..]));
    while !text.step(&mut writer, 1 << 20) {}
    finished(writer)
}

#[test]
fn a_whole_file_is_counted() {
    let file = some();
    let (whole, text) = check_bytes("whole", &file);
    assert!(whole, "{text}");
    let end = file.len();
    for line in [
        "[offset 26] AUX FIELD redis-ver = '7.0.0'".to_owned(),
        format!("[offset {end}] Checksum OK"),
        format!("[offset {end}] \\o/ RDB looks OK! \\o/"),
        "[info] 5 keys read".into(),
        "[info] 2 expires".into(),
        "[info] 1 already expired".into(),
        "[info] database 0: 4 keys, 1 expires, 0 already expired".into(),
        "[info] database 7: 1 keys, 1 expires, 1 already expired".into(),
        "[info] set: 1 keys, 2 elements, 5 bytes, the longest 5 bytes".into(),
        format!("[info] version 10, {end} bytes"),
    ] {
        assert!(text.lines().any(|one| one == line), "no '{line}' in\n{text}");
    }
    assert!(text.contains("[info] list: 1 keys, 200000 elements, "), "{text}");
    assert!(
        text.contains("[info] string: 3 keys, 3 elements, 3.1 MB, the longest 3.1 MB"),
        "{text}"
    );
    assert_eq!(text.matches("Selecting DB ID").count(), 2, "each once:\n{text}");
    let (whole, text) = check_bytes("behind", &[&file[..], b"behind"].concat());
    assert!(whole && text.contains("[warning] 6 bytes follow the end of the data"), "{text}");
}

#[test]
fn a_file_that_is_wrong_is_said_to_be_with_its_place() {
    let file = some();
    let mut damaged = file.clone();
    let at = file.len() - 100;
    damaged[at] ^= 4;
    let cut = &file[..file.len() - 1];
    let sum = file.len() - 8;
    let values = |items: &[u8]| [b"REDIS0009\xfe\x03", items, b"\xff\0\0\0\0\0\0\0\0"].concat();
    for (name, bytes, line) in [
        (
            "damaged",
            &damaged[..],
            format!("[offset {sum}] at byte {sum}, database 0: the checksum"),
        ),
        ("cut", cut, format!("[offset {sum}] at byte {sum}, database 0: the file ends here")),
        ("other", b"hello, world", "[offset 0] at byte 0: this is no RDB file".into()),
        ("empty", b"", "[offset 0] at byte 0: the file ends here".into()),
        (
            "value",
            &values(b"\0\x01a\x01b\x02\x03set\x02\x01a\x01a"),
            "[offset 21] at byte 21, database 3, key 'set', type 2: a member".into(),
        ),
    ] {
        let (whole, text) = check_bytes(name, bytes);
        assert!(!whole, "{name}");
        assert!(text.contains("--- RDB ERROR DETECTED ---"), "{name}:\n{text}");
        assert!(text.contains(&line), "{name}: no '{line}' in\n{text}");
    }
    // What a start would refuse. A key that is due is left out there, so it may come again.
    let key = b"\0\x01a\x01b";
    let due = b"\xfc\x01\0\0\0\0\0\0\0\0\x01a\x01b";
    for (name, items, line) in [
        ("twice", [&key[..], key].concat(), "at byte 19, database 3, key 'a', type 0: the key occ"),
        ("other database", [key, &b"\xfe\x10"[..], key].concat(), "database 16: there are only 16"),
        ("due", [due, &key[..]].concat(), ""),
        ("twice in two", [key, &b"\xfe\x02"[..], key].concat(), ""),
    ] {
        let (whole, text) = check_bytes(name, &values(&items));
        assert_eq!(whole, line.is_empty(), "{name}:\n{text}");
        assert!(text.contains(line), "{name}: no '{line}' in\n{text}");
    }
    let members: Vec<_> = (0..100_000).map(|n| (n % 99_999).to_string().into_bytes()).collect();
    let mut writer = writer();
    writer.database(DbIndex(0), None);
    let long = Owned::Set(members);
    let long = long.shaped(Shape::Plain);
    writer.value(b"long", &Meta::default(), &long).expect("version 10 has it");
    let (whole, text) = check_bytes("long", &finished(writer));
    assert!(!whole && text.contains("key 'long', type 2: a member or field comes"), "{text}");
    let (whole, text) = check(Path::new("/nonexistent.rdb"), false);
    assert!(!whole && text.contains("cannot be read: No such file"), "{text}");
}

#[test]
fn values_of_modules_are_left_out_if_that_is_requested() {
    // The number of the module, an unsigned integer, the end of its values; and a string.
    let values = b"\x07\x01j\x01\x02\x05\0\0\x01a\x01b";
    let bytes = [&b"REDIS0009"[..], values, b"\xff", &[0; 8]].concat();
    let file = Temporary::new("module", &bytes);
    let (whole, text) = check(&file.0, false);
    assert!(!whole && text.contains("key 'j', type 7: it belongs to the module type"), "{text}");
    let (whole, text) = check(&file.0, true);
    assert!(whole && text.contains("left out of modules: 1 keys, and 0 times"), "{text}");
    assert!(text.contains("no check performed") && text.contains("[info] 1 keys read"), "{text}");
}

/// The lines that both print are the same. (Its offsets of databases are those of the opcodes.)
#[test]
fn lines_are_those_of_redis_check_rdb() {
    let file = Temporary::new("theirs", &some());
    let theirs = match Command::new("redis-check-rdb").arg(&file.0).output() {
        Ok(theirs) => theirs,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "redis-check-rdb: {error}");
            return eprintln!("skipped: redis-check-rdb: {error}");
        }
    };
    let theirs = String::from_utf8(theirs.stdout).expect("text");
    let (_, ours) = check(&file.0, false);
    let shared = |text: &str| -> Vec<String> {
        let is_shared = |line: &&str| {
            let words = ["Checking", "AUX", "Checksum", "looks", "read", "] 2 exp", "] 1 already"];
            !line.contains("database") && words.iter().any(|word| line.contains(word))
        };
        text.lines().filter(is_shared).map(str::to_owned).collect()
    };
    assert_eq!(shared(&ours), shared(&theirs), "{ours}\n{theirs}");
    assert_eq!(shared(&ours).len(), 8, "{ours}");
}
