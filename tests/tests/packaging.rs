//! Installation: `make install` and `uninstall` in a folder, the readiness of the service, the
//! container's entry point and seccomp profile, the Debian package.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sheafdb_tests::ports::free_addr;
use sheafdb_tests::program::{root, run};
use sheafdb_tests::wire::{Value, Wire};

/// Longest wait until the server reports readiness, or ends.
const PATIENCE: Duration = Duration::from_secs(120);

fn main() {
    // Builds may take longer than the time limit of `run`.
    let built = Command::new("make").args(["--silent", "deb"]).current_dir(root()).status();
    assert!(built.expect("make starts").success(), "make deb");
    let folder = std::env::temp_dir().join(format!("packaging-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a temporary folder");
    type Test = (&'static str, fn(&Path));
    let tests: [Test; 5] = [
        ("installed, started, removed", install_start_and_uninstall),
        ("a changed configuration stays", uninstall_keeps_a_changed_configuration),
        ("the entry point passes arguments through", the_entry_point_passes_arguments_through),
        (
            "the seccomp profile lets the server work",
            the_seccomp_profile_allows_the_calls_of_the_server,
        ),
        ("the Debian package", the_debian_package),
    ];
    for (number, (name, test)) in tests.iter().enumerate() {
        let own = folder.join(number.to_string());
        fs::create_dir_all(&own).expect("a folder");
        println!("packaging: {name}");
        test(&own);
    }
    fs::remove_dir_all(folder).expect("a temporary folder");
}

fn make(words: &[&str]) -> String {
    run(Command::new("make").arg("--silent").args(words).current_dir(root()), b"")
}

/// Every file below `folder`, by its path relative to it.
fn files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a folder").map(|e| e.expect("an entry").path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else {
                let name = entry.strip_prefix(folder).expect("below it");
                found.insert(name.display().to_string());
            }
        }
    }
    found
}

fn install_start_and_uninstall(folder: &Path) {
    let destination = format!("DESTDIR={}", folder.display());
    make(&["install", "PREFIX=/usr", &destination]);
    let expected = [
        "etc/sheafdb/sheafdb.conf",
        "usr/bin/sheafdb",
        "usr/bin/sheafdb-bench",
        "usr/bin/sheafdb-check-aof",
        "usr/bin/sheafdb-check-rdb",
        "usr/lib/systemd/system/sheafdb.service",
        "usr/lib/sysusers.d/sheafdb.conf",
        "usr/share/doc/sheafdb/CHANGELOG.md",
        "usr/share/doc/sheafdb/README.md",
        "usr/share/doc/sheafdb/sheafdb.conf",
    ];
    assert_eq!(files(folder), expected.map(str::to_owned).into());
    let unit = fs::read_to_string(folder.join("usr/lib/systemd/system/sheafdb.service"))
        .expect("the unit");
    let command = unit.lines().find_map(|l| l.strip_prefix("ExecStart=")).expect("a command");
    assert!(unit.contains("Type=notify") && !unit.contains('@'), "{unit}");
    let mut words = command.split(' ').map(str::to_owned);
    let program = folder.join(words.next().expect("a program").trim_start_matches('/'));
    let conf = folder.join(words.next().expect("a file").trim_start_matches('/'));
    let rest: Vec<String> = words.collect();
    assert_eq!(rest.join(" "), "--supervised systemd --daemonize no");
    answers_when_ready(folder, Command::new(program).arg(conf).args(rest));
    make(&["uninstall", "PREFIX=/usr", &destination]);
    assert_eq!(files(folder), BTreeSet::from(["notify".to_owned()]), "something stayed");
    let version = run(Command::new(root().join("target/release/sheafdb")).arg("--version"), b"");
    assert!(version.starts_with("SheafDB v"), "{version}");
}

