//! Real clients against the server under test: redis-py, ioredis, redis-benchmark, redis-cli.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::Value;

/// No client takes longer.
const LIMIT: Duration = Duration::from_secs(120);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("inside the workspace").into()
}

fn start() -> ServerProcess {
    ServerProcess::start(&Binary::under_test(), &[])
}

/// Waits for the end of a program; kills it at the limit.
fn finish(mut child: Child) -> Output {
    let drain = |stream: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut stream) = stream {
                // What was read before an error is what there is.
                let _ = stream.read_to_end(&mut bytes);
            }
            bytes
        })
    };
    let stdout = drain(child.stdout.take().map(|s| Box::new(s) as Box<dyn Read + Send>));
    let stderr = drain(child.stderr.take().map(|s| Box::new(s) as Box<dyn Read + Send>));
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            break status;
        }
        if started.elapsed() > LIMIT {
            child.kill().expect("it runs");
            break child.wait().expect("it is our child");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let join = |thread: std::thread::JoinHandle<Vec<u8>>| thread.join().expect("reading ends");
    Output { status, stdout: join(stdout), stderr: join(stderr) }
}

/// Runs a program with this input and returns everything it printed; it must succeed.
fn run(command: &mut Command, input: &[u8]) -> String {
    command.current_dir(root()).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}: make deps"));
    let mut stdin = child.stdin.take().expect("it has a pipe");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // A client that ends early is seen by its exit status.
        let _ = stdin.write_all(&input);
    });
    let out = finish(child);
    writer.join().expect("writing ends");
    let text =
        format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{command:?} ended with {}:\n{text}", out.status);
    text
}

fn redis_cli(server: &ServerProcess) -> Command {
    let mut command = Command::new("redis-cli");
    command.args(["-p", &server.addr.port().to_string()]);
    command
}

fn fill(server: &ServerProcess, keys: usize) {
    let mut wire = server.connect();
    for n in 0..keys {
        let reply = wire.command(&["SET", &format!("key:{n}"), &"v".repeat(n % 50)]);
        assert_eq!(reply.expect("answered"), Value::Simple(b"OK".to_vec()));
    }
}

#[test]
fn redis_py() {
    let server = start();
    let mut command = Command::new(root().join(".venv/bin/python"));
    command.arg("tests/clients/smoke.py").args(["127.0.0.1", &server.addr.port().to_string()]);
    print!("{}", run(&mut command, b""));
}

#[test]
fn ioredis() {
    let server = start();
    let mut command = Command::new("node");
    command.arg("tests/clients/smoke.js").args(["127.0.0.1", &server.addr.port().to_string()]);
    print!("{}", run(&mut command, b""));
}

#[test]
fn redis_benchmark_is_content() {
    let server = start();
    for extra in [&["-n", "20000"][..], &["-n", "20000", "-P", "16", "-c", "20"][..]] {
        let mut command = Command::new("redis-benchmark");
        command.args(["-p", &server.addr.port().to_string(), "-q", "-t", "ping,set,get,incr,mset"]);
        let text = run(command.args(extra), b"");
        let lower = text.to_lowercase();
        for word in ["warn", "err", "fail", "could not"] {
            assert!(!lower.contains(word), "redis-benchmark says '{word}':\n{text}");
        }
        for name in ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET (10 keys)"] {
            assert!(text.contains(&format!("{name}: ")), "no result for {name}:\n{text}");
        }
    }
}

#[test]
fn redis_cli_commands() {
    let server = start();
    let lines =
        b"set greeting \"hello there\"\nget greeting\nincr n\nnosuch\nmulti\nincr n\nexec\n";
    let text = run(&mut redis_cli(&server), lines);
    assert_eq!(
        text.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>(),
        [
            "OK",
            "hello there",
            "1",
            "ERR unknown command 'nosuch', with args beginning with: ",
            "OK",
            "QUEUED",
            "2"
        ]
    );
    let text = run(redis_cli(&server).args(["-3", "--no-raw", "hello", "3"]), b"");
    assert!(text.contains("\"proto\" => (integer) 3"), "{text}");
}

#[test]
fn redis_cli_scan_and_bigkeys() {
    let server = start();
    fill(&server, 3000);
    let text = run(redis_cli(&server).args(["--scan", "--pattern", "key:*"]), b"");
    let found: std::collections::BTreeSet<&str> = text.lines().collect();
    assert_eq!(found.len(), 3000);
    let text = run(redis_cli(&server).arg("--bigkeys"), b"");
    assert!(text.contains("Sampled 3000 keys in the keyspace!"), "{text}");
    assert!(text.contains("has 49 bytes"), "{text}");
    let text = run(redis_cli(&server).arg("--memkeys"), b"");
    assert!(text.contains("Sampled 3000 keys in the keyspace!"), "{text}");
}

#[test]
fn redis_cli_pipe() {
    let server = start();
    let mut input = Vec::new();
    for n in 0..50_000 {
        let key = format!("pipe:{n}");
        input.extend(sheafdb_tests::wire::encode(&["SET", &key, "value"]));
    }
    let text = run(redis_cli(&server).arg("--pipe"), &input);
    assert!(text.contains("errors: 0, replies: 50000"), "{text}");
    let mut wire = server.connect();
    assert_eq!(wire.command(&["DBSIZE"]).expect("answered"), Value::Int(50_000));
}

/// These run until they are stopped, so they are, after they printed something.
#[test]
fn redis_cli_stat_and_latency() {
    let server = start();
    fill(&server, 10);
    let told = |args: &[&str], wanted: &str| {
        // Its output is buffered while nobody sees it on a terminal; it would be lost with it.
        let mut command = Command::new("stdbuf");
        command.args(["-oL", "redis-cli", "-p", &server.addr.port().to_string()]);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("make deps");
        let mut stdout = child.stdout.take().expect("it has a pipe");
        let reader = std::thread::spawn(move || {
            let mut text = Vec::new();
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = stdout.read(&mut chunk) {
                text.extend_from_slice(&chunk[..n]);
            }
            String::from_utf8_lossy(&text).into_owned()
        });
        std::thread::sleep(Duration::from_millis(900));
        child.kill().expect("it still runs");
        child.wait().expect("it is our child");
        let text = reader.join().expect("reading ends");
        assert!(text.contains(wanted), "redis-cli {args:?} printed no '{wanted}':\n{text}");
    };
    told(&["--stat", "-i", "0.2"], "\n10 ");
    let text = run(redis_cli(&server).args(["--latency", "--raw", "-i", "1"]), b"");
    let words: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // Minimum, maximum, average in ms, and how many.
    assert!(words.len() == 4 && words[3] > 10.0 && words[2] < 100.0, "{text}");
}
