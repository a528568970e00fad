//! Files that redis-server wrote.

use super::*;

/// Whether a file that ends here ends within an annotation. Redis calls it whole; a command that is
/// appended to it would be taken for the rest of the annotation.
fn is_in_annotation(bytes: &[u8]) -> bool {
    let line = bytes.rsplit(|&byte| byte == b'\n').next().unwrap_or(bytes);
    line.starts_with(b"#")
}

#[test]
fn whole_files_are_whole_for_both() {
    for way in WAYS {
        let (_folder, files) = way.write();
        let (redis, ours) = both(&[], &files.join(MANIFEST), "");
        assert_eq!(ours.verdict, redis.verdict, "{way:?}\n{}", ours.text);
        assert_eq!(ours.verdict.status, Some(0), "{}", ours.text);
        // The lines are the same, up to what each says about the RDB file.
        let lines = |text: &str| {
            let is_common = |line: &&str| !line.starts_with('[');
            let plain = |line: &str| line.split(", ok_up_to_line").next().map(str::to_owned);
            text.lines().filter(is_common).filter_map(plain).collect::<Vec<_>>()
        };
        let cut = |line: &String| line.split(", diff").next().map(str::to_owned);
        let of = |text: &str| lines(text).iter().filter_map(cut).collect::<Vec<_>>();
        assert_eq!(of(&ours.text), of(&redis.text));
    }
}

/// The last 800 bytes hold all kinds of commands.
#[test]
fn a_file_that_is_cut_anywhere_is_judged_alike() {
    for way in WAYS {
        let (_folder, files) = way.write();
        let (manifest, last) = (files.join(MANIFEST), last_file(&files));
        let whole = fs::read(&last).expect("a file");
        assert!(whole.len() > 400, "{way:?}: {} bytes", whole.len());
        let mut damaged = 0;
        for end in whole.len().saturating_sub(800)..whole.len() {
            fs::write(&last, &whole[..end]).expect("a file");
            if is_in_annotation(&whole[..end]) {
                let (redis, ours) = both(&[], &manifest, "");
                assert_eq!((redis.verdict.status, ours.verdict.status), (Some(0), Some(1)));
                continue;
            }
            let verdict = assert_same(&manifest, &format!("{way:?} cut at {end}"));
            damaged += usize::from(verdict.status != Some(0));
        }
        assert!(damaged > 300, "{way:?}: {damaged}");
    }
}

#[test]
fn a_byte_that_is_wrong_is_judged_alike() {
    for (index, way) in WAYS.into_iter().enumerate() {
        let (_folder, files) = way.write();
        let (manifest, last) = (files.join(MANIFEST), last_file(&files));
        let whole = fs::read(&last).expect("a file");
        let mut damaged = 0;
        // (The first bytes have annotations, lengths, a transaction.)
        for at in 0..whole.len().min(300) {
            let byte = b"X\0\n9"[(at + index) % 4];
            let mut wrong = whole.clone();
            wrong[at] = byte;
            fs::write(&last, &wrong).expect("a file");
            let verdict = assert_same(&manifest, &format!("{way:?} byte {at} is {byte}"));
            damaged += usize::from(verdict.status != Some(0));
        }
        assert!(damaged > 100, "{way:?}: {damaged}");
    }
}

#[test]
fn a_repair_leaves_the_same_bytes() {
    for way in WAYS {
        let (_folder, files) = way.write();
        let whole = fs::read(last_file(&files)).expect("a file");
        for end in (1..whole.len()).rev().step_by(23).take(30) {
            if is_in_annotation(&whole[..end]) {
                continue;
            }
            for (answer, changes) in [("y\n", true), ("n\n", false), ("", false), ("Yes", true)] {
                let made = ["redis", "ours"].map(|name| {
                    let folder = copy(&files, name);
                    fs::write(last_file(Path::new(folder.path())), &whole[..end]).expect("a file");
                    folder
                });
                let before = contents(Path::new(made[0].path()));
                let redis = Program::Redis.check(&["--fix"], &made[0].at(MANIFEST), answer);
                let ours = Program::Ours.check(&["--fix"], &made[1].at(MANIFEST), answer);
                let text = format!("{way:?} cut at {end}, '{answer}'\n{}", ours.text);
                assert_eq!(ours.verdict.status, redis.verdict.status, "{text}");
                let after = contents(Path::new(made[1].path()));
                assert!(after == contents(Path::new(made[0].path())), "{text}");
                let was_asked = ours.text.contains("Continue? [y/N]: ");
                assert_eq!(after != before, was_asked && changes, "{text}");
            }
        }
    }
}

