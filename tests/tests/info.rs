//! INFO compared with the reference: the same sections and fields in the same order, for every form
//! of the command.

use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::{Value, Wire};

/// Fields which Redis 7.2 and Valkey 9 added to those of 7.0, with the preceding field.
/// <https://redis.io/docs/latest/commands/info/>, <https://valkey.io/commands/info/>
const NEWER: [(&str, &str); 19] = [
    ("pubsub_clients", "tracking_clients"),
    ("watching_clients", "pubsub_clients"),
    ("total_watched_keys", "clients_in_timeout_table"),
    ("paused_reason", "total_blocking_keys_on_nokey"),
    ("paused_actions", "paused_reason"),
    ("paused_timeout_milliseconds", "paused_actions"),
    ("expired_fields", "expired_keys"),
    ("eventloop_cycles", "reply_buffer_expands"),
    ("eventloop_duration_sum", "eventloop_cycles"),
    ("eventloop_duration_cmd_sum", "eventloop_duration_sum"),
    ("instantaneous_eventloop_cycles_per_sec", "eventloop_duration_cmd_sum"),
    ("instantaneous_eventloop_duration_usec", "instantaneous_eventloop_cycles_per_sec"),
    ("total_blocking_keys", "total_watched_keys"),
    ("total_blocking_keys_on_nokey", "total_blocking_keys"),
    ("expired_subkeys", "sync_partial_err"),
    ("acl_access_denied_auth", "instantaneous_eventloop_duration_usec"),
    ("acl_access_denied_cmd", "acl_access_denied_auth"),
    ("acl_access_denied_key", "acl_access_denied_cmd"),
    ("acl_access_denied_channel", "acl_access_denied_key"),
];

/// Fields that only this server has. (Redis 7.2 has `listener0` and so on, too.)
const OWN: [&str; 14] = [
    "backup",
    "server_name",
    "sheafdb_version",
    "threads",
    "listener",
    "expire_lag_ms",
    "expire_lag_max_ms",
    "expire_step_max_us",
    "active_defrag_step_max_us",
    "mem_producers",
    "mem_logs",
    "moved_clients",
    "mem_pubsub",
    "mem_tracking",
];

fn info(wire: &mut Wire, sections: &[&str]) -> String {
    let words = [&["INFO"], sections].concat();
    match wire.command(&words).expect("answered") {
        Value::Bulk(text) => String::from_utf8(text).expect("text"),
        other => panic!("INFO is a text: {}", render::line(&other)),
    }
}

/// Headings, blank lines and names of fields, without values which differ between runs.
fn shape(text: &str) -> Vec<String> {
    assert!(text.is_empty() || text.ends_with("\r\n"), "lines end in CR LF");
    let lines = text.split_terminator("\r\n").map(|line| {
        assert!(!line.contains(['\r', '\n']), "{line:?}");
        line.split_once(':').map_or(line, |(name, _)| name).to_owned()
    });
    lines.collect()
}

/// Our shape without our own sections and fields; newer fields must be in their places.
fn ours_alone(lines: &[String]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let mut own_section = false;
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with('#') {
            let own = ["# Io", "# Ingest", "# Longest", "# Databases", "# Service"];
            own_section = own.contains(&&**line);
            if own_section && kept.last().is_some_and(String::is_empty) {
                kept.pop();
            }
        }
        if let Some((_, before)) = NEWER.iter().find(|(name, _)| name == line) {
            assert_eq!(lines[at - 1], *before, "{line} stands elsewhere");
            continue;
        }
        if own_section || OWN.iter().any(|own| line.starts_with(own) && !line.contains("threads_"))
        {
            continue;
        }
        kept.push(line.clone());
    }
    kept
}

fn both() -> (ServerProcess, ServerProcess) {
    let ours = ServerProcess::start(&Binary::under_test(), &["--threads", "2"]);
    (ours, ServerProcess::start(&Binary::redis(), &[]))
}

