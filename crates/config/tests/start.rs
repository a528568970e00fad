//! From the command line and configuration files to a configuration, and the errors: one line with
//! place, problem and remedy.

use config::load::{FILE_BYTES_MAX, FILES_MAX, INCLUDE_DEPTH_MAX, INCLUDE_FILES_MAX, Start, start};
use config::rewrite::{MARK, rewrite};
use config::source::{Answer, Known, Question};
use config::value::{BIND_MAX, HOSTNAME_MAX};
use config::{Access, Bind, Config, LogLevel, RdbVersion, ShutdownWords, THREADS_MAX, find, parse};
use proptest::prelude::*;
use std::path::PathBuf;

/// A temporary folder, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("config-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("writable");
        path.to_str().expect("a plain name").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes the new text over the file of the configuration, and asks the disk what it takes to know.
/// Returns how often it had to ask.
fn rewrite_file(config: &Config) -> usize {
    let file = config.file.as_deref().expect("it has a file");
    let old = std::fs::read(file).expect("readable");
    let (mut known, mut rounds) = (Known::default(), 0);
    loop {
        match config::rewrite::text(config, &old, &mut known) {
            Ok(text) => break std::fs::write(file, text).expect("writable"),
            Err(questions) => {
                assert!(!questions.is_empty(), "something is to be asked");
                for question in questions {
                    answer(&mut known, question);
                }
                rounds += 1;
            }
        }
    }
    rounds
}

fn answer(known: &mut Known, question: Question) {
    let answer = match &question {
        Question::Contents(file) => std::fs::read(file).ok().map(Answer::Contents),
        Question::Names(folder) => std::fs::read_dir(folder).ok().map(|entries| {
            Answer::Names(entries.map(|entry| entry.expect("readable").file_name()).collect())
        }),
        Question::Exists(path) => path.exists().then_some(Answer::Exists),
    };
    known.add(question, answer.unwrap_or(Answer::Failed));
}

fn started(args: &[&str]) -> Result<Start, String> {
    started_with(args, "")
}

fn started_with(args: &[&str], stdin: &str) -> Result<Start, String> {
    let args: Vec<Vec<u8>> = args.iter().map(|a| a.as_bytes().to_vec()).collect();
    start(&args, &mut stdin.as_bytes()).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        lines.join("\n")
    })
}

fn config(args: &[&str]) -> Config {
    match started(args) {
        Ok(Start::Run(config)) => *config,
        other => panic!("{args:?}: {other:?}"),
    }
}

fn error(args: &[&str]) -> String {
    let text = started(args).expect_err("this must not start");
    assert!(!text.contains('\n'), "one line: {text}");
    text
}

fn text_of<'c>(config: &'c Config, name: &str) -> &'c [u8] {
    config.text(find(name.as_bytes()).expect("it is known").0)
}

fn hz(config: &Config) -> u32 {
    std::str::from_utf8(text_of(config, "hz")).expect("text").parse().expect("a number")
}

#[test]
fn without_arguments_every_setting_has_its_default() {
    let c = config(&[]);
    let localhost = Bind { host: "127.0.0.1".into(), optional: false };
    let localhost6 = Bind { host: "::1".into(), optional: true };
    assert_eq!(c.bind, [localhost, localhost6]);
    assert_eq!(c.bind[0].address(7).expect("an address").to_string(), "127.0.0.1:7");
    assert_eq!((c.port, c.command.databases, c.maxclients), (6379, 16, 10_000));
    assert_eq!((c.busy_poll_us, c.threads, hz(&c)), (50, 0, 10));
    assert_eq!(c.dir, std::env::current_dir().expect("a folder"));
    assert_eq!(c.save_points, [(3600, 1), (300, 100), (60, 10_000)]);
    assert_eq!((c.rdb_version, c.on_sigterm), (RdbVersion::Automatic, ShutdownWords::default()));
    assert_eq!(c.output_limits[1].hard_bytes, 256 << 20);
    assert_eq!(c.enable_debug_command, Access::No);
}

