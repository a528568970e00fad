//! What each setting of the append-only file does to the files, or where they cannot show it, to
//! INFO and to the system calls. Nothing depends on time: what must not happen is looked at when it
//! has happened, for the second time, to a server beside it with another setting.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use sheafdb_tests::folder::{Folder, names};
use sheafdb_tests::in_time::{LIMIT, until};
use sheafdb_tests::permitted::traced;
use sheafdb_tests::rewrite::is_rewriting;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::{Value, Wire};

const FILES: &str = "appendonlydir";
/// Each key of a save takes longer than a test.
const NEVER: &str = "2000000000";

/// A server with an append-only file, and a connection to it.
struct Rig {
    folder: Folder,
    server: ServerProcess,
    wire: Wire,
}

impl Rig {
    fn new(name: &str, settings: &[&str]) -> Self {
        let folder = Folder::new(&format!("aof-settings-{name}"));
        let server = start(&folder, settings);
        let wire = server.connect();
        Self { folder, server, wire }
    }

    fn ask(&mut self, line: &str) -> Value {
        let reply = self.wire.command(&line.split(' ').collect::<Vec<_>>()).expect("an answer");
        assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
        reply
    }

    /// A number of INFO persistence.
    fn info(&mut self, field: &str) -> u64 {
        let Value::Bulk(text) = self.ask("INFO persistence") else { panic!("no text") };
        let text = String::from_utf8_lossy(&text).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{field}:")));
        line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{field} in {text}"))
    }

    /// A new key of so many bytes.
    fn write(&mut self, key: &str, bytes: usize) {
        self.ask(&format!("SET {key} {}", "v".repeat(bytes)));
    }

    /// Waits until the last file holds this key.
    fn await_in_file(&mut self, key: &str) {
        let text = format!("\r\n{key}\r\n");
        until("it is written", || {
            self.segment().windows(text.len()).any(|some| some == text.as_bytes())
        });
    }

    fn is_synced(&mut self) -> bool {
        self.info("journal_durable_number") == self.info("journal_last_number")
    }

    fn is_rewritten(&mut self) -> bool {
        !is_rewriting(&mut self.wire)
    }

    fn rewrite(&mut self) {
        let before = self.info("aof_rewrites");
        self.ask("BGREWRITEAOF");
        until("a rewrite", || self.info("aof_rewrites") > before && self.is_rewritten());
    }

    /// The file which grows.
    fn segment(&self) -> Vec<u8> {
        let text = fs::read_to_string(self.folder.at(&format!("{FILES}/appendonly.aof.manifest")));
        let text = text.expect("a manifest");
        let name = text.lines().last().and_then(|line| line.split(' ').nth(1)).expect("a name");
        fs::read(self.folder.at(FILES).join(name)).expect("a file")
    }

    /// The seconds of all lines with the time.
    fn times(&self) -> Vec<u64> {
        let bytes = self.segment();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let times = text.lines().filter_map(|line| line.strip_prefix("#TS:"));
        times.map(|time| time.parse().expect("seconds")).collect()
    }
}

fn start(folder: &Folder, settings: &[&str]) -> ServerProcess {
    let words = ["--dir", folder.path(), "--appendonly", "yes"];
    ServerProcess::start(&Binary::under_test(), &[&words[..], settings].concat())
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("behind 1970").as_secs()
}

#[test]
fn a_file_is_rewritten_by_itself_if_it_has_grown_and_is_large_enough() {
    let settings = |percentage, min_size| {
        ["--auto-aof-rewrite-percentage", percentage, "--auto-aof-rewrite-min-size", min_size]
    };
    let mut grows = Rig::new("grows", &settings("100", "20kb"));
    // The first base is nearly empty, so the share of growth is large at once.
    let mut others = [
        ("percentage 0", Rig::new("grows-never", &settings("0", "20kb"))),
        ("too small", Rig::new("grows-small", &settings("100", "64mb"))),
        ("too little", Rig::new("grows-little", &settings("2147483647", "20kb"))),
    ];
    let before: Vec<u64> = others.iter_mut().map(|(_, rig)| rig.info("aof_rewrites")).collect();
    let first = grows.info("aof_rewrites");
    for round in 1..=2 {
        for rig in [&mut grows].into_iter().chain(others.iter_mut().map(|(_, rig)| rig)) {
            // Twice the base, which has what came before.
            rig.write(&format!("key{round}"), 30_000 * 3_usize.pow(round));
        }
        until("it is rewritten", || grows.info("aof_rewrites") >= first + u64::from(round));
    }
    for ((what, rig), before) in others.iter_mut().zip(before) {
        assert_eq!(rig.info("aof_rewrites"), before, "{what}");
        assert!(rig.info("aof_current_size") > 300_000, "{what}");
        let names = names(&rig.folder.at(FILES));
        assert!(names.iter().any(|name| name.contains(".1.base.")), "{what}: {names:?}");
    }
    let replaced = names(&grows.folder.at(FILES));
    assert!(!replaced.iter().any(|name| name.contains(".1.base.")), "{replaced:?}");
    // What has grown too little is rewritten once the setting says so.
    let (_, rig) = &mut others[2];
    rig.ask("CONFIG SET auto-aof-rewrite-percentage 100");
    until("it is rewritten", || {
        !names(&rig.folder.at(FILES)).iter().any(|name| name.contains(".1.base."))
    });
}

