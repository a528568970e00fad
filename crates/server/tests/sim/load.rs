//! Loading at the start on a simulated disk which is slow, so that the server loads for minutes of
//! simulated time: what clients, producers and a supervisor see meanwhile, and how it ends.

use crate::sim_world::{BREATH, MS, PATIENCE, Reply, Sim};
use base::MonoNs;
use base::sync::{Arc, Mutex};
use driver::sim::{DiskFaults, Faults};
use ingest::Order;
use server::config::{Access, Config};
use server::ingest::ports::Protocol;
use server::persist::load::folder::Place;
use server::persist::load::state::{News, Plan};
use std::path::Path;
use std::time::Instant;

const FILE: &str = "/data/dump.rdb";
const LOADING: &str = "LOADING Redis is loading the dataset in memory";
/// Every operation takes minutes at most.
const SLOW: DiskFaults =
    DiskFaults { slow_one_in: 1, slow_ns_max: 300_000 * MS, ..DiskFaults::NONE };

/// A file with so many keys `key:N` in database 0, of 9,000 bytes each.
fn file(keys: u32) -> Vec<u8> {
    let mut bytes = b"REDIS0010\xfa\x09redis-ver\x067.0.15\xfe\x00".to_vec();
    for n in 0..keys {
        let name = format!("key:{n}");
        bytes.extend([0, name.len() as u8]);
        bytes.extend(name.as_bytes());
        bytes.extend((0x4000_u16 + 9000).to_be_bytes()); // a length of 14 bits
        bytes.extend(std::iter::repeat_n(b'a' + (n % 26) as u8, 9000));
    }
    bytes.extend([255, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes
}

/// A server which begins to load these bytes.
fn begin(seed: u64, disk: DiskFaults, bytes: &[u8], listen: &str) -> Sim {
    let mut config = Config::default();
    config.dir = "/data".into();
    Sim::prepared(seed, Faults::NONE, config, listen, |net, shared| {
        net.disk().install(Path::new(FILE), bytes, 0o640).expect("room");
        net.disk().set_faults(disk);
        shared.load.plan(Plan::of_snapshot(FILE.into()));
    })
}

/// Steps until `done`, and gives the loader threads their time behind each step.
fn wait(sim: &mut Sim, done: impl Fn(&Sim) -> bool) {
    wait_in_strides(sim, 1, done);
}

/// As `wait`, but the loader threads have their time behind so many steps: on a busy machine each
/// time costs milliseconds.
fn wait_in_strides(sim: &mut Sim, steps: usize, done: impl Fn(&Sim) -> bool) {
    let began = Instant::now();
    while !done(sim) {
        assert!(began.elapsed() < PATIENCE, "it does not end");
        for _ in 0..steps {
            sim.step();
        }
        sim.forget_steps();
        std::thread::sleep(BREATH);
    }
}

fn is_loaded(sim: &Sim) -> bool {
    !sim.shared.load.is_on()
}

fn info(sim: &mut Sim, field: &str) -> Option<String> {
    let Reply::Bulk(text) = sim.ask(0, &["INFO", "persistence"]) else { panic!("no text") };
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.map(str::to_owned)
}

/// Command, and the error that redis-server 7.0 answers while it loads; `None`: it answers as ever.
const ANSWERS: [(&[&str], Option<&str>); 41] = [
    (&["GET", "x"], Some(LOADING)),
    (&["SET", "x", "1"], Some(LOADING)),
    (&["PING"], Some(LOADING)),
    (&["DBSIZE"], Some(LOADING)),
    (&["MEMORY", "USAGE", "x"], Some(LOADING)),
    (&["MEMORY", "DOCTOR"], Some(LOADING)),
    (&["FLUSHALL"], Some(LOADING)),
    (&["SWAPDB", "0", "1"], Some(LOADING)),
    (&["KEYS", "*"], Some(LOADING)),
    (&["SCAN", "0"], Some(LOADING)),
    (&["RANDOMKEY"], Some(LOADING)),
    (&["EXISTS", "a"], Some(LOADING)),
    (&["LOLWUT"], Some(LOADING)),
    (&["BLPOP", "a", "0"], Some(LOADING)),
    (&["MIGRATE", "127.0.0.1", "1", "k", "0", "1"], Some(LOADING)),
    (&["SAVE"], Some(LOADING)),
    (&["BGSAVE"], Some(LOADING)),
    (&["BGSAVE", "SCHEDULE"], Some(LOADING)),
    (&["LASTSAVE"], None),
    (&["GET"], Some("ERR wrong number of arguments for 'get' command")),
    (&["EXEC"], Some("ERR EXEC without MULTI")),
    (&["DISCARD"], Some("ERR DISCARD without MULTI")),
    (&["SHUTDOWN", "ABORT"], Some("ERR No shutdown in progress.")),
    (&["CONFIG", "REWRITE"], Some("ERR The server is running without a config file")),
    (&["HELLO"], None),
    (&["INFO"], None),
    (&["ECHO", "a"], None),
    (&["TIME"], None),
    (&["SELECT", "0"], None),
    (&["CONFIG", "GET", "port"], None),
    (&["CONFIG", "SET", "timeout", "0"], None),
    (&["CONFIG", "RESETSTAT"], None),
    (&["COMMAND", "COUNT"], None),
    (&["CLIENT", "ID"], None),
    (&["CLIENT", "SETNAME", "x"], None),
    (&["SLOWLOG", "GET"], None),
    (&["LATENCY", "LATEST"], None),
    (&["OBJECT", "HELP"], None),
    (&["WATCH", "a"], None),
    (&["UNWATCH"], None),
    (&["RESET"], None),
];

#[test]
fn commands_are_answered_as_redis_does_while_it_loads() {
    let mut sim = begin(1, SLOW, &file(300), "");
    sim.connect(1);
    for (command, error) in ANSWERS {
        let reply = sim.ask(0, command);
        match (&reply, error) {
            (Reply::Error(e), Some(expected)) => assert_eq!(e, expected, "{command:?}"),
            (Reply::Error(e), None) => panic!("{command:?}: {e}"),
            (_, error) => assert_eq!(error, None, "{command:?}: {reply:?}"),
        }
    }
    // A transaction is refused command by command.
    assert_eq!(sim.ask(0, &["MULTI"]), Reply::ok());
    assert_eq!(sim.ask(0, &["GET", "x"]), Reply::Error(LOADING.into()));
    let aborted = "EXECABORT Transaction discarded because of previous errors.";
    assert_eq!(sim.ask(0, &["EXEC"]), Reply::Error(aborted.into()));
    assert_eq!(sim.ask(0, &["MULTI"]), Reply::ok());
    sim.ask(0, &["CONFIG", "GET", "port"]);
    assert!(matches!(sim.ask(0, &["EXEC"]), Reply::Array(a) if a.len() == 1));
    assert!(!is_loaded(&sim), "the disk is slow enough");
    wait(&mut sim, is_loaded);
    assert_eq!(sim.ask(0, &["DBSIZE"]), Reply::Integer(300));
    assert_eq!(sim.ask(0, &["STRLEN", "key:299"]), Reply::Integer(9000));
    sim.end();
}

#[test]
fn info_and_a_supervisor_see_progress() {
    let told: Arc<Mutex<Vec<(bool, f64)>>> = Arc::default();
    let bytes = file(2000);
    let mut sim = begin(3, SLOW, &bytes, "");
    let heard = told.clone();
    sim.shared.load.set_listener(Box::new(move |news| {
        let entry = match news {
            News::Loading(progress) => (false, progress.percent()),
            News::Ready => (true, 100.0),
        };
        heard.lock().expect("held for a moment").push(entry);
        Ok(())
    }));
    sim.connect(1);
    assert_eq!(info(&mut sim, "loading").as_deref(), Some("1"));
    assert_eq!(info(&mut sim, "loading_loaded_bytes").as_deref(), Some("0"));
    assert_eq!(info(&mut sim, "loading_loaded_perc").as_deref(), Some("0.00"));
    // In the middle: the disk has stopped behind the open and more blocks than are read ahead, so
    // the first ones are there.
    sim.net.disk().stop_after(12);
    wait(&mut sim, |sim| sim.shared.load.loaded().keys > 0);
    assert!(!is_loaded(&sim), "the rest is to come");
    assert_eq!(info(&mut sim, "loading_total_bytes"), Some(bytes.len().to_string()));
    let share: f64 = info(&mut sim, "loading_loaded_perc").expect("shown").parse().expect("one");
    assert!(share > 0.0 && share < 100.0, "{share}");
    let left: u64 = info(&mut sim, "loading_eta_seconds").expect("shown").parse().expect("one");
    assert!(left >= 1);
    let began = sim.net.now();
    sim.net.disk().stop_after(u64::MAX);
    wait(&mut sim, is_loaded);
    assert!(sim.net.now().since(began) > 0);
    for (field, value) in [
        ("loading", Some("0")),
        ("loading_total_bytes", None),
        ("loading_eta_seconds", None),
        ("rdb_last_load_keys_loaded", Some("2000")),
        ("rdb_last_load_keys_expired", Some("0")),
        ("rdb_changes_since_last_save", Some("0")),
    ] {
        assert_eq!(info(&mut sim, field).as_deref(), value, "{field}");
    }
    let told = told.lock().expect("held for a moment");
    let (ready, before) = told.split_last().expect("it was told something");
    assert!(ready.0 && before.iter().all(|(is_ready, _)| !is_ready), "{told:?}");
    assert!(before.is_sorted_by(|a, b| a.1 <= b.1), "{told:?}");
}

/// A supervisor waits for 60 seconds from each word on. Loading takes longer, so it must be told
/// again and again, from the beginning on.
#[test]
fn a_supervisor_never_waits_for_long() {
    let words: Arc<Mutex<Vec<MonoNs>>> = Arc::default();
    let mut sim = begin(5, SLOW, &file(900), "");
    let (heard, net) = (words.clone(), sim.net.clone());
    sim.shared.load.set_listener(Box::new(move |_| {
        heard.lock().expect("held for a moment").push(net.now());
        Ok(())
    }));
    let began = sim.net.now();
    wait(&mut sim, is_loaded);
    let words = words.lock().expect("held for a moment");
    let total = words.last().expect("told").since(began);
    assert!(total > 90_000 * MS, "longer than the supervisor waits: {total} ns");
    let mut last = began;
    for word in words.iter() {
        assert!(word.since(last) <= 10_000 * MS, "{} ns of silence", word.since(last));
        last = *word;
    }
}

#[test]
fn a_shutdown_while_loading_is_quick_and_leaves_the_file() {
    let bytes = file(300);
    for command in [&["SHUTDOWN", "NOSAVE"][..], &["SHUTDOWN"], &["SHUTDOWN", "SAVE"]] {
        let mut sim = begin(2, SLOW, &bytes, "");
        sim.connect(1);
        assert_eq!(sim.ask(0, &["PING"]), Reply::Error(LOADING.into()));
        let before = sim.net.now();
        sim.clients[0].say(command);
        wait(&mut sim, Sim::has_ended);
        assert!(sim.net.now().since(before) < 2_000 * MS, "{command:?}");
        assert!(sim.shared.load.failure().is_none(), "an end which was asked for is no failure");
        assert_eq!(sim.net.disk().names(Path::new("/data")), Ok(vec!["dump.rdb".into()]));
        assert!(sim.net.disk().contents(Path::new(FILE)) == Ok(bytes.clone()), "{command:?}");
    }
}

#[test]
fn a_file_which_cannot_be_loaded_ends_the_server() {
    let good = file(300);
    let mut twice = good[..good.len() - 9].to_vec();
    twice.extend(b"\x00\x05key:7\x011");
    twice.extend(&good[good.len() - 9..]);
    let mut other_db = good[..good.len() - 9].to_vec();
    other_db.extend(b"\xfe\x10\x00\x03new\x011");
    other_db.extend(&good[good.len() - 9..]);
    let cases = [
        (DiskFaults::NONE, &good[..good.len() - 5000], "database 0, key 'key:299'".to_owned()),
        (DiskFaults::NONE, &b""[..], "at byte 0".into()),
        (DiskFaults::NONE, &b"hello"[..], "at byte 0".into()),
        // At which of its places, that is decided by the threads.
        (DiskFaults::NONE, &twice, "database 0, key 'key:7': the key occurs twice".into()),
        (DiskFaults::NONE, &other_db, "database 16: there are only 16".into()),
        (
            DiskFaults { read_error_one_in: 1, ..DiskFaults::NONE },
            &good,
            "Input/output error".into(),
        ),
    ];
    for (faults, bytes, expected) in cases {
        let mut sim = begin(2, faults, bytes, "");
        wait(&mut sim, Sim::has_ended);
        let why = sim.shared.load.failure().expect("it has failed");
        assert!(why.starts_with("/data/dump.rdb cannot be loaded: at byte "), "{why}");
        assert!(why.contains(&expected) && why.lines().count() == 1, "{why}; not {expected}");
        assert!(sim.net.disk().contents(Path::new(FILE)) == Ok(bytes.to_vec()), "untouched");
    }
}

/// Messages which arrive meanwhile are accepted and acknowledged later; none is lost.
#[test]
fn producers_wait_until_it_is_loaded() {
    let mut sim = begin(4, SLOW, &file(300), "a:1 strategy=sync sink=list:q");
    let producer = sim.join_ingest(0);
    let Protocol::Classic(strategy) = sim.shared.ingest.open[0].terms.protocol else {
        panic!("a classic listener")
    };
    for id in 0..5_u64 {
        let (id, size) = match strategy.order() {
            Order::Big => (id.to_be_bytes(), 7_u32.to_be_bytes()),
            Order::Little => (id.to_le_bytes(), 7_u32.to_le_bytes()),
        };
        let message = [&id[..], &size, b"message"].concat();
        assert_eq!(producer.write(&message), message.len());
    }
    sim.connect(1);
    sim.run_for(500 * MS);
    let mut room = [0; 64];
    assert_eq!((is_loaded(&sim), producer.read(&mut room)), (false, 0), "no acknowledgement");
    // The producer's messages are tried again every millisecond, for minutes.
    wait_in_strides(&mut sim, 64, is_loaded);
    sim.run_for(2_000 * MS);
    assert_eq!(sim.ask(0, &["LLEN", "q"]), Reply::Integer(5));
    assert_eq!(sim.ask(0, &["DBSIZE"]), Reply::Integer(301));
}

/// Earlier the file stayed open: it was opened when loading was over already.
#[test]
fn a_reload_without_threads_leaves_no_file_open() {
    let mut config = Config::default();
    config.dir = "/data".into();
    config.enable_debug_command = Access::Yes;
    let mut others = Vec::new();
    let mut sim = Sim::prepared(6, Faults::NONE, config, "", |net, shared| {
        net.disk().install(Path::new(FILE), &file(30), 0o640).expect("room");
        // All further Accesses are taken, so no thread can load.
        let mut first = keyspace::Access::new(shared.keyspace.clone(), 0);
        others.extend(std::iter::from_fn(|| first.further().ok()));
    });
    let disk = sim.net.disk();
    sim.connect(1);
    disk.stop_after(0);
    let reply = sim.ask(0, &["DEBUG", "RELOAD", "NOSAVE"]);
    assert!(matches!(&reply, Reply::Error(e) if e.contains("load")), "{reply:?}");
    assert!(disk.has_stopped() && disk.open_files() == 0, "it is being opened");
    disk.stop_after(u64::MAX);
    sim.run_for(1_000 * MS);
    assert_eq!(disk.open_files(), 0, "it was opened, and closed again");
    drop(others);
    sim.clients[0].say(&["DEBUG", "RELOAD", "NOSAVE"]);
    wait(&mut sim, |sim| sim.shared.load.loaded().keys == 30 && is_loaded(sim));
    assert_eq!((sim.reply(0), disk.open_files()), (Reply::ok(), 0));
}

fn commands(lines: &[&[&str]]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines {
        out.extend(format!("*{}\r\n", line.len()).bytes());
        line.iter().for_each(|word| out.extend(format!("${}\r\n{word}\r\n", word.len()).bytes()));
    }
    out
}

const MANIFEST: &str = "file a.1.base.rdb seq 1 type b\nfile a.1.incr.aof seq 1 type i\n\
                        file a.2.incr.aof seq 2 type i\n";

/// A server which begins to load an append-only file of three parts, of which the last one ends in
/// the middle of a command; and what of that is whole.
fn begin_append_only(seed: u64, disk: DiskFaults) -> (Sim, Vec<u8>) {
    let place = Place { dir: "/data".into(), folder: "aof".into(), name: "a".into() };
    let first: Vec<[String; 3]> =
        (0..500).map(|n| ["SET".into(), format!("key:{n}"), "x".repeat(9000)]).collect();
    let first: Vec<Vec<&str>> =
        first.iter().map(|words| words.iter().map(String::as_str).collect()).collect();
    let first: Vec<&[&str]> = first.iter().map(Vec::as_slice).collect();
    let whole =
        commands(&[&["SELECT", "0"], &["MSET", "key:1", "a", "key:2", "b"], &["DEL", "no"]]);
    let last = [&whole[..], b"*2\r\n$3\r\nDEL\r\n$5\r\nke"].concat();
    let mut config = Config::default();
    config.dir = "/data".into();
    let sim = Sim::prepared(seed, Faults::NONE, config, "", |net, shared| {
        let folder = place.folder();
        net.disk().install_folder(&folder).expect("room");
        for (name, bytes) in [
            ("a.manifest", MANIFEST.as_bytes()),
            ("a.1.base.rdb", &file(300)),
            ("a.1.incr.aof", &commands(&first)),
            ("a.2.incr.aof", &last),
        ] {
            net.disk().install(&folder.join(name), bytes, 0o640).expect("room");
        }
        net.disk().set_faults(disk);
        shared.load.plan(Plan::of_append_only(place.clone()));
    });
    (sim, whole)
}

const LAST: &str = "/data/aof/a.2.incr.aof";

#[test]
fn an_append_only_file_is_loaded_and_its_end_cut_off() {
    for (seed, disk) in [(1, DiskFaults::NONE), (2, SLOW)] {
        let (mut sim, whole) = begin_append_only(seed, disk);
        sim.connect(1);
        assert_eq!(sim.ask(0, &["GET", "key:1"]), Reply::Error(LOADING.into()));
        wait(&mut sim, is_loaded);
        assert_eq!(sim.ask(0, &["DBSIZE"]), Reply::Integer(500));
        assert_eq!(sim.ask(0, &["STRLEN", "key:1"]), Reply::Integer(1));
        assert_eq!(sim.ask(0, &["STRLEN", "key:499"]), Reply::Integer(9000));
        assert_eq!(info(&mut sim, "rdb_changes_since_last_save").as_deref(), Some("0"));
        let disk = sim.net.disk();
        assert!(disk.contents(Path::new(LAST)) == Ok(whole.clone()), "cut off");
        assert_eq!(disk.open_files(), 1, "the segment of what is written from now on");
        let manifest = disk.contents(Path::new("/data/aof/a.manifest"));
        let wanted = format!("{MANIFEST}file a.3.incr.aof seq 3 type i\n");
        assert_eq!(manifest, Ok(wanted.into_bytes()));
        sim.end();
    }
}

/// Whichever operation fails, the server does not start, and its files are as before or cut off.
#[test]
fn an_append_only_file_on_a_failing_disk_ends_the_server() {
    let (mut ends, mut loads) = (0, 0);
    for seed in 0..30 {
        let faults = DiskFaults { read_error_one_in: 20, sync_error_one_in: 2, ..DiskFaults::NONE };
        let (mut sim, whole) = begin_append_only(seed, faults);
        wait(&mut sim, |sim| is_loaded(sim) || sim.has_ended());
        let last = sim.net.disk().contents(Path::new(LAST)).expect("it is there");
        assert!(last.starts_with(&whole));
        if let Some(why) = sim.shared.load.failure() {
            ends += 1;
            assert!(why.contains(" cannot be loaded: ") && why.lines().count() == 1, "{why}");
        } else {
            loads += 1;
            assert_eq!(last, whole);
            sim.end();
        }
    }
    assert!(ends > 0 && loads > 0, "{ends} {loads}");
}
