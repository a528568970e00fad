//! Files that were made by hand: hostile ones, and those about which the programs differ.

use super::*;

const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";
const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";
/// An RDB file without keys and checksum.
const RDB: &[u8] = b"REDIS0010\xff\0\0\0\0\0\0\0\0";

fn file(name: &str, parts: &[&[u8]]) -> (Folder, PathBuf) {
    let folder = folder(name);
    let path = folder.at("f.aof");
    fs::write(&path, parts.concat()).expect("a file");
    (folder, path)
}

#[test]
fn hostile_files_are_judged_alike() {
    let cases: &[&[&[u8]]] = &[
        &[SET, b"*1\r\n$999999999999\r\nx\r\n"],
        &[b"*1\r\n$18446744073709551615\r\nx\r\n"],
        &[SET, b"*1\r\n$536870913\r\nx\r\n"],
        &[SET, b"*999999999\r\n$1\r\n"],
        &[b"*2147483647\r\n"],
        &[b"*2147483648\r\n"],
        &[b"*9223372036854775808\r\n$1\r\nx\r\n"],
        &[SET, b"*", &[b'1'; 200], b"\r\n"],
        &[SET, b"*1\r\n$-1\r\n"],
        &[SET, b"*1\r\n$-5\r\n"],
        &[SET, b"*1\r\n$0\r\n\r\n", SET],
        &[SET, b"\0\0\0\0\0\0\0"],
        &[SET, b"\r\n", SET],
        &[SET, b"PING\r\n"],
        &[SET, b"*x\r\n"],
        &[b"*1\n$4\nPING\n"],
        &[SET, b"*1\r$4\r\nPING\r\n"],
        &[SET, b"*1\r\n$4\r\nPING\nX"],
        &[SET, b"*01\r\n$004\r\nPING\r\n"],
        &[SET, b"*1x\r\n$4\r\nPING\r\n"],
        &[SET, MULTI, SET, MULTI, SET, EXEC],
        &[SET, EXEC],
        &[SET, MULTI, SET],
        &[SET, b"*1\r\n$5\r\nmulti\r\n", SET, EXEC, SET],
        &[SET, b"*2\r\n$5\r\nMULTI\r\n$1\r\nx\r\n", SET],
        &[SET, MULTI, SET, b"*1\r\n$7\r\nDISCARD\r\n"],
        &[b"#\r\n#TS:1\n", SET, b"#x\r\n", MULTI, b"#TS:5\r\n", EXEC, b"#TS:6\r\n*3"],
        &[SET, MULTI, b"#TS:5\r\n"],
        &[SET, b"*1\r\n#TS:5\r\n$4\r\nPING\r\n"],
        &[b"#", &[b'x'; 1020], b"\r\n", SET],
        &[RDB],
        &[RDB, SET],
        &[RDB, SET, b"*1\r\n$"],
        &[RDB, b"\0\0"],
        &[RDB, RDB],
        &[],
    ];
    for (index, parts) in cases.iter().enumerate() {
        let (_folder, path) = file("hostile", parts);
        let (redis, ours) = both(&[], &path, "");
        let text = format!("case {index}\n{}\n{}", redis.text, ours.text);
        assert_eq!(ours.verdict.status, redis.verdict.status, "{text}");
        assert_eq!(ours.verdict.valid, redis.verdict.valid, "{text}");
    }
}

/// `docs/formats/aof.md` says why.
#[test]
fn some_files_are_judged_otherwise_than_by_redis() {
    let cases: &[(&[&[u8]], u64)] = &[
        (&[SET, b"*0\r\n", SET], 27),
        (&[SET, b"*-1\r\n", SET], 27),
        (&[SET, b"*\r\n", SET], 27),
        (&[SET, b"*+1\r\n$4\r\nPING\r\n"], 27),
        (&[SET, b"* 1\r\n$4\r\nPING\r\n"], 27),
        (&[SET, b"#TS:12"], 27),
    ];
    for (parts, valid) in cases {
        let (_folder, path) = file("otherwise", parts);
        let (redis, ours) = both(&[], &path, "");
        assert_eq!(redis.verdict.status, Some(0), "{}", redis.text);
        let expected = (Some(1), vec![*valid]);
        assert_eq!((ours.verdict.status, ours.verdict.valid), expected, "{}", ours.text);
    }
}

