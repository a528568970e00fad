//! From the command line to a [`Config`]: the configuration file, its includes, standard input
//! and options, in this order, the last one winning. Every error is one line that names the
//! place, what stands there and the cure.

use super::field::path;
use super::parse::{self, Directive, Malformed, printable};
use super::table::{DIRECTIVES, SETTINGS};
use super::{Config, find, needs_text, refusal};
use base::glob::{Case, matches};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Files that may include one another at most.
pub const INCLUDE_DEPTH_MAX: usize = 16;
/// Bytes of one configuration file at most.
pub const FILE_BYTES_MAX: u64 = 16 << 20;
/// Files that one `include` may match.
pub const INCLUDE_FILES_MAX: usize = 4096;

/// What the command line asks for.
#[derive(Debug)]
pub enum Start {
    /// To run a server.
    Run(Box<Config>),
    /// To print the version.
    Version,
    /// To print the help.
    Help,
}

/// Why the server does not start: one line with place, problem and cure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartError {
    /// Where: a file and line, or the command line.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
    /// What to do about it.
    pub cure: String,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.problem, self.cure)
    }
}

impl std::error::Error for StartError {}

/// The text of an I/O error without its number.
pub fn io_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Reads the arguments that follow the program's name.
pub fn start(args: &[Vec<u8>], stdin: &mut dyn Read) -> Result<Start, StartError> {
    match args.first().map(Vec::as_slice) {
        Some(b"-v" | b"--version") => return Ok(Start::Version),
        Some(b"-h" | b"--help") => return Ok(Start::Help),
        _ => {}
    }
    let mut rest = args;
    let mut config = Config::default();
    if let Some((first, others)) = args.split_first()
        && !first.starts_with(b"-")
    {
        rest = others;
        let file = std::path::absolute(path(first)).unwrap_or_else(|_| path(first));
        load_file(&mut config, &path(first), 0)?;
        config.file = Some(file);
    }
    if let Some((last, others)) = rest.split_last()
        && last == b"-"
    {
        rest = others;
        let mut text = Vec::new();
        stdin.take(FILE_BYTES_MAX + 1).read_to_end(&mut text).map_err(|e| StartError {
            place: "standard input".to_owned(),
            problem: format!("cannot be read: {}", io_text(&e)),
            cure: "leave out '-' or redirect a configuration into the server".to_owned(),
        })?;
        load_text(&mut config, "standard input", &text, 0)?;
    }
    let options = parse::options(rest).map_err(|m| malformed("command line", &m))?;
    for option in &options {
        apply(&mut config, "command line", option, 0)?;
    }
    finish(config).map(|config| Start::Run(Box::new(config)))
}

/// What can only be said about all settings together.
fn finish(mut config: Config) -> Result<Config, StartError> {
    let dir = std::path::absolute(&config.dir).map_err(|e| StartError {
        place: "dir".to_owned(),
        problem: format!("the working folder is unknown: {}", io_text(&e)),
        cure: "start the server in a folder that exists".to_owned(),
    })?;
    // "." and a trailing slash have done their work; ".." stays for the kernel to follow.
    config.set_dir(dir.components().collect());
    if let Some(problem) = config.conflict() {
        return Err(StartError {
            place: "maxmemory-policy".to_owned(),
            problem,
            cure: "set 'maxmemory-policy noeviction' or remove maxmemory".to_owned(),
        });
    }
    if (config.port == 0 || config.bind.is_empty()) && config.unixsocket.is_none() {
        return Err(StartError {
            place: "port".to_owned(),
            problem: "the server would not listen anywhere".to_owned(),
            cure: "give a port and an address, or a unixsocket".to_owned(),
        });
    }
    Ok(config)
}

/// Reads one file into `config`. `depth` counts the includes above it.
fn load_file(config: &mut Config, file: &Path, depth: usize) -> Result<(), StartError> {
    let place = printable(file.as_os_str().as_bytes());
    let problem = |problem: String| StartError {
        place: place.clone(),
        problem,
        cure: "give the path of a readable configuration file".to_owned(),
    };
    let mut text = Vec::new();
    let opened = File::open(file).and_then(|f| f.take(FILE_BYTES_MAX + 1).read_to_end(&mut text));
    opened.map_err(|e| problem(format!("cannot be read: {}", io_text(&e))))?;
    load_text(config, &place, &text, depth)
}

/// What a file of this text would set, if it includes others and all of them can be read.
pub fn reread(text: &[u8]) -> Option<Config> {
    let includes = parse::file(text).ok()?.iter().any(|d| d.name == b"include");
    let mut config = Config::default();
    (includes && load_text(&mut config, "rewritten", text, 0).is_ok()).then_some(config)
}

