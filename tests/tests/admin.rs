//! The admin port: /metrics with Prometheus's parser and compared with redis_exporter, the live
//! page in a browser, access control, an occupied port, and no cost for commands.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sheafdb_tests::folder::Folder;
use sheafdb_tests::http;
use sheafdb_tests::in_time::{in_time, until};
use sheafdb_tests::ports::free_addr;
use sheafdb_tests::program::{python, root, run};
use sheafdb_tests::server_process::{Binary, ServerProcess, without_huge_pages};
use sheafdb_tests::wire::{Value, Wire, encode};

/// Maximum number of concurrent connections of the admin port.
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

/// A server without the test defaults; it is killed when dropped.
struct Bare(Child);

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server with exactly these settings and its own unix socket.
fn bare(name: &str, args: &[&str]) -> Bare {
    let dir = std::env::temp_dir().join(format!("sheafdb-admin-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let mut command = Command::new(&Binary::under_test().path);
    command.args(["--port", "0", "--unixsocket"]).arg(dir.join(name)).arg("--dir").arg(&dir);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Bare(command.spawn().expect("the server runs"))
}

/// Its output until it is ready.
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

/// The single line of output of a server which must not start.
fn refused(name: &str, args: &[&str]) -> String {
    let mut server = bare(name, args);
    let started = Instant::now();
    let status = loop {
        match server.0.try_wait().expect("it is our child") {
            Some(status) => break status,
            None => assert!(started.elapsed() < Duration::from_secs(120), "{args:?}: it runs"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(status.code(), Some(1), "{args:?}");
    let mut text = String::new();
    server.0.stderr.take().expect("a pipe").read_to_string(&mut text).expect("text");
    assert_eq!(text.trim_end().lines().count(), 1, "one line: {text}");
    text
}

/// Prometheus's parser accepts them, they include all metrics of Grafana dashboard 763, and they
/// equal INFO and the figures of Debian's redis_exporter for the same server.
#[test]
fn metrics_parse_and_match_info_dashboard_and_exporter() {
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

/// Idle and under load, light and dark, wide and narrow, and while the server does not answer. The
/// pictures stay in `target/tmp/live-page`.
#[test]
fn the_live_page_updates_and_reports_a_lost_server() {
    for (token, query) in [("", ""), ("s/p q", "?token=s%2Fp%20q")] {
        let (server, admin) = start(&["--threads", "2", "--admin-token", token]);
        let pictures = root().join("target/tmp/live-page");
        let mut command = python();
        command.arg("tests/clients/page.py").arg(format!("http://{admin}/{query}"));
        command.arg(server.addr.port().to_string()).arg(server.pid().to_string()).arg(pictures);
        print!("{}", run(&mut command, b""));
    }
}

/// The page has the figures of the append-only file while there is one.
#[test]
fn the_figures_of_the_append_only_file_come_and_go() {
    let folder = Folder::new("admin-journal");
    let (server, admin) = start(&["--dir", folder.path(), "--appendfsync", "always"]);
    let mut client = server.connect();
    let mut ask = |words: &[&str]| {
        assert_eq!(client.command(words).expect("answered"), Value::Simple(b"OK".into()));
    };
    let journal = || {
        let body = get(admin, "/live.json", &[]).body;
        let (_, journal) = body.split_once("\"journal\":").expect("it is named");
        journal.split_once('}').map_or(journal, |(journal, _)| journal).to_owned()
    };
    assert!(journal().starts_with("null,"), "{}", journal());
    ask(&["CONFIG", "SET", "appendonly", "yes"]);
    let synced = server.connect().command(&["WAITAOF", "1", "0", "0"]).expect("answered");
    assert_eq!(synced, Value::Array(vec![Value::Int(1), Value::Int(0)]), "its base is complete");
    ask(&["SET", "key", &"x".repeat(10_000)]);
    let mut known = String::new();
    until("all is on the disk", || {
        known = journal();
        known.contains("\"lag_bytes\":0,") && !known.contains("\"sync_age_ms\":null")
    });
    let (_, bytes) = known.split_once("\"bytes\":").expect("it is named");
    let bytes: u64 = bytes.split(',').next().expect("a number").parse().expect("a number");
    assert!(bytes > 10_000, "{known}");
    assert!(known.contains("\"trouble\":null"), "{known}");
    ask(&["CONFIG", "SET", "appendonly", "no"]);
    until("it is gone", || journal().starts_with("null,"));
}

#[test]
fn health_and_readiness_and_unknown_paths() {
    let (_server, admin) = start(&["--threads", "4", "--admin-token", "secret"]);
    for (path, status, body) in [("/healthz", 200, "ok\n"), ("/readyz", 200, "ready\n")] {
        let answer = get(admin, path, &[]);
        assert_eq!((answer.status, &*answer.body), (status, body), "{path}");
    }
    assert_eq!(get(admin, "/nothing", &[]).status, 404);
    // It stops within a second; the request may come too late.
    in_time(|_| request_during_shutdown_gets_503());
}

/// Whether a request during shutdown gets 503. Shutdown takes up to a second while a client does
/// not read its replies.
fn request_during_shutdown_gets_503() -> bool {
    let (server, admin) = start(&["--threads", "4", "--admin-token", "secret"]);
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
    said.contains(&(503, "shutting down\n".into()))
}

/// Service times: the histogram agrees with INFO, and the map of 24 hours has what was asked.
#[test]
fn service_times_are_shown() {
    let (server, admin) = start(&[]);
    let mut client = server.connect();
    for _ in 0..500 {
        client.command(&["PING"]).expect("answered");
    }
    let Value::Bulk(info) = client.command(&["INFO", "service"]).expect("answered") else {
        panic!("a text")
    };
    let info = String::from_utf8_lossy(&info).into_owned();
    assert!(info.contains("service_time_percentiles_usec:p50="), "{info}");
    // (Before this client somebody asked whether the server is up.)
    let count_of = |body: &str| -> u64 {
        let mut lines = body.lines();
        let count = lines.find_map(|l| l.strip_prefix("sheafdb_service_time_seconds_count "));
        count.map_or(0, |count| count.parse().expect("a number"))
    };
    until("all are counted", || count_of(&get(admin, "/metrics", &[]).body) >= 501);
    let body = get(admin, "/metrics", &[]).body;
    let count = count_of(&body);
    assert!(count < 600, "{count}");
    let all = format!("sheafdb_service_time_seconds_bucket{{le=\"+Inf\"}} {count}\n");
    assert!(body.contains(&all), "{body}");
    assert!(body.contains("sheafdb_service_time_seconds_bucket{le=\"0.001048576\"} "), "{body}");
    assert!(get(admin, "/live.json", &[]).body.contains("\"service\":[["));
    // Housekeeping fills the map, which may be in two columns.
    until("the map has them", || {
        let body = get(admin, "/heat.json", &[]).body;
        let columns = body.split_once("\"columns\":").expect("columns").1;
        let numbers = columns.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok());
        let counts = numbers.filter(|n: &u64| *n < 1_000_000); // the others are minutes
        counts.sum::<u64>() == count
    });
}

#[test]
fn a_configured_token_is_required() {
    let (server, admin) = start(&["--admin-token", "s/p q"]);
    for path in ["/", "/live.json", "/heat.json", "/metrics"] {
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
    // The token may change while the server runs, and the slow log does not show it.
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
    // DNS rebinding: a page under another host name reads nothing.
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
fn an_occupied_default_port_is_a_warning_an_occupied_configured_port_an_error() {
    // The port is occupied, by this listener or by another program.
    let _holder = TcpListener::bind("127.0.0.1:9379");
    let tcp = free_addr().expect("a free port").port().to_string();
    let text = printed(&mut bare("default", &["--port", &tcp]));
    let warned = "# No live page and no /metrics: cannot listen on 127.0.0.1:9379: Address already in use; \
        choose a free port with admin-port";
    assert!(text.contains(warned) && !text.contains("http://"), "{text}");
    let text = refused("asked", &["--admin-port", "9379"]);
    let cure = "sheafdb: admin-port: cannot listen on 127.0.0.1:9379: Address already in use; \
        choose another port with --admin-port, or 0 to disable it\n";
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
    assert!(text.contains("set admin-token to get the live page"), "{text}");
    assert!(text.contains(&format!("\nmetrics: http://0.0.0.0:{free}/\n")), "{text}");
    let token = ["--admin-port", &free, "--admin-bind", "0.0.0.0", "--admin-token", "t0p"];
    let text = printed(&mut bare("token", &token));
    assert!(!text.contains("set admin-token") && !text.contains("t0p"), "{text}");
    assert!(text.contains(&format!("http://0.0.0.0:{free}/?token=...")), "{text}");
}

/// Number of voluntary context switches of the admin thread.
fn context_switches(server: &ServerProcess) -> Option<u64> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("it runs");
    let mut folders = tasks.flatten().map(|task| task.path());
    let read = |file| std::fs::read_to_string(file).unwrap_or_default();
    let folder = folders.find(|folder| read(folder.join("comm")).trim() == "admin")?;
    let status = read(folder.join("status"));
    let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn the_admin_thread_sleeps_while_idle() {
    let (server, admin) = start(&["--threads", "1"]);
    // The timeout of a connection wakes it once. A thread which keeps waking by itself is found in
    // every second.
    let assert_idle = |what| {
        let is_calm = (0..5).any(|_| {
            std::thread::sleep(Duration::from_millis(300)); // to its first sleep, or back to it
            let before = context_switches(&server).expect("there is the thread");
            std::thread::sleep(Duration::from_secs(1));
            context_switches(&server).expect("it is still there") == before
        });
        assert!(is_calm, "{what}: it wakes by itself");
    };
    assert_idle("before the first connection");
    let _silent = kept_open(admin);
    assert_eq!(get(admin, "/metrics", &[]).status, 200);
    assert_idle("after one, with another still connected");
    let off = ServerProcess::start(&Binary::under_test(), &["--admin-port", "0"]);
    assert_eq!(context_switches(&off), None);
}

/// A connection which has received a response and is kept open.
fn kept_open(admin: SocketAddr) -> TcpStream {
    let mut stream = http::connect(admin).expect("it listens");
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    let mut answer = Vec::new();
    while !answer.ends_with(b"ready\n") {
        let mut more = [0; 512];
        let len = stream.read(&mut more).expect("an answer");
        assert!(len > 0, "it was closed: {}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&more[..len]);
    }
    stream
}

/// Idle connections cannot block health probes.
#[test]
fn health_is_answered_when_all_connections_are_taken() {
    let (mut server, admin) = start(&["--admin-token", "secret"]);
    let mut holders: Vec<_> = (0..2 * VISITORS_MAX)
        .map(|number| {
            let mut stream = http::connect(admin).expect("it listens");
            let said: [&[u8]; 3] =
                [b"", b"GET /healthz HTT", b"GET /metrics HTTP/1.1\r\nHost: a\r\n"];
            stream.write_all(said[number % said.len()]).expect("sent");
            stream
        })
        .collect();
    for _ in 0..3 {
        assert_eq!(get(admin, "/healthz", &[]).status, 200);
        assert_eq!(get(admin, "/readyz", &[]).status, 200);
        assert_eq!(get(admin, "/metrics?token=secret", &[]).status, 200);
    }
    // The first of them was closed for the probe. The others time out without a request.
    for holder in &mut holders {
        let mut rest = Vec::new();
        let ended = holder.read_to_end(&mut rest);
        let closed = |e: &std::io::Error| e.kind() == std::io::ErrorKind::ConnectionReset;
        assert!(ended.is_ok() || ended.as_ref().is_err_and(closed), "{ended:?}");
    }
    assert!(server.answers());
}

#[test]
fn the_longest_idle_connection_is_closed_for_a_new_one() {
    let (_server, admin) = start(&[]);
    let mut first = kept_open(admin);
    let _others: Vec<_> = (1..VISITORS_MAX).map(|_| kept_open(admin)).collect();
    let _late = kept_open(admin);
    let mut byte = [0];
    assert_eq!(first.read(&mut byte).expect("closed in order"), 0);
}

/// With a password set, SLOWLOG needs it; the page must not show the slow log to every local user.
#[test]
fn slow_log_arguments_need_the_password() {
    let (server, admin) = start(&["--slowlog-log-slower-than", "0"]);
    let mut client = server.connect();
    let mut ask = |words: &[&str]| client.command(words).expect("answered");
    ask(&["SET", "session:alice", "hunter2"]);
    assert!(get(admin, "/live.json", &[]).body.contains("hunter2"));
    ask(&["CONFIG", "SET", "requirepass", "p"]);
    // Figures may be slightly old, the slow log is current.
    let body = get(admin, "/live.json", &[]).body;
    assert!(!body.contains("hunter2") && !body.contains("session:alice"), "{body}");
    assert!(body.contains("\"slow_arguments_hidden\":true"), "{body}");
    ask(&["CONFIG", "SET", "admin-token", "t"]);
    assert!(get(admin, "/live.json?token=t", &[]).body.contains("hunter2"));
}

/// A server with only a unix socket opens no admin port by default.
#[test]
fn without_a_tcp_port_the_admin_port_is_off_by_default() {
    let text = printed(&mut bare("socket", &["--unixsocketperm", "700"]));
    assert!(!text.contains("http://") && !text.contains("/metrics"), "{text}");
    let free = free_addr().expect("a free port").port().to_string();
    let text = printed(&mut bare("named", &["--admin-port", &free]));
    assert!(text.contains(&format!("http://127.0.0.1:{free}/")), "{text}");
}

#[test]
fn the_page_on_a_public_address_needs_a_token() {
    let (server, admin) = start(&["--admin-bind", "0.0.0.0"]);
    for path in ["/", "/live.json", "/heat.json"] {
        let answer = get(admin, path, &[]);
        assert_eq!(answer.status, 403, "{path}");
        assert!(answer.body.contains("admin-token"), "{}", answer.body);
    }
    for path in ["/metrics", "/healthz", "/readyz"] {
        assert_eq!(get(admin, path, &["Host: some.name"]).status, 200, "{path}");
    }
    let mut client = server.connect();
    client.command(&["CONFIG", "SET", "admin-token", "t"]).expect("answered");
    assert_eq!(get(admin, "/", &[]).status, 401);
    assert_eq!(get(admin, "/live.json?token=t", &[]).status, 200);
    assert_eq!(get(admin, "/metrics", &[]).status, 401);
    assert_eq!(get(admin, "/healthz", &[]).status, 200);
}

/// Opens the writing end of a named pipe; waits until there is a reader.
fn opened_by_a_reader(pipe: &Path) -> File {
    let since = Instant::now();
    loop {
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        match OpenOptions::new().write(true).custom_flags(flags).open(pipe) {
            Ok(file) => return file,
            Err(e) => assert!(since.elapsed() < Duration::from_secs(120), "nobody reads: {e}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A server whose configuration file is a pipe: reading it blocks until the test
/// writes.
struct SlowDisk {
    server: ServerProcess,
    dir: PathBuf,
    conf: PathBuf,
}

impl SlowDisk {
    fn start(name: &str) -> Self {
        // One worker: if it waited for the disk itself, the test would notice.
        Self::start_with(name, "1")
    }

    fn start_with(name: &str, threads: &str) -> Self {
        let name = format!("sheafdb-rewrite-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).expect("a folder");
        let conf = dir.join("server.conf");
        std::fs::write(&conf, "maxmemory 1gb\n").expect("a file");
        let start = |command: &mut Command| {
            // The file comes first, before the options.
            let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
            *command = Command::new(command.get_program());
            command.arg(&conf).args(args);
        };
        let args = ["--threads", threads];
        let server = ServerProcess::start_with(&Binary::under_test(), &args, start);
        std::fs::remove_file(&conf).expect("a temporary file");
        run(Command::new("mkfifo").arg(&conf), b"");
        Self { server, dir, conf }
    }

    /// How often the server has the configuration file open.
    fn opened(&self) -> usize {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.server.pid()));
        let paths = open.expect("it runs").filter_map(|fd| fd.ok()?.path().read_link().ok());
        paths.filter(|path| *path == self.conf).count()
    }
}

/// Ends the read of the pipe, and replaces it by an ordinary file.
fn end_wait(mut pipe: File) {
    pipe.write_all(b"maxmemory 2gb\n").expect("the server reads");
    drop(pipe);
}

/// Waits until this many clients have executed this command last.
fn until_last(other: &mut Wire, command: &str, clients: usize) {
    let (since, last) = (Instant::now(), format!(" cmd={command} "));
    loop {
        let list = text(other, &["CLIENT", "LIST"]);
        if list.matches(&last).count() == clients {
            return;
        }
        assert!(since.elapsed() < Duration::from_secs(120), "{list}");
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A reply which is a bulk string.
fn text(client: &mut Wire, words: &[&str]) -> String {
    match client.command(words).expect("answered") {
        Value::Bulk(bytes) => String::from_utf8(bytes).expect("text"),
        other => panic!("{words:?}: {other:?}"),
    }
}

fn ok() -> Value {
    Value::Simple(b"OK".into())
}

/// A pipe to which the test does not write yet stands for a slow disk.
#[test]
fn config_rewrite_does_not_block_other_clients() {
    let disk = SlowDisk::start("alone");
    let server = &disk.server;
    let [mut writer, mut second, mut other] =
        [server.connect(), server.connect(), server.connect()];
    let rewrite = encode(&["CONFIG", "REWRITE"]);
    writer.send(&rewrite).expect("sent");
    let pipe = opened_by_a_reader(&disk.conf);
    writer.send(&encode(&["PING"])).expect("sent");
    for words in [&["CONFIG", "GET", "*"][..], &["INFO"], &["CONFIG", "SET", "timeout", "7"]] {
        other.command(words).unwrap_or_else(|e| panic!("{words:?} waits: {e}"));
    }
    second.send(&rewrite).expect("sent");
    until_last(&mut other, "config|rewrite", 2);
    other.command(&["CONFIG", "SET", "timeout", "9"]).expect("answered");
    assert!(
        !writer.has_reply(Duration::from_millis(1)).expect("an option"),
        "it is not written yet"
    );
    end_wait(pipe);
    assert_eq!(writer.receive().expect("answered"), ok());
    assert_eq!(writer.receive().expect("answered"), Value::Simple(b"PONG".into()));
    assert_eq!(second.receive().expect("answered"), ok());
    let file = std::fs::read_to_string(&disk.conf).expect("a file again");
    assert!(file.contains("maxmemory 1073741824") || file.contains("maxmemory 1gb"), "{file}");
    assert!(file.contains("timeout 7"), "as it was when the second one asked: {file}");
    // An error is replied, and counted for the command.
    std::fs::remove_dir_all(&disk.dir).expect("a temporary folder");
    let failed = other.command(&["CONFIG", "REWRITE"]).expect("answered");
    let why = b"ERR Rewriting config file: No such file or directory";
    assert_eq!(failed, Value::Error(why.into()));
    let info = text(&mut other, &["INFO", "commandstats"]);
    let line =
        info.lines().find(|line| line.starts_with("cmdstat_config|rewrite:")).expect("a line");
    assert!(line.contains("calls=3,") && line.ends_with("failed_calls=1"), "{line}");
}

/// One run waits for the disk, however many clients of all workers send CONFIG REWRITE.
#[test]
fn concurrent_rewrites_share_one_run() {
    const CLIENTS: usize = 24;
    let disk = SlowDisk::start_with("many", "3");
    let mut other = disk.server.connect();
    let mut first = disk.server.connect();
    let rewrite = encode(&["CONFIG", "REWRITE"]);
    first.send(&rewrite).expect("sent");
    let pipe = opened_by_a_reader(&disk.conf);
    let mut waiting: Vec<Wire> = (0..CLIENTS).map(|_| disk.server.connect()).collect();
    for client in &mut waiting {
        client.send(&rewrite).expect("sent");
    }
    until_last(&mut other, "config|rewrite", 1 + CLIENTS);
    // The file is open once, by the run that the others wait for.
    let since = Instant::now();
    while disk.opened() == 0 {
        assert!(since.elapsed() < Duration::from_secs(120), "no run has begun");
    }
    assert_eq!(disk.opened(), 1);
    end_wait(pipe);
    for mut client in waiting.into_iter().chain([first]) {
        assert_eq!(client.receive().expect("answered"), ok());
    }
    assert_eq!(disk.opened(), 0);
    assert_eq!(other.command(&["CONFIG", "REWRITE"]).expect("answered"), ok());
}

/// The file may hold passwords, and an attacker may know the name of the temporary file beside it.
#[test]
fn a_rewritten_file_follows_no_link_and_stays_private() {
    let disk = SlowDisk::start("private");
    let victim = disk.dir.join("victim");
    let beside = disk.dir.join(format!("server.conf.{}.tmp", disk.server.pid()));
    let mode =
        |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    std::fs::remove_file(&disk.conf).expect("a temporary file");
    std::fs::write(&victim, "mine").expect("a file");
    std::os::unix::fs::symlink(&victim, &beside).expect("a link");
    let mut client = disk.server.connect();
    client.command(&["CONFIG", "SET", "timeout", "77"]).expect("answered");
    assert_eq!(client.command(&["CONFIG", "REWRITE"]).expect("answered"), ok());
    assert_eq!(std::fs::read(&victim).expect("it is there"), b"mine");
    let written = std::fs::read_to_string(&disk.conf).expect("it is there");
    assert!(written.contains("timeout 77\n"), "{written}");
    assert_eq!(mode(&disk.conf), 0o600, "a new file");
    std::fs::set_permissions(&disk.conf, Permissions::from_mode(0o640))
        .expect("a file of this test");
    assert_eq!(client.command(&["CONFIG", "REWRITE"]).expect("answered"), ok());
    assert_eq!(mode(&disk.conf), 0o640, "the mode of the old one");
    assert_eq!(
        std::fs::read_dir(&disk.dir).expect("a temporary folder").count(),
        2,
        "no file stays beside it"
    );
}

/// A worker that shuts down ends its run first, also if no session waits for it.
#[test]
fn a_shutdown_waits_for_the_rewritten_file() {
    let mut disk = SlowDisk::start("shutdown");
    let [mut writer, mut other] = [disk.server.connect(), disk.server.connect()];
    other.command(&["CONFIG", "SET", "timeout", "77"]).expect("answered");
    writer.send(&encode(&["CONFIG", "REWRITE"])).expect("sent");
    let pipe = opened_by_a_reader(&disk.conf);
    until_last(&mut other, "config|rewrite", 1);
    // No session waits for the run.
    let kill = ["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"];
    assert_eq!(other.command(&kill).expect("answered"), Value::Int(1));
    until_last(&mut other, "config|rewrite", 0);
    other.send(&encode(&["SHUTDOWN"])).expect("sent");
    assert!(other.receive().is_err(), "it closes its connections");
    end_wait(pipe);
    let ended = disk.server.wait_exit(Duration::from_secs(120));
    assert!(ended.is_some_and(|status| status.success()), "{ended:?}");
    let written = std::fs::read_to_string(&disk.conf).expect("a file again");
    assert!(written.contains("timeout 77\n"), "{written}");
}

/// In a transaction the commands after it run at once, and the reply of EXEC waits for the disk.
#[test]
fn config_rewrite_in_a_transaction_does_not_block_other_clients() {
    let disk = SlowDisk::start("exec");
    let [mut writer, mut other] = [disk.server.connect(), disk.server.connect()];
    let mut quiet = disk.server.connect();
    let send = |client: &mut Wire, lines: &[&[&str]]| {
        let bytes: Vec<u8> = lines.iter().flat_map(|words| encode(words)).collect();
        client.send(&bytes).expect("sent");
    };
    let big = "x".repeat(100_000);
    let rewrite: &[&str] = &["CONFIG", "REWRITE"];
    let queue: &[&[&str]] = &[
        &["SET", "k", "1"],
        &["SET", "big", &big],
        rewrite,
        &["CONFIG", "SET", "timeout", "9"],
        &["GET", "big"],
        rewrite,
        &["CONFIG", "SET", "timeout", "11"],
        &["INCR", "k"],
    ];
    send(&mut writer, &[&[&["MULTI"] as &[&str]], queue, &[&["EXEC"]]].concat());
    let pipe = opened_by_a_reader(&disk.conf);
    send(&mut writer, &[&["PING"]]);
    for expected in [ok()].into_iter().chain(queue.iter().map(|_| Value::Simple(b"QUEUED".into())))
    {
        assert_eq!(writer.receive().expect("answered"), expected);
    }
    assert_eq!(text(&mut other, &["GET", "k"]), "2", "the transaction is over for others");
    // A client which turns replies off in the middle, and one which kills itself.
    send(&mut quiet, &[&["MULTI"], rewrite, &["CLIENT", "REPLY", "OFF"], rewrite, &["EXEC"]]);
    let mut closing = disk.server.connect();
    let Value::Int(id) = closing.command(&["CLIENT", "ID"]).expect("answered") else {
        panic!("a number")
    };
    let kill = ["CLIENT", "KILL", "ID", &id.to_string(), "SKIPME", "no"];
    send(&mut closing, &[&["MULTI"], rewrite, &kill, &["EXEC"]]);
    until_last(&mut other, "exec", 3);
    assert!(
        !writer.has_reply(Duration::from_millis(1)).expect("an option"),
        "it is not written yet"
    );
    end_wait(pipe);
    let expected = [ok(), ok(), ok(), ok(), Value::Bulk(big.into()), ok(), ok(), Value::Int(2)];
    assert_eq!(writer.receive().expect("answered"), Value::Array(expected.into()));
    assert_eq!(writer.receive().expect("answered"), Value::Simple(b"PONG".into()));
    for _ in 0..4 {
        quiet.receive().expect("OK, and QUEUED for each");
    }
    // Only the first of its three replies is sent; the next one is that of a later command.
    send(&mut quiet, &[&["CLIENT", "REPLY", "ON"], &["PING"]]);
    let pong = Value::Simple(b"PONG".into());
    assert_eq!(quiet.receive().expect("answered"), Value::Array([ok(), ok(), pong].into()));
    let file = std::fs::read_to_string(&disk.conf).expect("a file again");
    assert!(file.contains("timeout "), "{file}");
    assert_eq!(text(&mut other, &["GET", "k"]), "2");
    for _ in 0..3 {
        closing.receive().expect("OK, and twice QUEUED");
    }
    assert_eq!(closing.receive().expect("answered"), Value::Array([ok(), Value::Int(1)].into()));
    assert!(closing.receive().is_err(), "it has killed itself");
    // An error is at the command's place in the reply.
    std::fs::remove_dir_all(&disk.dir).expect("a temporary folder");
    send(&mut other, &[&["MULTI"], rewrite, &["GET", "k"], &["EXEC"]]);
    for _ in 0..3 {
        other.receive().expect("OK, and twice QUEUED");
    }
    let why = b"ERR Rewriting config file: No such file or directory";
    let expected = [Value::Error(why.into()), Value::Bulk(b"2".into())];
    assert_eq!(other.receive().expect("answered"), Value::Array(expected.into()));
}

/// The runtime is not built before the first connection.
#[test]
fn an_empty_server_stays_small() {
    if std::env::var("SHEAFDB_PROFILE").ok().as_deref() != Some("release") {
        return; // the bound applies to the release binary
    }
    without_huge_pages();
    let (server, admin) = start(&["--threads", "1"]);
    let fresh = server.private_bytes();
    assert!(fresh < 2 << 20, "{fresh} private bytes");
    let started = Instant::now();
    for path in ["/", "/metrics", "/live.json"].iter().cycle().take(60) {
        assert_eq!(get(admin, path, &[]).status, 200);
    }
    let after = server.private_bytes();
    println!("{fresh} bytes fresh, {after} after 60 visits in {:?}", started.elapsed());
    assert!(after < fresh + 3_000_000, "{after} private bytes after visits, {fresh} before");
}