#[test]
fn sections_and_fields_are_those_of_redis() {
    let (ours, redis) = both();
    let (mut here, mut there) = (ours.connect(), redis.connect());
    for wire in [&mut here, &mut there] {
        for line in
            ["SET k v", "GET k", "GET nothing", "EXPIRE k 1000", "LPUSH k x", "NOSUCH", "GET"]
        {
            let words: Vec<&str> = line.split(' ').collect();
            wire.command(&words).expect("answered");
        }
    }
    let mut compared = 0;
    for asked in [
        "",
        "all",
        "everything",
        "default",
        "ALL",
        "Everything",
        "dEfault",
        "server",
        "Clients",
        "MEMORY",
        "persistence",
        "stats",
        "replication",
        "cpu",
        "modules",
        "commandstats",
        "errorstats",
        "latencystats",
        "cluster",
        "keyspace",
        "nosuch",
        "keyspace server",
        "server keyspace server",
        "nosuch cpu",
        "commandstats default",
        "all nosuch",
        "default modules latencystats",
        "sentinel",
    ] {
        let words: Vec<&str> = asked.split(' ').filter(|word| !word.is_empty()).collect();
        let (mine, theirs) = (info(&mut here, &words), info(&mut there, &words));
        let (mine, theirs) = (ours_alone(&shape(&mine)), shape(&theirs));
        let unlike =
            |line: &&String| !line.starts_with("cmdstat_") && !line.starts_with("latency_perc");
        let left = |lines: &[String]| lines.iter().filter(unlike).cloned().collect::<Vec<_>>();
        assert_eq!(left(&mine), left(&theirs), "INFO {asked}");
        compared += theirs.len();
    }
    assert!(compared > 1500, "only {compared} lines compared");
    if ours.kind == Kind::SheafDb {
        let all = shape(&info(&mut here, &["all"]));
        for (name, _) in NEWER {
            assert!(all.iter().any(|line| line == name), "{name} is missing");
        }
    }
}

/// The value of a field.
fn value(text: &str, name: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in\n{text}")).to_owned()
}

/// Counts of commands and errors, exactly as the reference counts them.
#[test]
fn counts_are_those_of_redis() {
    let (ours, redis) = both();
    let script = [
        "CONFIG RESETSTAT",
        "SET k v",
        "SET k v",
        "SET",
        "SET k v BOGUS",
        "GET k",
        "GET nothing",
        "LPUSH k x",
        "INCR k",
        "NOSUCH",
        "CONFIG GET port",
        "CONFIG NOSUCH",
        "CONFIG",
        "AUTH x",
        "MULTI",
        "SET k w",
        "INCR k",
        "GET",
        "EXEC",
        "MULTI",
        "SET k w",
        "LPUSH k y",
        "EXEC",
        "OBJECT ENCODING k",
        "CLIENT KILL 1:1",
        "HELLO 9",
    ];
    let figures = |server: &ServerProcess| {
        let mut wire = server.connect();
        for line in script {
            let words: Vec<&str> = line.split(' ').collect();
            wire.command(&words).expect("answered");
        }
        let text = info(&mut wire, &["all"]);
        let mut lines: Vec<String> = text
            .lines()
            .filter(|line| line.starts_with("cmdstat_") || line.starts_with("errorstat_"))
            .map(|line| {
                let (name, counts) = line.split_once(':').expect("a field");
                let kept: Vec<&str> =
                    counts.split(',').filter(|c| !c.starts_with("usec")).collect();
                format!("{name}:{}", kept.join(","))
            })
            .collect();
        lines.sort();
        for name in [
            "keyspace_hits",
            "keyspace_misses",
            "total_error_replies",
            "total_commands_processed",
            "db0",
        ] {
            lines.push(format!("{name}:{}", value(&text, name)));
        }
        lines
    };
    let (mine, theirs) = (figures(&ours), figures(&redis));
    assert!(theirs.len() > 15, "{theirs:?}");
    assert_eq!(mine, theirs);
}

