//! Arguments of `sheafdb backup`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Failure;
use crate::connection::{Login, LoginOptions, path};

/// What to back up, and where to.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// The folder, or `-`.
    pub target: PathBuf,
    /// The server.
    pub login: Login,
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
    let (mut target, mut login) = (None, LoginOptions::default());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if matches!(argument.as_slice(), b"-h" | b"--help") {
            return Ok(Parsed::Help);
        }
        let name = String::from_utf8_lossy(argument);
        if login.take(&name, &mut rest)? {
            continue;
        }
        if argument.starts_with(b"--") {
            return Err(format!("there is no option {name}"));
        }
        if target.replace(path(argument)).is_some() {
            return Err("there is more than one target".into());
        }
    }
    let login = login.login(variable)?;
    let target = target.ok_or("the folder is missing")?;
    Ok(Parsed::Run(Options { target, login }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::Address;

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
        let address = |text| options(text, &[]).login.address;
        assert_eq!(address("to"), Address::Tcp("127.0.0.1:6379".into()));
        assert_eq!(address("--port 7000 to --host db"), Address::Tcp("db:7000".into()));
        assert_eq!(address("to --host ::1"), Address::Tcp("[::1]:6379".into()));
        assert_eq!(address("to --socket /run/s --port 1"), Address::Unix("/run/s".into()));
        assert!(options("-", &[]).is_stream() && !options("to", &[]).is_stream());
    }

    #[test]
    fn an_option_wins_over_the_environment() {
        let password = |text, variables: &[_]| {
            let found = options(text, variables).login.password;
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
