//! The settings compared with a real redis-server 7.0: CONFIG GET of every name which both know,
//! and the reply to CONFIG SET of every name with valid and invalid values. Intended differences
//! are listed here. Without a redis-server on PATH the test passes, unless `CI` is set.

#[path = "../../base/tests/support/live.rs"]
mod support;

use config::table::{Change, SETTINGS};
use config::{Config, find};
use support::{Answer, Live};

/// Names whose default differs, and the reason.
const OTHER_DEFAULTS: &[(&str, &str)] = &[
    ("activedefrag", "needs no changed allocator here, and memory comes back only with it"),
    ("bind", "this server listens on this machine only unless told otherwise"),
    ("dir", "each in its own folder"),
    ("enable-debug-command", "the server compared with is started with it"),
    ("hide-user-data-from-log", "newer than the server compared with"),
    ("port", "the server compared with is started without one"),
    ("sanitize-dump-payload", "the server compared with is started with it"),
    ("unixsocket", "the server compared with is started with one"),
    ("save", "the server compared with is started without"),
];

/// Values which the two servers handle differently: setting, value (empty: any), reason.
const OTHER_VALUES: &[(&str, &str, &str)] = &[
    ("activedefrag", "", "needs a changed allocator there"),
    ("bind", "", "what cannot be bound is found by the server, not by the settings"),
    (
        "client-query-buffer-limit",
        "",
        "bounded here by what the append-only file can be loaded with",
    ),
    ("jemalloc-bg-thread", "", "depends on the allocator there"),
    ("loglevel", "", "'nothing' came with 7.2, and the list of words with it"),
    ("maxclients", "", "limited there by the files the process may open"),
    ("latency-tracking-info-percentiles", "0x10", "no hexadecimal numbers here"),
    ("maxmemory", "1%", "a percentage is one of the machine's memory here"),
    ("maxmemory", "100%", "a percentage is one of the machine's memory here"),
    ("maxmemory", "101%", "a percentage is one of the machine's memory here"),
    ("maxmemory", "0%", "a percentage is one of the machine's memory here"),
    ("maxmemory", "-1%", "a percentage is one of the machine's memory here"),
    ("maxmemory", "%", "a percentage is one of the machine's memory here"),
    ("maxmemory", "x%", "a percentage is one of the machine's memory here"),
    ("maxmemory-clients", "9223372036854775808", "read there as a percentage"),
    ("maxmemory-clients", "18446744073709551615", "read there as a percentage"),
    ("maxmemory-clients", "99999999999999999999999", "read there as a percentage"),
    ("oom-score-adj-values", "1  2", "an empty word is no number here"),
    ("port", "", "the other server would listen there"),
    ("proc-title-template", "{title}", "refused there, although it is a variable"),
    ("save", "5 ", "half a pair is wrong here"),
    ("tls-port", "", "the other server would listen there"),
];

const VALUES: &[&str] = &[
    "",
    "0",
    "1",
    "2",
    "5",
    "10",
    "99",
    "100",
    "101",
    "500",
    "501",
    "1000",
    "65535",
    "65536",
    "1000000",
    "2147483647",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "99999999999999999999999",
    "-1",
    "-2",
    "-5",
    "-99999999999",
    "+5",
    "05",
    " 5",
    "5 ",
    "1.5",
    "0x10",
    "1e3",
    "yes",
    "no",
    "YES",
    "No",
    "true",
    "on",
    "local",
    "default",
    "save",
    "nosave now",
    "NOW force",
    "save nosave",
    "1b",
    "1k",
    "1kb",
    "1m",
    "1MB",
    "1g",
    "1gb",
    "1t",
    "kb",
    "1 kb",
    "1%",
    "100%",
    "101%",
    "0%",
    "-1%",
    "%",
    "x%",
    "everysec",
    "always",
    "notice",
    "DEBUG",
    "noeviction",
    "allkeys-lru",
    "qqq",
    "a b",
    "a b c",
    "a/b",
    "a_b",
    "a.b",
    "900 1",
    "900 1 300 10",
    "0 1",
    "1 -1",
    "1  2",
    "normal 1 2 3",
    "normal 1mb 2kb 3",
    "normal 1",
    "Slave 1 1 1",
    "replica 2 2 2 pubsub 3 3 3",
    "foo 1 1 1",
    "normal x 1 1",
    "normal 1 1 x",
    "normal 1 1 -5",
    "normal -1 1 1",
    "50 99",
    "50 99.9 99.999",
    "33.333333333",
    "100.1",
    "KEA",
    "Elg",
    "gE$",
    "AKEm",
    "n",
    "ABC",
    "0 200 800",
    "1 2",
    "2001 1 2",
    "-2000 0 2000",
    "{title}",
    "{foo}",
    "{title",
    "x{port}",
    "ip",
    "hostname",
    "disabled",
    "swapdb",
    "ignore",
    "resetchannels",
    "optional",
    "allchannels",
];

