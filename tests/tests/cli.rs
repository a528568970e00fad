//! redis-cli in every mode which `clients` does not cover. Modes which need an unsupported feature
//! must end with an error which says so.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sheafdb_tests::program::{self, Terminal, finish, run, spawn};
use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::stress::SetAtEnd;
use sheafdb_tests::wire::Value;

fn start() -> ServerProcess {
    ServerProcess::start(&Binary::under_test(), &["--threads", "2"])
}

fn port(server: &ServerProcess) -> String {
    server.addr.port().to_string()
}

fn redis_cli(server: &ServerProcess, args: &[&str]) -> Command {
    let mut command = Command::new("redis-cli");
    command.args(["-p", &port(server)]).args(args);
    command
}

/// Standard output of a successful run.
fn output(server: &ServerProcess, args: &[&str], input: &[u8]) -> String {
    run(&mut redis_cli(server, args), input)
}

/// Whether it exits successfully, and all its output.
fn output_and_success(server: &ServerProcess, args: &[&str]) -> (bool, String) {
    let mut child = spawn(&mut redis_cli(server, args));
    drop(child.stdin.take());
    let out = finish(child);
    let text = [out.stdout, out.stderr].concat();
    (out.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// Output of a mode which does not end by itself, until `is_enough` accepts it.
fn output_until(server: &ServerProcess, args: &[&str], is_enough: impl Fn(&str) -> bool) -> String {
    // It buffers its output if that is not a terminal; killing it would lose the buffer.
    let mut command = Command::new("stdbuf");
    command.args(["-oL", "redis-cli", "-p", &port(server)]).args(args);
    program::output_until(&mut command, is_enough)
}

fn ask(server: &ServerProcess, words: &[&str]) -> String {
    render::line(&server.connect().command(words).expect("answered"))
}

#[test]
fn output_formats_and_input_from_standard_input() {
    let server = start();
    assert_eq!(ask(&server, &["RPUSH", "l", "a", "b \"c\"", "d"]), ":3");
    assert_eq!(
        output(&server, &["--csv", "lrange", "l", "0", "-1"], b""),
        "\"a\",\"b \\\"c\\\"\",\"d\"\n"
    );
    let json = output(&server, &["--json", "hello"], b"");
    assert!(json.starts_with("{\"server\":\"redis\",") && json.contains("\"proto\":3"), "{json}");
    assert_eq!(output(&server, &["--quoted-json", "lindex", "l", "0"], b""), "\"a\"\n");
    assert_eq!(output(&server, &["--no-raw", "lrange", "l", "0", "0"], b""), "1) \"a\"\n");
    assert_eq!(
        output(&server, &["-d", "|", "--raw", "lrange", "l", "0", "-1"], b""),
        "a|b \"c\"|d\n"
    );
    assert_eq!(output(&server, &["-x", "set", "k"], b"from\ninput"), "OK\n");
    assert_eq!(ask(&server, &["GET", "k"]), "\"from\\ninput\"");
    assert_eq!(output(&server, &["-X", "tag", "set", "tag", "v"], b"named"), "OK\n");
    assert_eq!(ask(&server, &["GET", "named"]), "\"v\"");
    assert_eq!(output(&server, &["-r", "3", "-i", "0.01", "incr", "n"], b""), "1\n2\n3\n");
    assert_eq!(output(&server, &["-n", "5", "set", "five", "v"], b""), "OK\n");
    assert_eq!(output(&server, &["-n", "5", "--scan"], b""), "five\n");
    let info = output(
        &server,
        &["-u", &format!("redis://127.0.0.1:{}/2", port(&server)), "client", "info"],
        b"",
    );
    assert!(info.contains(" db=2 "), "{info}");
    let socket = server.unix_socket();
    let mut command = Command::new("redis-cli");
    let text = run(command.arg("-s").arg(&socket).args(["client", "info"]), b"");
    assert!(text.contains(&format!("addr={}:0", socket.display())), "{text}");
    let (success, text) = output_and_success(&server, &["-e", "nosuch"]);
    assert!(!success && text.starts_with("ERR unknown command 'nosuch'"), "{text}");
    assert_eq!(output(&server, &["-c", "get", "named"], b""), "v\n");
}

#[test]
fn latency_modes() {
    let server = start();
    let has_a_range = |text: &str| text.contains(" seconds range\n");
    let text = output_until(&server, &["--latency-history", "-i", "1", "--raw"], has_a_range);
    assert!(has_a_range(&text), "{text}");
    let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let whole = whole.filter(|line| !line.ends_with(" seconds range"));
    let lines: Vec<Vec<f64>> =
        whole.map(|line| line.split(' ').filter_map(|word| word.parse().ok()).collect()).collect();
    // Minimum, maximum, average in ms, and how many.
    assert!(
        !lines.is_empty() && lines.iter().all(|l| l.len() == 4 && l[3] >= 1.0 && l[2] < 500.0),
        "{text}"
    );
    let has_all = |text: &str| text.contains("From 0 to 100%");
    let text = output_until(&server, &["--latency-dist", "-i", "1"], has_all);
    assert!(has_all(&text), "{text}");
    let text = output(&server, &["--intrinsic-latency", "1"], b"");
    assert!(text.contains("total runs"), "{text}");
}

/// It writes and reads keys like a cache.
#[test]
fn lru_test() {
    let server = start();
    // The first line may be printed before any read, and the last one may be incomplete.
    let are_some = |text: &str| text.matches("Gets/sec").count() > 1;
    let text = output_until(&server, &["--lru-test", "1000"], are_some);
    let line =
        text.lines().find(|line| line.contains("Gets/sec")).unwrap_or_else(|| panic!("{text}"));
    let gets: u64 =
        line.split(' ').next().and_then(|word| word.parse().ok()).expect("a number first");
    assert!(gets > 0 && line.contains("Hits: ") && line.contains("Misses: "), "{line}");
}

#[test]
fn monitor_mode() {
    let server = start();
    let is_seen = |text: &str| text.contains("] \"SET\" \"seen\" \"");
    let stop = AtomicBool::new(false);
    let text = std::thread::scope(|scope| {
        let _end = SetAtEnd(&stop);
        scope.spawn(|| {
            let mut wire = server.connect();
            for n in 0.. {
                wire.command(&["SET", "seen", &n.to_string()]).expect("answered");
                std::thread::sleep(Duration::from_millis(25));
                if stop.load(Ordering::Acquire) {
                    return;
                }
            }
        });
        output_until(&server, &["monitor"], is_seen)
    });
    assert!(text.starts_with("OK\n") && is_seen(&text), "{text}");
}

/// Hot keys need an LFU policy; without it redis-cli prints the server's error.
#[test]
fn hotkeys() {
    let server = start();
    let policy = ask(&server, &["CONFIG", "SET", "maxmemory-policy", "allkeys-lfu"]);
    let mut wire = server.connect();
    for n in 0..300 {
        let reply = wire.command(&["SET", &format!("key:{n}"), "v"]).expect("answered");
        assert_eq!(reply, Value::Simple(b"OK".to_vec()));
    }
    for _ in 0..2000 {
        wire.command(&["GET", "key:7"]).expect("answered");
    }
    let (success, text) = output_and_success(&server, &["--hotkeys"]);
    assert_eq!(policy, "+OK");
    assert!(success && text.contains("Sampled 300 keys in the keyspace!"), "{text}");
    assert!(text.contains("hot key found with counter:") && text.contains("key:7"), "{text}");
}

/// Every way to give a password, and the error for a wrong one.
#[test]
fn passwords() {
    let server = ServerProcess::start(
        &Binary::under_test(),
        &["--requirepass", "s3cret p", "--threads", "2"],
    );
    let port = port(&server);
    let url = format!("redis://default:s3cret%20p@127.0.0.1:{port}/4");
    let ways: [&[&str]; 4] = [
        &["-p", &port, "-a", "s3cret p"],
        &["-p", &port, "--pass", "s3cret p"],
        &["-p", &port, "--user", "default", "--pass", "s3cret p", "-3"],
        &["-u", &url],
    ];
    for way in ways {
        let mut command = Command::new("redis-cli");
        let text = run(command.args(way).args(["--no-auth-warning", "client", "info"]), b"");
        assert!(text.contains(" user=default ") && text.contains(" cmd=client|info "), "{text}");
        assert_eq!(text.contains(" resp=3 "), way.contains(&"-3"), "{text}");
        assert_eq!(text.contains(" db=4 "), way.contains(&"-u"), "{text}");
    }
    let mut command = redis_cli(&server, &["ping"]);
    assert_eq!(run(command.env("REDISCLI_AUTH", "s3cret p"), b""), "PONG\n");
    let (_, text) = output_and_success(&server, &["ping"]);
    assert!(text.starts_with("NOAUTH Authentication required."), "{text}");
    let (_, text) = output_and_success(&server, &["--no-auth-warning", "-a", "wrong", "ping"]);
    assert!(text.contains("AUTH failed: WRONGPASS"), "{text}");
    let (_, text) = output_and_success(
        &server,
        &["--no-auth-warning", "--user", "bob", "--pass", "s3cret p", "ping"],
    );
    assert!(text.contains("AUTH failed: WRONGPASS"), "{text}");
}

/// Scripts, replication, cluster, subscriptions: the error names the unsupported command.
#[test]
fn unsupported_modes_fail_with_an_error() {
    let server = start();
    let script = std::env::temp_dir().join(format!("sheafdb-cli-{}.lua", std::process::id()));
    std::fs::write(&script, "return 1").expect("a temporary file");
    let (_, text) =
        output_and_success(&server, &["--eval", &script.display().to_string(), "k", ",", "1"]);
    std::fs::remove_file(&script).expect("a temporary file");
    assert!(text.starts_with("ERR unknown command 'EVAL'"), "{text}");
    let rdb = std::env::temp_dir().join(format!("sheafdb-cli-{}.rdb", std::process::id()));
    let (success, text) = output_and_success(&server, &["--rdb", &rdb.display().to_string()]);
    assert!(
        !success && text.contains("SYNC with master failed: -ERR unknown command 'SYNC'"),
        "{text}"
    );
    let _ = std::fs::remove_file(&rdb); // redis-cli may have made it before it asked
    let functions = std::env::temp_dir().join(format!("sheafdb-cli-{}.fun", std::process::id()));
    let (success, text) =
        output_and_success(&server, &["--functions-rdb", &functions.display().to_string()]);
    let said = "REPLCONF rdb-filter-only error: ERR unknown command 'REPLCONF'";
    assert!(!success && text.contains(said), "{text}");
    let _ = std::fs::remove_file(&functions);
    let (success, text) = output_and_success(&server, &["--replica"]);
    assert!(!success && text.contains("-ERR unknown command 'SYNC'"), "{text}");
    let (success, text) =
        output_and_success(&server, &["--cluster", "check", &server.addr.to_string()]);
    assert!(!success && text.contains("is not configured as a cluster node"), "{text}");
}

/// On a terminal: the prompt shows SELECT and MULTI, hints and HELP are shown, MONITOR prints lines
/// as they arrive.
#[test]
fn interactive() {
    let server = start();
    let mut cli = Terminal::start(&format!("redis-cli -p {}", port(&server)));
    // With each prompt, redis-cli discards what was typed before.
    let steps: [(&str, &[&str]); 8] = [
        ("", &["> "]),
        ("ping\r", &["PONG", "> "]),
        ("select 3\r", &["OK", "[3]> "]),
        ("getrange", &[" key start end"]),
        ("\r", &["ERR wrong number", "[3]> "]),
        ("help getrange\r", &["summary:", "[3]> "]),
        ("multi\r", &["OK", "[3](TX)> "]),
        ("discard\r", &["OK", "[3]> "]),
    ];
    for (typed, shown) in steps {
        cli.enter(typed);
        cli.wait_for(shown);
    }
    cli.enter("quit\r");
    assert!(cli.end().status.success());
}
