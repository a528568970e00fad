//! From the command line to a [`Config`]: the configuration file, its includes, standard input and
//! options, in this order, the last one winning. Every error is one line with the place, the
//! problem and the cure. All errors are reported, not only the first.

use super::field::path;
use super::parse::{self, Directive, Malformed, printable};
use super::source::{Disk, Source};
use super::table::{Class, DIRECTIVES, SETTINGS, Setting};
use super::{Config, find, needs_text, refusal, refusal_text};
use base::glob::{Case, matches};
use std::fmt;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum depth of nested includes.
pub const INCLUDE_DEPTH_MAX: usize = 16;
/// Maximum size of one configuration file, in bytes.
pub const FILE_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of files that one `include` may match.
pub const INCLUDE_FILES_MAX: usize = 4096;
/// Maximum number of files read in total. A file that is included twice counts twice, with
/// everything that it includes.
pub const FILES_MAX: usize = 8192;
/// Maximum number of bytes read in total.
pub const ALL_BYTES_MAX: u64 = 64 << 20;

/// What the command line asks for.
#[derive(Debug)]
pub enum Start {
    /// Run a server.
    Run(Box<Config>),
    /// Check a configuration and report.
    Check(Check),
    /// Print the version.
    Version,
    /// Print the help.
    Help,
}

/// The report of `--check-config`.
#[derive(Debug)]
pub struct Check {
    /// Errors that would keep the server from starting.
    pub errors: Vec<StartError>,
    /// Lines that set a setting without effect.
    pub inert: Vec<Inert>,
}

/// A line that sets a setting without effect in this version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inert {
    /// Where: a file and line, or the command line.
    pub place: String,
    /// The setting.
    pub name: &'static str,
    /// Why it has no effect.
    pub about: &'static str,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for error in &self.errors {
            writeln!(f, "refused: {error}")?;
        }
        for Inert { place, name, about } in &self.inert {
            writeln!(f, "inert: {place}: '{name}' has no effect: {about}")?;
        }
        let starts = if self.errors.is_empty() { "starts" } else { "does not start" };
        let (refused, inert) = (self.errors.len(), self.inert.len());
        writeln!(
            f,
            "The server {starts} with this configuration: {refused} refused, {inert} inert."
        )
    }
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

/// A configuration that is being read, and the errors found so far.
struct Reading<'a> {
    source: &'a mut dyn Source,
    config: Config,
    errors: Vec<StartError>,
    inert: Vec<Inert>,
    /// Files read so far, and their bytes.
    files: usize,
    bytes: u64,
    /// [`FILES_MAX`] or [`ALL_BYTES_MAX`] is exceeded: nothing more is read.
    exceeds_limits: bool,
}

impl<'a> Reading<'a> {
    /// Nothing is read yet.
    fn new(source: &'a mut dyn Source) -> Self {
        Self {
            source,
            config: Config::default(),
            errors: Vec::new(),
            inert: Vec::new(),
            files: 0,
            bytes: 0,
            exceeds_limits: false,
        }
    }

    /// Counts a file that was read; false if it exceeds a limit.
    fn count(&mut self, bytes: usize) -> bool {
        self.files += 1;
        self.bytes += bytes as u64;
        self.exceeds_limits |= self.files > FILES_MAX || self.bytes > ALL_BYTES_MAX;
        !self.exceeds_limits
    }
}

/// Reads the arguments that follow the program's name. The list of errors is never empty.
pub fn start(args: &[Vec<u8>], stdin: &mut dyn Read) -> Result<Start, Vec<StartError>> {
    let mut disk = Disk;
    match args.first().map(Vec::as_slice) {
        Some(b"-v" | b"--version") => return Ok(Start::Version),
        Some(b"-h" | b"--help") => return Ok(Start::Help),
        Some(b"--check-config") => {
            let mut reading = Reading::new(&mut disk);
            read(&mut reading, &args[1..], stdin);
            let Reading { errors, inert, .. } = reading;
            return Ok(Start::Check(Check { errors, inert }));
        }
        _ => {}
    }
    let mut reading = Reading::new(&mut disk);
    read(&mut reading, args, stdin);
    let Reading { config, errors, .. } = reading;
    if errors.is_empty() { Ok(Start::Run(Box::new(config))) } else { Err(errors) }
}