/// Starts the server as systemd does, waits for READY=1, sends a command, and stops it.
fn answers_when_ready(folder: &Path, command: &mut Command) {
    let socket = folder.join("notify");
    let notified = UnixDatagram::bind(&socket).expect("a socket");
    notified.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let to = free_addr().expect("a port");
    command.args(["--port", &to.port().to_string(), "--dir"]).arg(folder);
    let child = command.env("NOTIFY_SOCKET", &socket).stdout(Stdio::null()).spawn();
    let mut child = Killed(child.expect("it starts"));
    let mut text = [0; 64];
    let len = notified.recv(&mut text).expect("a word within the limit");
    assert_eq!(&text[..len], b"READY=1\n");
    let mut wire = Wire::connect(to).expect("it listens as soon as it says so");
    assert_eq!(wire.command(&["PING"]).expect("an answer"), Value::Simple(b"PONG".to_vec()));
    wire.send(b"SHUTDOWN NOSAVE\r\n").expect("sent");
    let len = notified.recv(&mut text).expect("a word at the end");
    assert_eq!(&text[..len], b"STOPPING=1\n");
    assert!(child.0.wait().expect("its end").success());
}

/// A child process which is killed when dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn uninstall_keeps_a_changed_configuration(folder: &Path) {
    let prefix = format!("PREFIX={}", folder.join("opt").display());
    let conf = folder.join("opt/etc/sheafdb/sheafdb.conf");
    make(&["install", &prefix]);
    fs::write(&conf, "port 7000\n").expect("a file of this test");
    make(&["install", &prefix]);
    assert_eq!(fs::read_to_string(&conf).expect("it is there"), "port 7000\n");
    make(&["uninstall", &prefix]);
    assert_eq!(files(folder), BTreeSet::from(["opt/etc/sheafdb/sheafdb.conf".to_owned()]));
}

fn the_entry_point_passes_arguments_through(folder: &Path) {
    for name in ["sheafdb", "sheafdb-bench"] {
        let program = folder.join(name);
        let script = format!("#!/bin/sh\nprintf '{name}'; printf ' <%s>' \"$@\"\n");
        fs::write(&program, script).expect("a file of this test");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
            .expect("a file of this test");
    }
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let entry = root().join("packaging/docker/entrypoint.sh");
    let started = |args: &[&str]| run(Command::new(&entry).args(args).env("PATH", &path), b"");
    let open = "sheafdb <--bind> <*> <-::*> <--protected-mode> <no> <--admin-bind> <*>";
    assert_eq!(started(&[]), open);
    assert_eq!(started(&["--port", "7000"]), format!("{open} <--port> <7000>"));
    assert_eq!(
        started(&["--requirepass", "a b", "--bind", "10.0.0.1"]),
        format!("{open} <--requirepass> <a b> <--bind> <10.0.0.1>")
    );
    let closed = "sheafdb <--bind> <*> <-::*> <--protected-mode> <no>";
    let unix = ["--port", "0", "--unixsocket", "/s"];
    assert_eq!(started(&unix), format!("{closed} <--port> <0> <--unixsocket> </s>"));
    let asked = started(&["--port", "0", "--admin-port", "9379"]);
    assert_eq!(asked, format!("{open} <--port> <0> <--admin-port> <9379>"));
    assert_eq!(
        started(&["--check-config", "a", "--hz", "20"]),
        "sheafdb <--check-config> <a> <--hz> <20>"
    );
    for alone in ["--version", "-v", "--help", "-h"] {
        assert_eq!(started(&[alone]), format!("sheafdb <{alone}>"));
    }
    assert_eq!(started(&["/etc/my.conf", "--hz", "20"]), "sheafdb </etc/my.conf> <--hz> <20>");
    assert_eq!(started(&["sheafdb-bench", "load"]), "sheafdb-bench <load>");
}

