//! Texts made from the table: `docs/config.md` and `--help`.

use super::table::{Change, Class, DIRECTIVES, SETTINGS, Setting};
use super::value::Kind;
use std::fmt::Write as _;

impl Kind {
    /// What a value of this kind looks like, to follow "takes".
    pub fn takes(self) -> String {
        match self {
            Kind::Bool => "yes or no".to_owned(),
            Kind::Int(min, i64::MAX) => format!("a whole number, {min} or more"),
            Kind::Int(min, max) | Kind::Clamped(min, max) => {
                format!("a whole number from {min} to {max}")
            }
            Kind::Octal => "permissions in octal, like 700".to_owned(),
            Kind::Memory(min, _) if min > 0 => format!("bytes, like 100mb, {min} or more"),
            Kind::Memory(..) | Kind::Backlog => "bytes, like 100mb".to_owned(),
            Kind::Share | Kind::MachineShare => {
                "bytes, like 100mb, or a percentage, like 5%".to_owned()
            }
            Kind::Retention => {
                "0, a size, like 1gb, or a time, like 7d, 12h, 30min or 90s".to_owned()
            }
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
            Kind::Flags(words) => format!("any of {}", words.join(", ")),
            Kind::Text => "one word or quoted text".to_owned(),
            Kind::FileName => "the name of a file without a folder".to_owned(),
            Kind::NameOf(what) => format!("a {what} without a folder before it"),
            Kind::Hostname => "a host name".to_owned(),
            Kind::Title => "a template with variables in curly brackets".to_owned(),
            Kind::Addresses => "addresses, separated by spaces".to_owned(),
            Kind::Listeners => "ADDRESS:PORT NAME=VALUE ...".to_owned(),
            Kind::DbLimits => "groups of database, bytes or a percentage, and policy".to_owned(),
            Kind::Peer => "a host and a port".to_owned(),
            Kind::Limits => "groups of class, hard limit, soft limit and seconds".to_owned(),
            Kind::Percentiles => "numbers from 0 to 100".to_owned(),
            Kind::SavePoints => "pairs of seconds and changes".to_owned(),
            Kind::Schedule => "an interval, like 6h, or five fields as in cron".to_owned(),
            Kind::Events => "letters of event classes".to_owned(),
            Kind::Scores => "three numbers from -2000 to 2000".to_owned(),
        }
    }
}

impl Setting {
    /// What a value of this setting looks like, to follow "takes".
    pub fn takes(&self) -> String {
        if self.secret {
            return "a password, in quotes if it contains spaces".to_owned();
        }
        self.kind.takes()
    }
}

/// The settings that `--help` shows first, by heading and in order.
const HELP: [(&str, &[&str]); 8] = [
    ("Network", &["bind", "port", "unixsocket", "unixsocketperm", "tcp-backlog", "timeout"]),
    ("Monitoring", &["admin-port", "admin-bind", "admin-token"]),
    ("Access", &["requirepass", "protected-mode", "enable-debug-command"]),
    ("Runtime", &["threads", "busy-poll-us", "io-backend", "databases"]),
    ("Limits", &["maxmemory", "maxclients", "client-output-buffer-limit", "proto-max-bulk-len"]),
    ("Snapshots", &["save", "dbfilename", "rdbcompression", "stop-writes-on-bgsave-error"]),
    ("Backups", &["backup-schedule", "backup-dir", "backup-keep"]),
    (
        "Process",
        &["daemonize", "pidfile", "dir", "logfile", "loglevel", "log-format", "supervised"],
    ),
];