#[test]
fn files_options_and_standard_input_apply_in_order() {
    let folder = Folder::new("order");
    let file = folder.file("a.conf", "port 1\nhz 2\r\n  LogLevel DEBUG\n# port 9\n\nmaxmemory 1gb");
    let c = config(&[&file, "--port", "7000", "--bind", "*", "::*"]);
    assert_eq!((c.port, hz(&c), c.loglevel), (7000, 2, LogLevel::Debug));
    assert_eq!(c.maxmemory, config::MemoryShare::Bytes(1 << 30));
    assert_eq!(c.bind[1].address(5).expect("an address").to_string(), "[::]:5");
    assert_eq!(c.file.as_deref().map(|f| f.to_str().expect("plain")), Some(&*file));
    match started_with(&[&file, "--hz", "9", "-"], "port 3\nhz 4\n") {
        Ok(Start::Run(c)) => assert_eq!((c.port, hz(&c)), (3, 9)),
        other => panic!("{other:?}"),
    }
    assert!(matches!(started(&["-v"]), Ok(Start::Version)));
    assert!(matches!(started(&["--version"]), Ok(Start::Version)));
    assert!(matches!(started(&["--help"]), Ok(Start::Help)));
    assert!(matches!(started(&["-h"]), Ok(Start::Help)));
}

#[test]
fn values_are_parsed_in_their_common_spellings() {
    let c = config(&["--save", "--requirepass", "--odd"]);
    assert_eq!(*c.password, *b"--odd");
    let c = config(&["--save", "", "--hz 7", "--dir", "/tmp/"]);
    assert_eq!((hz(&c), c.dir.to_str()), (7, Some("/tmp")));
    let folder = Folder::new("values");
    let text = "client-output-buffer-limit normal 1mb 2kb 3\n\
                client-output-buffer-limit pubsub 0 0 0\n\
                requirepass \"a b\\x01\\n\"\nlogfile ''\nsave \"\"\n\
                latency-tracking-info-percentiles 50 99.9\nshutdown-on-sigterm nosave now\n";
    let c = config(&[&folder.file("a.conf", text)]);
    assert_eq!(c.output_limits[0].hard_bytes, 1 << 20);
    assert_eq!(c.output_limits[1].hard_bytes, 256 << 20);
    assert_eq!(c.output_limits[2].hard_bytes, 0);
    assert_eq!(*c.password, *b"a b\x01\n");
    assert_eq!(c.latency_percentiles, [50.0, 99.9]);
    assert_eq!(text_of(&c, "shutdown-on-sigterm"), b"nosave now");
    assert_eq!(c.on_sigterm, ShutdownWords { save: Some(false), now: true, force: false });
}

#[test]
fn includes_support_patterns_and_a_limited_depth() {
    let folder = Folder::new("include");
    let dir = folder.0.to_str().expect("plain").to_owned();
    folder.file("20.part", "hz 20\n");
    folder.file("10.part", "hz 10\nport 99\n");
    folder.file("x.other", "hz 30\n");
    let main = folder.file("main.conf", &format!("include {dir}/*.part\ninclude {dir}/no*\n"));
    let c = config(&[&main]);
    assert_eq!((hz(&c), c.port), (20, 99));
    let me = folder.0.join("loop.conf");
    let me = me.to_str().expect("plain");
    folder.file("loop.conf", &format!("include {me}\n").repeat(3));
    let message = started(&[me]).expect_err("it has no end");
    assert!(message.contains("nested too deeply"));
    assert!(message.lines().count() <= 100, "at most 100 errors are printed");
    // A chain with the maximum depth is accepted.
    for level in 0..INCLUDE_DEPTH_MAX {
        folder.file(&format!("c{level}"), &format!("include {dir}/c{}\n", level + 1));
    }
    folder.file(&format!("c{INCLUDE_DEPTH_MAX}"), "hz 77\n");
    assert_eq!(hz(&config(&[&format!("{dir}/c0")])), 77);
    let bad = folder.file("bad.conf", "port 1\ninclude /nowhere/x.conf\n");
    assert_eq!(
        error(&[&bad]),
        "/nowhere/x.conf: cannot be read: No such file or directory; give the path of a readable \
         configuration file"
    );
}

