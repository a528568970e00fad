//! A server which cannot start prints the reason in one line and exits with status 1, like Redis.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use sheafdb_tests::in_time::until;
use sheafdb_tests::ports::free_addr;
use sheafdb_tests::program::{copy, finish, spawn};
use sheafdb_tests::server_process::{Binary, ServerProcess, io_backend};
use sheafdb_tests::wire::{Value, Wire};

/// The user `nobody`: permissions apply to it even where tests run as root.
const NOBODY: &str = "65534";

/// The single line of output of a failing start; with `as_nobody` run as user `nobody`.
fn refused(binary: &Path, as_nobody: bool, args: &[&str]) -> String {
    let mut command = Command::new(if as_nobody { Path::new("setpriv") } else { binary });
    if as_nobody {
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]).arg(binary);
    }
    let out = finish(spawn(command.args(args)));
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1), "{args:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{args:?}, one line: {text}");
    assert!(text.starts_with("sheafdb: "), "{text}");
    text
}

#[test]
fn start_errors_are_one_line() {
    let dir = std::env::temp_dir().join(format!("sheafdb-start-{}", std::process::id()));
    fs::create_dir_all(dir.join("closed")).expect("a folder");
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a file of this test");
    };
    mode(&dir, 0o755);
    mode(&dir.join("closed"), 0o555);
    // The build folder may not be accessible to the user `nobody`.
    let binary = dir.join("sheafdb");
    copy(&Binary::under_test().path, &binary);
    let conf = dir.join("closed.conf");
    fs::write(&conf, "port 0\n").expect("a file");
    mode(&conf, 0);
    let (conf, folder) = (conf.display().to_string(), dir.join("closed").display().to_string());
    let holder = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = holder.local_addr().expect("bound").port().to_string();
    let free = free_addr().expect("a port").port().to_string();
    let quiet = ["--admin-port", "0", "--port"];
    let with = |more: &[&str]| -> Vec<String> {
        quiet.iter().chain(more).map(|word| (*word).to_owned()).collect()
    };
    let cases = [
        (false, with(&[&taken]), format!("127.0.0.1:{taken}: Address already in use")),
        (false, with(&[&free, "--bind", "192.0.2.1"]), "Cannot assign requested address".into()),
        (false, with(&["0", "--unixsocket", "/nonexistent/s"]), "/nonexistent/s: No such".into()),
        (false, with(&["x"]), "'port' takes a whole number from 0 to 65535".into()),
        (false, with(&[&free, "--nosuch", "1"]), "unknown setting 'nosuch'".into()),
        (false, with(&[&free, "--prot", "1"]), "did you mean 'port'".into()),
        (false, with(&[&free, "--dir", "/nonexistent"]), "cannot be entered: No such file".into()),
        (true, with(&[&free, "--dir", &folder]), "cannot be written to by user 65534".into()),
        (false, vec!["nosuch.conf".into()], "nosuch.conf: cannot be read: No such file".into()),
        (true, vec![conf], "cannot be read: Permission denied".into()),
    ];
    let is_root = rustix::process::geteuid().is_root();
    for (as_nobody, args, expected) in cases {
        if as_nobody && !is_root {
            continue; // setpriv needs root
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let text = refused(&binary, as_nobody, &args);
        assert!(text.contains(&expected), "{args:?}: {text}");
    }
    mode(&dir.join("closed"), 0o755);
    fs::remove_dir_all(dir).expect("a temporary folder");
}

/// The standard output and standard error of a program, and its exit status.
fn output(args: &[&str]) -> (String, Option<i32>) {
    let out = finish(spawn(Command::new(&Binary::under_test().path).args(args)));
    let text = [out.stdout, out.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), out.status.code())
}