/// What `sheafdb --help` prints.
pub fn help() -> String {
    let mut out = String::from(
        "SheafDB: a server for Redis clients, multi-threaded, in memory.\n\
         \n\
         Usage: sheafdb [--check-config] [FILE] [--NAME VALUE...]... [-]\n\
         \x20      sheafdb check-rdb [--skip-unknown] FILE\n\
         \x20      sheafdb check-aof [--fix] MANIFEST|FILE\n\
         \x20      sheafdb backup DIR|- [OPTION]...\n\
         \x20      sheafdb verify-backup DIR|FILE.tar|-\n\
         \x20      sheafdb restore --until TIME|NUMBER DIR -o NEWDIR\n\
         \x20      sheafdb undo --keys PATTERN --to TIME|NUMBER [OPTION]...\n\
         \n\
         \x20 FILE            read settings from a file in redis.conf syntax\n\
         \x20 --NAME VALUE    set one setting; options win over the file\n\
         \x20 -               as the last word: read settings from standard input as well\n\
         \x20 --check-config  as the first word: list lines which are refused or have no effect\n\
         \x20 check-rdb       as the first word: check an RDB file, and count what is in it\n\
         \x20 check-aof       as the first word: check an append-only file, and repair its end\n\
         \x20 backup          as the first word: back up a running server; see backup --help\n\
         \x20 verify-backup   as the first word: check such a backup\n\
         \x20 restore         as the first word: the data of an append-only file as it was at a point\n\
         \x20 undo            as the first word: bring keys of a running server back to a point\n\
         \x20 -v, --version   print the version\n\
         \x20 -h, --help      print this text\n\
         \n\
         Examples:\n\
         \x20 sheafdb\n\
         \x20 sheafdb --port 7000 --maxmemory 2gb --threads 4\n\
         \x20 sheafdb /etc/redis/redis.conf --port 7000 --loglevel verbose\n\
         \x20 echo 'requirepass \"a secret\"' | sheafdb -\n\
         \x20 redis-cli -p 7000 CONFIG GET 'max*'\n",
    );
    for (title, names) in HELP {
        let _ = write!(out, "\n{title}:\n");
        for name in names {
            let (_, setting) =
                super::find(name.as_bytes()).expect("a test finds every name of `HELP`");
            let default = shown_default(setting);
            let about = folded(setting.about, "        ");
            let _ = writeln!(out, "  --{name}{default}\n{about}");
        }
    }
    out.push_str(
        "\nThe server keeps data in memory, saves it as snapshots and, with --appendonly yes, writes every\n\
         change to a file. It refuses settings which promise more (replicaof, tls-port and others).\n\
         docs/config.md lists all.\n",
    );
    out
}

/// The default, if there is one that fits on the line of its name.
fn shown_default(setting: &Setting) -> String {
    const SHOWN_MAX: usize = 30;
    if setting.default.is_empty() || setting.default.len() > SHOWN_MAX {
        return String::new();
    }
    format!(" (default {})", setting.default)
}

/// The text of `docs/config.md`.
pub fn config_md() -> String {
    let mut out = String::from(
        "# Settings\n\
         \n\
         <!-- Made from the table in crates/config/src/table.rs; a test compares. -->\n\
         \n\
         Settings come from a file (`sheafdb FILE`), from the command line (`--name value`) and from\n\
         CONFIG SET. Options of the command line win over the file. The file has the syntax of\n\
         redis.conf. All settings of Redis 7.0, 7.2 and 8.0 and of Valkey 9.1 are known, so existing\n\
         configuration files and tools work. There are three classes:\n\
         \n\
         | class | meaning |\n\
         |---|---|\n\
         | wired | The setting does what it says. |\n\
         | refused | Without the feature, data could be lost, or security would be weaker than the \
         setting promises. Any value but the accepted ones stops the start and fails in CONFIG SET, \
         with the reason. |\n\
         | inert | The setting is accepted, and CONFIG GET reads it back, but it has no effect: it \
         tunes something which works differently here or which this version does not have. The log \
         names inert settings which are not at their default. |\n\
         \n\
         `sheafdb --check-config FILE` lists the refused and inert lines of a file and starts nothing.\n\
         Its exit status is 1 if a line is refused.\n\
         \n\
         CONFIG SET takes several settings at once; it sets all of them or, if one fails, none. CONFIG\n\
         REWRITE writes changed settings back into the file and keeps its comments and order.\n\
         \n\
         In the tables, the column *change* says when a setting can be changed: *start* only at the\n\
         start, *protected* by CONFIG SET if `enable-protected-configs` allows it, otherwise at any\n\
         time. The value of a *secret* setting is never shown in the log, by MONITOR or by SLOWLOG.\n",
    );
    let wired = |s: &&Setting| s.class == Class::Wired;
    let inert = |s: &&Setting| s.class == Class::Inert;
    let refused = |s: &&Setting| matches!(s.class, Class::Refused { .. });
    out.push_str("\n## Wired\n\n| setting | takes | default | change | what it does |\n");
    out.push_str("|---|---|---|---|---|\n");
    for s in SETTINGS.iter().filter(wired) {
        let (names, takes) = (names(s), cell(&s.takes()));
        let (default, change) = (default_cell(s), change(s));
        let _ = writeln!(out, "| {names} | {takes} | {default} | {change} | {} |", cell(s.about));
    }
    out.push_str(
        "\n## Refused\n\n| setting | accepted | what it would be | needs |\n|---|---|---|---|\n",
    );
    for s in SETTINGS.iter().filter(refused) {
        let Class::Refused { off, needs } = s.class else { continue };
        let off: Vec<String> = off.iter().map(|o| code(o)).collect();
        let (names, about) = (names(s), cell(s.about));
        let _ = writeln!(out, "| {names} | {} | {about} | {needs} |", off.join(", "));
    }
    for d in DIRECTIVES.iter().filter(|d| !d.needs.is_empty()) {
        let _ = writeln!(out, "| `{}` | none | {} | {} |", d.name, d.about, d.needs);
    }
    out.push_str(
        "\n## Inert\n\n| setting | default | change | why it does nothing |\n|---|---|---|---|\n",
    );
    for s in SETTINGS.iter().filter(inert) {
        let (names, default) = (names(s), default_cell(s));
        let _ = writeln!(out, "| {names} | {default} | {} | {} |", change(s), cell(s.about));
    }
    out.push_str(
        "\n## In a file only\n\n`include FILE` reads another file at this point. Wildcards may match\n\
         several files, which are read in order, or none. Relative names start at the folder in which\n\
         the server was started.\n",
    );
    out
}

