//! Arguments of `sheafdb undo`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use base::num::parse_u64;

use crate::connection::{Failure, Login, LoginOptions, path};
use crate::restore::plain;
use crate::restore::point::Point;

/// What to bring back, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// A glob pattern of keys.
    pub keys: Vec<u8>,
    /// As they were there.
    pub point: Point,
    /// The database of the keys.
    pub db: u32,
    /// Nothing is changed.
    pub is_dry: bool,
    /// The server.
    pub login: Login,
    /// Where the append-only file is; otherwise the server is asked.
    pub dir: Option<PathBuf>,
    /// `appenddirname`, if it is given.
    pub folder: Option<OsString>,
    /// `appendfilename`, if it is given.
    pub name: Option<Vec<u8>>,
    /// Where the temporary folder is made.
    pub temporary: PathBuf,
}

/// What the arguments ask for.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    Help,
    Run(Box<Options>),
}

/// Reads the arguments and the environment.
pub fn parse(arguments: &[Vec<u8>]) -> Result<Parsed, Failure> {
    parse_with(arguments, |name| std::env::var_os(name))
}

fn parse_with(
    arguments: &[Vec<u8>],
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Parsed, Failure> {
    let (mut keys, mut point, mut db, mut is_dry) = (None, None, None, false);
    let (mut dir, mut folder, mut name, mut temporary) = (None, None, None, None);
    let mut login = LoginOptions::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let option = String::from_utf8_lossy(argument);
        if matches!(option.as_ref(), "-h" | "--help") {
            return Ok(Parsed::Help);
        }
        if option == "--dry-run" {
            is_dry = true;
            continue;
        }
        if login.take(&option, &mut rest)? {
            continue;
        }
        let mut value = || rest.next().ok_or_else(|| format!("{option} needs a value"));
        let is_new = match option.as_ref() {
            "--keys" => keys.replace(value()?.clone()).is_none(),
            "--to" => point.replace(Point::parse(value()?)?).is_none(),
            "-n" | "--db" => db.replace(number(value()?)?).is_none(),
            "--dir" => dir.replace(path(value()?)).is_none(),
            "--appenddirname" => folder.replace(plain(&option, value()?)?).is_none(),
            "--appendfilename" => name.replace(plain(&option, value()?)?).is_none(),
            "--temp" => temporary.replace(path(value()?)).is_none(),
            _ => return Err(format!("there is no option {option}")),
        };
        if !is_new {
            return Err(format!("{option} is given twice"));
        }
    }
    Ok(Parsed::Run(Box::new(Options {
        keys: keys.ok_or("--keys is missing")?,
        point: point.ok_or("--to is missing")?,
        db: db.unwrap_or(0),
        is_dry,
        login: login.login(variable)?,
        dir,
        folder: folder.map(|folder| OsStr::from_bytes(&folder).to_owned()),
        name,
        temporary: temporary.unwrap_or_else(std::env::temp_dir),
    })))
}

fn number(text: &[u8]) -> Result<u32, Failure> {
    let number = parse_u64(text).and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| format!("'{}' is no database", text.escape_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::Address;

    fn parsed(text: &str) -> Result<Parsed, Failure> {
        let words: Vec<Vec<u8>> = text.split_whitespace().map(|w| w.as_bytes().to_vec()).collect();
        parse_with(&words, |_| None)
    }

    #[test]
    fn the_usual_values_are_filled_in() {
        let Ok(Parsed::Run(options)) = parsed("--keys a* --to 7") else { panic!("it is read") };
        assert_eq!((options.keys.as_slice(), options.point), (&b"a*"[..], Point::Number(7)));
        assert_eq!((options.db, options.is_dry, options.dir), (0, false, None));
        assert_eq!(options.login.address, Address::Tcp("127.0.0.1:6379".into()));
        let more =
            "--to @7 --dry-run --db 3 --keys x -s /run/s --dir /d --appendfilename a --temp /t";
        let Ok(Parsed::Run(options)) = parsed(more) else { panic!("it is read") };
        assert_eq!((options.point, options.db, options.is_dry), (Point::Time(7000), 3, true));
        assert_eq!(options.login.address, Address::Unix("/run/s".into()));
        assert_eq!((options.dir, options.name), (Some("/d".into()), Some(b"a".to_vec())));
        assert_eq!(options.temporary, PathBuf::from("/t"));
        assert_eq!(parsed("--keys --help --help"), Ok(Parsed::Help));
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for text in [
            "",
            "--keys a",
            "--to 7",
            "--keys a --to soon",
            "--keys a --to 7 --db x",
            "--keys a --to 7 --db 4294967296",
            "--keys a --keys b --to 7",
            "--keys a --to 7 extra",
            "--keys a --to 7 --user u",
            "--keys a --to 7 --appenddirname ..",
        ] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
