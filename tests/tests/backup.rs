//! `sheafdb backup` and `sheafdb verify-backup` beside a running server.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sheafdb_tests::folder::{Folder, names};
use sheafdb_tests::in_time::until;
use sheafdb_tests::render;
use sheafdb_tests::rng::Rng;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::stress::SetAtEnd;
use sheafdb_tests::wire::Wire;

/// A server with its files in `data` of the folder; `None` if the reference is under test.
fn start(folder: &Folder, extra: &[&str]) -> Option<ServerProcess> {
    let data = folder.at("data");
    fs::create_dir_all(&data).expect("a folder");
    serve(&data, extra)
}

fn serve(data: &Path, extra: &[&str]) -> Option<ServerProcess> {
    let binary = Binary::under_test();
    let own = ["--dir", data.to_str().expect("plain"), "--save", ""];
    let args: Vec<&str> = own.iter().chain(extra).copied().collect();
    (binary.kind == Kind::SheafDb).then(|| ServerProcess::start(&binary, &args))
}

fn ask(wire: &mut Wire, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    render::line(&wire.command(&words).expect("the connection is open"))
}

/// The program with arguments, and without a password in its environment.
fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(Binary::under_test().path);
    command.args(arguments).stdin(Stdio::null());
    command.env_remove("SHEAFDB_PASSWORD").env_remove("REDISCLI_AUTH");
    command
}

fn run(arguments: &[&str]) -> Output {
    program(arguments).output().expect("it runs")
}

fn backup(server: &ServerProcess, target: &Path) -> Output {
    let port = server.addr.port().to_string();
    run(&["backup", target.to_str().expect("plain"), "--port", &port])
}

fn verify(target: &Path) -> Output {
    run(&["verify-backup", target.to_str().expect("plain")])
}

#[track_caller]
fn works(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// The exit status is 1, nothing is printed, and the message holds this text.
#[track_caller]
fn fails(output: &Output, why: &str) {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(why), "{text}");
}

/// Values of every type in two databases. One of them is long, and hardly compressible.
fn fill(wire: &mut Wire) {
    let mut rng = Rng::new(7);
    let long: String = (0..3 << 20).map(|_| rng.pick(&['a', 'b', 'c', 'd', 'e'])).collect();
    for line in [
        "SET text value",
        &format!("SET long {long}"),
        "SETEX soon 10000 value",
        "RPUSH list a b c",
        "SADD set 1 2 3",
        "HSET hash f 1 g 2",
        "ZADD zset 1 a 2.5 b",
        "XADD stream 1-1 f v",
        "SELECT 3",
        "SET other there",
    ] {
        let reply = ask(wire, line);
        assert!(!reply.starts_with('-'), "{reply}");
    }
    for n in 0..2000 {
        ask(wire, &format!("SET key:{n} {n}"));
    }
}

/// The DUMP of each key, and its expiry, by database and name.
fn state(server: &ServerProcess) -> BTreeMap<String, String> {
    let mut wire = server.connect();
    until("it has loaded", || !ask(&mut wire, "DBSIZE").starts_with("-LOADING"));
    let mut state = BTreeMap::new();
    let few = ["text", "long", "soon", "list", "set", "hash", "zset", "stream"];
    let many: Vec<String> = (0..2000).map(|n| format!("key:{n}")).chain(["other".into()]).collect();
    for (db, keys) in [(0, few.map(String::from).to_vec()), (3, many)] {
        ask(&mut wire, &format!("SELECT {db}"));
        state.insert(format!("{db} size"), ask(&mut wire, "DBSIZE"));
        for key in keys {
            let value = ask(&mut wire, &format!("DUMP {key}"));
            let at = ask(&mut wire, &format!("PEXPIRETIME {key}"));
            state.insert(format!("{db} {key}"), format!("{at} {value}"));
        }
    }
    state
}

