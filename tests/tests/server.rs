//! Tests which golden files cannot express: several connections, time, logs, panics. All run with
//! one worker and with two.

use std::time::{Duration, Instant};

use sheafdb_tests::in_time::in_time;
use sheafdb_tests::render;
use sheafdb_tests::rng::Rng;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::{Value, Wire};

/// Runs a test on a server with one worker and with two; not on the reference, which lacks some of
/// the commands.
fn on_both(extra: &[&str], test: impl Fn(&mut ServerProcess)) {
    let binary = Binary::under_test();
    if binary.kind == Kind::Redis {
        return;
    }
    for threads in ["1", "2"] {
        let args: Vec<&str> = ["--threads", threads].iter().chain(extra).copied().collect();
        test(&mut ServerProcess::start(&binary, &args));
    }
}

/// A command line and its reply in one line; `closed` if the connection ends.
fn ask(wire: &mut Wire, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    match wire.command(&words) {
        Ok(reply) => render::line(&reply),
        Err(_) => "closed".into(),
    }
}

fn send(wire: &mut Wire, line: &str) {
    let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
    wire.send(&sheafdb_tests::wire::encode(&words)).expect("the connection is open");
}

fn receive(wire: &mut Wire) -> String {
    wire.receive().map_or_else(|_| "closed".into(), |reply| render::line(&reply))
}

/// Sessions which find the World gate closed are parked, and woken when it opens.
#[test]
fn sessions_parked_by_debug_sleep_are_answered_afterwards() {
    on_both(&[], |server| {
        let mut sleeper = server.connect();
        let mut others: Vec<Wire> = (0..4).map(|_| server.connect()).collect();
        for other in &mut others {
            assert_eq!(ask(other, "SET k v"), "+OK");
        }
        in_time(|factor| {
            let sleep = factor * Duration::from_millis(300);
            let started = Instant::now();
            send(&mut sleeper, &format!("DEBUG SLEEP {}", sleep.as_secs_f64()));
            std::thread::sleep(factor * Duration::from_millis(50));
            for other in &mut others {
                send(other, "GET k");
            }
            // CLIENT KILL runs meanwhile.
            assert_eq!(ask(&mut server.connect(), "CLIENT KILL TYPE pubsub"), ":0");
            let is_early = started.elapsed() < sleep;
            for other in &mut others {
                assert_eq!(receive(other), "\"v\"");
            }
            let are_late = started.elapsed() >= sleep;
            assert_eq!(receive(&mut sleeper), "+OK");
            is_early && are_late
        });
    });
}

/// Killing the client which runs DEBUG SLEEP opens the gate.
#[test]
fn killing_a_sleeping_client_opens_the_gate() {
    on_both(&[], |server| {
        let mut sleeper = server.connect();
        let id = ask(&mut sleeper, "CLIENT ID");
        send(&mut sleeper, "DEBUG SLEEP 100");
        std::thread::sleep(Duration::from_millis(50));
        let mut waiting = server.connect();
        send(&mut waiting, "SET k v");
        let kill = format!("CLIENT KILL ID {}", &id[1..]);
        assert_eq!(ask(&mut server.connect(), &kill), ":1");
        assert_eq!(receive(&mut waiting), "+OK");
        assert_eq!(receive(&mut sleeper), "closed");
        assert_eq!(ask(&mut server.connect(), "FLUSHALL"), "+OK");
    });
}

/// SHUTDOWN NOSAVE is served during a DEBUG SLEEP.
#[test]
fn a_sleeping_server_can_be_shut_down() {
    on_both(&[], |server| {
        let mut sleeper = server.connect();
        send(&mut sleeper, "DEBUG SLEEP 100");
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(ask(&mut server.connect(), "SHUTDOWN NOSAVE"), "closed");
        let status = server.wait_exit(Duration::from_secs(60)).expect("it ends");
        assert!(status.success(), "{status}");
    });
}