/// Values which tools compute with: commandstats have a time, latencystats the configured
/// percentiles.
#[test]
fn times_and_percentiles_are_there() {
    let (ours, redis) = both();
    for server in [&ours, &redis] {
        let mut wire = server.connect();
        for _ in 0..100 {
            wire.command(&["SET", "k", "v"]).expect("answered");
        }
        let set = value(&info(&mut wire, &["commandstats"]), "cmdstat_set");
        let fields: Vec<(&str, &str)> = set.split(',').filter_map(|f| f.split_once('=')).collect();
        let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["calls", "usec", "usec_per_call", "rejected_calls", "failed_calls"]);
        let number = |at: usize| fields[at].1.parse::<f64>().expect("a number");
        assert!((number(0) - 100.0).abs() < 0.5 && number(2) > 0.0, "{set}");
        assert!((number(1) / 100.0 - number(2)).abs() <= 0.02, "{set}");
        let latency = value(&info(&mut wire, &["latencystats"]), "latency_percentiles_usec_set");
        let names: Vec<&str> =
            latency.split(',').filter_map(|p| Some(p.split_once('=')?.0)).collect();
        assert_eq!(names, ["p50", "p99", "p99.9"], "{latency}");
        wire.command(&["CONFIG", "SET", "latency-tracking-info-percentiles", "50 75"])
            .expect("set");
        let latency = value(&info(&mut wire, &["latencystats"]), "latency_percentiles_usec_set");
        assert!(latency.starts_with("p50=") && latency.contains(",p75="), "{latency}");
    }
}

/// CLIENT LIST and CLIENT INFO have the fields of the reference in its order, then the library's
/// that 7.2 added, and the totals of Redis 8 and Valkey 9. (`watch` came later:
/// <https://redis.io/docs/latest/commands/client-list/>.)
#[test]
fn clients_are_described_as_redis_describes_them() {
    let (ours, redis) = both();
    let fields = |server: &ServerProcess, command: &str| -> Vec<String> {
        let reply = server.connect().command(&["CLIENT", command]).expect("answered");
        let Value::Bulk(text) = reply else { panic!("a text") };
        let text = String::from_utf8(text).expect("text");
        let line = text.lines().last().expect("a line").to_owned();
        line.split(' ').filter_map(|field| Some(field.split_once('=')?.0.to_owned())).collect()
    };
    for command in ["LIST", "INFO"] {
        let mut expected = fields(&redis, command);
        if ours.kind == Kind::SheafDb {
            let at = expected.iter().position(|name| name == "multi").expect("it has one") + 1;
            expected.insert(at, "watch".into());
            let younger = ["lib-name", "lib-ver", "tot-net-in", "tot-net-out", "tot-cmds"];
            expected.extend(younger.map(String::from));
        }
        assert_eq!(fields(&ours, command), expected, "CLIENT {command}");
    }
}

/// Filters find clients on every worker. CLIENT KILL spares its own client unless SKIPME is no.
#[test]
fn clients_are_killed_by_filters() {
    let server = ServerProcess::start(&Binary::under_test(), &["--threads", "2"]);
    let mut wire = server.connect();
    let mut others: Vec<Wire> = (0..6).map(|_| server.connect()).collect();
    for other in &mut others {
        other.command(&["PING"]).expect("answered");
    }
    let mut ask = |words: &[&str]| render::line(&wire.command(words).expect("answered"));
    let address = others[0].stream().local_addr().expect("connected").to_string();
    assert_eq!(ask(&["CLIENT", "KILL", &address]), "+OK");
    assert!(others.remove(0).receive().is_err(), "closed");
    let address = others[0].stream().local_addr().expect("connected").to_string();
    assert_eq!(ask(&["CLIENT", "KILL", "ADDR", &address, "TYPE", "pubsub"]), ":0");
    assert_eq!(ask(&["CLIENT", "KILL", "ADDR", &address, "TYPE", "normal"]), ":1");
    assert!(others.remove(0).receive().is_err(), "closed");
    if server.kind == Kind::SheafDb {
        assert_eq!(ask(&["CLIENT", "KILL", "MAXAGE", "1000"]), ":0");
        assert_eq!(ask(&["CLIENT", "KILL", "MAXAGE", "0", "USER", "default"]), ":4");
    } else {
        assert_eq!(ask(&["CLIENT", "KILL", "USER", "default"]), ":4");
    }
    for mut other in others {
        assert!(other.receive().is_err(), "closed");
    }
    let local = server.addr.to_string();
    assert_eq!(ask(&["CLIENT", "KILL", "LADDR", &local]), ":0");
    assert_eq!(ask(&["CLIENT", "KILL", "LADDR", &local, "SKIPME", "no"]), ":1");
    assert!(wire.receive().is_err(), "closed");
}

