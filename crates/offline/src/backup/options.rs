//! Arguments of `sheafdb backup`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use client::Address;

use super::Failure;

/// Variables of the environment with the password; the first that is there counts. The second is
/// that of `redis-cli`.
const PASSWORD_VARIABLES: [&str; 2] = ["SHEAFDB_PASSWORD", "REDISCLI_AUTH"];

/// What to back up, and where to.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// The folder, or `-`.
    pub target: PathBuf,
    /// The server.
    pub address: Address,
    /// The user to log in as.
    pub user: Option<Vec<u8>>,
    /// The password.
    pub password: Option<Vec<u8>>,
}

impl Options {
    /// Whether the backup goes to standard output.
    pub fn is_stream(&self) -> bool {
        self.target == Path::new("-")
    }
}

/// What the arguments ask for.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The help.
    Help,
    /// A backup.
    Run(Options),
}

/// Reads the arguments and the environment.
pub fn parse(arguments: &[Vec<u8>]) -> Result<Parsed, Failure> {
    parse_with(arguments, |name| std::env::var_os(name))
}

fn parse_with(
    arguments: &[Vec<u8>],
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Parsed, Failure> {
    let (mut target, mut socket, mut user, mut password) = (None, None, None, None);
    let (mut host, mut port) = ("127.0.0.1".to_owned(), 6379);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if matches!(argument.as_slice(), b"-h" | b"--help") {
            return Ok(Parsed::Help);
        }
        if !argument.starts_with(b"--") {
            if target.replace(path(argument)).is_some() {
                return Err("there is more than one target".into());
            }
            continue;
        }
        let name = String::from_utf8_lossy(argument);
        let mut value = || rest.next().ok_or_else(|| format!("{name} needs a value"));
        match name.as_ref() {
            "--host" => host = String::from_utf8_lossy(value()?).into_owned(),
            "--port" => port = port_of(value()?)?,
            "--socket" => socket = Some(path(value()?)),
            "--user" => user = Some(value()?.clone()),
            "--password" => password = Some(value()?.clone()),
            _ => return Err(format!("there is no option {name}")),
        }
    }
    let from_variable = || {
        let mut found = PASSWORD_VARIABLES.iter().filter_map(|name| variable(name));
        found.next().map(OsString::into_vec)
    };
    let password = password.or_else(from_variable).filter(|password| !password.is_empty());
    if user.is_some() && password.is_none() {
        return Err("--user needs a password".into());
    }
    let target = target.ok_or("the folder is missing")?;
    let address = socket.map_or_else(|| tcp(&host, port), Address::Unix);
    Ok(Parsed::Run(Options { target, address, user, password }))
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

fn port_of(text: &[u8]) -> Result<u16, Failure> {
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| format!("'{}' is no port", text.escape_ascii()))
}

fn tcp(host: &str, port: u16) -> Address {
    let is_v6 = host.contains(':') && !host.starts_with('[');
    Address::Tcp(if is_v6 { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, variables: &[(&str, &str)]) -> Result<Parsed, Failure> {
        let words: Vec<Vec<u8>> = text.split_whitespace().map(|w| w.as_bytes().to_vec()).collect();
        let of = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| v.into());
        parse_with(&words, of)
    }

    fn options(text: &str, variables: &[(&str, &str)]) -> Options {
        match parse(text, variables) {
            Ok(Parsed::Run(options)) => options,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_server_is_named_by_options() {
        let address = |text| options(text, &[]).address;
        assert_eq!(address("to"), Address::Tcp("127.0.0.1:6379".into()));
        assert_eq!(address("--port 7000 to --host db"), Address::Tcp("db:7000".into()));
        assert_eq!(address("to --host ::1"), Address::Tcp("[::1]:6379".into()));
        assert_eq!(address("to --socket /run/s --port 1"), Address::Unix("/run/s".into()));
        assert!(options("-", &[]).is_stream() && !options("to", &[]).is_stream());
    }

    #[test]
    fn an_option_wins_over_the_environment() {
        let password = |text, variables: &[_]| {
            let found = options(text, variables).password;
            found.map(|password| String::from_utf8(password).expect("text"))
        };
        let both = [("REDISCLI_AUTH", "second"), ("SHEAFDB_PASSWORD", "first")];
        assert_eq!(password("to", &[]), None);
        assert_eq!(password("to", &both[..1]).as_deref(), Some("second"));
        assert_eq!(password("to", &both).as_deref(), Some("first"));
        assert_eq!(password("to --password third --user u", &both).as_deref(), Some("third"));
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let wrong = ["", "a b", "to --port", "to --port x", "to --port 70000", "to --force"];
        for text in wrong.into_iter().chain(["to --user u"]) {
            assert!(parse(text, &[]).is_err(), "{text}");
        }
        assert_eq!(parse("to --help --force", &[]), Ok(Parsed::Help));
    }
}
