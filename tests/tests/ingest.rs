//! Classic ingest on the whole server: an independent client in Python, invalid settings, and
//! shutdown.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sheafdb_tests::ports::free_row;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::Value;

fn start(extra: &[&str]) -> (ServerProcess, u16) {
    let base = free_row(5).expect("five ports");
    let port = base.to_string();
    let mut args = vec!["--ingest-classic", "yes", "--ingest-classic-port", &port];
    args.extend(extra);
    (ServerProcess::start(&Binary::under_test(), &args), base)
}

fn python_client(threads: &str) {
    let (mut server, base) = start(&["--threads", threads, "--ingest-max-message", "300000"]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = Command::new("python3")
        .arg(root.join("clients/ingest.py"))
        .args(["127.0.0.1", &base.to_string(), &server.addr.port().to_string(), "2", "300000"])
        .stdin(Stdio::null())
        .output()
        .expect("python3 is installed");
    let text =
        format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    print!("{text}");
    assert!(out.status.success(), "the client found a fault:\n{text}");
    assert!(server.answers());
    assert!(server.resident_bytes() < 256 << 20, "{} bytes", server.resident_bytes());
}

#[test]
fn an_independent_client_with_one_worker() {
    python_client("1");
}

#[test]
fn an_independent_client_with_two_workers() {
    python_client("2");
}

/// The single line of output of a server which must not start.
fn refused(args: &[&str]) -> String {
    let out = Command::new(&Binary::under_test().path)
        .args(["--port", "0", "--admin-port", "0", "--unixsocket"])
        .arg(std::env::temp_dir().join(format!("sheafdb-ingest-{}", std::process::id())))
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("the server runs");
    assert_eq!(out.status.code(), Some(1), "{args:?}");
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(text.trim_end().lines().count(), 1, "one line: {text}");
    text
}

#[test]
fn invalid_settings_stop_the_start_with_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port();
    let text = refused(&["--ingest-listen", &format!("127.0.0.1:{port}"), "strategy=sync"]);
    assert!(text.contains("ingest-listen: cannot listen on"), "{text}");
    assert!(text.contains(&format!("127.0.0.1:{port} for sync: Address already in use")), "{text}");
    let base = (port - 3).to_string();
    let text = refused(&[
        "--bind",
        "127.0.0.1",
        "--ingest-classic",
        "yes",
        "--ingest-classic-port",
        &base,
    ]);
    assert!(text.contains("ingest-classic: cannot listen on"), "{text}");
    assert!(text.contains("choose other ports with ingest-classic-port"), "{text}");
    for (listen, wanted) in [
        ("127.0.0.1:0 strategy=fast", "'strategy=fast': strategy must be request-reply, throttled"),
        ("127.0.0.1:0 strategy=sync sink=stream", "sink must be null, list:KEY or stream:KEY"),
        ("127.0.0.1:0", "strategy=NAME is missing"),
        ("127.0.0.1 strategy=sync", "'127.0.0.1' is not of the form ADDRESS:PORT"),
    ] {
        let text = refused(&["--ingest-listen", listen]);
        assert!(text.contains("'ingest-listen ") && text.contains(wanted), "{text}");
    }
    let text = refused(&["--ingest-listen", "127.0.0.1:0 strategy=sync sink=list:l db=16"]);
    assert!(text.contains("sink=list:l db=16: there is no such database"), "{text}");
    let text = refused(&["--ingest-classic", "yes", "--bind", ""]);
    assert!(text.contains("ingest-classic: 'bind' names no address"), "{text}");
    for (name, value) in [("ingest-classic-port", "65535"), ("ingest-max-message", "5gb")] {
        let text = refused(&[&format!("--{name}"), value]);
        assert!(text.contains(&format!("'{name} {value}'")), "{text}");
    }
}

