//! The admin port: /metrics through a real parser and beside redis_exporter, the live page in a browser, who may
//! read, what happens when the port is taken, and that nobody pays for it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sheafdb_tests::http;
use sheafdb_tests::program::{python, root, run};
use sheafdb_tests::server_process::{Binary, ServerProcess, free_addr};
use sheafdb_tests::wire::{Value, encode};

/// Connections that the admin port takes at once.
const VISITORS_MAX: usize = 64;

/// A server and the address of its admin port.
fn start(extra: &[&str]) -> (ServerProcess, SocketAddr) {
    let admin = free_addr().expect("a free port");
    let port = admin.port().to_string();
    let args: Vec<&str> = ["--admin-port", &port].iter().chain(extra).copied().collect();
    (ServerProcess::start(&Binary::under_test(), &args), admin)
}

fn get(admin: SocketAddr, path: &str, headers: &[&str]) -> http::Answer {
    http::get(admin, path, headers).expect("the admin port answers")
}

/// A server that was started by itself; it ends with this value.
struct Bare(Child);

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server with exactly these settings, on a unix socket of its own.
fn bare(name: &str, args: &[&str]) -> Bare {
    let dir = std::env::temp_dir().join(format!("sheafdb-admin-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let mut command = Command::new(&Binary::under_test().path);
    command.args(["--port", "0", "--unixsocket"]).arg(dir.join(name)).arg("--dir").arg(&dir);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Bare(command.spawn().expect("the server runs"))
}

/// What it prints until it is ready.
fn printed(server: &mut Bare) -> String {
    let mut text = String::new();
    for line in BufReader::new(server.0.stdout.take().expect("a pipe")).lines() {
        let line = line.expect("text");
        text += &line;
        text.push('\n');
        if line.contains("Ready to accept connections") {
            return text;
        }
    }
    panic!("it did not start:\n{text}");
}

/// The one line with which a server that must not start says why.
fn refused(name: &str, args: &[&str]) -> String {
    let mut server = bare(name, args);
    let started = Instant::now();
    let status = loop {
        match server.0.try_wait().expect("it is our child") {
            Some(status) => break status,
            None => assert!(started.elapsed() < Duration::from_secs(20), "{args:?}: it runs"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(status.code(), Some(1), "{args:?}");
    let mut text = String::new();
    server.0.stderr.take().expect("a pipe").read_to_string(&mut text).expect("text");
    assert_eq!(text.trim_end().lines().count(), 1, "one line: {text}");
    text
}

/// Parsed by Prometheus's parser; all that Grafana dashboard 763 asks for; the same as INFO and as what Debian's
/// redis_exporter tells about the same server.
#[test]
fn metrics_are_what_prometheus_and_the_dashboard_expect() {
    for threads in ["1", "2"] {
        let ingest = ["--ingest-listen", "127.0.0.1:0", "strategy=sync"];
        let extra: Vec<&str> = ["--threads", threads].iter().chain(&ingest).copied().collect();
        let (server, admin) = start(&extra);
        let exporter = free_addr().expect("a free port").port().to_string();
        let url = format!("http://{admin}/metrics");
        let port = server.addr.port().to_string();
        let mut command = python();
        command.args(["tests/clients/metrics.py", &url, &port, &exporter]);
        print!("{}", run(&mut command, b""));
    }
}

/// Idle and under load, light and dark, wide and narrow, and while the server does not answer. The pictures stay in
/// `target/tmp/live-page`.
#[test]
fn the_live_page_moves_and_says_when_the_server_is_gone() {
    for (token, query) in [("", ""), ("s/p q", "?token=s%2Fp%20q")] {
        let (server, admin) = start(&["--threads", "2", "--admin-token", token]);
        let pictures = root().join("target/tmp/live-page");
        let mut command = python();
        command.arg("tests/clients/page.py").arg(format!("http://{admin}/{query}"));
        command.arg(server.addr.port().to_string()).arg(server.pid().to_string()).arg(pictures);
        print!("{}", run(&mut command, b""));
    }
}

#[test]
fn health_and_readiness_and_unknown_paths() {
    let (server, admin) = start(&["--threads", "4", "--admin-token", "secret"]);
    for (path, status, body) in [("/healthz", 200, "ok\n"), ("/readyz", 200, "ready\n")] {
        let answer = get(admin, path, &[]);
        assert_eq!((answer.status, &*answer.body), (status, body), "{path}");
    }
    assert_eq!(get(admin, "/nothing", &[]).status, 404);
    // A stop takes up to a second while a client leaves its replies unread.
    let mut client = server.connect();
    let large = "x".repeat(16 << 20);
    assert_eq!(
        client.command(&["SET", "k", &large]).expect("answered"),
        Value::Simple(b"OK".into())
    );
    client.send(&encode(&["GET", "k"]).repeat(4)).expect("sent");
    std::thread::sleep(Duration::from_millis(100));
    server.terminate();
    let mut said = Vec::new();
    while let Ok(answer) = http::get(admin, "/readyz", &[]) {
        said.push((answer.status, answer.body));
    }
    assert!(said.contains(&(503, "shutting down\n".into())), "{said:?}");
}

#[test]
fn a_token_is_asked_for_where_there_is_one() {
    let (server, admin) = start(&["--admin-token", "s/p q"]);
    for path in ["/", "/live.json", "/metrics"] {
        for (query, headers, status) in [
            ("", &[][..], 401),
            ("?token=wrong", &[], 401),
            ("?token=s%2Fp%20", &[], 401),
            ("?token=", &[], 401),
            ("", &["Authorization: Bearer wrong"], 401),
            ("", &["Authorization: Basic cy9wIHE="], 401),
            ("", &["Authorization: Bearer s/p q"], 200),
            ("?token=s%2Fp%20q", &[], 200),
            ("?a=b&token=s/p+q", &["Host: some.name"], 200),
        ] {
            let answer = get(admin, &format!("{path}{query}"), headers);
            assert_eq!(answer.status, status, "{path}{query} {headers:?}");
            assert_eq!(answer.head.contains("www-authenticate: bearer"), status == 401);
        }
    }
    // It may change while the server runs, and the slow log does not show it.
    let mut client = server.connect();
    let mut ask = |words: &[&str]| client.command(words).expect("answered");
    ask(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    assert_eq!(ask(&["CONFIG", "SET", "admin-token", "hidden2"]), Value::Simple(b"OK".into()));
    assert_eq!(get(admin, "/metrics?token=s%2Fp%20q", &[]).status, 401);
    let answer = get(admin, "/live.json?token=hidden2", &[]);
    assert_eq!(answer.status, 200);
    assert!(
        answer.body.contains("(redacted)") && !answer.body.contains("hidden2"),
        "{}",
        answer.body
    );
    assert_eq!(ask(&["CONFIG", "SET", "admin-token", ""]), Value::Simple(b"OK".into()));
    assert_eq!(get(admin, "/metrics", &[]).status, 200);
    // A foreign page under a name that leads here reads nothing.
    assert_eq!(get(admin, "/metrics", &["Host: evil.example"]).status, 403);
    assert_eq!(get(admin, "/metrics", &["Host: localhost:1"]).status, 200);
    let page = get(admin, "/", &[]);
    assert!(page.head.contains("content-security-policy: default-src 'none'"), "{}", page.head);
    for away in ["src=\"", "@import", "url(", "https://"] {
        assert!(!page.body.contains(away), "the page asks for something else: {away}");
    }
    assert!(matches!(ask(&["CONFIG", "SET", "admin-port", "1"]), Value::Error(_)));
}

#[test]
fn a_taken_port_is_a_warning_by_default_and_an_error_when_it_was_asked_for() {
    // Whoever holds it, it is taken.
    let _holder = TcpListener::bind("127.0.0.1:9379");
    let text = printed(&mut bare("default", &[]));
    let warned = "# No live page and no /metrics: cannot listen on 127.0.0.1:9379: Address already in use; \
        give a free port with admin-port";
    assert!(text.contains(warned) && !text.contains("http://"), "{text}");
    let text = refused("asked", &["--admin-port", "9379"]);
    let cure = "sheafdb: admin-port: cannot listen on 127.0.0.1:9379: Address already in use; \
        give another with --admin-port, or 0 for none\n";
    assert_eq!(text, cure);
    let text = refused("bind", &["--admin-bind", "192.0.2.1"]);
    assert!(text.contains("192.0.2.1:9379: Cannot assign requested address"), "{text}");
    for bad in ["x", "65536", "-1"] {
        let text = refused("bad", &["--admin-port", bad]);
        assert!(text.contains("admin-port") && text.contains("from 0 to 65535"), "{text}");
    }
    let text = printed(&mut bare("none", &["--admin-port", "0"]));
    assert!(!text.contains("/metrics") && !text.contains("http://"), "{text}");
    let free = free_addr().expect("a free port").port().to_string();
    let text = printed(&mut bare("free", &["--admin-port", &free]));
    assert!(text.contains(&format!("live page and metrics: http://127.0.0.1:{free}/\n")), "{text}");
    let free = free_addr().expect("a free port").port().to_string();
    let text = printed(&mut bare("open", &["--admin-port", &free, "--admin-bind", "0.0.0.0"]));
    assert!(text.contains("are open to whoever reaches this machine: set admin-token"), "{text}");
    let token = ["--admin-port", &free, "--admin-bind", "0.0.0.0", "--admin-token", "t0p"];
    let text = printed(&mut bare("token", &token));
    assert!(!text.contains("are open") && !text.contains("t0p"), "{text}");
    assert!(text.contains(&format!("http://0.0.0.0:{free}/?token=...")), "{text}");
}

/// The thread's number and how often it gave up the processor by itself.
fn admin_thread(server: &ServerProcess) -> Option<u64> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("it runs");
    let mut folders = tasks.flatten().map(|task| task.path());
    let read = |file| std::fs::read_to_string(file).unwrap_or_default();
    let folder = folders.find(|folder| read(folder.join("comm")).trim() == "admin")?;
    let status = read(folder.join("status"));
    let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn the_thread_sleeps_while_nobody_asks() {
    let (server, admin) = start(&["--threads", "1"]);
    let calm = |what| {
        std::thread::sleep(Duration::from_millis(300)); // to its first sleep, or back to it
        let before = admin_thread(&server).expect("there is the thread");
        std::thread::sleep(Duration::from_secs(1));
        let after = admin_thread(&server).expect("it is still there");
        assert_eq!(after, before, "{what}: it woke by itself");
    };
    calm("before the first visitor");
    let _silent = http::connect(admin).expect("it listens");
    assert_eq!(get(admin, "/metrics", &[]).status, 200);
    calm("after one, with another still connected");
    let off = ServerProcess::start(&Binary::under_test(), &["--admin-port", "0"]);
    assert_eq!(admin_thread(&off), None);
}

#[test]
fn visitors_past_the_bound_wait_for_a_place() {
    let (mut server, admin) = start(&[]);
    let mut silent: Vec<_> =
        (0..VISITORS_MAX).map(|_| http::connect(admin).expect("it listens")).collect();
    let mut late = http::connect(admin).expect("the kernel's queue takes it");
    late.set_read_timeout(Some(Duration::from_millis(300))).expect("an option");
    late.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    let mut byte = [0];
    assert!(late.read(&mut byte).is_err(), "all places are taken");
    silent.pop();
    late.set_read_timeout(Some(Duration::from_secs(10))).expect("an option");
    assert_eq!(late.read(&mut byte).expect("a place is free"), 1);
    assert!(server.answers());
}

/// The runtime is not built before somebody comes.
#[test]
fn an_empty_server_stays_small() {
    if std::env::var("SHEAFDB_PROFILE").ok().as_deref() != Some("release") {
        return; // the bound is that of the binary that users get
    }
    let (server, admin) = start(&["--threads", "1"]);
    let fresh = server.resident_bytes();
    assert!(fresh < 12 << 20, "{fresh} bytes resident");
    let started = Instant::now();
    for path in ["/", "/metrics", "/live.json"].iter().cycle().take(60) {
        assert_eq!(get(admin, path, &[]).status, 200);
    }
    let after = server.resident_bytes();
    println!("{fresh} bytes fresh, {after} after 60 visits in {:?}", started.elapsed());
    assert!(after < fresh + 4_000_000, "{after} bytes resident after visits, {fresh} before");
}
