//! Manifests, and lists of kept history: any bytes are refused, or files which are written so that
//! they are read back. None of them is a path, and a new file never has the name of another one.

use journal::history::Generation;
use journal::manifest::BaseFormat;
use journal::{History, Manifest};

use crate::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "aof_manifest",
    feed,
    dictionary: &[
        b"file ",
        b" seq ",
        b" type b\n",
        b" type i\n",
        b" type h\n",
        b" startoffset 0",
        b" endoffset -9223372036854775808",
        b"4611686018427387904",
        b"18446744073709551616",
        b"appendonly.aof.1.base.rdb",
        b"appendonly.aof.2.incr.aof",
        b"\"a b\\x0a\\\"'\"",
        b"'a\\'b'",
        b"\"\\x2f\"",
        b"../",
        b"# comment\n",
        b" until 16:1700000000123",
        b" UNTIL 0:-1",
        b" until 9223372036854775807:9223372036854775807",
        b" until 9223372036854775808:0",
        b"file a.1.base.rdb seq 1 type b until 7:9\nfile a.1.incr.aof seq 1 type i\n",
        b"\r\n",
        b"\0",
    ],
};

fn feed(input: &[u8]) {
    check_history(input);
    let mut manifest = match Manifest::parse(input) {
        Ok(manifest) => manifest,
        Err(error) => {
            let lines = input.split(|&byte| byte == b'\n').count();
            assert!(error.line <= lines && !error.to_string().is_empty());
            return;
        }
    };
    // (A line that is quoted may become longer than a line may be.)
    if input.len() < 200 {
        assert_eq!(Manifest::parse(&manifest.text()).as_ref(), Ok(&manifest));
    }
    let listed = |manifest: &Manifest| {
        let all = manifest.loaded().chain(&manifest.history);
        all.map(|file| file.name.clone()).collect::<Vec<_>>()
    };
    for name in listed(&manifest) {
        assert!(!name.is_empty() && !name.contains(&b'/') && !name.contains(&0));
        assert!(name != b"." && name != b"..");
    }
    let before = listed(&manifest);
    let incr = manifest.next_incr(b"appendonly.aof");
    let base = manifest.next_base(b"appendonly.aof", BaseFormat::Rdb);
    manifest.retire(incr.seq);
    assert!(!before.contains(&incr.name) && !before.contains(&base.name));
    let loaded: Vec<_> = manifest.loaded().collect();
    assert_eq!(loaded, [&base, &incr]);
    assert_eq!(listed(&manifest).len(), before.len() + 2);
}

/// The same bytes as a list of kept history.
fn check_history(input: &[u8]) {
    let history = match History::parse(input) {
        Ok(history) => history,
        Err(error) => {
            let lines = input.split(|&byte| byte == b'\n').count();
            assert!(error.line <= lines && !error.to_string().is_empty());
            return;
        }
    };
    if input.len() < 200 {
        assert_eq!(History::parse(&history.text()).as_ref(), Ok(&history));
    }
    let files = || history.generations.iter().flat_map(Generation::files);
    let mut names: Vec<_> = files().map(|file| &file.name).collect();
    let is_plain = |name: &[u8]| !name.contains(&b'/') && !name.contains(&0);
    assert!(names.iter().all(|name| !name.is_empty() && is_plain(name)));
    assert!(names.iter().all(|name| *name != b"." && *name != b".."));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a name is listed once");
    for generation in &history.generations {
        assert!(generation.incr.is_sorted_by(|a, b| a.seq < b.seq));
    }
}