/// The bulk strings of a reply, in pairs of name and value.
fn pairs(answer: Answer) -> Vec<(String, Vec<u8>)> {
    let Answer::Array(items) = answer else { panic!("an array: {answer:?}") };
    let text = |a: &Answer| match a {
        Answer::Bulk(Some(bytes)) => bytes.clone(),
        other => panic!("a string: {other:?}"),
    };
    items
        .chunks_exact(2)
        .map(|two| (String::from_utf8(text(&two[0])).expect("a name"), text(&two[1])))
        .collect()
}

fn differs_on_purpose(name: &str, value: &str) -> bool {
    OTHER_VALUES.iter().any(|(n, v, _)| *n == name && (v.is_empty() || *v == value))
}

#[test]
fn defaults_match_redis() {
    let Some(mut live) = Live::start() else { return };
    let config = Config::default();
    let mut compared = 0;
    for (name, theirs) in pairs(live.call(&[b"CONFIG", b"GET", b"*"])) {
        let ours = config.get([name.as_bytes()].into_iter());
        assert_eq!(ours.len(), 1, "{name} is known");
        assert_eq!(ours[0].0, name.as_bytes());
        if OTHER_DEFAULTS.iter().any(|(n, _)| *n == name) {
            continue;
        }
        assert_eq!(
            String::from_utf8_lossy(ours[0].1),
            String::from_utf8_lossy(&theirs),
            "default of {name}"
        );
        compared += 1;
    }
    assert!(compared > 180, "only {compared} names compared");
}

#[test]
fn patterns_match_the_same_names_as_redis() {
    let Some(mut live) = Live::start() else { return };
    let config = Config::default();
    let theirs_alone: Vec<String> =
        pairs(live.call(&[b"CONFIG", b"GET", b"*"])).into_iter().map(|(n, _)| n).collect();
    for patterns in [
        &["hz"][..],
        &["HZ", "h?", "H?"],
        &["h?", "HZ", "hz", "Slave-Priority", "*-priority"],
        &["*max*", "*list*"],
        &["[a-c]*"],
        &["nosuch", "\\hz", "\"hz\"", ""],
        &["zset-max-ziplist-value", "zset*"],
    ] {
        let mut args: Vec<&[u8]> = vec![b"CONFIG", b"GET"];
        args.extend(patterns.iter().map(|p| p.as_bytes()));
        let mut theirs: Vec<String> = pairs(live.call(&args)).into_iter().map(|(n, _)| n).collect();
        let ours = config.get(patterns.iter().map(|p| p.as_bytes()));
        let mut ours: Vec<String> = ours
            .into_iter()
            .map(|(n, _)| String::from_utf8_lossy(n).into_owned())
            .filter(|n| theirs_alone.contains(&n.to_lowercase()))
            .collect();
        theirs.sort();
        ours.sort();
        assert_eq!(ours, theirs, "{patterns:?}");
    }
}

