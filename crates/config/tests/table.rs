//! The table of settings is complete, consistent, and matches the checked-in documents.

use config::load::{Start, start};
use config::table::{Class, DIRECTIVES, QUERY_BUFFER_MAX, SETTINGS, Setting};
use config::value::Kind;
use config::{Config, WorkerCopy, docs, find, is_secret, refusal};
use std::collections::BTreeSet;

/// Settings which only this server has.
const OWN: [&str; 25] = [
    "admin-bind",
    "admin-port",
    "admin-token",
    "aof-history",
    "backup-dir",
    "backup-keep",
    "backup-schedule",
    "busy-poll-us",
    "db-limit",
    "disk-wait-ms",
    "ingest-classic",
    "ingest-classic-port",
    "ingest-idle-timeout",
    "ingest-listen",
    "ingest-max-message",
    "ingest-producer-timeout",
    "ingest-producers-max",
    "ingest-window",
    "io-backend",
    "key-load-delay",
    "rdb-key-save-delay",
    "rdb-skip-unknown",
    "rdb-version",
    "threads",
    "work-at-once-elements",
];

/// Every name of Redis 7.0, 8.0 and Valkey 9.1.
const NAMES: &str = include_str!("golden/names.txt");

#[test]
fn the_table_has_all_names_of_redis_and_valkey_and_the_listed_ones() {
    let expected: BTreeSet<&str> = NAMES.lines().chain(OWN).collect();
    assert_eq!(expected.len(), 243 + OWN.len());
    let known: Vec<&str> = SETTINGS.iter().flat_map(Setting::names).collect();
    let unique: BTreeSet<&str> = known.iter().copied().collect();
    assert_eq!(unique.len(), known.len(), "a name stands twice");
    assert_eq!(unique, expected);
    for name in &expected {
        let (index, setting) = find(name.to_ascii_uppercase().as_bytes()).expect("it is known");
        assert_eq!(SETTINGS[index].name, setting.name);
        assert!(setting.names().any(|n| n == *name));
    }
    for directive in &DIRECTIVES {
        let name = directive.name;
        assert!(find(name.as_bytes()).is_none(), "{name} is no setting");
    }
}

#[test]
fn the_table_is_in_alphabetical_order() {
    assert!(SETTINGS.is_sorted_by_key(|s| s.name));
}

#[test]
fn every_default_is_valid_and_round_trips() {
    let config = Config::default();
    for (index, setting) in SETTINGS.iter().enumerate() {
        let value = setting.kind.parse(setting.default.as_bytes());
        let value = value.unwrap_or_else(|e| panic!("{}: {e}", setting.name));
        assert_eq!(config.text(index), setting.default.as_bytes(), "{}", setting.name);
        assert_eq!(refusal(setting, &value), None, "{}", setting.name);
        if setting.kind != Kind::Limits {
            assert_eq!(value.show(), setting.default.as_bytes(), "{}", setting.name);
        }
    }
}

/// Settings in use have a typed field, and no others do.
#[test]
fn exactly_the_settings_in_use_have_typed_fields() {
    for setting in SETTINGS {
        assert_eq!(setting.has_field(), setting.class == Class::Wired, "{}", setting.name);
    }
}

/// A number which the kind accepts and which does not fit into the field would panic.
#[test]
fn every_limit_fits_its_field() {
    let mut tried = 0;
    for setting in SETTINGS {
        let bounds = match setting.kind {
            Kind::Int(min, max) | Kind::Clamped(min, max) => [min.to_string(), max.to_string()],
            Kind::Memory(min, max) => [min.to_string(), max.to_string()],
            Kind::Octal => ["0".to_owned(), "777".to_owned()],
            _ => continue,
        };
        for bound in bounds {
            let args = ["--unixsocket", "s", &format!("--{}", setting.name), &bound];
            let args: Vec<Vec<u8>> = args.iter().map(|arg| arg.as_bytes().to_vec()).collect();
            match start(&args, &mut &b""[..]) {
                Ok(Start::Run(_)) => tried += 1,
                Ok(other) => panic!("{other:?}"),
                Err(errors) => {
                    let [e] = errors.as_slice() else { panic!("one setting: {errors:?}") };
                    assert!(e.problem.contains("which this version does not have"), "{e}");
                }
            }
        }
    }
    assert!(tried > 150, "{tried}");
}