/// CLIENT LIST and INFO show the memory of a client: incomplete input, a queue, unread output.
#[test]
fn client_list_shows_buffered_input_queue_and_output() {
    let server = ServerProcess::start(&Binary::under_test(), &["--threads", "2"]);
    let (mut wire, mut partial) = (server.connect(), server.connect());
    let id = render::line(&partial.command(&["CLIENT", "ID"]).expect("answered"));
    let line = |wire: &mut Wire| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        let reply = wire.command(&["CLIENT", "LIST", "ID", &id[1..]]).expect("answered");
        render::line(&reply)
    };
    let field = |line: &str, name: &str| {
        let of = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        of.unwrap_or_else(|| panic!("no {name} in {line}")).parse::<u64>().expect("a number")
    };
    // The bytes sent arrive after a while.
    let until = |wire: &mut Wire, is_there: &dyn Fn(&str) -> bool| {
        (0..1000).map(|_| line(wire)).find(|client| is_there(client)).unwrap_or_else(|| line(wire))
    };
    let plain = field(&line(&mut wire), "tot-mem");
    partial.send(b"*3\r\n$3\r\nSET\r\n").expect("open");
    let client = until(&mut wire, &|client| field(client, "qbuf") == 13);
    assert_eq!(field(&client, "qbuf"), 13, "{client}");
    assert_eq!((field(&client, "rbs"), field(&client, "rbp")), (13, 13), "{client}");
    assert!(field(&client, "tot-mem") >= plain + 13, "{client}");
    assert_eq!(value(&info(&mut wire, &["clients"]), "client_recent_max_input_buffer"), "13");
    partial.send(b"$1\r\nk\r\n$1000000\r\n").expect("open");
    partial.send(&vec![b'v'; 500_000]).expect("open");
    let half = |client: &str| field(client, "argv-mem") + field(client, "qbuf") >= 400_000;
    let client = until(&mut wire, &half);
    assert!(half(&client), "{client}");
    partial.send(&vec![b'v'; 500_000]).expect("open");
    partial.send(b"\r\n").expect("open");
    partial.receive().expect("answered");
    let client = line(&mut wire);
    assert_eq!((field(&client, "argv-mem"), field(&client, "qbuf")), (0, 0), "{client}");
    assert!(field(&client, "rbs") == 0 && field(&client, "rbp") >= 400_000, "{client}");
    assert_eq!((field(&client, "obl"), field(&client, "oll")), (0, 0), "{client}");
    for _ in 0..40 {
        partial.send(&sheafdb_tests::wire::encode(&["GET", "k"])).expect("open");
    }
    let is_full =
        |client: &str| field(client, "omem") > 1_000_000 && client.contains(" events=rw ");
    let client = until(&mut wire, &is_full);
    assert!(is_full(&client), "{client}");
    assert!(field(&client, "obl") > 1_000_000 && field(&client, "oll") > 0, "{client}");
    let output = value(&info(&mut wire, &["clients"]), "client_recent_max_output_buffer");
    assert!(output.parse::<u64>().expect("a number") > 1_000_000, "{output}");
}

/// The ids in the reply of CLIENT LIST with these filters.
fn found(wire: &mut Wire, filters: &str) -> Vec<String> {
    let words: Vec<&str> = ["CLIENT", "LIST"].into_iter().chain(filters.split(' ')).collect();
    match wire.command(&words).expect("answered") {
        Value::Bulk(text) => String::from_utf8(text)
            .expect("text")
            .lines()
            .filter_map(|line| line.strip_prefix("id=")?.split(' ').next().map(str::to_owned))
            .collect(),
        other => panic!("{filters}: {}", render::line(&other)),
    }
}