#[test]
fn setting_one_value_replies_as_redis() {
    let Some(mut live) = Live::start() else { return };
    let known = pairs(live.call(&[b"CONFIG", b"GET", b"*"]));
    let config = Config::default();
    let (mut same, mut refused, mut wrong) = (0, 0, Vec::new());
    for (name, at_first) in &known {
        let (index, setting) = find(name.as_bytes()).expect("it is known");
        // A setting which cannot change gives the same reply to every value, so three values
        // suffice.
        let values = if setting.change == Change::Anytime { VALUES } else { &VALUES[..3] };
        for value in values {
            // Settings which would affect the other server itself are tried with invalid values
            // only.
            if differs_on_purpose(name, value) {
                continue;
            }
            let ours = config.set(&[(name.as_bytes(), value.as_bytes())], true);
            if let Err(e) = &ours
                && e.to_string().contains("which this version does not have")
            {
                refused += 1;
                continue;
            }
            let theirs = live.call(&[b"CONFIG", b"SET", name.as_bytes(), value.as_bytes()]);
            let said = match (&ours, &theirs) {
                (Ok(_), Answer::Simple(_)) => None,
                (Err(ours), Answer::Error(theirs)) if ours.to_string() == *theirs => None,
                _ => Some(format!("{name} {value:?}: {:?} / {theirs:?}", ours.as_ref().err())),
            };
            wrong.extend(said);
            same += 1;
            let (Ok((after, _)), Answer::Simple(_)) = (ours, theirs) else { continue };
            let read = pairs(live.call(&[b"CONFIG", b"GET", name.as_bytes()]));
            if read[0].1 != after.text(index) {
                let ours = String::from_utf8_lossy(after.text(index)).into_owned();
                let theirs = String::from_utf8_lossy(&read[0].1).into_owned();
                wrong.push(format!("{name} {value:?} reads as {ours:?} / {theirs:?}"));
            }
            let back = live.call(&[b"CONFIG", b"SET", name.as_bytes(), at_first]);
            assert!(matches!(back, Answer::Simple(_)), "{name} goes back: {back:?}");
            if name == "requirepass" {
                // Setting and removing a password keeps this connection authenticated.
                assert_eq!(live.call(&[b"PING"]), Answer::Simple("PONG".into()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {same} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(same > 8_000 && refused > 500, "{same} compared, {refused} refused");
}

#[test]
fn setting_several_values_replies_as_redis() {
    let Some(mut live) = Live::start() else { return };
    let config = Config::default();
    for words in [
        &["hz", "5", "nosuch", "1"][..],
        &["nosuch", "1", "hz", "x"],
        &["hz", "x", "nosuch", "x"],
        &["hz", "x", "tcp-backlog", "5"],
        &["tcp-backlog", "5", "nosuch", "1"],
        &["tcp-backlog", "5", "hz", "1", "hz", "2"],
        &["hz", "1", "hz", "2", "tcp-backlog", "5"],
        &["hz", "1", "HZ", "2", "nosuch", "5"],
        &["dir", "x", "tcp-backlog", "5"],
        &["hz", "1", "zset-max-ziplist-value", "x", "hll-sparse-max-bytes", "x"],
        &["hz", "7", "timeout", "x"],
        &["hz", "7", "timeout", "8", "maxmemory", "1gb"],
        &["slave-read-only", "no", "replica-read-only", "no"],
        &["loadmodule", "x"],
        &["include", "x"],
        &["rename-command", "x"],
        &["user", "x"],
        &["", "x"],
        &["bad\r\nname", "x"],
    ] {
        let mut args: Vec<&[u8]> = vec![b"CONFIG", b"SET"];
        args.extend(words.iter().map(|w| w.as_bytes()));
        let pairs: Vec<(&[u8], &[u8])> =
            words.chunks_exact(2).map(|p| (p[0].as_bytes(), p[1].as_bytes())).collect();
        let ours = match config.set(&pairs, true) {
            Ok(_) => Answer::Simple("OK".into()),
            Err(e) => Answer::Error(e.to_string()),
        };
        assert_eq!(ours, live.call(&args), "{words:?}");
    }
    // A failed CONFIG SET changes nothing on the other server either.
    let hz = pairs(live.call(&[b"CONFIG", b"GET", b"hz"]));
    assert_eq!(hz[0].1, b"7");
}

#[test]
fn listed_differences_name_existing_settings() {
    for (name, _) in OTHER_DEFAULTS {
        assert!(find(name.as_bytes()).is_some(), "{name}");
    }
    for (name, _, _) in OTHER_VALUES {
        assert!(find(name.as_bytes()).is_some(), "{name}");
    }
    assert!(SETTINGS.len() > 200);
}