/// Settings whose names suggest a secret are secret, or are listed here.
#[test]
fn secrets_are_declared() {
    const OPEN: [&str; 4] = [
        "hide-user-data-from-log",
        "lazyfree-lazy-user-del",
        "lazyfree-lazy-user-flush",
        "tls-auth-clients",
    ];
    let sounds = |name: &str| ["pass", "auth", "token", "user"].iter().any(|w| name.contains(w));
    let mut secrets = Vec::new();
    for setting in SETTINGS {
        let open = OPEN.contains(&setting.name) || setting.name.starts_with("tls-auth-clients");
        assert_eq!(setting.secret, sounds(setting.name) && !open, "{}", setting.name);
        secrets.extend(setting.names().filter(|_| setting.secret));
    }
    assert!(secrets.contains(&"primaryauth") && secrets.contains(&"requirepass"), "{secrets:?}");
    for name in secrets.into_iter().chain(["user", "USER", "RequirePass"]) {
        assert!(is_secret(name.as_bytes()), "{name}");
    }
    assert!(!is_secret(b"port") && !is_secret(b"nosuch"));
}

#[test]
fn the_debug_output_contains_no_secret() {
    let pairs: Vec<(&[u8], &[u8])> = SETTINGS
        .iter()
        .filter(|s| s.secret && s.name != "admin-token")
        .filter(|s| !matches!(s.class, Class::Refused { .. }))
        .map(|s| (s.name.as_bytes(), &b"hunter2"[..]))
        .chain([(&b"admin-token"[..], &b"hunter2"[..]), (b"hz", b"77")])
        .collect();
    let (config, _) = Config::default().set(&pairs, true).expect("valid settings");
    let shown = format!("{config:?} {:?} {:?}", WorkerCopy::of(&config), config.password);
    assert!(shown.contains("hz") && shown.contains("77"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn every_accepted_value_of_a_refused_setting_is_valid() {
    for setting in SETTINGS {
        let Class::Refused { off, needs } = setting.class else { continue };
        assert!(!needs.is_empty() && off[0] == setting.default, "{}", setting.name);
        for text in off {
            let value = setting.kind.parse(text.as_bytes());
            let value = value.unwrap_or_else(|e| panic!("{} {text}: {e}", setting.name));
            assert_eq!(value.show(), text.as_bytes(), "{}", setting.name);
            assert_eq!(refusal(setting, &value), None);
        }
    }
}

/// One value per refused setting which requests the feature.
const ASKING: &[(&str, &str)] = &[
    ("aclfile", "users.acl"),
    ("cluster-enabled", "yes"),
    ("locale-collate", "de_DE.UTF-8"),
    ("min-replicas-to-write", "1"),
    ("min-slaves-to-write", "1"),
    ("oom-score-adj", "yes"),
    ("rdma-port", "6379"),
    ("replicaof", "10.0.0.1 6379"),
    ("slaveof", "10.0.0.1 6379"),
    ("socket-mark-id", "7"),
    ("syslog-enabled", "yes"),
    ("tls-auth-clients", "optional"),
    ("tls-auth-clients-user", "cn"),
    ("tls-auto-reload-interval", "1"),
    ("tls-ca-cert-dir", "x"),
    ("tls-ca-cert-file", "x"),
    ("tls-cert-file", "x"),
    ("tls-ciphers", "x"),
    ("tls-ciphersuites", "x"),
    ("tls-client-cert-file", "x"),
    ("tls-client-key-file", "x"),
    ("tls-client-key-file-pass", "x"),
    ("tls-cluster", "yes"),
    ("tls-dh-params-file", "x"),
    ("tls-key-file", "x"),
    ("tls-key-file-pass", "x"),
    ("tls-port", "6380"),
    ("tls-prefer-server-ciphers", "yes"),
    ("tls-protocols", "x"),
    ("tls-replication", "yes"),
    ("tls-session-cache-size", "1"),
    ("tls-session-cache-timeout", "1"),
    ("tls-session-caching", "no"),
    ("unixsocketgroup", "x"),
];

#[test]
fn requests_for_missing_features_are_refused() {
    for (name, text) in ASKING {
        let (_, setting) = find(name.as_bytes()).expect("it is known");
        let value = setting.kind.parse(text.as_bytes());
        let value = value.unwrap_or_else(|e| panic!("{name} {text}: {e}"));
        let why = refusal(setting, &value).unwrap_or_else(|| panic!("{name} {text} is taken"));
        assert!(why.ends_with("which this version does not have"), "{why}");
    }
    let asked: BTreeSet<&str> = ASKING.iter().map(|(name, _)| *name).collect();
    let refused = SETTINGS.iter().filter(|s| matches!(s.class, Class::Refused { .. }));
    let names: BTreeSet<&str> = refused.flat_map(Setting::names).collect();
    assert_eq!(asked, names, "every refused setting is asked for here, and no other");
}

#[test]
fn a_refusal_does_not_show_a_password() {
    let (_, setting) = find(b"tls-key-file-pass").expect("it is known");
    let value = setting.kind.parse(b"hunter2").expect("any text");
    let why = refusal(setting, &value).expect("it is refused");
    assert!(!why.contains("hunter2"), "{why}");
}

/// `UPDATE_DOCS=1` rewrites the documents.
#[test]
fn the_documents_of_settings_match_the_table() {
    for (name, fresh) in
        [("docs/config.md", docs::config_md()), ("packaging/sheafdb.conf", docs::sample_conf())]
    {
        let path = format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, &fresh).expect("the document can be written");
        }
        let written = std::fs::read_to_string(&path).expect("it is there");
        assert!(written == fresh, "{name} is old: run this test with UPDATE_DOCS=1");
    }
}

/// The shipped file changes nothing. With every line uncommented it sets the defaults.
#[test]
fn the_sample_configuration_lists_the_defaults() {
    let sample = docs::sample_conf();
    let wired: Vec<&Setting> = SETTINGS.iter().filter(|s| s.class == Class::Wired).collect();
    let is_setting = |line: &&str| {
        let word = line.strip_prefix("# ").and_then(|l| l.split(' ').next());
        word.is_some_and(|w| wired.iter().any(|s| s.name == w))
    };
    let taken: Vec<&str> = sample.lines().filter(is_setting).map(|l| &l[2..]).collect();
    let named: BTreeSet<&str> = taken.iter().filter_map(|l| l.split(' ').next()).collect();
    assert_eq!(named.len(), wired.len(), "a setting is missing");
    assert_eq!(taken.len(), wired.len(), "a setting stands twice, or a text starts like one");
    for text in [sample.clone(), taken.join("\n")] {
        let started = start(&[b"-".to_vec()], &mut text.as_bytes());
        let Ok(Start::Run(config)) = started else { panic!("{started:?}") };
        for (index, s) in SETTINGS.iter().enumerate().filter(|(_, s)| s.name != "dir") {
            assert_eq!(config.text(index), Config::default().text(index), "{}", s.name);
        }
    }
}

#[test]
fn the_help_lists_settings_with_their_defaults() {
    let help = docs::help();
    assert!(help.contains("--port (default 6379)"));
    assert!(help.contains("--maxmemory (default 0)"));
    assert!(help.lines().all(|line| line.chars().count() <= 100), "a line is too long");
}

/// A request above the limit of the append-only file could be acknowledged and not be loaded.
#[test]
fn no_client_may_send_what_cannot_be_loaded() {
    let set = |value: &[u8]| {
        let config = Config::default().set(&[(b"client-query-buffer-limit", value)], true);
        config.map(|(config, _)| config.query_buffer_max).map_err(|why| why.to_string())
    };
    assert_eq!(set(b"1gb"), Ok(1 << 30));
    assert_eq!(set(b"2080374784"), Ok(QUERY_BUFFER_MAX));
    for value in [&b"2080374785"[..], b"2gb", b"4gb"] {
        let why = set(value).expect_err("too much");
        assert!(why.contains("between 1048576 and 2080374784"), "{why}");
    }
}