/// The hash is compared with that of `sha256sum`.
#[test]
fn a_backup_is_verified_and_a_server_starts_on_it() {
    let folder = Folder::new("backup-round");
    let Some(server) = start(&folder, &[]) else { return };
    fill(&mut server.connect());
    let to = folder.at("backup");
    let said = works(&backup(&server, &to));
    assert!(said.starts_with("2009 keys of 2 databases, "), "{said}");
    assert_eq!(names(&to), ["dump.rdb", "manifest.json"]);
    assert_eq!(works(&verify(&to)), said);

    let manifest = fs::read(to.join("manifest.json")).expect("readable");
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
    assert_eq!(manifest["keys"], serde_json::json!({"0": 8, "3": 2001}));
    let told = Command::new("sha256sum").arg(to.join("dump.rdb")).output().expect("coreutils");
    let sum = manifest["sha256"].as_str().expect("text");
    assert!(String::from_utf8_lossy(&told.stdout).starts_with(sum), "{sum}");
    let info = ask(&mut server.connect(), "INFO server");
    assert!(info.contains(manifest["run_id"].as_str().expect("text")), "{info}");

    let expected = state(&server);
    drop(server);
    let restored = serve(&to, &[]).expect("it is ours");
    assert!(state(&restored) == expected, "the restored server has other data");
}

/// Both within one second, so that LASTSAVE cannot tell them apart; and while others save too.
#[test]
fn a_backup_holds_what_was_written_before_it() {
    let folder = Folder::new("backup-fresh");
    let Some(server) = start(&folder, &[]) else { return };
    let keys = |name: &str| {
        let said = works(&backup(&server, &folder.at(name)));
        said.split(' ').next().and_then(|count| count.parse::<usize>().ok()).expect("a count")
    };
    let mut wire = server.connect();
    for n in 1..=5 {
        ask(&mut wire, &format!("SET key:{n} value"));
        assert_eq!(keys(&format!("alone-{n}")), n);
    }
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let end = SetAtEnd(&ends);
        scope.spawn(|| {
            let mut wire = server.connect();
            while !ends.load(Ordering::Relaxed) {
                ask(&mut wire, "BGSAVE");
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        for n in 6..=10 {
            ask(&mut wire, &format!("SET key:{n} value"));
            assert_eq!(keys(&format!("beside-{n}")), n);
        }
        drop(end);
    });
}

#[test]
fn every_damage_is_found() {
    let folder = Folder::new("backup-damage");
    let Some(server) = start(&folder, &["--rdbchecksum", "no"]) else { return };
    let mut wire = server.connect();
    ask(&mut wire, "SET key value");
    ask(&mut wire, "RPUSH list a b c");
    let to = folder.at("backup");
    works(&backup(&server, &to));
    let (snapshot, manifest) = (to.join("dump.rdb"), to.join("manifest.json"));
    let good = fs::read(&snapshot).expect("readable");
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&snapshot, &bad).expect("writable");
        assert_eq!(verify(&to).status.code(), Some(1), "byte {at}");
    }
    fs::write(&snapshot, &good[..good.len() - 1]).expect("writable");
    fails(&verify(&to), "snapshot");
    fs::write(&snapshot, [&good[..], b"x"].concat()).expect("writable");
    fails(&verify(&to), "ends at byte");
    fs::write(&snapshot, &good).expect("writable");
    works(&verify(&to));

    let text = fs::read_to_string(&manifest).expect("readable");
    fs::write(&manifest, text.replace("\"0\": 2", "\"0\": 3")).expect("writable");
    fails(&verify(&to), "keys by database");
    fs::remove_file(&manifest).expect("it is there");
    fails(&verify(&to), "manifest.json");
    // Nobody writes to these pipes: they are not waited for.
    let pipe = |path: &Path| {
        let told = Command::new("mkfifo").arg(path).output().expect("coreutils");
        assert!(told.status.success());
    };
    pipe(&manifest);
    fails(&verify(&to), "manifest.json is no file");
    fs::remove_file(&manifest).expect("it is there");
    fs::write(&manifest, &text).expect("writable");
    fs::remove_file(&snapshot).expect("it is there");
    pipe(&snapshot);
    fails(&verify(&to), "dump.rdb is no file");
    // Bytes which are no archive do not reach the terminal as they are.
    let noise = folder.at("noise.tar");
    fs::write(&noise, [0x1b, 0xff, b'\n'].repeat(1000)).expect("writable");
    let told = verify(&noise);
    fails(&told, "the archive cannot be read: ");
    assert!(told.stderr.len() < 1000 && !told.stderr.contains(&0x1b), "{told:?}");
}