/// A panic closes its connection. The command's changes are rolled back, also in the middle of
/// MSET, and the slot is usable.
#[test]
fn a_command_which_panics_is_rolled_back() {
    on_both(&[], |server| {
        for (arm, victim) in [("SET", "SET a 9"), ("MSET 2", "MSET a 9 b 9 c 9 d 9")] {
            let mut wire = server.connect();
            assert_eq!(ask(&mut wire, "MSET a 1 b 2"), "+OK");
            assert_eq!(ask(&mut server.connect(), &format!("DEBUG PANIC-IN-COMMAND {arm}")), "+OK");
            assert_eq!(ask(&mut wire, victim), "closed");
            let mut wire = server.connect();
            assert_eq!(ask(&mut wire, "MGET a b c d"), "*4 \"1\" \"2\" null-bulk null-bulk");
            assert_eq!(ask(&mut wire, "DBSIZE"), ":2");
            assert_eq!(ask(&mut wire, victim), "+OK");
            assert_eq!(ask(&mut wire, "FLUSHALL"), "+OK");
            let name = arm.split(' ').next().unwrap_or_default().to_lowercase();
            let logged = format!("Command '{name}' of client");
            assert!(server.log().contains(&logged), "{}", server.log());
        }
    });
}

/// The same for commands on lists, packed and in pages, with a panic at each of their changes.
#[test]
fn a_list_command_which_panics_is_rolled_back() {
    let long = "e".repeat(700);
    let victims = [
        "LPUSH l x y z",
        "RPUSH l x y z",
        "LPOP l 2",
        "RPOP l",
        "LSET l 1 other",
        "LINSERT l AFTER b other",
        "LREM l 0 b",
        "LTRIM l 1 2",
        "LTRIM l 5 9",
        "LMOVE l m LEFT RIGHT",
        "LMOVE l l LEFT RIGHT",
        "RPOPLPUSH m l",
        "LMPOP 2 nothing l RIGHT COUNT 3",
    ];
    on_both(&[], |server| {
        for element in ["e", &long] {
            for (victim, change) in victims.iter().flat_map(|v| [(v, 1), (v, 2)]) {
                let mut wire = server.connect();
                let elements = format!("{element} b {element} {element} d b");
                ask(&mut wire, "FLUSHALL");
                assert_eq!(ask(&mut wire, &format!("RPUSH l {elements}")), ":6");
                assert_eq!(ask(&mut wire, "RPUSH m single"), ":1");
                ask(&mut wire, "EXPIRE l 1000");
                let state = |wire: &mut Wire| {
                    ["LRANGE l 0 -1", "LRANGE m 0 -1", "DBSIZE", "OBJECT ENCODING l"]
                        .map(|line| ask(wire, line))
                };
                let before = state(&mut wire);
                let name = victim.split(' ').next().unwrap_or_default();
                ask(&mut server.connect(), &format!("DEBUG PANIC-IN-COMMAND {name} {change}"));
                let reply = ask(&mut wire, victim);
                let mut wire = server.connect();
                if reply == "closed" {
                    assert_eq!(state(&mut wire), before, "{victim} at change {change}");
                } else {
                    assert_eq!(change, 2, "{victim}: {reply}");
                }
            }
        }
    });
}

