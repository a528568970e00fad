//! A backup as a tar archive: the snapshot, then the manifest.

use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;

use tar::{EntryType, Header};

use super::Failure;
use super::copy::pass;
use super::manifest::{self, Manifest};
use super::request::Snapshot;

/// Bytes of a block of an archive.
const BLOCK: usize = 512;

/// Characters of an error about an archive, at most.
const MESSAGE_MAX: usize = 200;

/// Writes the archive. After a failure it has neither a manifest nor an end.
///
/// The headers are the crate's. Its builder is not used: it ends an archive when it is dropped,
/// also after a failure.
pub fn write(mut snapshot: Snapshot, out: &mut impl Write) -> Result<(), Failure> {
    let mode = snapshot.permissions.mode() & 0o777;
    let unwritten = |error: io::Error| format!("standard output cannot be written: {error}");
    let time = snapshot.modified_s;
    let head = header(&snapshot.server.file_name, snapshot.length, mode, time)?;
    out.write_all(&head).map_err(unwritten)?;
    let copied = pass(&mut snapshot.file, snapshot.length, |block| out.write_all(block))?;
    out.write_all(padding(copied.bytes)).map_err(unwritten)?;
    let text = Manifest::new(snapshot.server.about(), &snapshot.server.file_name, copied).text();
    let mut last = header(manifest::NAME, text.len() as u64, mode, time)?;
    last.extend_from_slice(&text);
    last.extend_from_slice(padding(text.len() as u64));
    last.extend_from_slice(&[0; 2 * BLOCK]);
    out.write_all(&last).and_then(|()| out.flush()).map_err(unwritten)
}

fn header(name: &str, bytes: u64, mode: u32, time: u64) -> Result<Vec<u8>, Failure> {
    let mut header = Header::new_ustar();
    header.set_path(name).map_err(|error| format!("{name}: {error}"))?;
    header.set_size(bytes);
    header.set_mode(mode);
    header.set_mtime(time);
    header.set_uid(0);
    header.set_gid(0);
    header.set_entry_type(EntryType::Regular);
    header.set_cksum();
    Ok(header.as_bytes().to_vec())
}

/// The zeros which fill the last block of a file.
fn padding(bytes: u64) -> &'static [u8] {
    const ZEROS: &[u8] = &[0; BLOCK];
    &ZEROS[..(BLOCK - (bytes % BLOCK as u64) as usize) % BLOCK]
}

/// Checks an archive of exactly these two files, in either order.
pub fn verify(source: &mut impl Read) -> Result<Manifest, Failure> {
    let wrong = |error: io::Error| {
        // (The text may hold bytes of the file.)
        let text: String = error.to_string().escape_debug().take(MESSAGE_MAX).collect();
        format!("the archive cannot be read: {text}")
    };
    let (mut snapshot, mut manifest) = (None, None);
    let mut archive = tar::Archive::new(source);
    for entry in archive.entries().map_err(wrong)? {
        let mut entry = entry.map_err(wrong)?;
        let (kind, size) = (entry.header().entry_type(), entry.size());
        let path = entry.path().map_err(wrong)?.into_owned();
        let name = path.strip_prefix("./").unwrap_or(&path).to_string_lossy().into_owned();
        match (kind, name.as_str()) {
            (EntryType::Directory, _) => {}
            (EntryType::Regular, manifest::NAME) if manifest.is_none() => {
                let mut text = Vec::new();
                entry.by_ref().take(manifest::BYTES_MAX).read_to_end(&mut text).map_err(wrong)?;
                manifest = Some(Manifest::read(&text)?);
            }
            (EntryType::Regular, _) if snapshot.is_none() => {
                let copied = pass(&mut entry, size, |_| Ok(()))?;
                snapshot = Some((name, copied));
            }
            _ => return Err(format!("the archive is no backup: it holds '{name}' too")),
        }
    }
    let manifest = manifest.ok_or("the archive has no manifest: it is not whole")?;
    match snapshot {
        Some((name, copied)) if name == manifest.file => {
            manifest.compare(&copied)?;
            Ok(manifest)
        }
        _ => Err(format!("the archive has no file '{}'", manifest.file)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eleven octal digits end at 8 GiB.
    #[test]
    fn a_header_holds_any_size() {
        for bytes in [0, 1, (8 << 30) - 1, 8 << 30, 5 << 40] {
            let written = header("dump.rdb", bytes, 0o600, 7).expect("a plain name");
            let read = Header::from_byte_slice(&written);
            assert_eq!(read.entry_size().expect("a number"), bytes);
        }
    }

    #[test]
    fn padding_fills_the_last_block() {
        for (bytes, expected) in [(0, 0), (1, 511), (511, 1), (512, 0), (513, 511)] {
            assert_eq!(padding(bytes).len(), expected, "{bytes}");
        }
    }
}
