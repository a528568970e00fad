//! Manifests: any bytes are refused, or files which are written so that they are read back. None of
//! them is a path, and a new file never has the name of another one.

use journal::Manifest;
use journal::manifest::BaseFormat;

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
        b"\r\n",
        b"\0",
    ],
};

fn feed(input: &[u8]) {
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