/// The same for commands on sorted sets, small ones in their entry and big ones in trees.
#[test]
fn a_sorted_set_command_which_panics_is_rolled_back() {
    let victims = [
        "ZADD z 9 m1 8 new 7 m5",
        "ZINCRBY z 3 m1",
        "ZREM z m1 m2 m3",
        "ZREMRANGEBYRANK z 0 1",
        "ZREMRANGEBYRANK z 1 200",
        "ZREMRANGEBYSCORE z 1 3",
        "ZREMRANGEBYLEX z - +",
        "ZPOPMIN z",
        "ZPOPMAX z 100",
        "ZMPOP 1 z MIN COUNT 3",
        "ZUNIONSTORE z 2 z y",
        "ZDIFFSTORE z 2 z y",
        "ZRANGESTORE z y 0 5",
        "GEOADD z 1 2 m1 3 4 new",
        "GEOSEARCHSTORE z y FROMLONLAT 0 0 BYRADIUS 40000 km",
    ];
    on_both(&[], |server| {
        let mut setup = server.connect();
        for members in [5, 600] {
            for victim in victims {
                assert_eq!(ask(&mut setup, "FLUSHALL"), "+OK");
                assert_eq!(ask(&mut setup, "ZADD y 5 m1 6 other"), ":2");
                let pairs: Vec<_> = (0..members).map(|n| format!("{n} m{n}")).collect();
                ask(&mut setup, &format!("ZADD z {}", pairs.join(" ")));
                let state = |wire: &mut Wire| {
                    let members = ask(wire, "ZRANGE z 0 -1 WITHSCORES");
                    let scores = ask(wire, "ZMSCORE z m0 m1 m2 m3 m4 m5 m599 new other");
                    [members, scores, ask(wire, "ZSCAN z 0 COUNT 10000")]
                };
                let before = state(&mut setup);
                let name = victim.split(' ').next().unwrap_or_default();
                let arm = format!("DEBUG PANIC-IN-COMMAND {name} 1");
                assert_eq!(ask(&mut setup, &arm), "+OK");
                assert_eq!(ask(&mut server.connect(), victim), "closed", "{victim}");
                assert_eq!(state(&mut setup), before, "{victim}");
                assert!(!ask(&mut setup, victim).starts_with('-'), "{victim}");
                assert_ne!(state(&mut setup), before, "{victim}");
            }
        }
    });
}

/// Inside EXEC the commands before the panic are committed, the one which panicked is rolled back,
/// and those after it do not run. A queue with a command on the whole keyspace holds World: its
/// panic once left the gate closed for ever.
#[test]
fn a_panic_inside_exec_keeps_the_commands_before_it() {
    on_both(&[], |server| {
        for whole in [false, true] {
            let mut wire = server.connect();
            assert_eq!(ask(&mut server.connect(), "DEBUG PANIC-IN-COMMAND INCR"), "+OK");
            assert_eq!(ask(&mut wire, "MULTI"), "+OK");
            if whole {
                assert_eq!(ask(&mut wire, "DBSIZE"), "+QUEUED");
                assert_eq!(ask(&mut wire, "KEYS *"), "+QUEUED");
            }
            for line in ["SET before 1", "INCR n", "SET after 1"] {
                assert_eq!(ask(&mut wire, line), "+QUEUED");
            }
            assert_eq!(ask(&mut wire, "EXEC"), "closed");
            let mut wire = server.connect();
            assert_eq!(ask(&mut wire, "MGET before n after"), "*3 \"1\" null-bulk null-bulk");
            assert_eq!(ask(&mut wire, "INCR n"), ":1");
            assert_eq!(ask(&mut wire, "FLUSHALL"), "+OK");
        }
    });
}