/// The filters which Valkey 9 adds, on clients which differ in one property each.
#[test]
fn clients_are_found_by_every_filter() {
    let server = ServerProcess::start(&Binary::under_test(), &["--threads", "2"]);
    let make = |words: &[&[&str]]| {
        let mut wire = server.connect();
        for words in words {
            wire.command(words).expect("answered");
        }
        let id = render::line(&wire.command(&["CLIENT", "ID"]).expect("answered"));
        (wire, id[1..].to_owned())
    };
    let (mut wire, me) = make(&[]);
    let (other, plain) = make(&[]);
    let (_named, named) = make(&[&["CLIENT", "SETNAME", "bob"], &["SELECT", "3"]]);
    let lib_name = ["CLIENT", "SETINFO", "LIB-NAME", "lib"];
    let lib_ver = ["CLIENT", "SETINFO", "LIB-VER", "1.2"];
    let (_library, library) = make(&[&lib_name, &lib_ver, &["CLIENT", "CAPA", "redirect", "x"]]);
    let (_multi, multi) = make(&[&["CLIENT", "NO-TOUCH", "ON"], &["CLIENT", "NO-EVICT", "ON"]]);
    let address = other.stream().local_addr().expect("connected").to_string();
    let mut found = |filters: &str| found(&mut wire, filters);
    let all = [&me, &plain, &named, &library, &multi];
    let but = |out: &[&String]| -> Vec<String> {
        all.iter().filter(|id| !out.contains(id)).map(|id| (*id).clone()).collect()
    };
    let cases = [
        ("SKIPME yes", but(&[&me])),
        ("SKIPME no", but(&[])),
        ("IP 127.0.0.1 USER default", but(&[])),
        ("NOT-IP 127.0.0.1", vec![]),
        ("IP 127.0.0", vec![]),
        ("NAME bob", vec![named.clone()]),
        ("NOT-NAME bob", but(&[&named])),
        ("DB 3", vec![named.clone()]),
        ("NOT-DB 0", vec![named.clone()]),
        ("LIB-NAME lib LIB-VER 1.2", vec![library.clone()]),
        ("LIB-NAME lib LIB-VER 1.3", vec![]),
        ("NOT-LIB-NAME lib", but(&[&library])),
        ("NOT-LIB-VER 1.2", but(&[&library])),
        ("CAPA r", vec![library.clone()]),
        ("NOT-CAPA r", but(&[&library])),
        ("FLAGS eT", vec![multi.clone()]),
        ("FLAGS Tx", vec![]),
        ("NOT-FLAGS e", but(&[&multi])),
        ("FLAGS N NOT-NAME bob SKIPME yes", but(&[&me, &named, &multi])),
        ("NOT-TYPE normal", vec![]),
        ("NOT-TYPE pubsub", but(&[])),
        ("NOT-USER default", vec![]),
        ("IDLE 0", but(&[])),
        ("IDLE 1000", vec![]),
        ("MAXAGE 0", but(&[])),
        ("MAXAGE 1000000", vec![]),
    ];
    for (filters, expected) in cases {
        assert_eq!(found(filters), expected, "{filters}");
    }
    assert_eq!(found(&format!("ADDR {address}")), std::slice::from_ref(&plain));
    assert_eq!(found(&format!("NOT-ADDR {address}")), but(&[&plain]));
    assert_eq!(found(&format!("NOT-LADDR {}", server.addr)), [""; 0]);
    assert_eq!(found(&format!("ID {multi} {named} {plain} DB 0")), [multi.clone(), plain.clone()]);
    assert_eq!(found(&format!("ID {multi} ID {plain}")), [multi.clone(), plain.clone()]);
    assert_eq!(found(&format!("NOT-ID {multi} {named} SKIPME YES")), [plain, library]);
}

/// MAXAGE of LIST is in milliseconds, of KILL in seconds; IDLE in seconds.
#[test]
fn maxage_and_idle_units() {
    let server = ServerProcess::start(&Binary::under_test(), &[]);
    let (mut wire, mut other) = (server.connect(), server.connect());
    std::thread::sleep(std::time::Duration::from_millis(2100));
    let mut ask = |words: &[&str]| render::line(&wire.command(words).expect("answered"));
    let listed = |text: &str| text.matches("id=").count();
    assert_eq!(listed(&ask(&["CLIENT", "LIST", "MAXAGE", "1000"])), 2);
    assert_eq!(listed(&ask(&["CLIENT", "LIST", "MAXAGE", "9000"])), 0);
    assert_eq!(listed(&ask(&["CLIENT", "LIST", "IDLE", "1"])), 1);
    assert_eq!(ask(&["CLIENT", "KILL", "MAXAGE", "9", "SKIPME", "no"]), ":0");
    assert_eq!(ask(&["CLIENT", "KILL", "NOT-ID", "1", "MAXAGE", "1", "IDLE", "1"]), ":1");
    assert!(other.receive().is_err(), "closed");
}