fn line(server: &ServerProcess, name: &str) -> String {
    let reply = server.connect().command(&["INFO", "ingest"]).expect("answered");
    let Value::Bulk(text) = reply else { panic!("{reply:?}") };
    let text = String::from_utf8(text).expect("text");
    let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

#[test]
fn several_listeners_run_side_by_side() {
    let one = "127.0.0.1:0 strategy=sync sink=null";
    let server = ServerProcess::start(
        &Binary::under_test(),
        &["--ingest-listen", one, "--ingest-listen", "127.0.0.1:0 strategy=request-reply"],
    );
    assert_eq!(line(&server, "ingest_listeners"), "2");
    let address = |n: u32| -> SocketAddr {
        let text = line(&server, &format!("ingest_listener{n}"));
        let address =
            text.split(',').find_map(|f| f.strip_prefix("address=")).expect("a field of INFO");
        address.parse().expect("an address")
    };
    for (n, order, acks) in [(0, [1, 0, 0, 0], 12), (1, [0, 0, 0, 1], 8)] {
        let mut stream = TcpStream::connect(address(n)).expect("it listens");
        stream.write_all(&[b"abcdefgh", &order[..], b"x"].concat()).expect("it reads");
        let mut ack = vec![0; acks];
        stream.read_exact(&mut ack).expect("it answers");
        assert!(ack.starts_with(b"abcdefgh") && ack[8..].iter().all(|b| *b == 0), "{ack:?}");
    }
    let mut wire = server.connect();
    let shown = wire.command(&["CONFIG", "GET", "ingest-listen"]).expect("answered");
    let text = format!("{one} 127.0.0.1:0 strategy=request-reply sink=null");
    assert!(format!("{shown:?}").contains(&format!("{:?}", Value::Bulk(text.into()))), "{shown:?}");
    let reply = wire.command(&["CONFIG", "SET", "ingest-classic", "yes"]).expect("answered");
    assert!(matches!(reply, Value::Error(_)), "{reply:?}");
}

#[test]
fn shutdown_acknowledges_complete_messages() {
    let (mut server, base) = start(&["--threads", "2"]);
    let mut streams = Vec::new();
    for n in 0..10 {
        let mut stream = TcpStream::connect(("127.0.0.1", base + 4)).expect("it listens");
        stream.write_all(&[&[n; 8][..], &[5, 0, 0, 0], &[n; 5]].concat()).expect("it reads");
        streams.push(stream);
    }
    while line(&server, "ingest_messages") != "10" {
        std::thread::yield_now(); // a message that was not received has no acknowledgement
    }
    server.terminate();
    for (n, stream) in streams.iter_mut().enumerate() {
        let mut said = Vec::new();
        stream.read_to_end(&mut said).expect("an orderly end");
        assert_eq!(said, [&[n as u8; 8][..], &[0; 4]].concat());
    }
    let status = server.wait_exit(Duration::from_secs(60)).expect("it ends");
    assert!(status.success());
}

#[test]
fn resetstat_and_changing_the_idle_timeout() {
    let (server, base) = start(&["--ingest-idle-timeout", "300"]);
    let mut stream = TcpStream::connect(("127.0.0.1", base + 3)).expect("it listens");
    stream.write_all(&[0; 12]).expect("it reads");
    stream.read_exact(&mut [0; 12]).expect("it answers");
    assert_eq!(line(&server, "ingest_messages"), "1");
    let mut wire = server.connect();
    wire.command(&["CONFIG", "RESETSTAT"]).expect("answered");
    let stays = |name: &str| line(&server, &format!("ingest_{name}"));
    assert_eq!((stays("messages"), stays("connections")), ("0".into(), "1".into()));
    wire.command(&["CONFIG", "SET", "ingest-idle-timeout", "1"]).expect("answered");
    let since = Instant::now();
    assert_eq!(stream.read(&mut [0; 1]).expect("an orderly end"), 0);
    let waited = since.elapsed();
    // With the old setting it would be closed after five minutes, or never.
    assert!(waited < Duration::from_secs(120), "{waited:?}");
}
