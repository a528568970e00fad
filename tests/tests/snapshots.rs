//! Every file of a save under load equals the state at one moment: of each client it holds a prefix
//! of its transactions, with all that these did and nothing that came later. Beside the clients
//! keys are renamed, moved and copied, databases are flushed and swapped, many keys expire at once,
//! and commands panic and fail.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sheafdb_tests::big::figure;
use sheafdb_tests::in_time::until;
use sheafdb_tests::render;
use sheafdb_tests::rng::Rng;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

/// Accounts of each type.
const ACCOUNTS: usize = 12;
/// Clients which make transactions.
const CLIENTS: usize = 3;
/// Saves per server.
const ROUNDS: usize = 5;
/// Fields of the hash, and members of the sorted set, of each client.
const FIELDS: u64 = 300;
/// Keys of the databases which are flushed and swapped, and of MSET.
const MANY: usize = 60;
/// Keys which expire during a save.
const EXPIRING: usize = 4_000;
const EXPIRE_AFTER: Duration = Duration::from_millis(400);
/// Transactions during the first key of each save, at least.
const DURING: u64 = 20;
/// When the key of a client expires which changes its expiry: far in the future.
const FAR_MS: u64 = 32_000_000_000_000;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sheafdb-snap-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn start(&self, extra: &[&str]) -> ServerProcess {
        let dir = self.0.to_str().expect("plain");
        let args = [&["--dir", dir, "--enable-debug-command", "yes"][..], extra].concat();
        ServerProcess::start(&Binary::under_test(), &args)
    }

    /// Another one, for a copy of the file.
    fn beside(&self) -> Self {
        let path = self.0.with_extension("copy");
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("dump.rdb")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn value(wire: &mut Wire, line: &str) -> Value {
    let words: Vec<&str> = line.split(' ').collect();
    wire.command(&words).unwrap_or_else(|e| panic!("'{line}': {e}"))
}

fn ask(wire: &mut Wire, line: &str) -> String {
    render::line(&value(wire, line))
}

/// The texts of a reply, those inside of arrays too, in their order.
fn texts(reply: &Value) -> Vec<String> {
    match reply {
        Value::Bulk(text) | Value::Simple(text) => vec![String::from_utf8_lossy(text).into()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Int(n) => vec![n.to_string()],
        Value::NullBulk | Value::Null => vec![],
        other => panic!("no text: {other:?}"),
    }
}

fn list(wire: &mut Wire, line: &str) -> Vec<String> {
    texts(&value(wire, line))
}

fn joined(numbers: impl Iterator<Item = u64>, text: impl Fn(u64) -> String) -> String {
    numbers.map(text).collect::<Vec<_>>().concat()
}

fn number(wire: &mut Wire, line: &str) -> i64 {
    let all = list(wire, line);
    all.first().map_or(0, |text| text.parse().unwrap_or_else(|_| panic!("{line}: {text}")))
}

/// Sends these commands as one transaction and reads all replies, none of which may be an error.
fn transact(wire: &mut Wire, lines: &[String]) {
    let mut bytes = Vec::new();
    for line in ["MULTI"].into_iter().chain(lines.iter().map(String::as_str)).chain(["EXEC"]) {
        let words: Vec<&str> = line.split(' ').collect();
        bytes.extend(encode(&words));
    }
    wire.send(&bytes).expect("the server runs");
    for line in 0..lines.len() + 2 {
        let reply = wire.receive().expect("the server runs");
        let text = render::line(&reply);
        let is_fine = !matches!(reply, Value::Error(_)) && !text.contains(" -");
        assert!(is_fine, "reply {line} to {lines:?}: {text}");
    }
}

/// The change of two accounts that a transaction makes: type, account, amount.
fn transfer(rng: &mut Rng) -> [(usize, usize, i64); 2] {
    let n = 1 + rng.below(1000) as i64;
    let mut change = |n| (rng.below(5), rng.below(ACCOUNTS), n);
    [change(-n), change(n)]
}

fn add((kind, account, n): (usize, usize, i64)) -> String {
    match kind {
        0 => format!("INCRBY s:{account} {n}"),
        1 => format!("HINCRBY h:{account} balance {n}"),
        2 => format!("RPUSH l:{account} {n}"),
        3 => format!("ZINCRBY z:{account} {n} balance"),
        _ => format!("XADD x:{account} * n {n}"),
    }
}

/// Tells the clients what to do. They rest while a file is checked, so that it stays small.
#[derive(Default)]
struct Control {
    rests: AtomicBool,
    ends: AtomicBool,
}

impl Control {
    /// False when it is over.
    fn continues(&self) -> bool {
        while self.rests.load(Ordering::SeqCst) && !self.ends.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        !self.ends.load(Ordering::SeqCst)
    }
}

/// What one client has sent, and what was answered: the last transaction of each.
#[derive(Default)]
struct Seen {
    sent: AtomicU64,
    answered: AtomicU64,
}

/// Transaction after transaction. Each changes two accounts, and values of this client's own: in
/// place, by growth from an entry to a large value, and by its expiry.
fn client(server: &ServerProcess, c: usize, seen: &Seen, control: &Control) {
    let (mut wire, mut rng) = (server.connect(), Rng::new(c as u64));
    for n in 1.. {
        if !control.continues() {
            break;
        }
        let [from, to] = transfer(&mut rng);
        let lines = [
            format!("SET own:s:{c} {n}"),
            add(from),
            format!("APPEND own:a:{c} {n:06};"),
            format!("HSET own:h:{c} f{} {n}", n % FIELDS),
            format!("RPUSH own:l:{c} {n}"),
            format!("ZADD own:z:{c} {n} m{}", n % FIELDS),
            format!("XADD own:x:{c} {n}-1 n {n}"),
            add(to),
            format!("SET own:t:{c} {n} PXAT {}", FAR_MS + n),
            format!("PEXPIREAT own:e:{c} {}", FAR_MS + n),
        ];
        seen.sent.store(n, Ordering::SeqCst);
        transact(&mut wire, &lines);
        seen.answered.store(n, Ordering::SeqCst);
    }
}

/// Values of one client in a file: all show the same transaction, the last one that is there.
fn last_of(wire: &mut Wire, c: usize) -> u64 {
    let last = number(wire, &format!("GET own:s:{c}")) as u64;
    let log = list(wire, &format!("GET own:a:{c}")).concat();
    let expected = joined(1..=last, |n| format!("{n:06};"));
    assert!(log == expected, "client {c}: {} bytes after {last}", log.len());
    let numbers = |all: Vec<String>| -> Vec<u64> {
        all.iter().map(|n| n.parse().expect("a number")).collect()
    };
    let all: Vec<u64> = (1..=last).collect();
    assert_eq!(numbers(list(wire, &format!("LRANGE own:l:{c} 0 -1"))), all, "the list of {c}");
    let stream = list(wire, &format!("XRANGE own:x:{c} - +"));
    let values = stream.chunks(3).map(|entry| entry[2].clone()).collect();
    assert_eq!(numbers(values), all, "the stream of {c}");
    let newest: Vec<u64> = all.iter().rev().take(FIELDS as usize).rev().copied().collect();
    let mut fields = numbers(list(wire, &format!("HVALS own:h:{c}")));
    fields.sort_unstable();
    assert_eq!(fields, newest, "the hash of {c}");
    let scores = list(wire, &format!("ZRANGE own:z:{c} 0 -1 WITHSCORES"));
    let scores = scores.chunks(2).map(|pair| pair[1].clone()).collect();
    assert_eq!(numbers(scores), newest, "the sorted set of {c}");
    if last > 0 {
        for key in ["t", "e"] {
            let at = number(wire, &format!("PEXPIRETIME own:{key}:{c}"));
            assert_eq!(at as u64, FAR_MS + last, "own:{key}:{c}");
        }
    }
    last
}

/// The accounts are what these prefixes have made of them.
fn check_accounts(wire: &mut Wire, lasts: &[u64]) {
    let mut expected = [[0_i64; ACCOUNTS]; 5];
    for (c, last) in lasts.iter().enumerate() {
        let mut rng = Rng::new(c as u64);
        for (kind, account, n) in (0..*last).flat_map(|_| transfer(&mut rng)) {
            expected[kind][account] += n;
        }
    }
    let mut found = [[0_i64; ACCOUNTS]; 5];
    let sum = |texts: Vec<String>| texts.iter().map(|n| n.parse::<i64>().expect("a number")).sum();
    let [strings, hashes, lists, zsets, streams] = &mut found;
    for a in 0..ACCOUNTS {
        strings[a] = number(wire, &format!("GET s:{a}"));
        hashes[a] = number(wire, &format!("HGET h:{a} balance"));
        lists[a] = sum(list(wire, &format!("LRANGE l:{a} 0 -1")));
        zsets[a] = number(wire, &format!("ZSCORE z:{a} balance"));
        let entries = list(wire, &format!("XRANGE x:{a} - +"));
        streams[a] = sum(entries.chunks(3).map(|entry| entry[2].clone()).collect());
    }
    assert_eq!(found, expected, "the accounts after {lasts:?}");
    assert_eq!(found.iter().flatten().sum::<i64>(), 0);
}

/// Renames, copies and moves, flushes and swaps databases, lets commands panic and fail; each time
/// around everything shows the number of the round.
fn disturb(server: &ServerProcess, control: &Control) -> u64 {
    let mut wire = server.connect();
    let elements = "element ".repeat(MANY);
    for line in ["RPUSH name:0 ", "RPUSH small:0 one ", "SELECT 1", "RPUSH moved "] {
        let line = if line.ends_with(' ') { format!("{line}{elements}") } else { line.into() };
        value(&mut wire, line.trim_end());
    }
    for (db, name) in [(6, "a"), (7, "b")] {
        ask(&mut wire, &format!("SELECT {db}"));
        (0..MANY).for_each(|i| _ = ask(&mut wire, &format!("SET {name}:{i} {name}")));
    }
    let many = |n: u64| joined(0..MANY as u64, |i| format!(" many:{i} {n}"));
    transact(&mut wire, &["SELECT 0".into(), format!("MSET{} round 0", many(0))]);
    for n in 1.. {
        if !control.continues() {
            return n - 1;
        }
        let (from, to) = ((n - 1) % 2 + 1, n % 2 + 1);
        // A panic closes its connection.
        let arm = if n % 5 == 0 { "PANIC" } else { "FAIL" };
        assert_eq!(ask(&mut wire, &format!("DEBUG {arm}-IN-COMMAND MSET {}", 1 + n % 40)), "+OK");
        let failing: Vec<String> =
            format!("MSET{}", many(n + 1_000_000)).split(' ').map(String::from).collect();
        wire.send(&encode(&failing)).expect("the server runs");
        match wire.receive() {
            Ok(reply) => assert!(n % 5 != 0 && matches!(reply, Value::Error(_)), "{reply:?}"),
            Err(_) => wire = server.connect(),
        }
        let mut lines = vec![
            format!("MSET{} round {n}", many(n)),
            format!("RENAME name:{} name:{n}", n - 1),
            format!("RENAME small:{} small:{n}", n - 1),
            format!("COPY name:{n} copy:{}", n % 7),
            "COPY own:l:0 copied REPLACE".into(),
            format!("SELECT {from}"),
            format!("MOVE moved {to}"),
            "SWAPDB 6 7".into(),
            "SELECT 5".into(),
            "FLUSHDB".into(),
        ];
        lines.extend((0..MANY).map(|i| format!("SET flushed:{n}:{i} {n}")));
        lines.push("SELECT 0".into());
        transact(&mut wire, &lines);
    }
    unreachable!("it is stopped")
}

fn check_disturbed(wire: &mut Wire) -> u64 {
    let n = number(wire, "GET round") as u64;
    let keys = joined(0..MANY as u64, |i| format!(" many:{i}"));
    assert_eq!(list(wire, &format!("MGET{keys}")), vec![n.to_string(); MANY], "round {n}");
    assert_eq!(list(wire, "KEYS name:*"), [format!("name:{n}")]);
    assert_eq!(list(wire, "KEYS small:*"), [format!("small:{n}")]);
    assert_eq!(number(wire, &format!("LLEN name:{n}")), MANY as i64);
    assert_eq!(number(wire, &format!("LLEN small:{n}")), MANY as i64 + 1);
    assert_eq!(list(wire, "KEYS copy:*").len() as u64, n.min(7));
    if n > 0 {
        let (of, copy) = (list(wire, "LRANGE own:l:0 0 -1"), list(wire, "LRANGE copied 0 -1"));
        assert!(of.starts_with(&copy), "{} of {}", copy.len(), of.len());
    }
    let (is, not) = (n % 2 + 1, (n + 1) % 2 + 1);
    for (db, length) in [(is, MANY), (not, 0)] {
        ask(wire, &format!("SELECT {db}"));
        assert_eq!(number(wire, "LLEN moved"), length as i64, "database {db} in round {n}");
    }
    let (six, seven) = if n.is_multiple_of(2) { ("a", "b") } else { ("b", "a") };
    for (db, name) in [(6, six), (7, seven)] {
        ask(wire, &format!("SELECT {db}"));
        assert_eq!(number(wire, "DBSIZE"), MANY as i64);
        let last = MANY - 1;
        assert_eq!(list(wire, &format!("GET {name}:{last}")), [name], "database {db}");
    }
    ask(wire, "SELECT 5");
    let keys = if n == 0 { 0 } else { MANY };
    assert_eq!(list(wire, &format!("KEYS flushed:{n}:*")).len(), keys);
    assert_eq!(number(wire, "DBSIZE"), keys as i64);
    ask(wire, "SELECT 0");
    n
}

/// Keys of which all expire at one moment, soon after the cut.
fn set_expiring(wire: &mut Wire) {
    let due = format!("PX {}", EXPIRE_AFTER.as_millis());
    let mut lines = vec!["SELECT 9".to_string()];
    lines.extend((0..EXPIRING).map(|i| format!("SET mass:{i:06} value {due}")));
    lines.push("SELECT 0".into());
    transact(wire, &lines);
}

/// The file holds them all, although they expired while it was written. A server which loads it
/// drops them, so this looks for their names.
fn count_expiring(file: &Path) -> usize {
    let bytes = std::fs::read(file).expect("a file");
    bytes.windows(5).filter(|window| window == b"mass:").count()
}

/// A file, loaded by another server.
fn check_file(folder: &Folder, between: &[(u64, u64)]) -> (Vec<u64>, u64) {
    let copy = folder.beside();
    std::fs::copy(folder.file(), copy.file()).expect("a file");
    let server = copy.start(&["--threads", "2"]);
    let wire = &mut server.connect();
    let lasts: Vec<u64> = (0..CLIENTS).map(|c| last_of(wire, c)).collect();
    for (last, (answered, sent)) in lasts.iter().zip(between) {
        assert!((answered..=sent).contains(&last), "{last} of {answered}..={sent}");
    }
    check_accounts(wire, &lasts);
    (lasts, check_disturbed(wire))
}

/// One save, held at its first key until some transactions were made and some keys have expired.
/// Returns how many transactions were made during it.
fn save(wire: &mut Wire, folder: &Folder, seen: &[Seen], control: &Control) -> u64 {
    let answered = || seen.iter().map(|s| s.answered.load(Ordering::SeqCst)).collect::<Vec<_>>();
    set_delay(wire, "2000000000");
    let set_at = Instant::now();
    let count = figure(wire, "stats", "expired_keys");
    set_expiring(wire);
    let before = answered();
    assert_eq!(ask(wire, "BGSAVE"), "+Background saving started");
    let is_before = set_at.elapsed() < EXPIRE_AFTER;
    let sent = seen.iter().map(|s| s.sent.load(Ordering::SeqCst));
    let between: Vec<(u64, u64)> = before.iter().copied().zip(sent).collect();
    let least = between.iter().map(|(_, sent)| sent).sum::<u64>() + DURING;
    until("transactions are made", || answered().iter().sum::<u64>() >= least);
    let mut expired = 0;
    until("keys expire", || {
        expired = figure(wire, "stats", "expired_keys") - count;
        expired > 0
    });
    set_delay(wire, "100");
    until("the save ends", || figure(wire, "persistence", "rdb_bgsave_in_progress") == 0);
    let info = list(wire, "INFO persistence").concat();
    assert!(info.contains("rdb_last_bgsave_status:ok"), "{info}");
    let after = answered().iter().sum::<u64>();
    control.rests.store(true, Ordering::SeqCst);
    let (lasts, _) = check_file(folder, &between);
    control.rests.store(false, Ordering::SeqCst);
    let mass = count_expiring(&folder.file());
    assert!(mass == EXPIRING || !is_before, "{mass} of the keys that expired later");
    println!("{mass} expiring keys in the file, of which {expired} expired during its first key");
    after - lasts.iter().sum::<u64>()
}

fn set_delay(wire: &mut Wire, delay_us: &str) {
    assert_eq!(ask(wire, &format!("CONFIG SET rdb-key-save-delay {delay_us}")), "+OK");
}

fn saves_show_moments(threads: &str) {
    let folder = Folder::new(threads);
    let server = folder.start(&["--threads", threads]);
    let (control, seen) = (Control::default(), [(); CLIENTS].map(|()| Seen::default()));
    for c in 0..CLIENTS {
        assert_eq!(ask(&mut server.connect(), &format!("SET own:e:{c} text")), "+OK");
    }
    let during: Vec<u64> = std::thread::scope(|scope| {
        // Whatever fails, the others end.
        let ends = Ends(&control);
        let (server, control, seen) = (&server, &control, &seen);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|c| scope.spawn(move || client(server, c, &seen[c], control)))
            .collect();
        let other = scope.spawn(move || disturb(server, control));
        let wire = &mut server.connect();
        until("something is disturbed", || number(wire, "GET round") >= 1);
        let during = (0..ROUNDS).map(|_| save(wire, &folder, seen, control)).collect();
        drop(ends);
        for client in clients {
            client.join().expect("no error");
        }
        other.join().expect("no error");
        during
    });
    assert!(during.iter().all(|count| *count >= DURING), "{during:?}");
    println!("{threads} threads: transactions during each save: {during:?}");
}

struct Ends<'a>(&'a Control);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.ends.store(true, Ordering::SeqCst);
    }
}

#[test]
fn saves_of_one_thread_show_moments() {
    saves_show_moments("1");
}

#[test]
fn saves_of_two_threads_show_moments() {
    saves_show_moments("2");
}

#[test]
fn saves_of_three_threads_show_moments() {
    saves_show_moments("3");
}

#[test]
fn saves_of_four_threads_show_moments() {
    saves_show_moments("4");
}