/// A command which panics after it has changed a string of pages, alone and inside EXEC, leaves the
/// string and the copy which shares its pages as they were, and no memory which is not accounted
/// for.
#[test]
fn a_change_of_a_string_of_pages_which_panics_is_rolled_back() {
    const LEN: usize = 3 << 20;
    const ROOM: i64 = 128 << 10;
    let long = "long".repeat(LEN / 8);
    let victims = [
        ("SETRANGE k 65530 across-a-border".to_owned(), 1),
        (format!("SETRANGE k 70000 {}", "20-KiB".repeat(3500)), 1),
        (format!("SETRANGE k 77777 {long}"), 1),
        (format!("APPEND k {long}"), 1),
        ("APPEND k tail".to_owned(), 1),
        ("SETBIT k 4294967295 1".to_owned(), 1),
        ("BITFIELD k SET u63 524280 5 SET u8 99 7".to_owned(), 1),
        (format!("MSET k {long} copy x"), 2),
        ("MSET k short copy x".to_owned(), 2),
        ("RENAME k copy".to_owned(), 2),
        ("DEL k copy".to_owned(), 2),
        ("GETDEL k".to_owned(), 1),
        ("BITOP NOT k copy".to_owned(), 1),
    ];
    on_both(&[], |server| {
        let mut setup = server.connect();
        for (victim, change) in &victims {
            for in_exec in [false, true] {
                assert_eq!(ask(&mut setup, "FLUSHALL SYNC"), "+OK");
                assert_eq!(ask(&mut setup, &format!("SET k {}", "text".repeat(LEN / 4))), "+OK");
                assert_eq!(ask(&mut setup, "COPY k copy"), ":1");
                let state = |wire: &mut Wire| {
                    ["DIGEST k", "DIGEST copy", "STRLEN k", "DBSIZE"].map(|line| ask(wire, line))
                };
                let mut wire = server.connect();
                let mut queue = vec![victim.as_str()];
                if in_exec {
                    queue = vec!["MULTI", "SETRANGE k 131070 kept", victim, "EXEC"];
                    // The change before stays; it is made here, too, for the comparison.
                    ask(&mut setup, "SETRANGE k 131070 kept");
                }
                let bytes = dataset_bytes(&mut setup);
                let before = state(&mut setup);
                let name = victim.split(' ').next().unwrap_or_default();
                // What is prepared changes the string in its last run, behind the first one and
                // the steps: of 256 KiB each, or of 128 KiB which are read and written.
                let runs = match name {
                    _ if in_exec => 0,
                    "BITOP" => 1 + LEN / (128 << 10),
                    "SETRANGE" | "APPEND" if victim.len() > long.len() => {
                        1 + long.len() / (256 << 10)
                    }
                    _ => 0,
                };
                let arm = format!("DEBUG PANIC-IN-COMMAND {name} {change} {runs}");
                assert_eq!(ask(&mut setup, &arm), "+OK");
                if in_exec && name == "SETRANGE" {
                    queue[1] = "SETBIT k 800000 0";
                }
                let last = queue.pop().expect("a command");
                for line in queue {
                    ask(&mut wire, line);
                }
                let what = &victim[..victim.len().min(40)];
                assert_eq!(ask(&mut wire, last), "closed", "{what}, in EXEC: {in_exec}");
                assert_eq!(state(&mut setup), before, "{what}, in EXEC: {in_exec}");
                // A page that was copied, or the room behind the last byte, may stay.
                settles(&mut setup, |now| (now - bytes).abs() <= ROOM);
                assert_eq!(ask(&mut setup, "DEL k copy"), ":2");
                settles(&mut setup, |now| now == 0);
            }
        }
    });
}

/// Waits until the bytes of all keys, and of what waits to be freed, are right.
fn settles(wire: &mut Wire, is_right: impl Fn(i64) -> bool) {
    in_time(|factor| {
        std::thread::sleep(Duration::from_millis(u64::from(factor - 1) * 20));
        is_right(dataset_bytes(wire))
    });
}

/// Bytes of all keys.
fn dataset_bytes(wire: &mut Wire) -> i64 {
    let Ok(Value::Array(parts)) = wire.command(&["MEMORY", "STATS"]) else { panic!("a list") };
    let at = parts.iter().position(|part| *part == Value::Bulk(b"dataset.bytes".to_vec()));
    match at.map(|at| &parts[at + 1]) {
        Some(Value::Int(bytes)) => *bytes,
        other => panic!("{other:?}"),
    }
}

/// A panic outside of commands ends the process, whichever worker it is on: without the worker its
/// clients would hang.
#[test]
fn a_panic_outside_of_commands_ends_the_process() {
    on_both(&[], |server| {
        let mut others: Vec<Wire> = (0..3).map(|_| server.connect()).collect();
        send(&mut server.connect(), "DEBUG PANIC-IN-COMMAND TURN");
        let status = server.wait_exit(Duration::from_secs(60)).expect("it ends");
        assert_eq!(status.code(), Some(1));
        let log = server.log();
        assert!(log.contains("outside of any command: the server exits"), "{log}");
        for other in &mut others {
            assert_eq!(receive(other), "closed");
        }
    });
}