/// What is left is a file which redis-server loads without a complaint.
#[test]
fn redis_loads_what_was_repaired() {
    let (folder, files) = WAYS[1].write();
    let (manifest, last) = (files.join(MANIFEST), last_file(&files));
    let whole = fs::read(&last).expect("a file");
    let multi = whole.windows(5).rposition(|word| word == b"MULTI").expect("a script");
    fs::write(&last, &whole[..multi + 40]).expect("a file");
    let told = Program::Ours.check(&["--fix"], &manifest, "y\n");
    assert_eq!(told.verdict.status, Some(0), "{}", told.text);
    let words = [
        ["--dir", folder.path()],
        ["--appendonly", "yes"],
        ["--aof-load-truncated", "no"],
        ["--loglevel", "notice"],
    ];
    let server = ServerProcess::start(&redis(), words.as_flattened());
    assert!(!server.log().contains("Warning: short read"), "{}", server.log());
    let mut wire = server.connect();
    let reply = wire.command(&["GET", "q"]).expect("an answer");
    assert_eq!(reply, sheafdb_tests::wire::Value::Bulk(b"one".to_vec()), "not the cut script");
}

/// Only the last file may be shortened: what follows in the others would be lost in the middle.
#[test]
fn a_damaged_file_before_the_last_one_is_not_repaired() {
    let (_folder, files) = WAYS[3].write();
    let manifest = files.join(MANIFEST);
    let names: Vec<String> = contents(&files).into_iter().map(|(name, _)| name).collect();
    let others = ["2.base.rdb", "2.incr.aof"].map(|end| {
        names.iter().find(|name| name.ends_with(end)).unwrap_or_else(|| panic!("{names:?}"))
    });
    for name in others {
        let path = files.join(name);
        let whole = fs::read(&path).expect("a file");
        fs::write(&path, &whole[..whole.len() - 3]).expect("a file");
        let before = contents(&files);
        for options in [&[][..], &["--fix"]] {
            let (redis, ours) = both(options, &manifest, "y\n");
            let status = (redis.verdict.status, ours.verdict.status);
            assert_eq!(status, (Some(1), Some(1)), "{}", ours.text);
            assert!(!ours.text.contains("Continue?"), "{}", ours.text);
            assert!(contents(&files) == before, "{}", ours.text);
        }
        fs::write(&path, &whole).expect("a file");
    }
    fs::remove_file(files.join(others[1])).expect("it was there");
    let (redis, ours) = both(&["--fix"], &manifest, "y\n");
    assert_eq!((redis.verdict.status, ours.verdict.status), (Some(1), Some(1)), "{}", ours.text);
}

/// A file of several seconds is cut at each of them.
#[test]
fn a_time_cuts_alike() {
    let folder = folder("seconds");
    let words =
        [["--dir", folder.path()], ["--appendonly", "yes"], ["--aof-timestamp-enabled", "yes"]];
    let mut server = ServerProcess::start(&redis(), words.as_flattened());
    for text in ["one", "two", "three"] {
        change(&server, text);
        sleep(Duration::from_millis(1100));
    }
    server.terminate();
    server.wait_exit(Duration::from_secs(30)).expect("it ends");
    let files = folder.at("appendonlydir");
    let text = fs::read(last_file(&files)).expect("a file");
    let lines = text.split(|&byte| byte == b'\n').filter_map(|line| line.strip_prefix(b"#TS:"));
    let number = |line: &[u8]| String::from_utf8_lossy(line).trim().parse().expect("a time");
    let times: Vec<i64> = lines.map(number).collect();
    assert!(times.len() >= 3, "{times:?}");
    let mut sizes = std::collections::HashSet::new();
    for time in times[0] - 1..=times[times.len() - 1] + 1 {
        let made = ["redis", "ours"].map(|name| copy(&files, name));
        let options = ["--truncate-to-timestamp", &time.to_string()];
        let redis = Program::Redis.check(&options, &made[0].at(MANIFEST), "");
        let ours = Program::Ours.check(&options, &made[1].at(MANIFEST), "");
        assert_eq!(ours.verdict.status, redis.verdict.status, "{time}: {}", ours.text);
        let after = contents(Path::new(made[1].path()));
        let is_same = after == contents(Path::new(made[0].path()));
        assert!(is_same, "{time}: {}", ours.text);
        sizes.insert(after.iter().map(|(_, bytes)| bytes.len()).sum::<usize>());
    }
    assert!(sizes.len() >= 3, "{sizes:?}");
}
