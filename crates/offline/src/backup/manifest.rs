//! The manifest of a backup: what its snapshot must be.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Failure;
use super::copy::Copied;

/// Its file.
pub const NAME: &str = "manifest.json";
/// The format that is written. Another one is refused.
const FORMAT: u32 = 1;
/// Most bytes of a manifest: far more than one of all databases has.
pub const BYTES_MAX: u64 = 16 << 20;

/// What stands in the file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of the server, such as `0.1.0`.
    pub server_version: String,
    /// The identity of the server's run, as INFO says it.
    pub run_id: String,
    /// The moment which the snapshot shows, seconds since 1970, UTC.
    pub time: i64,
    /// The file with the snapshot, beside the manifest.
    pub file: String,
    /// Its bytes.
    pub bytes: u64,
    /// Their SHA-256, in hexadecimal digits.
    pub sha256: String,
    /// Keys by database; databases without keys are left out.
    pub keys: BTreeMap<u32, u64>,
}

impl Manifest {
    /// Of a copied snapshot with this name, of a server of this version and run.
    pub fn new((version, run_id): (&str, &str), file: &str, copied: Copied) -> Self {
        Self {
            format: FORMAT,
            server_version: version.to_owned(),
            run_id: run_id.to_owned(),
            time: copied.created_s.unwrap_or_default(),
            file: file.to_owned(),
            bytes: copied.bytes,
            sha256: copied.sha256,
            keys: copied.keys,
        }
    }

    /// The bytes of the file.
    pub fn text(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).expect("numbers and text are JSON");
        text.push(b'\n');
        text
    }

    /// Reads the file. Its snapshot has a plain name: it lies in the same folder.
    ///
    /// # Errors
    /// A text for the user.
    pub fn read(text: &[u8]) -> Result<Self, Failure> {
        let manifest: Self =
            serde_json::from_slice(text).map_err(|error| format!("{NAME} is wrong: {error}"))?;
        if manifest.format != FORMAT {
            return Err(format!("{NAME} has format {}, not {FORMAT}", manifest.format));
        }
        if !is_plain(&manifest.file) {
            return Err(format!("{NAME} names no file beside it, but '{}'", manifest.file));
        }
        Ok(manifest)
    }

    /// Compares the snapshot with what it must be.
    ///
    /// # Errors
    /// The first difference, as a text for the user.
    pub fn compare(&self, copied: &Copied) -> Result<(), Failure> {
        let differs = |what: &str, is: &dyn std::fmt::Debug, must: &dyn std::fmt::Debug| {
            Err(format!("{}: {what}: {is:?}, and the manifest says {must:?}", self.file))
        };
        if copied.bytes != self.bytes {
            return differs("bytes", &copied.bytes, &self.bytes);
        }
        if !copied.sha256.eq_ignore_ascii_case(&self.sha256) {
            return differs("SHA-256", &copied.sha256, &self.sha256);
        }
        if copied.keys != self.keys {
            return differs("keys by database", &copied.keys, &self.keys);
        }
        Ok(())
    }
}

/// Whether a name is that of a file in the folder, and not of the manifest.
pub fn is_plain(name: &str) -> bool {
    !matches!(name, "" | "." | ".." | NAME) && !name.contains(['/', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(file: &str) -> Manifest {
        Manifest {
            format: FORMAT,
            server_version: "0.1.0".into(),
            run_id: "ab".into(),
            time: 7,
            file: file.into(),
            bytes: 3,
            sha256: "ff".into(),
            keys: BTreeMap::from([(0, 2), (11, 1)]),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let text = manifest("dump.rdb").text();
        assert_eq!(Manifest::read(&text), Ok(manifest("dump.rdb")));
        assert!(Manifest::read(&text[..text.len() - 3]).is_err());
        assert!(Manifest::read(&Manifest { format: 2, ..manifest("a") }.text()).is_err());
    }

    #[test]
    fn the_snapshot_lies_beside_the_manifest() {
        for name in ["", "..", "../dump.rdb", "/etc/passwd", NAME] {
            assert!(Manifest::read(&manifest(name).text()).is_err(), "{name}");
        }
    }

    #[test]
    fn each_difference_is_found() {
        let copied = || Copied {
            bytes: 3,
            sha256: "FF".into(),
            keys: BTreeMap::from([(0, 2), (11, 1)]),
            created_s: None,
        };
        let compare = |copied| manifest("a").compare(&copied);
        assert_eq!(compare(copied()), Ok(()));
        assert!(compare(Copied { bytes: 4, ..copied() }).is_err());
        assert!(compare(Copied { sha256: "fe".into(), ..copied() }).is_err());
        assert!(compare(Copied { keys: BTreeMap::new(), ..copied() }).is_err());
    }
}