/// Redis cuts behind MULTI, which leaves a file that is damaged.
#[test]
fn a_time_within_a_transaction_cuts_before_it() {
    let (_folder, path) = file("multi", &[SET, MULTI, b"#TS:200\r\n", SET, EXEC]);
    let told = Program::Ours.check(&["--truncate-to-timestamp", "150"], &path, "");
    assert_eq!(told.verdict.status, Some(0), "{}", told.text);
    assert_eq!(fs::read(&path).expect("a file"), SET);
    let (_folder, path) = file("multi-first", &[MULTI, b"#TS:200\r\n", SET, EXEC]);
    let told = Program::Ours.check(&["--truncate-to-timestamp", "150"], &path, "");
    assert_eq!(told.verdict.status, Some(1), "{}", told.text);
    assert!(told.text.contains("has nothing before timestamp 150"), "{}", told.text);
}

#[test]
fn a_time_that_cannot_be_used_changes_nothing() {
    let times = [&b"#TS:100\r\n"[..], SET, b"#TS:200\r\n", SET];
    let cases: &[(&str, &[&[u8]])] = &[
        ("50", &times),
        ("x", &times),
        ("-1", &times),
        ("99999999999999999999", &times),
        ("150", &[b"#TS:abc\r\n", SET]),
        ("150", &[b"#TS:100\r\n", SET, b"xx#TS:200\r\n"]),
        ("200", &[b"#TS:100\r\n", SET, b"*3\r\n"]),
        ("150", &[b"#TS:100\r\n", MULTI, SET]),
        ("200", &times),
        ("150", &[SET]),
        ("150", &[]),
    ];
    for (time, parts) in cases {
        let (_folder, path) = file("no-time", parts);
        let (redis, ours) = both(&["--truncate-to-timestamp", time], &path, "");
        assert_eq!(ours.verdict.status, redis.verdict.status, "{time}\n{}", ours.text);
        assert_eq!(fs::read(&path).expect("a file"), parts.concat(), "{}", ours.text);
    }
}

/// A person must know that a repair takes more than the end of the file.
#[test]
fn the_question_says_what_else_is_lost() {
    let (_folder, path) = file("question", &[SET, b"xxx", SET, SET]);
    let told = Program::Ours.check(&[], &path, "");
    assert!(told.text.contains(&format!("check-aof --fix {}", path.display())), "{}", told.text);
    let told = Program::Ours.check(&["--fix"], &path, "n\n");
    assert!(told.text.contains("57 bytes from the damage on are lost, too"), "{}", told.text);
    let (_folder, path) = file("question-end", &[SET, b"*3\r\n"]);
    let told = Program::Ours.check(&["--fix"], &path, "n\n");
    assert!(!told.text.contains("are lost, too"), "{}", told.text);
}

#[test]
fn files_that_cannot_be_read_are_said() {
    let folder = folder("unreadable");
    for path in [folder.at("none"), PathBuf::from(folder.path()), folder.at("none.manifest")] {
        let (redis, ours) = both(&[], &path, "");
        assert_eq!((redis.verdict.status, ours.verdict.status), (Some(1), Some(1)));
        assert!(ours.text.contains("Cannot open file"), "{}", ours.text);
    }
}

/// To open a pipe would wait for its writer.
#[test]
fn a_pipe_is_no_file() {
    let folder = folder("pipe");
    let pipe = folder.at("pipe");
    let made = finish(spawn(Command::new("mkfifo").arg(&pipe)));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    fs::write(folder.at(MANIFEST), "file pipe seq 1 type b\n").expect("a file");
    for path in [pipe, folder.at(MANIFEST)] {
        let ours = Program::Ours.check(&[], &path, "");
        assert_eq!(ours.verdict.status, Some(1));
        assert!(ours.text.contains("it is not a regular file"), "{}", ours.text);
    }
}

#[test]
fn it_has_the_options_of_redis_and_its_name() {
    let (folder, path) = file("options", &[SET, b"*"]);
    let name = path.to_str().expect("text");
    let usages: [&[&str]; 6] = [
        &[],
        &["--fix"],
        &["--foo", name],
        &[name, name],
        &["--fix", "--truncate-to-timestamp", "1", name],
        &["--truncate-to-timestamp", "1"],
    ];
    for words in usages {
        for program in [Program::Redis, Program::Ours] {
            let told = tell(program.command().args(words), "y\n");
            assert_eq!(told.verdict.status, Some(1), "{program:?} {words:?}: {}", told.text);
        }
    }
    assert_eq!(fs::read(&path).expect("a file").len(), 28);
    let help = tell(Program::Ours.command().arg("--help"), "");
    assert!(help.text.starts_with("Usage: sheafdb check-aof"), "{}", help.text);
    assert_eq!(help.verdict.status, Some(0));
    for link in ["redis-check-aof", "sheafdb-check-aof"].map(|name| folder.at(name)) {
        std::os::unix::fs::symlink(Binary::under_test().path, &link).expect("a link");
        let told = tell(Command::new(&link).arg(name), "");
        assert_eq!((told.verdict.status, told.verdict.valid), (Some(1), vec![27]));
    }
}