#[test]
fn errors_name_place_problem_and_remedy() {
    let folder = Folder::new("errors");
    let file = |text: &str| folder.file("e.conf", text);
    let place = folder.0.join("e.conf");
    let place = place.to_str().expect("plain");
    let cases: &[(&str, &str)] = &[
        ("\nprot 7\n", "line 2: unknown setting 'prot'; did you mean 'port'?"),
        ("zzzzzzzzz 7\n", "line 1: unknown setting 'zzzzzzzzz'; docs/config.md lists"),
        ("port x", "line 1: 'port x': argument couldn't be parsed into an integer; 'port' takes"),
        ("port 1 2", "line 1: 'port 1 2': wrong number of arguments; 'port' takes a whole number"),
        ("hz 9 # comment", "line 1: 'hz 9 # comment': wrong number of arguments"),
        ("hz \"9", "line 1: 'hz \"9': unbalanced quotes; close every quote"),
        ("hz \"9\"x", "line 1: 'hz \"9\"x': unbalanced quotes"),
        (
            "tls-replication yes",
            "line 1: 'tls-replication yes' needs TLS, which this version does not have; set \
             'tls-replication no' or remove it",
        ),
        ("save 900", "line 1: 'save 900': Invalid save parameters; 'save' takes pairs of seconds"),
        ("replicaof a 1", "line 1: 'replicaof a 1' needs replication"),
        ("user x on", "line 1: 'user ...' needs access control lists"),
        ("rename-command CONFIG \"\"", "line 1: 'rename-command CONFIG ' needs renaming"),
        ("requirepass \"a secret", "line 1: 'requirepass ...': unbalanced quotes"),
        ("\"masterauth\" \"a secret", "line 1: 'masterauth ...': unbalanced quotes"),
        ("requirepass a secret", "line 1: 'requirepass ...': wrong number of arguments"),
        ("tls-key-file-pass secret", "line 1: 'tls-key-file-pass ...' needs TLS"),
        ("user x on >secret", "line 1: 'user ...' needs access control lists"),
        ("loadmodule x.so", "line 1: 'loadmodule x.so' needs modules"),
        ("tls-port 1", "line 1: 'tls-port 1' needs TLS"),
        ("port 0", "no address to listen on"),
    ];
    for (text, expected) in cases {
        let message = error(&[&file(text)]);
        assert!(message.contains(expected), "{text:?}: {message}");
        assert!(!message.contains("secret"), "{message}");
        assert!(message.starts_with(place) || expected.contains("no address"), "{message}");
    }
    assert!(
        error(&["/nonexistent.conf"]).starts_with("/nonexistent.conf: cannot be read: No such")
    );
    assert!(error(&[folder.0.to_str().expect("plain")]).contains("cannot be read: Is a directory"));
    assert_eq!(
        error(&["--port", "x"]),
        "command line: 'port x': argument couldn't be parsed into an integer; 'port' takes a whole \
         number from 0 to 65535"
    );
    assert!(error(&["-x"]).contains("command line: '-x': is not an option"));
    assert!(error(&[&file("hz 3"), "hz", "5"]).contains("'hz': is not an option"));
    assert!(error(&["--nosuch=1"]).contains("unknown setting 'nosuch=1'"));
}