/// CLIENT PAUSE holds back commands of its mode, on every worker, until UNPAUSE or its timeout.
#[test]
fn a_pause_ends_by_unpause_or_by_itself() {
    on_both(&[], |server| {
        let (mut control, mut writer, mut queued) =
            (server.connect(), server.connect(), server.connect());
        assert_eq!(ask(&mut control, "SET k 1"), "+OK");
        assert_eq!(ask(&mut control, "CLIENT PAUSE 60000 WRITE"), "+OK");
        assert_eq!(ask(&mut queued, "MULTI"), "+OK");
        let mut reader = server.connect();
        assert_eq!(ask(&mut reader, "GET k"), "\"1\"");
        send(&mut writer, "SET k 2");
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(ask(&mut reader, "GET k"), "\"1\"");
        assert_eq!(ask(&mut control, "CLIENT UNPAUSE"), "+OK");
        assert_eq!(receive(&mut writer), "+OK");
        assert_eq!(ask(&mut reader, "GET k"), "\"2\"");
        let started = Instant::now();
        assert_eq!(ask(&mut control, "CLIENT PAUSE 200"), "+OK");
        assert_eq!(ask(&mut reader, "GET k"), "\"2\"");
        assert!(started.elapsed() >= Duration::from_millis(150));
    });
}

/// PFCOUNT is not a write but may replicate: a pause of writes holds it back, also inside EXEC.
#[test]
fn a_pause_of_writes_holds_back_commands_which_may_replicate() {
    on_both(&[], |server| {
        let mut wire = server.connect();
        assert_eq!(ask(&mut wire, "PFADD h a b"), ":1");
        let held = |wire: &mut Wire, line: &str| {
            let started = Instant::now();
            assert_eq!(ask(wire, "CLIENT PAUSE 200 WRITE"), "+OK");
            (ask(wire, line), started.elapsed() >= Duration::from_millis(150))
        };
        assert_eq!(held(&mut wire, "PFCOUNT h"), (":2".to_owned(), true));
        assert_eq!(held(&mut wire, "PFCOUNT h h"), (":2".to_owned(), true));
        assert_eq!(ask(&mut wire, "MULTI"), "+OK");
        assert_eq!(ask(&mut wire, "PFCOUNT h"), "+QUEUED");
        let mut control = server.connect();
        let started = Instant::now();
        assert_eq!(ask(&mut control, "CLIENT PAUSE 200 WRITE"), "+OK");
        assert_eq!(ask(&mut wire, "EXEC"), "*1 :2");
        assert!(started.elapsed() >= Duration::from_millis(150));
    });
}

/// Once CONFIG SET is answered, the setting applies on every worker, to open and new connections. A
/// worker in the middle of its turn once used the old settings.
#[test]
fn config_set_applies_on_all_workers_before_its_reply() {
    on_both(&[], |server| {
        let mut wires: Vec<Wire> = (0..4).map(|_| server.connect()).collect();
        for round in 0..50 {
            let (set, other) = (round % 4, (round + 1) % 4);
            assert_eq!(ask(&mut wires[set], "CONFIG SET maxmemory 1"), "+OK");
            let refused = ask(&mut wires[other], "SET k v");
            assert!(refused.starts_with("-OOM"), "round {round}: {refused}");
            assert_eq!(ask(&mut wires[set], "CONFIG SET maxmemory 0 requirepass x"), "+OK");
            assert_eq!(ask(&mut wires[other], "SET k v"), "+OK");
            let refused = ask(&mut server.connect(), "GET k");
            assert!(refused.starts_with("-NOAUTH"), "round {round}: {refused}");
            let words = ["CONFIG", "SET", "requirepass", ""];
            let reply = wires[set].command(&words).expect("answered");
            assert_eq!(render::line(&reply), "+OK");
        }
    });
}

/// Statistics from before CONFIG RESETSTAT are not shown, even if a worker has not processed it
/// yet.
#[test]
fn resetstat_applies_on_all_workers() {
    on_both(&[], |server| {
        let mut wires: Vec<Wire> = (0..4).map(|_| server.connect()).collect();
        for wire in &mut wires {
            assert!(ask(wire, "NOSUCH").starts_with("-ERR"));
            assert_eq!(ask(wire, "GET k"), "null-bulk");
        }
        assert_eq!(ask(&mut wires[0], "CONFIG RESETSTAT"), "+OK");
        assert_eq!(ask(&mut wires[0], "INFO errorstats"), "\"# Errorstats\\r\\n\"");
        assert!(!ask(&mut wires[0], "INFO commandstats").contains("cmdstat_get"));
        assert_eq!(ask(&mut wires[1], "GET k"), "null-bulk");
        assert!(ask(&mut wires[2], "INFO commandstats").contains("cmdstat_get:calls=1,"));
        assert!(ask(&mut wires[2], "INFO latencystats").contains("latency_percentiles_usec_get:"));
    });
}

