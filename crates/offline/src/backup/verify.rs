//! `sheafdb verify-backup`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::copy::pass;
use super::manifest::{self, Manifest};
use super::{Failure, about, archive, say, summary};

/// Checks a folder, an archive, or an archive on standard input, and prints what it holds.
pub fn verify(target: &Path) -> Result<(), Failure> {
    let manifest = if target == Path::new("-") {
        archive::verify(&mut io::stdin().lock())?
    } else if target.is_dir() {
        folder(target)?
    } else {
        let mut file = File::open(target).map_err(|error| about(target, &error))?;
        archive::verify(&mut file)?
    };
    say(&summary(&manifest, target));
    Ok(())
}

fn folder(path: &Path) -> Result<Manifest, Failure> {
    let place = path.join(manifest::NAME);
    let mut text = Vec::new();
    let (_, file) = open(&place)?;
    let read = file.take(manifest::BYTES_MAX).read_to_end(&mut text);
    let _ = read.map_err(|error| about(&place, &error))?;
    let manifest = Manifest::read(&text)?;
    let place = path.join(&manifest.file);
    let (length, mut file) = open(&place)?;
    let copied = pass(&mut file, length, |_| Ok(()))?;
    manifest.compare(&copied)?;
    Ok(manifest)
}

/// Opens a file, and says how long it is. A pipe is refused: it would be waited for.
fn open(path: &Path) -> Result<(u64, File), Failure> {
    let is_file = fs::metadata(path).map_err(|error| about(path, &error))?.is_file();
    if !is_file {
        return Err(format!("{} is no file", path.display()));
    }
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
    opened.map_err(|error| about(path, &error))
}