/// Reads a file, standard input and options.
fn read(reading: &mut Reading<'_>, args: &[Vec<u8>], stdin: &mut dyn Read) {
    if let Err(e) = read_all(reading, args, stdin) {
        reading.errors.push(e);
    } else if let Err(e) = complete(&mut reading.config) {
        reading.errors.push(e);
    }
}

/// As [`read`]. Returns an error only where reading cannot continue; other errors are collected.
fn read_all(
    reading: &mut Reading<'_>,
    args: &[Vec<u8>],
    stdin: &mut dyn Read,
) -> Result<(), StartError> {
    let mut rest = args;
    if let Some((first, others)) = args.split_first()
        && !first.starts_with(b"-")
    {
        rest = others;
        let file = std::path::absolute(path(first)).unwrap_or_else(|_| path(first));
        load_file(reading, &path(first), 0)?;
        reading.config.file = Some(file);
    }
    if let Some((last, others)) = rest.split_last()
        && last == b"-"
    {
        rest = others;
        let mut text = Vec::new();
        stdin.take(FILE_BYTES_MAX + 1).read_to_end(&mut text).map_err(|e| StartError {
            place: "standard input".to_owned(),
            problem: format!("cannot be read: {}", io_text(&e)),
            cure: "remove '-', or pipe a configuration into the server".to_owned(),
        })?;
        load_text(reading, "standard input", &text, 0)?;
    }
    let options = parse::options(rest).map_err(|m| malformed("command line", &m))?;
    apply_all(reading, "command line", &options, 0);
    Ok(())
}

/// Checks and completes the settings that depend on each other.
fn complete(config: &mut Config) -> Result<(), StartError> {
    let dir = std::path::absolute(&config.dir).map_err(|e| StartError {
        place: "dir".to_owned(),
        problem: format!("the working folder cannot be determined: {}", io_text(&e)),
        cure: "start the server in a folder that exists".to_owned(),
    })?;
    // `components` drops "." and a trailing slash; ".." stays, because the kernel resolves it
    // through links.
    config.set_dir(dir.components().collect());
    config.check_db_limits().map_err(|problem| StartError {
        place: "db-limit".to_owned(),
        problem,
        cure: "change it, 'databases' or 'maxmemory-policy'".to_owned(),
    })?;
    if (config.port == 0 || config.bind.is_empty()) && config.unixsocket.is_none() {
        return Err(StartError {
            place: "port".to_owned(),
            problem: "the server has no address to listen on".to_owned(),
            cure: "set 'port' and 'bind', or 'unixsocket'".to_owned(),
        });
    }
    Ok(())
}

/// Reads one file. `depth` counts the includes above it.
fn load_file(reading: &mut Reading<'_>, file: &Path, depth: usize) -> Result<(), StartError> {
    let place = printable(file.as_os_str().as_bytes());
    let problem = |problem: String| StartError {
        place: place.clone(),
        problem,
        cure: "give the path of a readable configuration file".to_owned(),
    };
    let text = reading.source.contents(file);
    let text = text.map_err(|e| problem(format!("cannot be read: {}", io_text(&e))))?;
    load_text(reading, &place, &text, depth)
}

/// The configuration that a file of this text gives; `None` unless it includes other files and all
/// of them can be read.
pub(crate) fn reread(text: &[u8], source: &mut dyn Source) -> Option<Config> {
    let includes = parse::file(text).ok()?.iter().any(|d| d.name == b"include");
    let mut reading = Reading::new(source);
    let is_read = includes && load_text(&mut reading, "rewritten", text, 0).is_ok();
    (is_read && reading.errors.is_empty()).then_some(reading.config)
}