#[test]
fn an_archive_is_read_by_tar_and_verified() {
    let folder = Folder::new("backup-tar");
    let Some(server) = start(&folder, &[]) else { return };
    fill(&mut server.connect());
    let archive = folder.at("backup.tar");
    let out = File::create(&archive).expect("a file");
    let port = server.addr.port().to_string();
    let status = program(&["backup", "-", "--port", &port]).stdout(out).output().expect("it runs");
    works(&status);
    let tar = |arguments: &[&str]| {
        let told = Command::new("tar").args(arguments).current_dir(folder.path()).output();
        works(&told.expect("tar is installed"))
    };
    assert_eq!(tar(&["tf", "backup.tar"]), "dump.rdb\nmanifest.json\n");
    let said = works(&verify(&archive));
    assert!(said.starts_with("2009 keys of 2 databases, "), "{said}");
    let input = File::open(&archive).expect("readable");
    works(&program(&["verify-backup", "-"]).stdin(input).output().expect("it runs"));

    fs::create_dir(folder.at("out")).expect("a folder");
    tar(&["xf", "backup.tar", "-C", "out"]);
    works(&verify(&folder.at("out")));
    // Archived again, by another program and in another order.
    tar(&["cf", "again.tar", "-C", "out", "manifest.json", "dump.rdb"]);
    works(&verify(&folder.at("again.tar")));
    tar(&["cf", "part.tar", "-C", "out", "dump.rdb"]);
    fails(&verify(&folder.at("part.tar")), "no manifest");

    let bytes = fs::read(&archive).expect("readable");
    for cut in [0, 512, bytes.len() / 2, bytes.len() - 2048] {
        fs::write(folder.at("cut.tar"), &bytes[..cut]).expect("writable");
        assert_eq!(verify(&folder.at("cut.tar")).status.code(), Some(1), "{cut} bytes");
    }
    let mut bad = bytes;
    bad[10_000] ^= 1;
    fs::write(folder.at("bad.tar"), bad).expect("writable");
    assert_eq!(verify(&folder.at("bad.tar")).status.code(), Some(1));
}

/// What fails leaves no folder, and prints nothing where an archive would be.
#[test]
fn what_cannot_be_backed_up_is_refused() {
    let folder = Folder::new("backup-refused");
    let Some(server) = start(&folder, &["--requirepass", "secret"]) else { return };
    let port = server.addr.port().to_string();
    let to = folder.at("backup");
    let target = to.to_str().expect("plain");
    fails(&backup(&server, &to), "NOAUTH");
    let wrong = ["backup", target, "--port", &port, "--password", "wrong"];
    fails(&run(&wrong), "WRONGPASS");
    let stream = run(&["backup", "-", "--port", &port]);
    fails(&stream, "NOAUTH");
    assert!(stream.stdout.is_empty());
    // Nobody listens there, and nobody gets it by chance.
    fails(&run(&["backup", target, "--port", "1"]), "no connection");
    assert!(!to.exists());

    let mut command = program(&["backup", target, "--socket"]);
    command.arg(server.unix_socket()).env("SHEAFDB_PASSWORD", "secret");
    works(&command.output().expect("it runs"));
    let again = program(&["backup", target, "--port", &port])
        .env("SHEAFDB_PASSWORD", "secret")
        .output()
        .expect("it runs");
    fails(&again, "empty or new folder");
    works(&verify(&to));

    // The server cannot save any more.
    fs::remove_dir_all(folder.at("data")).expect("it is there");
    let other = folder.at("other");
    let last = ["backup", other.to_str().expect("plain"), "--port", &port, "--password", "secret"];
    let failed = run(&last);
    assert_eq!(failed.status.code(), Some(1), "{}", String::from_utf8_lossy(&failed.stderr));
    assert!(!other.exists());
    works(&run(&["backup", "--help"]));
    works(&run(&["verify-backup", "--help"]));
    fails(&run(&["backup"]), "Usage: sheafdb backup");
    fails(&run(&["verify-backup"]), "Usage: sheafdb verify-backup");
}