/// The text of `packaging/sheafdb.conf`: every wired setting at its default, commented out, so that
/// the file has no effect until a line is uncommented.
pub fn sample_conf() -> String {
    let mut out = String::from(
        "# SheafDB: a sample configuration with every setting that has an effect, each at its default.\n\
         # Start with: sheafdb /path/to/this/file. To change a setting, remove the '#' before it.\n\
         # Options of the command line win over the file. CONFIG REWRITE writes what CONFIG SET has\n\
         # changed back into it. docs/config.md lists the settings of Redis and Valkey which are\n\
         # refused or have no effect.\n\
         #\n\
         # Sizes: 1k = 1000, 1kb = 1024, likewise m, mb, g, gb. Put text with blanks in quotes.\n\
         # Other files: include /path/to/other.conf\n",
    );
    for (title, names) in HELP {
        heading(&mut out, title);
        for setting in names.iter().filter_map(|name| super::find(name.as_bytes())) {
            sample_line(&mut out, setting.1);
        }
    }
    heading(&mut out, "Everything else, by name");
    let shown = |s: &&Setting| HELP.iter().any(|(_, names)| names.contains(&s.name));
    let wired = |s: &&Setting| s.class == Class::Wired;
    for setting in SETTINGS.iter().filter(wired).filter(|s| !shown(s)) {
        sample_line(&mut out, setting);
    }
    out
}

fn heading(out: &mut String, title: &str) {
    let _ = write!(out, "\n{:#<100}\n", format!("#### {title} "));
}

fn sample_line(out: &mut String, s: &Setting) {
    let also: Vec<String> = s.aliases.iter().map(|name| format!("`{name}`")).collect();
    let also = if also.is_empty() { String::new() } else { format!("; also {}", also.join(", ")) };
    let when = match s.change {
        Change::Anytime => "",
        Change::Start => "; at start only",
        Change::Protected => "; protected",
    };
    // A value of several words needs quotes to be one argument, unless the setting takes a list of
    // words.
    let value = match s.kind {
        _ if s.default.is_empty() => "\"\"".to_owned(),
        Kind::Text | Kind::Title if s.default.contains(' ') => {
            format!("\"{}\"", s.default)
        }
        _ => s.default.to_owned(),
    };
    let about = folded(s.about, "# ");
    let _ = write!(out, "\n{about}\n# ({}{when}{also})\n# {} {value}\n", s.takes(), s.name);
}

/// Wraps a text into lines of at most 80 columns; each starts with `lead`.
fn folded(text: &str, lead: &str) -> String {
    const COLUMNS: usize = 80;
    let mut out = String::new();
    let mut column = usize::MAX;
    for word in text.split(' ') {
        if column.saturating_add(word.len() + 1) > COLUMNS {
            let end = if out.is_empty() { "" } else { "\n" };
            let _ = write!(out, "{end}{lead}{word}");
            column = lead.len() + word.len();
        } else {
            let _ = write!(out, " {word}");
            column += word.len() + 1;
        }
    }
    out
}

fn names(s: &Setting) -> String {
    s.names().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

fn code(text: &str) -> String {
    if text.is_empty() { "`\"\"`".to_owned() } else { format!("`{text}`") }
}

fn default_cell(s: &Setting) -> String {
    code(s.default)
}

fn change(s: &Setting) -> &'static str {
    match (s.change, s.secret) {
        (Change::Anytime, false) => "",
        (Change::Anytime, true) => "secret",
        (Change::Start, false) => "start",
        (Change::Start, true) => "start, secret",
        (Change::Protected, false) => "protected",
        (Change::Protected, true) => "protected, secret",
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