/// The slow log shows the total time of a command: DEBUG SLEEP, and KEYS in several steps.
#[test]
fn the_slow_log_counts_all_steps_of_a_command() {
    on_both(&["--slowlog-log-slower-than", "20000"], |server| {
        let mut wire = server.connect();
        assert_eq!(ask(&mut wire, "DEBUG SLEEP 0.05"), "+OK");
        assert!(ask(&mut wire, "SLOWLOG GET 1").contains("\"SLEEP\" \"0.05\""));
        assert_eq!(ask(&mut wire, "CONFIG SET slowlog-log-slower-than 1000"), "+OK");
        assert_eq!(ask(&mut wire, "DEBUG POPULATE 200000"), "+OK");
        assert_eq!(ask(&mut wire, "SLOWLOG RESET"), "+OK");
        assert_eq!(ask(&mut wire, "KEYS *nothing"), "*0");
        let logged = ask(&mut wire, "SLOWLOG GET 1");
        assert!(logged.contains("\"KEYS\" \"*nothing\""), "{logged}");
    });
}

/// A queue above `client-query-buffer-limit` closes its connection.
#[test]
fn a_transaction_larger_than_the_query_buffer_limit_is_closed() {
    on_both(&["--client-query-buffer-limit", "1mb"], |server| {
        let mut wire = server.connect();
        let value = "v".repeat(100_000);
        assert_eq!(ask(&mut wire, "MULTI"), "+OK");
        let queued = (0..20).take_while(|_| ask(&mut wire, &format!("SET k {value}")) == "+QUEUED");
        assert_eq!(queued.count(), 10);
        assert_eq!(ask(&mut server.connect(), "EXISTS k"), ":0");
        assert!(server.log().contains("query buffer"), "{}", server.log());
    });
}

/// Values above 32 KiB use other code in framing and queueing.
#[test]
fn big_values_survive_single_commands_and_transactions() {
    on_both(&[], |server| {
        let mut wire = server.connect();
        for len in [32_767, 32_768, 100_000, 20_000_000] {
            let value = "b".repeat(len);
            assert_eq!(ask(&mut wire, &format!("SET one {value}")), "+OK");
            assert_eq!(ask(&mut wire, "MULTI"), "+OK");
            assert_eq!(ask(&mut wire, &format!("SET two {value}")), "+QUEUED");
            assert_eq!(ask(&mut wire, "GET two"), "+QUEUED");
            let reply = ask(&mut wire, "EXEC");
            assert_eq!(reply.len(), "*2 +OK \"\"".len() + len);
            assert_eq!(ask(&mut wire, "STRLEN one"), format!(":{len}"));
        }
    });
}

