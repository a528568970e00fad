//! Arguments of `sheafdb restore`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::listing::Place;
use super::point::Point;

/// Which append-only file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// A data directory, or the folder of the file.
    pub dir: PathBuf,
    /// `appenddirname`, if it was given.
    pub folder: Option<OsString>,
    /// `appendfilename`, if it was given.
    pub name: Option<Vec<u8>>,
}

impl Source {
    /// Where its files are.
    ///
    /// # Errors
    /// There are none.
    pub fn place(&self) -> Result<Place, String> {
        Place::find(&self.dir, self.folder.as_deref(), self.name.as_deref())
    }
}

/// What the arguments ask for.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    Help,
    Run { source: Source, point: Point, output: PathBuf },
}

/// Reads the arguments.
pub fn parse(arguments: &[Vec<u8>]) -> Result<Parsed, String> {
    let (mut dir, mut point, mut output) = (None, None, None);
    let (mut folder, mut name) = (None, None);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if matches!(argument.as_slice(), b"-h" | b"--help") {
            return Ok(Parsed::Help);
        }
        if !argument.starts_with(b"-") {
            if dir.replace(path(argument)).is_some() {
                return Err("there is more than one DIR".into());
            }
            continue;
        }
        let option = String::from_utf8_lossy(argument);
        let mut value = || rest.next().ok_or_else(|| format!("{option} needs a value"));
        let is_new = match option.as_ref() {
            "--until" => point.replace(Point::parse(value()?)?).is_none(),
            "-o" | "--output" => output.replace(path(value()?)).is_none(),
            "--appenddirname" => folder.replace(plain(&option, value()?)?).is_none(),
            "--appendfilename" => name.replace(plain(&option, value()?)?).is_none(),
            _ => return Err(format!("there is no option {option}")),
        };
        if !is_new {
            return Err(format!("{option} is given twice"));
        }
    }
    let dir = dir.ok_or("DIR is missing")?;
    let point = point.ok_or("--until is missing")?;
    let output = output.ok_or("-o NEWDIR is missing")?;
    let folder = folder.map(|folder| OsStr::from_bytes(&folder).to_owned());
    Ok(Parsed::Run { source: Source { dir, folder, name }, point, output })
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// A name without a folder.
pub fn plain(option: &str, name: &[u8]) -> Result<Vec<u8>, String> {
    let is_path = name.iter().any(|byte| matches!(byte, b'/' | b'\\' | 0));
    if is_path || matches!(name, b"" | b"." | b"..") {
        return Err(format!("{option} takes a name without a folder"));
    }
    Ok(name.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Parsed, String> {
        let words: Vec<Vec<u8>> = text.split_whitespace().map(|w| w.as_bytes().to_vec()).collect();
        parse(&words)
    }

    #[test]
    fn the_arguments_come_in_any_order() {
        let Ok(Parsed::Run { source, point, output }) = parsed("-o new --until 7 old") else {
            panic!("it is read")
        };
        assert_eq!((source.dir, point, output), ("old".into(), Point::Number(7), "new".into()));
        let more = "old --until @7 --output new --appenddirname d --appendfilename f.aof";
        let Ok(Parsed::Run { source, point, .. }) = parsed(more) else { panic!("it is read") };
        assert_eq!(point, Point::Time(7000));
        assert_eq!((source.folder, source.name), (Some("d".into()), Some(b"f.aof".to_vec())));
        assert_eq!(parsed("--help --force"), Ok(Parsed::Help));
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for text in [
            "",
            "old",
            "old -o new",
            "old --until 7",
            "--until 7 -o new",
            "old --until 7 -o",
            "old --until soon -o new",
            "old other --until 7 -o new",
            "old --until 7 --until 8 -o new",
            "old --until 7 -o new --force",
            "old --until 7 -o new --appenddirname ../x",
            "old --until 7 -o new --appendfilename a/b",
        ] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