#[test]
fn no_appendfsync_on_rewrite_suspends_the_syncs_of_everysec() {
    let settings = |spared| ["--appendfsync", "everysec", "--no-appendfsync-on-rewrite", spared];
    let (mut spared, mut synced) =
        (Rig::new("spared", &settings("yes")), Rig::new("synced", &settings("no")));
    for rig in [&mut spared, &mut synced] {
        rig.write("key", 10);
        until("everything is synced", || rig.is_synced());
        rig.ask(&format!("CONFIG SET rdb-key-save-delay {NEVER}"));
        rig.ask("BGREWRITEAOF");
        until("it is rewritten", || rig.info("aof_rewrite_in_progress") == 1);
    }
    // Twice: the first one may be synced by what the rewrite begins with.
    for round in 0..2 {
        for rig in [&mut spared, &mut synced] {
            rig.write(&format!("key{round}"), 10);
            rig.await_in_file(&format!("key{round}"));
        }
        until("it is synced", || synced.is_synced());
    }
    assert!(!spared.is_synced());
    assert!(spared.info("journal_lag_bytes") > 0);
    for rig in [&mut spared, &mut synced] {
        assert_eq!(rig.info("aof_rewrite_in_progress"), 1);
        rig.ask("CONFIG SET rdb-key-save-delay 0");
        until("it is rewritten", || rig.is_rewritten());
        until("everything is synced", || rig.is_synced());
    }
}

#[test]
fn appendfsync_says_when_what_is_written_is_synced() {
    let rig = |fsync: &str| Rig::new(&format!("fsync-{fsync}"), &["--appendfsync", fsync]);
    let (mut always, mut everysec, mut no) = (rig("always"), rig("everysec"), rig("no"));
    no.write("first", 10);
    no.await_in_file("first");
    let before = no.info("journal_syncs");
    for n in 0..20 {
        always.write("key", n);
        let is_synced = always.is_synced();
        assert!(is_synced, "its reply came behind the sync");
    }
    assert!(always.info("journal_syncs") >= 20);
    for round in 0..2 {
        for rig in [&mut everysec, &mut no] {
            rig.write(&format!("key{round}"), 10);
        }
        until("it is synced", || everysec.is_synced());
        no.await_in_file(&format!("key{round}"));
    }
    assert_eq!(no.info("journal_syncs"), before);
}

#[test]
fn files_have_the_names_of_appendfilename_and_appenddirname() {
    let settings = ["--appendfilename", "other.file", "--appenddirname", "other-folder"];
    let mut rig = Rig::new("names", &[&settings[..], &["--appendfsync", "always"]].concat());
    rig.write("before", 5);
    rig.rewrite();
    rig.write("behind", 5);
    let Rig { folder, server, .. } = rig;
    server.kill();
    assert_eq!(folder.names(), ["other-folder"]);
    let expected = ["other.file.2.base.rdb", "other.file.2.incr.aof", "other.file.manifest"];
    assert_eq!(names(&folder.at("other-folder")), expected);
    let manifest = fs::read_to_string(folder.at("other-folder/other.file.manifest"));
    let lines =
        "file other.file.2.base.rdb seq 2 type b\nfile other.file.2.incr.aof seq 2 type i\n";
    assert_eq!(manifest.expect("it is there"), lines);
    let redis = Binary { path: "redis-server".into(), kind: Kind::Redis };
    for binary in [redis, Binary::under_test()] {
        let words = ["--dir", folder.path(), "--appendonly", "yes"];
        let server = ServerProcess::start(&binary, &[&words[..], &settings].concat());
        let mut wire = server.connect();
        for key in ["before", "behind"] {
            let value = wire.command(&["GET", key]).expect("an answer");
            assert_eq!(value, Value::Bulk(b"vvvvv".to_vec()), "{key} on {binary:?}");
        }
    }
    // Under another name there is nothing: another folder begins.
    let server = start(&folder, &["--appenddirname", "third"]);
    assert_eq!(server.connect().command(&["DBSIZE"]).expect("an answer"), Value::Int(0));
    assert_eq!(folder.names(), ["other-folder", "third"]);
}