/// A refused connection is sent the reason.
#[test]
fn a_client_above_maxclients_gets_an_error() {
    on_both(&[], |server| {
        let mut control = server.connect();
        // The server may not have noticed yet that the connection of the start is closed.
        while !ask(&mut control, "INFO clients").contains("connected_clients:1\\r\\n") {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(ask(&mut control, "CONFIG SET maxclients 2"), "+OK");
        let mut second = server.connect();
        assert_eq!(ask(&mut second, "PING"), "+PONG");
        let mut third = server.connect();
        assert_eq!(receive(&mut third), "-ERR max number of clients reached");
        assert_eq!(receive(&mut third), "closed");
        assert!(ask(&mut control, "INFO stats").contains("rejected_connections:1\\r\\n"));
    });
}

/// CONFIG SET of an address which cannot change is an error, not an OK without effect.
#[test]
fn an_address_that_cannot_change_is_refused_and_still_served() {
    on_both(&[], |server| {
        let mut wire = server.connect();
        let before = ask(&mut wire, "CONFIG GET port");
        for line in ["CONFIG SET port 1", "CONFIG SET bind 127.0.0.2"] {
            let reply = ask(&mut wire, line);
            assert!(reply.contains("cannot be changed"), "{reply}");
        }
        assert_eq!(ask(&mut wire, "CONFIG GET port"), before);
        assert_eq!(ask(&mut wire, "CONFIG SET bind 127.0.0.1"), "+OK");
        assert_eq!(ask(&mut server.connect(), "PING"), "+PONG");
    });
}

/// A CONFIG SET which fails changes nothing, whichever of its settings fails, when parsed or when
/// applied. Once, the slow log was trimmed and the policy changed before `maxclients` failed.
#[test]
fn a_config_set_that_fails_changes_nothing() {
    const GOOD: &str = "slowlog-max-len 1 commandlog-large-request-max-len 1 maxmemory-policy allkeys-lfu \
                        loglevel warning dir /tmp requirepass x";
    let args = ["--enable-protected-configs", "yes", "--slowlog-log-slower-than", "0"];
    on_both(&args, |server| {
        let mut wire = server.connect();
        for line in ["SET k v", "GET k", "PING"] {
            ask(&mut wire, line);
        }
        let folder = || std::fs::read_link(format!("/proc/{}/cwd", server.pid())).expect("it runs");
        let (settings, at_first) = (ask(&mut wire, "CONFIG GET *"), folder());
        for (bad, why) in [
            ("maxclients 4000000000", "The operating system is not able to handle"),
            ("port 1", "cannot be changed"),
            ("bind 127.0.0.2", "cannot be changed"),
            ("dir /no/such/folder", "No such file or directory"),
            ("hz x", "argument couldn't be parsed into an integer"),
            ("databases 3", "can't set immutable config"),
            ("slowlog-max-len 2", "duplicate parameter"),
            ("nosuch 1", "Unknown option or number of arguments for CONFIG SET - 'nosuch'"),
        ] {
            let good =
                if bad.starts_with("dir") { GOOD.replace("dir /tmp", "") } else { GOOD.into() };
            for line in [format!("{good} {bad}"), format!("{bad} {good}")] {
                let words = format!("CONFIG SET {line}");
                let reply = ask(&mut wire, &words.split_whitespace().collect::<Vec<_>>().join(" "));
                let name = bad.split(' ').next().unwrap_or_default();
                assert!(reply.contains(&format!("'{name}'")) && reply.contains(why), "{reply}");
                assert_eq!(ask(&mut wire, "CONFIG GET *"), settings, "{line}");
                assert_eq!(folder(), at_first, "{line}");
                assert_ne!(ask(&mut wire, "SLOWLOG LEN"), ":1", "{line}");
                let idle = ask(&mut wire, "OBJECT IDLETIME k");
                assert!(idle.starts_with(':'), "{line}: {idle}");
                assert_eq!(ask(&mut server.connect(), "PING"), "+PONG", "{line}");
            }
        }
    });
}

/// Random batches of valid pairs with one invalid pair change nothing. Without the invalid pair all
/// of them are set.
#[test]
fn random_batches_with_one_bad_pair_change_nothing() {
    const GOOD: [(&str, &[&str]); 12] = [
        ("active-expire-effort", &["1", "2", "9"]),
        ("appendfsync", &["always", "no"]),
        ("client-query-buffer-limit", &["1mb", "2000000"]),
        ("hz", &["1", "50"]),
        ("latency-tracking", &["yes", "no"]),
        ("loglevel", &["debug", "warning"]),
        ("masterauth", &["a", "b"]),
        ("maxclients", &["100", "200"]),
        ("maxmemory-policy", &["allkeys-lfu", "volatile-ttl"]),
        ("slowlog-max-len", &["1", "2", "500"]),
        ("timeout", &["100", "200"]),
        ("zset-max-listpack-value", &["1", "1kb"]),
    ];
    const BAD: [(&str, &str); 8] = [
        ("cluster-enabled", "yes"),
        ("databases", "3"),
        ("dir", "/no/such/folder"),
        ("maxclients", "4000000000"),
        ("nosuch", "1"),
        ("port", "1"),
        ("save", "5"),
        ("tcp-keepalive", "-1"),
    ];
    on_both(&["--enable-protected-configs", "yes"], |server| {
        let mut rng = Rng::new(12);
        let mut wires = [server.connect(), server.connect()];
        for round in 0..100 {
            let mut pairs = GOOD.to_vec();
            pairs.rotate_left(rng.below(GOOD.len()));
            pairs.truncate(1 + rng.below(GOOD.len()));
            let mut pairs: Vec<(&str, &str)> =
                pairs.iter().map(|(name, values)| (*name, rng.pick(values))).collect();
            let before = ask(&mut wires[1], "CONFIG GET *");
            let set = |pairs: &[(&str, &str)]| {
                let words = pairs.iter().flat_map(|(name, value)| [*name, *value]);
                ["CONFIG", "SET"].into_iter().chain(words).collect::<Vec<_>>().join(" ")
            };
            let all_good = set(&pairs);
            let bad = BAD[round % BAD.len()];
            pairs.retain(|(name, _)| *name != bad.0);
            pairs.insert(rng.below(pairs.len() + 1), bad);
            let reply = ask(&mut wires[0], &set(&pairs));
            assert!(reply.starts_with("-ERR") && reply.contains(bad.0), "{pairs:?}: {reply}");
            assert_eq!(ask(&mut wires[1], "CONFIG GET *"), before, "{pairs:?}");
            assert_eq!(ask(&mut wires[0], &all_good), "+OK", "{all_good}");
            for pair in all_good.split(' ').skip(2).collect::<Vec<_>>().chunks(2) {
                let got = ask(&mut wires[1], &format!("CONFIG GET {}", pair[0]));
                let shown = match pair[1] {
                    "1mb" => "1048576",
                    "1kb" => "1024",
                    other => other,
                };
                assert!(got.contains(&format!("\"{shown}\"")), "{pair:?}: {got}");
            }
        }
    });
}

/// DUMP and RESTORE keep the expiry of hash fields, and restored fields do expire.
#[test]
fn a_hash_keeps_the_times_of_its_fields_in_a_payload() {
    on_both(&[], |server| {
        let mut wire = server.connect();
        for line in ["HSET h a 1 b 2 c 3", "HPEXPIREAT h 4000000000000 FIELDS 1 a"] {
            ask(&mut wire, line);
        }
        let dump = wire.command(&["DUMP", "h"]).expect("a reply");
        let Value::Bulk(payload) = dump else { panic!("a payload: {dump:?}") };
        let request: [&[u8]; 4] = [b"RESTORE", b"copy", b"0", &payload];
        assert_eq!(wire.command(&request).expect("a reply"), Value::Simple(b"OK".to_vec()));
        let times = ask(&mut wire, "HPEXPIRETIME copy FIELDS 3 a b c");
        assert_eq!(times, ask(&mut wire, "HPEXPIRETIME h FIELDS 3 a b c"));
        assert!(times.contains("4000000000000"), "{times}");
        ask(&mut wire, "HPEXPIRE copy 1 FIELDS 1 b");
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert_eq!(ask(&mut wire, "HLEN copy"), ":2");
    });
}

/// Wrong arguments of SHUTDOWN end nothing. (`saving.rs` has those which save.)
#[test]
fn shutdown_checks_its_arguments() {
    on_both(&[], |server| {
        let mut wire = server.connect();
        assert_eq!(ask(&mut wire, "SET k v"), "+OK");
        for line in ["SHUTDOWN SAVE NOSAVE", "SHUTDOWN ABORT NOW", "SHUTDOWN ABORT SAVE"] {
            assert_eq!(ask(&mut wire, line), "-ERR syntax error", "{line}");
        }
        assert_eq!(ask(&mut wire, "SHUTDOWN ABORT"), "-ERR No shutdown in progress.");
        assert_eq!(ask(&mut wire, "GET k"), "\"v\"");
    });
    for line in ["SHUTDOWN", "SHUTDOWN NOSAVE NOW FORCE"] {
        on_both(&[], |server| {
            let mut wire = server.connect();
            assert_eq!(ask(&mut wire, line), "closed");
            let status = server.wait_exit(Duration::from_secs(60)).expect("it ends");
            assert!(status.success(), "{line}: {status}");
        });
    }
}