/// Reads a configuration's text. Returns an error only where reading cannot continue.
fn load_text(
    reading: &mut Reading<'_>,
    place: &str,
    text: &[u8],
    depth: usize,
) -> Result<(), StartError> {
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(StartError {
            place: place.to_owned(),
            problem: format!("larger than {FILE_BYTES_MAX} bytes"),
            cure: "check that this is a configuration file".to_owned(),
        });
    }
    if !reading.count(text.len()) {
        let what = format!("more than {FILES_MAX} files or {ALL_BYTES_MAX} bytes of configuration");
        return Err(StartError {
            place: place.to_owned(),
            problem: format!("{what}, where a file counts each time it is included"),
            cure: "include each file once".to_owned(),
        });
    }
    let directives = parse::file(text).map_err(|m| malformed(place, &m))?;
    apply_all(reading, place, &directives, depth);
    Ok(())
}

/// Maximum number of errors that are reported.
const ERRORS_MAX: usize = 100;

/// Applies directives; one that fails does not stop the others.
fn apply_all(reading: &mut Reading<'_>, place: &str, directives: &[Directive], depth: usize) {
    for directive in directives {
        if reading.exceeds_limits || reading.errors.len() >= ERRORS_MAX {
            return; // files that include each other could produce any number of errors
        }
        if let Err(e) = apply(reading, place, directive, depth) {
            reading.errors.push(e);
        }
    }
}

/// Applies one directive.
fn apply(
    reading: &mut Reading<'_>,
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
        return include(reading, place, directive, depth);
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
        if matches!(setting.class, Class::Refused { .. }) {
            return refused(setting, &directive.words.join(&b' '), &error);
        }
        let words = setting.shown(&directive.words.join(&b' '));
        let cure = format!("'{}' takes {}", setting.name, setting.takes());
        let why = why.trim_end_matches('.');
        error(format!("'{} {words}': {why}", setting.name), cure)
    })?;
    if refusal(setting, &value).is_some() {
        return Err(refused(setting, &value.show(), &error));
    }
    reading.config.store_line(index, &value);
    if setting.class == Class::Inert {
        let place = place_of(place, directive.line);
        reading.inert.push(Inert { place, name: setting.name, about: setting.about });
    }
    Ok(())
}

/// The error of a refused setting, whether or not its value is valid.
fn refused(
    setting: &Setting,
    text: &[u8],
    error: &dyn Fn(String, String) -> StartError,
) -> StartError {
    let off = if setting.default.is_empty() { "\"\"" } else { setting.default };
    let cure = format!("set '{} {off}' or remove it", setting.name);
    error(refusal_text(setting, text).unwrap_or_default(), cure)
}

/// Reads the files that an `include` names.
fn include(
    reading: &mut Reading<'_>,
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
        return Err(error("'include' needs exactly one value", "name one file or pattern"));
    };
    if depth >= INCLUDE_DEPTH_MAX {
        return Err(error(
            "includes are nested too deeply",
            "check whether a file includes itself, or remove an include",
        ));
    }
    let files = expand(pattern, reading.source).ok_or_else(|| {
        error("'include' matches too many files", "use a pattern which matches fewer files")
    })?;
    for file in files {
        load_file(reading, &file, depth + 1)?;
    }
    Ok(())
}

fn has_wildcard(part: &[u8]) -> bool {
    part.iter().any(|b| matches!(b, b'*' | b'?' | b'['))
}

/// The files that a pattern matches, in order; a name without wildcards is that file. `None` if
/// there are too many.
fn expand(pattern: &[u8], source: &mut dyn Source) -> Option<Vec<PathBuf>> {
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
            for name in source.names(listed) {
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
    found.retain(|file| source.exists(file));
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
        _ => "docs/config.md lists all settings".to_owned(),
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
