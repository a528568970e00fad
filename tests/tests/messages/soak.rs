//! A soak: clients that subscribe, track, read, do not read, leave, close and are killed at random,
//! beside publishers and writers, in rounds. After each round nothing is left of them, and what is
//! in use then does not grow from round to round.
//!
//! `STRESS_SEED` repeats the random choices of a run. `SHEAFDB_STRESS_SECONDS` is how long it lasts
//! instead of a few rounds; an hour of it is `SHEAFDB_STRESS_SECONDS=3600 SHEAFDB_PROFILE=release
//! cargo test -p sheafdb-tests --test all -- --nocapture suite::messages::soak`.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sheafdb_tests::big::figure;
use sheafdb_tests::in_time::until;
use sheafdb_tests::rng::Rng;
use sheafdb_tests::server_process::ServerProcess;
use sheafdb_tests::stress::{SetAtEnd, seed};
use sheafdb_tests::wire::{Value, Wire, encode};

use super::{ask, ok, start, used, words};

/// Without a time.
const ROUNDS: usize = 16;
/// Clients that come and go at once, and visits of each in a round.
const VISITORS: usize = 6;
const VISITS: usize = 25;
const PUBLISHERS: usize = 2;
const WRITERS: usize = 2;
const CHANNELS: usize = 50;
const KEYS: usize = 500;
/// The end of what a client reads in one go.
const END: &[u8] = b"the end";
/// What used memory may grow by from the second to the last quarter of the rounds: more than it
/// differs by chance.
const GROWTH_BYTES_MAX: i64 = 2 << 20;
/// What may be in use in the middle of a round: messages under way, and what is unread.
const BUSY_BYTES_MAX: i64 = 256 << 20;

/// How long rounds follow each other; nothing for [`ROUNDS`] of them.
fn span() -> Option<Duration> {
    let given = std::env::var("SHEAFDB_STRESS_SECONDS").ok().and_then(|text| text.parse().ok());
    given.map(Duration::from_secs)
}

/// What came in all rounds.
#[derive(Debug, Default)]
struct Counts {
    visits: AtomicU64,
    received: AtomicU64,
    published: AtomicU64,
    changes: AtomicU64,
}

#[test]
fn clients_come_and_go_and_leave_nothing() {
    let (seed, began, span) = (seed(), Instant::now(), span());
    let settings = [
        "--client-output-buffer-limit",
        "pubsub 128kb 0 0",
        "--client-output-buffer-limit",
        "normal 128kb 0 0",
        "--notify-keyspace-events",
        "KEA",
        "--tracking-table-max-keys",
        "300",
    ];
    let server = start(2, &settings);
    let mut control = server.connect();
    let (counts, mut quiet, mut busiest) = (Counts::default(), Vec::new(), 0);
    let goes_on = |rounds: usize| span.map_or(rounds < ROUNDS, |span| began.elapsed() < span);
    let start_bytes = used(&mut control);
    while goes_on(quiet.len()) || quiet.len() < 8 {
        let mut rng = Rng::new(seed.wrapping_mul(1_000_003).wrapping_add(quiet.len() as u64));
        let most = round(&server, &mut control, &mut rng, &counts);
        busiest = most.max(busiest);
        nothing_is_left(&mut control);
        quiet.push(used(&mut control));
        if quiet.len().is_power_of_two() || quiet.len() % 500 == 0 {
            let (now, n) = (quiet[quiet.len() - 1], quiet.len());
            println!("{:?}: round {n}: {now} bytes in use, {most} meanwhile", began.elapsed());
        }
    }
    let closed = server.log().matches("client-output-buffer-limit").count();
    println!("{} rounds, {counts:?}, {closed} closed at their limit", quiet.len());
    judge(&quiet);
    let busy = busiest - start_bytes;
    println!("at most {busy} bytes more in use in the middle of a round");
    assert!(busy < BUSY_BYTES_MAX, "{busy} bytes in the middle of a round");
}

/// The first quarter warms up.
fn judge(quiet: &[i64]) {
    let mean = |some: &[i64]| some.iter().sum::<i64>() / some.len() as i64;
    let quarter = quiet.len() / 4;
    let (early, late) = (&quiet[quarter..2 * quarter], &quiet[3 * quarter..]);
    let (early_mean, late_mean) = (mean(early), mean(late));
    let (least, most) = (quiet[quarter..].iter().min(), quiet[quarter..].iter().max());
    println!(
        "between rounds: {early_mean} bytes in the second quarter, {late_mean} in the last; \
         {least:?} to {most:?}"
    );
    let grown = late_mean - early_mean;
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes more in use: {quiet:?}");
}