fn the_seccomp_profile_allows_the_calls_of_the_server(folder: &Path) {
    let profile =
        fs::read_to_string(root().join("packaging/docker/seccomp.json")).expect("the profile");
    let allowed = allowed_calls(&profile);
    for call in ["mount", "bpf", "unshare", "kexec_load", "perf_event_open"] {
        assert!(!allowed.contains(call), "{call} needs a capability");
    }
    for call in ["io_uring_setup", "io_uring_enter", "io_uring_register"] {
        assert!(allowed.contains(call), "{call} is what the profile is for");
    }
    let trace = folder.join("calls");
    let to = free_addr().expect("a port");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o"]).arg(&trace).arg(root().join("target/release/sheafdb"));
    command.args(["--port", &to.port().to_string(), "--dir"]).arg(folder).stdout(Stdio::null());
    let mut child = Killed(command.spawn().expect("strace starts"));
    let mut wire = connected(to);
    for command in [&["SET", "k", "v"][..], &["INFO"], &["CONFIG", "SET", "timeout", "20"]] {
        wire.command(command).expect("an answer");
    }
    wire.send(b"SHUTDOWN NOSAVE\r\n").expect("sent");
    child.0.wait().expect("its end");
    let text = fs::read_to_string(trace).expect("the trace");
    let made: BTreeSet<&str> = text.lines().filter_map(call_name).collect();
    assert!(made.contains("socket") && made.contains("listen"), "{made:?}");
    // The C library falls back to clone, as under Docker's default profile.
    let denied: Vec<&&str> =
        made.iter().filter(|name| !allowed.contains(**name) && **name != "clone3").collect();
    assert!(denied.is_empty(), "the server makes calls that the profile denies: {denied:?}");
}

/// The calls that the profile allows to a container without capabilities of its own.
fn allowed_calls(profile: &str) -> BTreeSet<String> {
    let profile: serde_json::Value = serde_json::from_str(profile).expect("JSON");
    assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO", "what is not named is denied");
    let rules = profile["syscalls"].as_array().expect("rules").iter();
    let open = rules
        .filter(|rule| rule["action"] == "SCMP_ACT_ALLOW" && rule["includes"]["caps"].is_null());
    open.flat_map(|rule| rule["names"].as_array().expect("names").clone())
        .map(|name| name.as_str().expect("a name").to_owned())
        .collect()
}

/// The name of the call in a line such as `1234  socket(AF_INET, ...) = 3`.
fn call_name(line: &str) -> Option<&str> {
    let call = line.split_once(' ')?.1.trim_start();
    let name = &call[..call.find('(')?];
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_').then_some(name)
}

fn connected(to: SocketAddr) -> Wire {
    let since = std::time::Instant::now();
    loop {
        match Wire::connect(to) {
            Ok(wire) => return wire,
            Err(e) => assert!(since.elapsed() < PATIENCE, "it never listened: {e}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn the_debian_package(folder: &Path) {
    let package = newest_package();
    let fields = run(Command::new("dpkg-deb").arg("--info").arg(&package), b"");
    for part in ["Package: sheafdb\n", "adduser", "conffiles", "postinst"] {
        assert!(fields.contains(part), "{part} is missing in {fields}");
    }
    run(Command::new("dpkg-deb").arg("-R").arg(&package).arg(folder), b"");
    let found = files(folder);
    for name in [
        "usr/bin/sheafdb",
        "usr/bin/sheafdb-bench",
        "usr/bin/sheafdb-check-aof",
        "usr/bin/sheafdb-check-rdb",
        "etc/sheafdb/sheafdb.conf",
        "usr/share/doc/sheafdb/README.md",
    ] {
        assert!(found.contains(name), "{name} is missing in {found:?}");
    }
    let unit = found.iter().find(|name| name.ends_with("systemd/system/sheafdb.service"));
    let unit = fs::read_to_string(folder.join(unit.expect("a unit"))).expect("it can be read");
    assert!(unit.contains("ExecStart=/usr/bin/sheafdb /etc/sheafdb/sheafdb.conf "), "{unit}");
    let script = fs::read_to_string(folder.join("DEBIAN/postinst")).expect("a script");
    assert!(script.contains("adduser --system") && script.contains("sheafdb.service"), "{script}");
    answers_when_ready(
        folder,
        Command::new(folder.join("usr/bin/sheafdb"))
            .arg(folder.join("etc/sheafdb/sheafdb.conf"))
            .args(["--supervised", "systemd"]),
    );
}

fn newest_package() -> PathBuf {
    let folder = root().join("target/debian");
    let packages = fs::read_dir(folder).expect("packages").map(|e| e.expect("an entry").path());
    let packages = packages.filter(|p| p.extension().is_some_and(|e| e == "deb"));
    let made = |p: &PathBuf| p.metadata().and_then(|m| m.modified()).expect("its time");
    packages.max_by_key(made).expect("a package")
}
