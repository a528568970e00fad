//! Process handling which needs its own process: this program runs itself again in a role.

use server::boot::process::{PidFile, daemonize, enter_dir};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// The user without rights.
const NOBODY: u32 = 65_534;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, role, dir] = args.as_slice()
        && role.starts_with("role-")
    {
        return run_role(role, Path::new(dir));
    }
    // This file is its own harness. It runs all tests and supports one filter.
    let filter = args.get(1).filter(|a| !a.starts_with("--")).cloned().unwrap_or_default();
    if args.iter().any(|a| a == "--list") {
        return;
    }
    let tests: [(&str, fn()); 3] = [
        ("folders_are_checked", folders_are_checked),
        ("a_daemon_outlives_its_parent", a_daemon_outlives_its_parent),
        ("a_failed_daemon_reports_its_error", a_failed_daemon_reports_its_error),
    ];
    for (name, test) in tests.iter().filter(|(name, _)| name.contains(&filter)) {
        test();
        println!("test {name} ... ok");
    }
}

fn run_role(role: &str, dir: &Path) {
    match role {
        "role-enter" => {
            if let Err(e) = enter_dir(dir) {
                eprintln!("{e}");
                std::process::exit(1);
            }
        }
        "role-daemon" => {
            let daemon = daemonize().expect("two forks");
            let _pid = PidFile::write(&dir.join("pid")).expect("writable");
            daemon.ready().expect("the parent waits");
            while !dir.join("end").exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        "role-failing" => {
            let daemon = daemonize().expect("two forks");
            eprintln!("port: taken");
            drop(daemon);
            std::process::exit(1);
        }
        other => panic!("no such role: {other}"),
    }
}

/// A folder which every user may enter, with a copy of this program which every user may execute.
fn shared_folder(name: &str) -> (PathBuf, PathBuf) {
    let dir = std::env::temp_dir().join(format!("process-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a temporary folder");
    let me = std::env::current_exe().expect("this program");
    let program = dir.join("program");
    std::fs::copy(me, &program).expect("a copy");
    mode(&dir, 0o755);
    mode(&program, 0o755);
    (dir, program)
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("a file of this test");
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a role as an unprivileged user, because root passes every permission check.
fn unprivileged(program: &Path, role: &str, dir: &Path) -> Output {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--clear-groups", "--reuid", &NOBODY.to_string()]);
        command.args(["--regid", &NOBODY.to_string()]).arg(program);
        command
    } else {
        Command::new(program)
    };
    command.arg(role).arg(dir).output().expect("it runs")
}

fn folders_are_checked() {
    let (dir, program) = shared_folder("dir");
    let run = |path: &Path| {
        let out = unprivileged(&program, "role-enter", path);
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let open = dir.join("open");
    std::fs::create_dir(&open).expect("new");
    mode(&open, 0o777);
    assert_eq!(run(&open), (Some(0), String::new()));
    let closed = dir.join("closed");
    std::fs::create_dir(&closed).expect("new");
    mode(&closed, 0o555);
    let (code, message) = run(&closed);
    assert_eq!(code, Some(1));
    let start = format!("dir '{}': cannot be written to by user ", closed.display());
    assert!(
        message.starts_with(&start) && message.contains("Permission denied; give another"),
        "{message}"
    );
    assert_eq!(message.lines().count(), 1, "{message}");
    mode(&closed, 0o000);
    let (_, message) = run(&closed);
    assert!(message.contains("cannot be entered: Permission denied; give a folder"), "{message}");
    let (_, message) = run(&dir.join("missing"));
    assert!(message.contains("cannot be entered: No such file or directory"), "{message}");
    let (_, message) = run(&program);
    assert!(message.contains("cannot be entered: Not a directory"), "{message}");
    mode(&closed, 0o755);
    std::fs::remove_dir_all(dir).expect("a temporary folder");
}

fn a_daemon_outlives_its_parent() {
    let (dir, program) = shared_folder("daemon");
    let status = Command::new(&program).arg("role-daemon").arg(&dir).status().expect("it runs");
    assert!(status.success());
    // The parent has exited successfully, so the pid file exists already.
    let pid = std::fs::read_to_string(dir.join("pid")).expect("the pid file");
    let pid: u32 = pid.trim().parse().expect("a number");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is alive");
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let (session, terminal) = (fields[3], fields[4]);
    assert_ne!(session, pid.to_string(), "it does not lead its session");
    assert_eq!(terminal, "0", "it has no terminal");
    for fd in 0..3 {
        let to = std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).expect("it is open");
        assert_eq!(to, Path::new("/dev/null"));
    }
    std::fs::write(dir.join("end"), "").expect("writable");
    let start = Instant::now();
    while dir.join("pid").exists() {
        assert!(start.elapsed() < Duration::from_secs(120), "the pid file goes at the end");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::fs::remove_dir_all(dir).expect("a temporary folder");
}

fn a_failed_daemon_reports_its_error() {
    let (dir, program) = shared_folder("failing");
    let out = Command::new(&program).arg("role-failing").arg(&dir).output().expect("it runs");
    assert_eq!(out.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&out.stderr), "port: taken\n");
    std::fs::remove_dir_all(dir).expect("a temporary folder");
}