#[test]
fn all_refused_lines_are_reported_and_check_config_does_not_start() {
    let dir = std::env::temp_dir().join(format!("sheafdb-check-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a folder");
    let (bad, good) = (dir.join("bad.conf"), dir.join("good.conf"));
    let refused =
        "aclfile x\nrename-command GET G\nreplicaof a 1\ntls-port 1\ncluster-enabled yes\n";
    fs::write(&bad, format!("hz 20\n{refused}")).expect("a file");
    fs::write(&good, "port 0\nunixsocket s\nactiverehashing no\npidfile check.pid\n")
        .expect("a file");
    let (bad, good) = (bad.display().to_string(), good.display().to_string());
    let (text, status) = output(&[&bad]);
    assert_eq!((text.lines().count(), status), (5, Some(1)), "{text}");
    for (line, number) in text.lines().zip(2..) {
        assert!(line.starts_with(&format!("sheafdb: {bad} line {number}: '")), "{line}");
    }
    let (text, status) = output(&["--check-config", &bad]);
    assert_eq!((text.lines().count(), status), (7, Some(1)), "{text}");
    let (text, status) = output(&["--check-config", &good, "--dir", &dir.display().to_string()]);
    assert_eq!((text.lines().count(), status), (2, Some(0)), "{text}");
    assert!(text.contains("line 3: 'activerehashing' has no effect"), "{text}");
    let names = fs::read_dir(&dir).expect("a temporary folder").count();
    assert_eq!(names, 2, "nothing was started");
    fs::remove_dir_all(dir).expect("a temporary folder");
}

/// The program checks a file instead of starting a server, also by the name of the tool that it
/// replaces.
#[test]
fn a_file_is_checked_by_command_and_by_symbolic_link() {
    let dir = std::env::temp_dir().join(format!("sheafdb-check-rdb-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a folder");
    let (good, cut) = (dir.join("good.rdb"), dir.join("cut.rdb"));
    let bytes = b"REDIS0010\xfe\x02\0\x01k\x01v\xff\0\0\0\0\0\0\0\0";
    fs::write(&good, bytes).expect("a file");
    fs::write(&cut, &bytes[..bytes.len() - 1]).expect("a file");
    let binary = Binary::under_test().path;
    let link = dir.join("redis-check-rdb");
    std::os::unix::fs::symlink(&binary, &link).expect("a link");
    let by_command = |file: &Path| finish(spawn(Command::new(&binary).arg("check-rdb").arg(file)));
    let by_link = |file: &Path| finish(spawn(Command::new(&link).arg(file)));
    for out in [by_command(&good), by_link(&good)] {
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert_eq!(out.status.code(), Some(0), "{text}");
        assert!(text.contains("RDB looks OK!") && text.contains("[info] 1 keys read"), "{text}");
        assert!(out.stderr.is_empty(), "a bar only on a terminal");
    }
    for out in [by_command(&cut), by_link(&cut)] {
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert_eq!(out.status.code(), Some(1), "{text}");
        assert!(text.contains("--- RDB ERROR DETECTED ---"), "{text}");
    }
    let without = finish(spawn(Command::new(&binary).arg("check-rdb")));
    assert_eq!(without.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&without.stderr).starts_with("Usage: sheafdb check-rdb"));
    fs::remove_dir_all(dir).expect("a temporary folder");
}

/// A server started on the folder of another server warns about files which it does not load.
#[test]
fn ignored_data_files_and_settings_are_logged() {
    let dir = std::env::temp_dir().join(format!("sheafdb-files-{}", std::process::id()));
    fs::create_dir_all(dir.join("aof")).expect("a folder");
    let (folder, log) = (dir.display().to_string(), dir.join("log"));
    let log_name = log.display().to_string();
    let words = ["--dir", &folder, "--logfile", &log_name, "--appenddirname", "aof", "--hz", "20"];
    let mut server = ServerProcess::start(&Binary::under_test(), &words);
    assert!(server.answers());
    let text = fs::read_to_string(&log).expect("a log");
    let said = format!("# {folder}/aof is not loaded");
    assert!(text.contains(&said), "{said}: {text}");
    assert!(!text.contains("appendonly.aof"), "{text}");
    assert!(
        text.contains("without effect in this version (docs/config.md says why): hz\n"),
        "{text}"
    );
    drop(server);
    fs::remove_dir_all(dir).expect("a temporary folder");
}

#[test]
fn log_settings_are_honoured() {
    let dir = std::env::temp_dir().join(format!("sheafdb-log-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a folder");
    let log = dir.join("log");
    let name = log.display().to_string();
    let words =
        ["--log-format", "json", "--log-timestamp-format", "milliseconds", "--logfile", &name];
    let server = ServerProcess::start(&Binary::under_test(), &words);
    let mut wire = server.connect();
    let mut last = |words: &[&str]| {
        let reply = wire.command(words).expect("answered");
        assert_eq!(reply, Value::Simple(b"OK".to_vec()), "{words:?}");
        let text = fs::read_to_string(&log).expect("a log");
        text.lines().last().expect("a line").to_owned()
    };
    let line = last(&["CONFIG", "SET", "hz", "20"]);
    assert!(
        line.starts_with("{\"pid\":") && line.contains("CONFIG SET hz has no effect"),
        "{line}"
    );
    let line = last(&["CONFIG", "SET", "log-format", "logfmt", "hz", "21"]);
    let (pid, rest) = line.split_once(" role=primary timestamp=\"").expect("logfmt");
    let (time, rest) = rest.split_once("\" level=notice message=\"CONFIG SET hz").expect("logfmt");
    assert_eq!(pid, format!("pid={}", server.pid()));
    assert!(time.bytes().all(|b| b.is_ascii_digit()) && rest.ends_with('"'), "{line}");
    let line = last(&[
        "CONFIG",
        "SET",
        "log-format",
        "legacy",
        "log-timestamp-format",
        "iso8601",
        "hz",
        "9",
    ]);
    let time = line.strip_prefix(&format!("{}:M ", server.pid())).unwrap_or_default();
    assert!(time.starts_with("20") && time.get(10..11) == Some("T"), "{line}");
    drop(server);
    fs::remove_dir_all(dir).expect("a temporary folder");
}

/// Starts a server on given ports and waits until it answers; `None` if it ends instead.
fn started(words: &[&str], addr: std::net::SocketAddr) -> Option<Child> {
    let mut command = Command::new(&Binary::under_test().path);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    let mut child = command.spawn().expect("a server");
    let mut has_ended = false;
    until("it answers", || {
        has_ended = child.try_wait().expect("a child of this process").is_some();
        has_ended || Wire::connect(addr).is_ok_and(|mut wire| wire.command(&["PING"]).is_ok())
    });
    (!has_ended).then_some(child)
}

/// The kernel closes the rings of a killed process, and with them its listening sockets, some
/// milliseconds later: the next server must retry a port which is still in use. On a busy machine
/// the kernel may rarely take longer than a server retries.
#[test]
fn a_restarted_server_gets_the_ports_of_a_killed_one() {
    const STARTS: usize = 10;
    const LATE_MAX: usize = 3;
    let (addr, ingest) = (free_addr().expect("a port"), free_addr().expect("a port"));
    let (port, listen) = (addr.port().to_string(), format!("{ingest} protocol=2"));
    let mut words = vec!["--port", &port, "--bind", "127.0.0.1", "--admin-port", "0"];
    words.extend(["--save", "", "--threads", "2", "--ingest-listen", &listen]);
    let back_end = io_backend();
    words.extend(back_end.iter().flat_map(|back_end| ["--io-backend", back_end]));
    let mut late = 0;
    for _ in 0..STARTS + LATE_MAX {
        let Some(mut server) = started(&words, addr) else {
            late += 1;
            assert!(late <= LATE_MAX, "{late} starts found a port in use");
            continue;
        };
        let _open = Wire::connect(ingest).expect("it listens there too");
        server.kill().expect("it runs");
        server.wait().expect("a child of this process");
    }
}
