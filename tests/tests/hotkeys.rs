//! HOTKEYS: sessions which count every command, the sample that is always taken, and where its
//! figures are shown.

use std::time::{Duration, Instant};

use sheafdb_tests::http;
use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

/// Longest wait for what must come.
const PATIENCE: Duration = Duration::from_secs(120);

fn on_one_and_two_workers(test: impl Fn(&ServerProcess)) {
    for threads in ["1", "2"] {
        test(&ServerProcess::start(&Binary::under_test(), &["--threads", threads]));
    }
}

fn ask(wire: &mut Wire, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    render::line(&wire.command(&words).expect("answered"))
}

/// A field of HOTKEYS GET, as text; `None` if there is none of that name.
fn find(wire: &mut Wire, name: &str) -> Option<String> {
    let Value::Array(fields) = wire.command(&["HOTKEYS", "GET"]).expect("answered") else {
        panic!("not an array");
    };
    let at = fields.chunks(2).find(|f| render::line(&f[0]) == format!("\"{name}\""))?;
    Some(render::line(&at[1]))
}

fn field(wire: &mut Wire, name: &str) -> String {
    find(wire, name).unwrap_or_else(|| panic!("no field {name}"))
}

fn number(wire: &mut Wire, name: &str) -> i64 {
    field(wire, name).trim_start_matches(':').parse().expect("a number")
}

/// Sends all of these at once and receives their replies.
fn pipeline(wire: &mut Wire, commands: &[String]) {
    let requests = commands.iter().map(|c| encode(&c.split(' ').collect::<Vec<_>>()));
    wire.send(&requests.collect::<Vec<_>>().concat()).expect("sent");
    for _ in commands {
        wire.receive().expect("answered");
    }
}

fn repeat(command: &str, times: usize) -> Vec<String> {
    vec![command.to_string(); times]
}