/// A user with a configuration of Redis sees all its problems at once.
#[test]
fn every_refused_line_is_reported() {
    let folder = Folder::new("all");
    let more = folder.file("more.conf", "tls-port 1\nport 7\n");
    let text = format!(
        "tls-cluster yes\nport 1\ntls-cluster x\ninclude {more}\nprot 7\nmaxclients x\nhz 20\n"
    );
    let file = folder.file("a.conf", &text);
    let message = started(&[&file, "--replicaof", "a", "1"]).expect_err("refused");
    let expected = [
        "a.conf line 1: 'tls-cluster yes' needs TLS",
        "a.conf line 3: 'tls-cluster x' needs TLS",
        "more.conf line 1: 'tls-port 1' needs TLS",
        "a.conf line 5: unknown setting 'prot'",
        "a.conf line 6: 'maxclients x': argument couldn't be parsed",
        "command line: 'replicaof a 1' needs replication",
    ];
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{message}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.contains(expected), "{line}");
    }
    let Ok(Start::Check(check)) = started(&["--check-config", &file]) else { panic!("a check") };
    assert_eq!((check.errors.len(), check.inert.len()), (5, 1));
    let message = check.to_string();
    assert!(message.contains("a.conf line 7: 'hz' has no effect: shown by INFO"), "{message}");
    assert!(
        message
            .ends_with("The server does not start with this configuration: 5 refused, 1 inert.\n"),
        "{message}"
    );
    let good = folder.file("good.conf", "hz 20\nrequirepass hunter2\nmasterauth hunter2\n");
    let Ok(Start::Check(check)) = started(&["--check-config", &good]) else { panic!("a check") };
    let message = check.to_string();
    assert!(
        message.ends_with("The server starts with this configuration: 0 refused, 2 inert.\n"),
        "{message}"
    );
    assert!(!message.contains("hunter2"), "{message}");
    let Ok(Start::Check(check)) = started(&["--check-config", "/nonexistent"]) else { panic!() };
    assert_eq!(check.errors.len(), 1);
}

#[test]
fn settings_without_effect_are_listed() {
    let folder = Folder::new("inert");
    let text = "aof-disable-auto-gc yes\nappendfilename appendonly.aof\ntimeout 7\nio-threads 4\n";
    let c = config(&[&folder.file("a.conf", text)]);
    assert_eq!(c.without_effect().collect::<Vec<_>>(), ["aof-disable-auto-gc", "io-threads"]);
    assert_eq!(config(&[]).without_effect().count(), 0);
}

/// For a refused setting the refusal is reported even if its value is malformed.
#[test]
fn a_refused_setting_is_reported_for_any_value() {
    for value in ["60", "yes", "x"] {
        let pairs: [(&[u8], &[u8]); 1] = [(b"tls-cluster", value.as_bytes())];
        let why = Config::default().set(&pairs, true).expect_err("refused");
        assert!(why.to_string().contains(&format!("'tls-cluster {value}' needs TLS")), "{why}");
    }
    assert!(Config::default().set(&[(b"tls-cluster", b"no")], true).is_ok());
}

/// As Redis 7.0: the first line replaces the default, further lines and options add to it.
#[test]
fn save_points_of_several_lines_add_up() {
    let folder = Folder::new("points");
    let cases: &[(&str, &[&str], &str)] = &[
        ("", &[], "3600 1 300 100 60 10000"),
        ("save 10 1\nsave 20 2\n", &[], "10 1 20 2"),
        ("save 10 1 20 2\n", &[], "10 1 20 2"),
        ("save 10 1\nsave \"\"\nsave 20 2\n", &[], "20 2"),
        ("save \"\"\n", &[], ""),
        ("save 10 1\n", &["--save", "5", "5", "--save", "6 6"], "10 1 5 5 6 6"),
        ("save \"\"\n", &["--save", "1", "1"], "1 1"),
        ("save 10 1\n", &["--save", ""], ""),
    ];
    for (text, options, expected) in cases {
        let file = folder.file("a.conf", text);
        let words: Vec<&str> = [&*file].into_iter().chain(options.iter().copied()).collect();
        assert_eq!(text_of(&config(&words), "save"), expected.as_bytes(), "{text:?} {options:?}");
    }
    let (c, _) = config(&[]).set(&[(b"save", b"7 7")], true).expect("valid");
    assert_eq!(text_of(&c, "save"), b"7 7", "CONFIG SET replaces them");
}