/// Reads a configuration's text into `config`.
fn load_text(
    config: &mut Config,
    place: &str,
    text: &[u8],
    depth: usize,
) -> Result<(), StartError> {
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(StartError {
            place: place.to_owned(),
            problem: format!("more than {FILE_BYTES_MAX} bytes"),
            cure: "give a configuration file".to_owned(),
        });
    }
    for directive in &parse::file(text).map_err(|m| malformed(place, &m))? {
        apply(config, place, directive, depth)?;
    }
    Ok(())
}

/// Puts one directive into effect.
fn apply(
    config: &mut Config,
    place: &str,
    directive: &Directive,
    depth: usize,
) -> Result<(), StartError> {
    let error = |problem: String, cure: String| StartError {
        place: place_of(place, directive.line),
        problem,
        cure,
    };
    if directive.name == b"include" {
        return include(config, place, directive, depth);
    }
    let Some((index, setting)) = find(&directive.name) else {
        let name = printable(&directive.name);
        if let Some(known) = DIRECTIVES.iter().find(|d| d.name == name) {
            let words = directive.words.join(&b' ');
            let shown: &[u8] = if known.secret { b"..." } else { &words };
            let problem = needs_text(&name, shown, known.needs);
            return Err(error(problem, "remove the line".to_owned()));
        }
        return Err(error(format!("unknown setting '{name}'"), suggestion(&name)));
    };
    let value = setting.kind.parse_words(&directive.words).map_err(|why| {
        let words = setting.shown(&directive.words.join(&b' '));
        let cure = format!("'{}' takes {}", setting.name, setting.takes());
        let why = why.trim_end_matches('.');
        error(format!("'{} {words}': {why}", setting.name), cure)
    })?;
    if let Some(why) = refusal(setting, &value) {
        let name = setting.name;
        let off = if setting.default.is_empty() { "\"\"" } else { setting.default };
        return Err(error(why, format!("set '{name} {off}' or remove it")));
    }
    config.store(index, &value);
    config.named[index] = true;
    Ok(())
}

/// Reads the files that an `include` names.
fn include(
    config: &mut Config,
    place: &str,
    directive: &Directive,
    depth: usize,
) -> Result<(), StartError> {
    let error = |problem: &str, cure: &str| StartError {
        place: place_of(place, directive.line),
        problem: problem.to_owned(),
        cure: cure.to_owned(),
    };
    let [pattern] = directive.words.as_slice() else {
        return Err(error("'include' without a file", "name one file or pattern"));
    };
    if depth >= INCLUDE_DEPTH_MAX {
        return Err(error("files include one another too deeply", "remove an include"));
    }
    let files = expand(pattern)
        .ok_or_else(|| error("'include' matches too many files", "name fewer files"))?;
    for file in files {
        load_file(config, &file, depth + 1)?;
    }
    Ok(())
}

fn has_wildcard(part: &[u8]) -> bool {
    part.iter().any(|b| matches!(b, b'*' | b'?' | b'['))
}

/// The files that a pattern matches, in order; a name without wildcards is that file. `None` if
/// there are too many.
fn expand(pattern: &[u8]) -> Option<Vec<PathBuf>> {
    if !has_wildcard(pattern) {
        return Some(vec![path(pattern)]);
    }
    let mut found = vec![PathBuf::from(if pattern.starts_with(b"/") { "/" } else { "" })];
    for part in pattern.split(|b| *b == b'/').filter(|p| !p.is_empty()) {
        let mut next = Vec::new();
        for folder in &found {
            if !has_wildcard(part) {
                next.push(folder.join(path(part)));
                continue;
            }
            let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            let Ok(entries) = std::fs::read_dir(listed) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let hidden = name.as_bytes().starts_with(b".") && !part.starts_with(b".");
                if !hidden && matches(part, name.as_bytes(), Case::Sensitive) {
                    next.push(folder.join(&name));
                }
            }
        }
        if next.len() > INCLUDE_FILES_MAX {
            return None;
        }
        found = next;
    }
    found.retain(|file| file.exists());
    found.sort();
    Some(found)
}

fn place_of(place: &str, line: usize) -> String {
    if line == 0 { place.to_owned() } else { format!("{place} line {line}") }
}

fn malformed(place: &str, m: &Malformed) -> StartError {
    StartError {
        place: place_of(place, m.line),
        problem: format!("'{}': {}", m.text, m.problem),
        cure: m.cure.to_owned(),
    }
}

/// The cure for a misspelt name: the nearest known one.
fn suggestion(name: &str) -> String {
    const DISTANCE_MAX: usize = 3;
    let known = SETTINGS.iter().flat_map(super::Setting::names);
    let nearest = known.map(|k| (distance(name, k), k)).min();
    match nearest {
        Some((d, known)) if d <= DISTANCE_MAX && d < name.len() => {
            format!("did you mean '{known}'?")
        }
        _ => "see --help and docs/config.md for the known names".to_owned(),
    }
}

/// Edit distance: letters to insert, remove or replace.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