#[test]
fn aof_timestamp_enabled_writes_lines_with_the_time() {
    let began = now_s();
    let mut rig = Rig::new("timestamps", &["--appendfsync", "always"]);
    rig.write("without", 5);
    assert_eq!(rig.times(), [0; 0]);
    rig.ask("CONFIG SET aof-timestamp-enabled yes");
    let mut n = 0;
    until("the time of two seconds", || {
        n += 1;
        rig.write(&format!("with{n}"), 5);
        rig.times().len() >= 2
    });
    let times = rig.times();
    assert!(times.is_sorted() && times[0] < times[1], "{times:?}");
    assert!(times[0] >= began && times[times.len() - 1] <= now_s(), "{times:?}");
    rig.ask("CONFIG SET aof-timestamp-enabled no");
    let since = rig.times().len();
    let second = now_s();
    until("another second", || {
        rig.write("without", 5);
        now_s() > second + 1
    });
    assert_eq!(rig.times().len(), since);
}

#[test]
fn aof_use_rdb_preamble_chooses_the_format_of_the_base() {
    let mut rig = Rig::new("preamble", &["--aof-use-rdb-preamble", "no"]);
    rig.write("key", 5);
    for (setting, name, begin) in [
        ("no", "appendonly.aof.2.base.aof", &b"#BASE:"[..]),
        ("yes", "appendonly.aof.3.base.rdb", &b"REDIS"[..]),
    ] {
        rig.ask(&format!("CONFIG SET aof-use-rdb-preamble {setting}"));
        rig.rewrite();
        let base = fs::read(rig.folder.at(FILES).join(name)).expect(name);
        assert!(base.starts_with(begin), "{setting}: {}", base.escape_ascii());
    }
}

#[test]
fn aof_load_truncated_no_refuses_an_end_that_is_cut() {
    let mut rig = Rig::new("truncated", &["--appendfsync", "always"]);
    rig.write("whole", 5);
    rig.write("cut", 5);
    let Rig { folder, server, .. } = rig;
    server.kill();
    let path = folder.at(FILES).join("appendonly.aof.1.incr.aof");
    let whole = fs::read(&path).expect("a file");
    let cut = &whole[..whole.len() - 3];
    fs::write(&path, cut).expect("a file");
    let words = ["--dir", folder.path(), "--appendonly", "yes", "--aof-load-truncated", "no"];
    let why = ServerProcess::start_once(&Binary::under_test(), &words).err();
    let why = why.expect("it is refused");
    assert!(why.contains("appendonly.aof.1.incr.aof"), "{why}");
    assert_eq!(fs::read(&path).expect("a file"), cut, "it stays as it was");
    let server = start(&folder, &[]);
    assert_eq!(server.connect().command(&["DBSIZE"]).expect("an answer"), Value::Int(1));
    let left = fs::read(&path).expect("a file");
    assert!(left.len() < cut.len() && whole.starts_with(&left));
    assert!(!left.windows(5).any(|some| some == b"\ncut\r"), "{}", left.escape_ascii());
}

/// The system calls that sync a base of 16 MiB: one for each 4 MiB while it is written, or one at
/// its end.
#[test]
fn aof_rewrite_incremental_fsync_syncs_the_base_while_it_is_written() {
    let syncs = |incremental: &str| {
        let scripts = Folder::new(&format!("aof-settings-traced-{incremental}"));
        let trace = scripts.at("trace");
        let calls = "fsync,fdatasync,sync_file_range";
        let binary = traced(&scripts, &format!("-y -e trace={calls} -o {}", trace.display()))?;
        let folder = Folder::new(&format!("aof-settings-incremental-{incremental}"));
        let words = ["--dir", folder.path(), "--appendonly", "yes", "--io-backend", "epoll"];
        let more = ["--aof-rewrite-incremental-fsync", incremental, "--rdbcompression", "no"];
        let server = ServerProcess::start(&binary, &[&words[..], &more].concat());
        let wire = server.connect();
        let mut rig = Rig { folder, server, wire };
        rig.ask("CONFIG SET auto-aof-rewrite-percentage 0");
        for n in 0..16 {
            rig.write(&format!("key{n}"), 1 << 20);
        }
        let before = base_syncs(&fs::read_to_string(&trace).expect("its output"));
        rig.rewrite();
        rig.server.terminate();
        rig.server.wait_exit(LIMIT).expect("it ends");
        let mut text = String::new();
        until("the trace is complete", || {
            text = fs::read_to_string(&trace).expect("its output");
            text.contains("+++ exited with 0 +++")
        });
        Some(base_syncs(&text) - before)
    };
    let (Some(early), Some(late)) = (syncs("yes"), syncs("no")) else { return };
    assert!(late >= 1 && early >= late + 3, "{early} and {late}");
}

/// Syncs of bases, which have another name until they are complete.
fn base_syncs(trace: &str) -> usize {
    trace.lines().filter(|line| line.contains("/temp-sheafdb-")).count()
}
