//! A server that cannot start says why in one line that names what is wrong, and exits with 1, as Redis does.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sheafdb_tests::program::{finish, spawn};
use sheafdb_tests::server_process::{Binary, free_addr, io_backend};
use sheafdb_tests::wire::Wire;

/// Nobody: for whom permissions count, even where tests run as root.
const NOBODY: &str = "65534";

/// The one line of a start that fails; `as_nobody` without the rights of root.
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
fn what_keeps_a_server_from_starting_is_one_line() {
    let dir = std::env::temp_dir().join(format!("sheafdb-start-{}", std::process::id()));
    fs::create_dir_all(dir.join("closed")).expect("a folder");
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
    };
    mode(&dir, 0o755);
    mode(&dir.join("closed"), 0o555);
    // The build's folder may be closed to nobody.
    let binary = dir.join("sheafdb");
    fs::copy(&Binary::under_test().path, &binary).expect("a copy");
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
    fs::remove_dir_all(dir).expect("ours");
}

/// Starts a server on given ports and waits until it answers.
fn started(words: &[&str], addr: std::net::SocketAddr) -> Child {
    let mut command = Command::new(&Binary::under_test().path);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    let mut child = command.spawn().expect("a server");
    let since = Instant::now();
    while !Wire::connect(addr).is_ok_and(|mut wire| wire.command(&["PING"]).is_ok()) {
        let ended = child.try_wait().expect("ours");
        assert!(ended.is_none(), "it ended with {ended:?}");
        assert!(since.elapsed() < Duration::from_secs(30), "it does not answer");
        std::thread::sleep(Duration::from_millis(2));
    }
    child
}

/// The rings of a killed process end some milliseconds after it, and its listening sockets with them: its successor
/// found a port taken and was gone before it had begun.
#[test]
fn who_follows_a_killed_server_gets_its_ports() {
    let (addr, ingest) = (free_addr().expect("a port"), free_addr().expect("a port"));
    let (port, listen) = (addr.port().to_string(), format!("{ingest} protocol=2"));
    let mut words = vec!["--port", &port, "--bind", "127.0.0.1", "--admin-port", "0"];
    words.extend(["--save", "", "--threads", "2", "--ingest-listen", &listen]);
    let back_end = io_backend();
    words.extend(back_end.iter().flat_map(|back_end| ["--io-backend", back_end]));
    for _ in 0..10 {
        let mut server = started(&words, addr);
        let _open = Wire::connect(ingest).expect("it listens there too");
        server.kill().expect("it runs");
        server.wait().expect("ours");
    }
}