/// The configuration which Debian ships is accepted unchanged.
const DEBIAN_LIKE: &str = "bind 127.0.0.1 -::1\nprotected-mode yes\nport 6379\ntcp-backlog 511\n\
    daemonize yes\npidfile /run/redis/redis-server.pid\nlogfile /var/log/redis/redis-server.log\n\
    proc-title-template \"{title} {listen-addr} {server-mode}\"\nstop-writes-on-bgsave-error yes\n\
    dir /var/lib/redis\nappendonly no\nappendfilename \"appendonly.aof\"\nappendfsync everysec\n\
    auto-aof-rewrite-min-size 64mb\nnotify-keyspace-events \"\"\nlist-max-listpack-size -2\n\
    client-output-buffer-limit replica 256mb 64mb 60\noom-score-adj no\n\
    oom-score-adj-values 0 200 800\n";

#[test]
fn a_configuration_of_redis_is_accepted_unchanged() {
    let folder = Folder::new("debian");
    let c = config(&[&folder.file("redis.conf", DEBIAN_LIKE)]);
    assert!(c.daemonize && c.protected_mode);
    assert_eq!(c.dir.to_str(), Some("/var/lib/redis"));
}

#[test]
fn a_rewrite_changes_only_lines_which_differ() {
    let folder = Folder::new("rewrite");
    let text = "# my comment\nport 7000\n  HZ   50   \n# hz 20\nmaxmemory 100mb\nmaxmemory 200mb\n\
                \nsave \"\"\nclient-output-buffer-limit normal 1mb 2kb 3\nappendonly no\n\
                include /nowhere*\nlatency-tracking yes\n#end\n";
    let file = folder.file("a.conf", text);
    let c = config(&[&file, "--slowlog-max-len", "77"]);
    let added = format!("\n{MARK}\nslowlog-max-len 77\n");
    assert_eq!(String::from_utf8_lossy(&rewrite(&c, text.as_bytes())), format!("{text}{added}"));
    let pairs: &[(&[u8], &[u8])] = &[
        (b"hz", b"10"),
        (b"maxmemory", b"1536kb"),
        (b"requirepass", b"a \"b\x01"),
        (b"client-output-buffer-limit", b"pubsub 1gb 2gb 7"),
        (b"latency-tracking-info-percentiles", b""),
        (b"save", b"10 1 20 2"),
    ];
    let (c, changed) = c.set(pairs, true).expect("valid settings");
    assert_eq!(changed.len(), pairs.len());
    rewrite_file(&c);
    let expected = "# my comment\nport 7000\nhz 10\n# hz 20\nmaxmemory 1536kb\n\nsave 10 1\nsave 20 2\n\
                    client-output-buffer-limit normal 1mb 2kb 3\n\
                    client-output-buffer-limit slave 256mb 64mb 60\n\
                    client-output-buffer-limit pubsub 1gb 2gb 7\nappendonly no\n\
                    include /nowhere*\nlatency-tracking yes\n#end\n\
                    \n# Generated by CONFIG REWRITE\nlatency-tracking-info-percentiles \"\"\n\
                    requirepass \"a \\\"b\\x01\"\nslowlog-max-len 77\n";
    let written = std::fs::read_to_string(&file).expect("readable");
    assert_eq!(written, expected);
    let again = config(&[&file]);
    assert_eq!(again.get([&b"*"[..]].into_iter()), c.get([&b"*"[..]].into_iter()));
    rewrite_file(&again);
    assert_eq!(std::fs::read_to_string(&file).expect("readable"), expected, "nothing new to say");
    let left = std::fs::read_dir(&folder.0).expect("readable").count();
    assert_eq!(left, 1, "no temporary file stays");
}