#[test]
fn a_session_counts_every_command() {
    on_one_and_two_workers(|server| {
        let mut all: Vec<Wire> = (0..4).map(|_| server.connect()).collect();
        assert_eq!(ask(&mut all[0], "HOTKEYS START METRICS 2 CPU NET COUNT 3"), "+OK");
        for wire in &mut all {
            pipeline(wire, &repeat("INCR a", 100));
            pipeline(wire, &repeat("MGET a b", 10));
            pipeline(wire, &["MULTI", "LPUSH l 1 2 3", "GET nothing", "EXEC"].map(String::from));
            assert_eq!(ask(wire, "GET a extra").as_bytes()[0], b'-');
            pipeline(wire, &repeat("PING", 50));
        }
        let wire = &mut all[0];
        let uses = field(wire, "by-uses");
        assert_eq!(uses, r#"*6 "a" :440 "b" :40 "l" :4"#);
        let slots = field(wire, "by-slot-uses");
        assert!(slots.starts_with(r#"*6 "15495" :440 "3300" :40"#), "{slots}");
        // Four times: 100 requests of 21 bytes with replies of 4 to 6; 10 of 28 with one of 12.
        let bytes = number(wire, "net-bytes-all-commands-all-slots");
        assert!((4 * 2_500..4 * 6_000).contains(&bytes), "{bytes}");
        assert!(number(wire, "all-commands-all-slots-us") >= 0);
        // Figures of the network are published ten times a second.
        let began = Instant::now();
        while number(wire, "total-net-bytes") == 0 {
            assert!(began.elapsed() < PATIENCE, "no byte was received");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(number(wire, "sample-ratio"), 1);
        assert_eq!(number(wire, "tracking-active"), 1);
        assert!(field(wire, "by-net-bytes").starts_with(r#"*6 "a" "#));
        assert!(field(wire, "by-cpu-time-us").starts_with("*6 "));
    });
}

#[test]
fn a_session_ends_and_is_forgotten() {
    on_one_and_two_workers(|server| {
        let wire = &mut server.connect();
        assert_eq!(ask(wire, "HOTKEYS STOP"), "null-bulk");
        assert_eq!(ask(wire, "HOTKEYS START METRICS 1 NET"), "+OK");
        let again = ask(wire, "HOTKEYS START METRICS 1 CPU");
        assert_eq!(again, "-ERR A session of HOTKEYS is under way");
        pipeline(wire, &repeat("SET k v", 5));
        assert_eq!(ask(wire, "HOTKEYS STOP"), "+OK");
        assert_eq!(ask(wire, "HOTKEYS STOP"), "null-bulk");
        pipeline(wire, &repeat("SET late v", 5));
        assert_eq!(field(wire, "by-uses"), r#"*2 "k" :5"#);
        assert_eq!(number(wire, "tracking-active"), 0);
        assert!(find(wire, "by-cpu-time-us").is_none());
        assert!(find(wire, "total-cpu-time-user-ms").is_none());
        assert_eq!(ask(wire, "HOTKEYS RESET"), "+OK");
        assert_eq!(number(wire, "sample-ratio"), 1000);
        assert_eq!(number(wire, "tracking-active"), 1);

        assert_eq!(ask(wire, "HOTKEYS START METRICS 1 CPU DURATION 1 SAMPLE 5"), "+OK");
        assert_eq!(number(wire, "sample-ratio"), 5);
        let began = Instant::now();
        while number(wire, "tracking-active") == 1 {
            assert!(began.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(number(wire, "collection-duration-ms"), 1000);
        assert_eq!(ask(wire, "HOTKEYS START METRICS 1 CPU"), "+OK", "the next one begins");
    });
}

/// Half of 200,000 commands use one key; about 200 are looked at.
#[test]
fn hot_keys_are_seen_without_a_session() {
    on_one_and_two_workers(|server| {
        let wire = &mut server.connect();
        for from in (0..200_000).step_by(1_000) {
            let commands = (from..from + 1_000).map(|n| match n % 2 {
                0 => "GET hot".to_string(),
                _ => format!("SET cold:{n} v"),
            });
            pipeline(wire, &commands.collect::<Vec<_>>());
        }
        let uses = field(wire, "by-uses");
        let first = uses.strip_prefix(r#"*20 "hot" :"#);
        let count = first.and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        assert!(count.is_some_and(|n| (60_000..140_000).contains(&n)), "{uses}");
    });
}

#[test]
fn large_values_and_long_names_are_shown() {
    on_one_and_two_workers(|server| {
        let wire = &mut server.connect();
        let (big, long) = ("b".repeat(1_000_000), "k".repeat(200));
        assert_eq!(ask(wire, "SELECT 3"), "+OK");
        assert_eq!(ask(wire, &format!("SET big {big}")), "+OK");
        assert_eq!(ask(wire, "HOTKEYS START METRICS 1 CPU"), "+OK");
        let began = Instant::now();
        loop {
            pipeline(wire, &[format!("SET {long} v"), "STRLEN big".to_string()]);
            let values = field(wire, "largest-values");
            if values.starts_with(r#"*2 *4 "big" :3 :10"#) && values.contains(r#"bytes)" :3 :"#) {
                assert!(values.contains(r#""strlen""#) && values.contains(r#""set""#), "{values}");
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{values}");
            std::thread::sleep(Duration::from_millis(20));
        }
        let uses = field(wire, "by-uses");
        assert!(uses.contains("kkk... (72 more bytes)\""), "{uses}");
    });
}

#[test]
fn bad_requests_are_refused() {
    let server = ServerProcess::start(&Binary::under_test(), &[]);
    let wire = &mut server.connect();
    for (line, reply) in [
        ("HOTKEYS", "-ERR wrong number of arguments for 'hotkeys' command"),
        ("HOTKEYS GET x", "-ERR wrong number of arguments for 'hotkeys|get' command"),
        ("HOTKEYS NONE", "-ERR unknown subcommand 'NONE'. Try HOTKEYS HELP."),
        ("HOTKEYS START METRICS 1 CPU SLOTS 1 5", "-ERR SLOTS is for servers in cluster mode"),
        ("HOTKEYS START METRICS 1 CPU COUNT 65", "-ERR COUNT must be between 1 and 64"),
    ] {
        assert_eq!(ask(wire, line), reply, "{line}");
    }
    assert!(ask(wire, "HOTKEYS HELP").contains("START METRICS"));
    wire.command(&["HELLO", "3"]).expect("answered");
    let reply = wire.command(&["HOTKEYS", "GET"]).expect("answered");
    assert!(matches!(reply, Value::Map(_)), "{}", render::line(&reply));
}

/// Names of keys are hidden from readers without a token where clients need a password.
#[test]
fn the_admin_port_shows_hot_keys() {
    let port = sheafdb_tests::ports::free_addr().expect("a free port").port();
    let admin = format!("127.0.0.1:{port}").parse().expect("an address");
    let server = ServerProcess::start(&Binary::under_test(), &["--admin-port", &port.to_string()]);
    let wire = &mut server.connect();
    for _ in 0..20 {
        pipeline(wire, &repeat("GET hot", 1_000));
    }
    let await_text = |path: &str, wanted: &str| {
        let began = Instant::now();
        loop {
            let text = http::await_answer(admin, path).body;
            if text.contains(wanted) {
                return text;
            }
            assert!(began.elapsed() < PATIENCE, "{wanted} is not in {text}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    await_text("/live.json", r#""keys":[["hot","#);
    let metrics = await_text("/metrics", "\nsheafdb_hottest_key_ratio ");
    let ratio = metrics.lines().find_map(|l| l.strip_prefix("sheafdb_hottest_key_ratio "));
    let ratio: f64 = ratio.and_then(|r| r.parse().ok()).expect("a number");
    assert!(ratio > 0.5 && ratio <= 1.0, "{ratio}");
    assert_eq!(ask(wire, "CONFIG SET requirepass secret"), "+OK");
    let live = await_text("/live.json", r#""slow_arguments_hidden":true"#);
    assert!(live.contains(r#""keys":[["","#) && !live.contains("\"hot\","), "{live}");
}
