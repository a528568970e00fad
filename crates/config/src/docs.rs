//! Texts made from the table: `docs/config.md` and `--help`.

use super::table::{Change, Class, DIRECTIVES, SETTINGS, Setting};
use super::value::Kind;
use std::fmt::Write as _;

impl Kind {
    /// What a value of this kind looks like, to follow "takes".
    pub fn takes(self) -> String {
        match self {
            Kind::Bool => "yes or no".to_owned(),
            Kind::Int(min, i64::MAX) => format!("a whole number from {min} on"),
            Kind::Int(min, max) | Kind::Clamped(min, max) => {
                format!("a whole number from {min} to {max}")
            }
            Kind::Octal => "permissions in octal, like 700".to_owned(),
            Kind::Memory(min, _) if min > 0 => format!("bytes, like 100mb, from {min} on"),
            Kind::Memory(..) | Kind::Backlog => "bytes, like 100mb".to_owned(),
            Kind::Share => "bytes, like 100mb, or a percentage, like 5%".to_owned(),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
            Kind::Flags(words) => format!("some of {}", words.join(", ")),
            Kind::Text => "one word or quoted text".to_owned(),
            Kind::FileName => "the name of a file without a folder".to_owned(),
            Kind::Hostname => "a host name".to_owned(),
            Kind::Title => "a template with variables in curly brackets".to_owned(),
            Kind::Addresses => "addresses with blanks between them".to_owned(),
            Kind::Listeners => "ADDRESS:PORT NAME=VALUE ...".to_owned(),
            Kind::Peer => "a host and a port".to_owned(),
            Kind::Limits => "groups of class, hard limit, soft limit and seconds".to_owned(),
            Kind::Percentiles => "numbers from 0 to 100".to_owned(),
            Kind::SavePoints => "pairs of seconds and changes".to_owned(),
            Kind::Events => "letters of event classes".to_owned(),
            Kind::Scores => "three numbers from -2000 to 2000".to_owned(),
        }
    }
}

impl Setting {
    /// What a value of this setting looks like, to follow "takes".
    pub fn takes(&self) -> String {
        if self.secret {
            return "a password, in quotes if it has blanks".to_owned();
        }
        self.kind.takes()
    }
}

/// The order in which `--help` speaks of the settings one needs first.
const HELP: [(&str, &[&str]); 6] = [
    ("Network", &["bind", "port", "unixsocket", "unixsocketperm", "tcp-backlog", "timeout"]),
    ("Watching", &["admin-port", "admin-bind", "admin-token"]),
    ("Access", &["requirepass", "protected-mode", "enable-debug-command"]),
    ("Work", &["threads", "busy-poll-us", "io-backend", "databases"]),
    ("Limits", &["maxmemory", "maxclients", "client-output-buffer-limit", "proto-max-bulk-len"]),
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
         \n\
         \x20 FILE            read settings from a file in redis.conf syntax\n\
         \x20 --NAME VALUE    set one setting; options win over the file\n\
         \x20 -               as the last word: read settings from standard input as well\n\
         \x20 --check-config  as the first word: say which lines are refused or do nothing, and end\n\
         \x20 -v, --version   print the version and end\n\
         \x20 -h, --help      print this text and end\n\
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
            let (_, setting) = super::find(name.as_bytes()).expect("a test looks for all of them");
            let default = shown_default(setting);
            let _ = writeln!(out, "  --{name}{default}\n        {}", setting.about);
        }
    }
    out.push_str(
        "\nThe server keeps data in memory only: settings that would promise more (appendonly, save,\n\
         replicaof, tls-port and others) are refused. docs/config.md lists all.\n",
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
         Every setting of Redis 7.0, 7.2 and 8.0 and of Valkey 9.1 is known, so that a configuration\n\
         file, a tool or a framework made for them finds its names. They are of three classes:\n\
         \n\
         - **Wired**: it does here what it says.\n\
         - **Inert**: it is accepted and read back by CONFIG GET, and promises nothing. It tunes\n\
         \x20 something that works differently here, or that this version does not have. The log names\n\
         \x20 those that are set to something else than their default.\n\
         - **Refused**: without it data could be lost or security be weaker than somebody believes, so\n\
         \x20 anything but its off value stops the start and fails in CONFIG SET, with the reason.\n\
         \n\
         Settings come from a file (`sheafdb FILE`), from the command line (`--name value`) and from\n\
         `CONFIG SET`. `sheafdb --check-config FILE` lists the lines of a file that are refused or\n\
         inert and starts nothing; its status is 1 if there are refused ones. `CONFIG REWRITE` writes\n\
         settings back into the file and keeps its comments and order.\n\
         The file has the syntax of redis.conf. In the tables, *start* means that CONFIG SET cannot\n\
         change it, *protected* that it can if `enable-protected-configs` allows it, *secret* that its\n\
         value is never shown in the log, by MONITOR or by SLOWLOG. CONFIG SET takes several settings at\n\
         once and sets all of them or, if one fails, none.\n",
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
        "\n## In a file only\n\n`include FILE` reads another file at its place; wildcards match several\n\
         files, in order, and none is no error. Relative names start at the folder in which the server\n\
         was started.\n",
    );
    out
}

/// The text of `packaging/sheafdb.conf`: every setting that does something, at its default and commented out, so that
/// the file as it stands changes nothing.
pub fn sample_conf() -> String {
    let mut out = String::from(
        "# SheafDB: a sample configuration with every setting that does something, each at its default.\n\
         # Start with: sheafdb /path/to/this/file. Remove the '#' before a setting to change it; options of the command line\n\
         # win over the file, and CONFIG REWRITE writes what CONFIG SET changed back into it. The settings of Redis and Valkey\n\
         # that do nothing here or are refused stand in docs/config.md.\n\
         #\n\
         # Sizes: 1k = 1000, 1kb = 1024, likewise m, mb, g, gb. Text with blanks stands in quotes.\n\
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
    // What stands in several words is one argument only in quotes, unless the setting takes a list of words.
    let value = match s.kind {
        _ if s.default.is_empty() => "\"\"".to_owned(),
        Kind::Text | Kind::Title if s.default.contains(' ') => {
            format!("\"{}\"", s.default)
        }
        _ => s.default.to_owned(),
    };
    let _ = write!(out, "\n# {}\n# ({}{when}{also})\n# {} {value}\n", s.about, s.takes(), s.name);
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