/// One round. Returns the most that was in use meanwhile.
fn round(server: &ServerProcess, control: &mut Wire, rng: &mut Rng, counts: &Counts) -> i64 {
    let is_over = AtomicBool::new(false);
    let mut most = 0;
    std::thread::scope(|scope| {
        let mut another = || Rng::new(rng.below(usize::MAX) as u64);
        for _ in 0..PUBLISHERS {
            let (mut rng, is_over) = (another(), &is_over);
            scope.spawn(move || publish(server, &mut rng, is_over, counts));
        }
        for _ in 0..WRITERS {
            let (mut rng, is_over) = (another(), &is_over);
            scope.spawn(move || write(server, &mut rng, is_over, counts));
        }
        let _end = SetAtEnd(&is_over);
        let visitors: Vec<_> = (0..VISITORS)
            .map(|_| {
                let mut rng = another();
                scope.spawn(move || {
                    let (mut killer, mut lazy) = (server.connect(), Vec::new());
                    for _ in 0..VISITS {
                        let ended = visit(server, &mut rng, &mut killer, &mut lazy, counts);
                        // It may be killed, or closed at its limit; it must not wait for ever.
                        let is_late = |e: &io::Error| e.kind() == io::ErrorKind::TimedOut;
                        assert!(!ended.as_ref().is_err_and(is_late), "no reply: {ended:?}");
                        counts.visits.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        while visitors.iter().any(|visitor| !visitor.is_finished()) {
            most = most.max(used(control));
            std::thread::sleep(Duration::from_millis(2));
        }
        for visitor in visitors {
            visitor.join().expect("it does not fail");
        }
    });
    most
}

/// Publishes until the visitors are gone. A message begins with the name of its channel.
fn publish(server: &ServerProcess, rng: &mut Rng, is_over: &AtomicBool, counts: &Counts) {
    let mut wire = server.connect();
    while !is_over.load(Ordering::Acquire) {
        let together = 1 + rng.below(16);
        let mut requests = Vec::new();
        for _ in 0..together {
            let channel = channel(rng);
            let len = if rng.chance(2) { 40_000 } else { rng.below(1_000) };
            let text = format!("{channel}:{}", "x".repeat(len));
            let command = if rng.chance(30) { "SPUBLISH" } else { "PUBLISH" };
            requests.extend(encode(&[command, &channel, &text]));
        }
        wire.send(&requests).expect("it takes requests");
        for _ in 0..together {
            let reply = wire.receive().expect("a reply");
            assert!(matches!(reply, Value::Int(_)), "{reply:?}");
        }
        counts.published.fetch_add(together as u64, Ordering::Relaxed);
    }
}

/// Changes keys until the visitors are gone.
fn write(server: &ServerProcess, rng: &mut Rng, is_over: &AtomicBool, counts: &Counts) {
    let mut wire = server.connect();
    while !is_over.load(Ordering::Acquire) {
        let (one, other) = (key(rng), key(rng));
        let lines = match rng.below(7) {
            0 => vec![format!("MSET {one} 1 {other} 2")],
            1 => vec![format!("SET {one} 1 PX 1")],
            2 => vec![
                "MULTI".into(),
                format!("SET {one} 3"),
                "PUBLISH c0 c0:e".into(),
                "EXEC".into(),
            ],
            3 => vec![format!("DEL {one} {other}")],
            4 => vec![format!("SET {one} 5"), format!("RENAME {one} {other}")],
            5 if rng.chance(3) => vec!["FLUSHDB".into()],
            _ => vec![format!("SET {one} {}", rng.below(1000))],
        };
        let all: Vec<u8> = lines.iter().flat_map(|line| encode(&words(line))).collect();
        wire.send(&all).expect("it takes requests");
        for _ in &lines {
            drop(wire.receive().expect("a reply"));
        }
        counts.changes.fetch_add(1, Ordering::Relaxed);
    }
}

fn channel(rng: &mut Rng) -> String {
    format!("c{}", rng.below(CHANNELS))
}

fn key(rng: &mut Rng) -> String {
    format!("key:{}", rng.below(KEYS))
}

/// One client, from its connection to its end.
fn visit(
    server: &ServerProcess,
    rng: &mut Rng,
    killer: &mut Wire,
    lazy: &mut Vec<Wire>,
    counts: &Counts,
) -> io::Result<()> {
    let mut wire = Wire::connect(server.addr)?;
    let mut partner = Wire::connect(server.addr)?;
    if rng.chance(60) {
        wire.command(&["HELLO", "3"])?;
    }
    let id = number(&wire.command(&["CLIENT", "ID"])?);
    let partner_id = number(&partner.command(&["CLIENT", "ID"])?);
    if rng.chance(50) {
        partner.command(&["SUBSCRIBE", "__redis__:invalidate"])?;
    }
    for _ in 0..=rng.below(3) {
        wire.send(&listen(rng, partner_id))?;
    }
    for _ in 0..rng.below(4) {
        let keys: Vec<String> = (0..=rng.below(20)).map(|_| key(rng)).collect();
        let request: Vec<&str> =
            ["MGET"].into_iter().chain(keys.iter().map(String::as_str)).collect();
        wire.send(&encode(&request))?;
        read_until_end(&mut wire, counts)?;
    }
    match rng.below(7) {
        0 => {
            for line in ["UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "CLIENT TRACKING OFF"] {
                wire.send(&encode(&words(line)))?;
            }
            read_until_end(&mut wire, counts)?;
            wire.send(&encode(&["QUIT"]))?;
            read_until_closed(&mut wire)
        }
        1 => {
            wire.send(&encode(&["RESET"]))?;
            read_until_end(&mut wire, counts)
        }
        2 => Ok(()), // both are closed, whatever waits for them
        3 => {
            let killed = killer.command(&["CLIENT", "KILL", "ID", &id.to_string()])?;
            assert!(matches!(killed, Value::Int(_)), "{killed:?}");
            read_until_closed(&mut wire)
        }
        4 => {
            wire.stream().shutdown(std::net::Shutdown::Write)?;
            read_until_closed(&mut wire)
        }
        5 => {
            let many: Vec<String> = (0..400).map(|n| format!("c{n}")).collect();
            let request: Vec<&str> =
                ["SUBSCRIBE"].into_iter().chain(many.iter().map(String::as_str)).collect();
            wire.send(&encode(&request))
        }
        _ => {
            lazy.extend([wire, partner]); // until the end of the round, without reading
            Ok(())
        }
    }
}

/// A request by which a client listens to something.
fn listen(rng: &mut Rng, partner: i64) -> Vec<u8> {
    let names = |rng: &mut Rng, command: &str| {
        let names: Vec<String> = (0..=rng.below(20)).map(|_| channel(rng)).collect();
        format!("{command} {}", names.join(" "))
    };
    let line = match rng.below(9) {
        0 | 1 => names(rng, "SUBSCRIBE"),
        2 => names(rng, "SSUBSCRIBE"),
        3 => format!("PSUBSCRIBE c{}* *{} c?", rng.below(10), rng.below(10)),
        4 => "PSUBSCRIBE __key*__:*".into(),
        5 => format!("CLIENT TRACKING ON REDIRECT {partner}"),
        6 => format!("CLIENT TRACKING ON BCAST PREFIX key:{} PREFIX x", rng.below(3)),
        7 => "CLIENT TRACKING ON NOLOOP".into(),
        _ => "CLIENT TRACKING ON".into(),
    };
    encode(&words(&line))
}

/// Reads replies and messages up to the reply to a last request. A message begins with the name of
/// its channel.
fn read_until_end(wire: &mut Wire, counts: &Counts) -> io::Result<()> {
    wire.send(&encode(&[b"PING", END]))?;
    let end = Value::Bulk(END.to_vec());
    loop {
        let value = wire.receive()?;
        let (Value::Array(items) | Value::Push(items)) = &value else {
            if value == end {
                return Ok(());
            }
            continue;
        };
        if items.last() == Some(&end) {
            return Ok(());
        }
        if let [Value::Bulk(word), .., Value::Bulk(channel), Value::Bulk(text)] = &items[..] {
            let is_message = [&b"message"[..], b"pmessage", b"smessage"].contains(&&word[..]);
            let is_ours = channel.starts_with(b"c");
            assert!(!is_message || !is_ours || text.starts_with(channel), "{value:?}");
            counts.received.fetch_add(u64::from(is_message), Ordering::Relaxed);
        }
    }
}

fn read_until_closed(wire: &mut Wire) -> io::Result<()> {
    loop {
        match wire.receive() {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::TimedOut => return Err(e),
            Err(_) => return Ok(()),
        }
    }
}

fn number(value: &Value) -> i64 {
    let Value::Int(n) = value else { panic!("{value:?} is no integer") };
    *n
}

/// Everybody is gone but this client, and so is everything of them.
fn nothing_is_left(control: &mut Wire) {
    ok(control, "FLUSHALL");
    ok(control, "SLOWLOG RESET"); // on a busy machine it fills with long requests
    assert_eq!(ask(control, "DBSIZE"), Value::Int(0));
    for (section, name, expected) in [
        ("clients", "connected_clients", 1),
        ("clients", "pubsub_clients", 0),
        ("clients", "tracking_clients", 0),
        ("stats", "pubsub_channels", 0),
        ("stats", "pubsub_patterns", 0),
        ("stats", "pubsubshard_channels", 0),
        ("stats", "tracking_total_keys", 0),
        ("stats", "tracking_total_items", 0),
        ("stats", "tracking_total_prefixes", 0),
        ("memory", "mem_pubsub", 0),
        ("memory", "mem_tracking", 0),
        ("memory", "lazyfree_pending_objects", 0),
    ] {
        until(name, || figure(control, section, name) == expected);
    }
}