/// Without its own line after the include, a setting changed by CONFIG SET would return to the
/// included file's value at the next start.
#[test]
fn a_rewrite_overrides_included_files() {
    let folder = Folder::new("included");
    let other =
        folder.file("other.conf", "timeout 7\nhz 20\nloglevel warning\nsave 10 1\nsave 20 2\n");
    let text = format!("timeout 3\ninclude {other}\nport 7000\n");
    let file = folder.file("a.conf", &text);
    let c = config(&[&file]);
    assert_eq!(c.timeout_s, 7);
    let pairs: &[(&[u8], &[u8])] = &[(b"timeout", b"3"), (b"hz", b"10"), (b"save", b"20 2")];
    let (c, _) = c.set(pairs, true).expect("valid settings");
    rewrite_file(&c);
    let written = std::fs::read_to_string(&file).expect("readable");
    assert!(written.starts_with(&text) && written.contains("\nhz 10\n"), "{written}");
    assert!(written.contains("\nsave \"\"\nsave 20 2\n"), "{written}");
    let again = config(&[&file]);
    assert_eq!(again.get([&b"*"[..]].into_iter()), c.get([&b"*"[..]].into_iter()));
    rewrite_file(&again);
    assert_eq!(std::fs::read_to_string(&file).expect("readable"), written, "nothing new to say");
}

/// Includes in included files, patterns over folders, files that are missing: every round asks for
/// all that is known to be needed.
#[test]
fn rewriting_asks_about_included_files() {
    let folder = Folder::new("asks");
    let sub = folder.0.join("sub");
    std::fs::create_dir_all(sub.join("b")).expect("a folder");
    std::fs::create_dir_all(sub.join("a")).expect("a folder");
    let at = |name: &str| folder.0.join(name).to_str().expect("a plain name").to_owned();
    folder.file("sub/a/x.conf", "hz 11\n");
    folder.file("sub/b/x.conf", &format!("hz 12\ninclude {}\n", at("last.conf")));
    folder.file("last.conf", "timeout 5\n");
    let text = format!("hz 50\ninclude {}\n", at("s?b/*/x.conf"));
    let file = folder.file("a.conf", &text);
    let c = config(&[&file]);
    assert_eq!(c.timeout_s, 5);
    let (c, _) = c.set(&[(b"timeout", b"6")], true).expect("valid settings");
    // The folder, its folders, their folders, which files stand there, these, the last one.
    assert_eq!(rewrite_file(&c), 5);
    let written = std::fs::read_to_string(&file).expect("readable");
    assert_eq!(written, format!("{}\n{MARK}\ntimeout 6\n", text.replace("hz 50", "hz 12")));
    assert_eq!(config(&[&file]).timeout_s, 6);
    // If one cannot be read, nothing can be said about what they set.
    std::fs::remove_file(at("last.conf")).expect("a temporary file");
    let (c, _) = c.set(&[(b"hz", b"13")], true).expect("valid settings");
    rewrite_file(&c);
    let written = std::fs::read_to_string(&file).expect("readable");
    assert!(written.ends_with(&format!("\n{MARK}\ntimeout 6\n")), "{written}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Any file results in a configuration or an error, never in a panic.
    #[test]
    fn any_file_is_parsed_without_a_panic(text in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse::file(&text);
        let words: Vec<Vec<u8>> = text.split(|b| *b == b' ').map(<[u8]>::to_vec).collect();
        let _ = parse::options(&words);
        let _ = rewrite(&Config::default(), &text);
    }

    #[test]
    fn quoted_text_round_trips(text in proptest::collection::vec(any::<u8>(), 0..60)) {
        let line = parse::quoted(&text);
        prop_assert_eq!(parse::split(line.as_bytes()), Some(vec![text]));
    }

    /// Any value which CONFIG SET accepts is read back from a rewritten file.
    #[test]
    fn rewritten_settings_round_trip(
        index in 0..config::table::SETTINGS.len(),
        text in "[a-z0-9 \"'\\\\%.#-]{0,12}",
    ) {
        let setting = &config::table::SETTINGS[index];
        let before = Config::default();
        let set = before.set(&[(setting.name.as_bytes(), text.as_bytes())], true);
        // The folder becomes absolute when it is parsed. Another test covers it.
        prop_assume!(setting.name != "dir");
        if let Ok((after, _)) = set {
            let mut read = Config::default();
            for d in parse::file(&rewrite(&after, b"")).expect("well formed") {
                let words: Vec<&[u8]> = d.words.iter().map(Vec::as_slice).collect();
                let (next, _) = read.set(&[(&d.name, &words.join(&b' '))], true).expect("a value");
                read = next;
            }
            prop_assert_eq!(read.text(index), after.text(index));
        }
    }
}

#[test]
fn limits_are_enforced_exactly() {
    let set = |name: &str, value: &str| {
        let set = Config::default().set(&[(name.as_bytes(), value.as_bytes())], true);
        set.map(|_| ()).map_err(|e| e.to_string())
    };
    let addresses = |n: usize| vec!["::1"; n].join(" ");
    assert_eq!(set("bind", &addresses(BIND_MAX)), Ok(()));
    assert!(set("bind", &addresses(BIND_MAX + 1)).is_err_and(|e| e.contains("Too many bind")));
    let host = |n: usize| "h".repeat(n);
    assert_eq!(set("cluster-announce-hostname", &host(HOSTNAME_MAX - 1)), Ok(()));
    assert!(set("cluster-announce-hostname", &host(HOSTNAME_MAX)).is_err());
    assert_eq!(config(&["--threads", &THREADS_MAX.to_string()]).threads, THREADS_MAX);
    assert!(error(&["--threads", &(THREADS_MAX + 1).to_string()]).contains("0 and 1024"));
    assert_eq!(config(&["--databases", "65535"]).command.databases, 65_535);
    assert!(error(&["--databases", "65536"]).contains("1 and 65535"));
    let folder = Folder::new("bounds");
    let text = |len: u64| format!("#{}", "x".repeat(len as usize - 1));
    config(&[&folder.file("a.conf", &text(FILE_BYTES_MAX))]);
    assert!(error(&[&folder.file("a.conf", &text(FILE_BYTES_MAX + 1))]).contains("larger than"));
    for n in 0..INCLUDE_FILES_MAX {
        folder.file(&format!("{n}.part"), "");
    }
    let pattern = format!("{}/*.part", folder.0.display());
    config(&["--include", &pattern]);
    folder.file("more.part", "");
    assert!(error(&["--include", &pattern]).contains("matches too many files"));
}

/// A chain of files which each include the next one twice would be read 2^n times.
#[test]
fn repeated_includes_are_bounded() {
    let folder = Folder::new("diamonds");
    let dir = folder.0.to_str().expect("plain").to_owned();
    let name = |level: usize| format!("{dir}/d{level}");
    for level in 0..INCLUDE_DEPTH_MAX {
        folder.file(&format!("d{level}"), &format!("include {}\n", name(level + 1)).repeat(2));
    }
    folder.file(&format!("d{INCLUDE_DEPTH_MAX}"), "hz 77\n");
    let message = started(&[&name(0)]).expect_err("too many");
    assert!(message.contains(&format!("more than {FILES_MAX} files")), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.contains("include each file once"), "{message}");
    // Within the limit a file may be included twice.
    assert_eq!(hz(&config(&[&name(6)])), 77);
    // The total size is limited, too.
    folder.file("large", &format!("#{}", "x".repeat(FILE_BYTES_MAX as usize - 1)));
    let times = |n: usize| format!("include {dir}/large\n").repeat(n);
    config(&[&folder.file("few", &times(3))]);
    assert!(error(&[&folder.file("many", &times(5))]).contains("bytes of configuration"));
}
