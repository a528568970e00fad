//! Amounts of memory that may be given as a percentage: of what the process may use, or of
//! `maxmemory`.

use super::value::Value;
use base::sync::OnceLock;
use std::fs;
use std::path::{Path, PathBuf};

/// A limit of memory in bytes; 0 is none. A percentage is one of [`allowed_bytes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Bytes; 0 is no limit.
    pub bytes: u64,
}

impl MemoryLimit {
    pub(crate) fn new(value: &Value) -> Self {
        Self { bytes: MemoryShare::new(value).of(allowed_bytes) }
    }
}

/// Bytes, or a percentage of something that is known later; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryShare {
    /// So many bytes.
    Bytes(u64),
    /// So many hundredths.
    Percent(u64),
}

impl Default for MemoryShare {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

impl MemoryShare {
    pub(crate) fn new(value: &Value) -> Self {
        match value {
            Value::Percent(percent) => Self::Percent(*percent),
            value => Self::Bytes(value.number().try_into().unwrap_or(0)),
        }
    }

    /// The bytes, if the whole has so many.
    pub fn of(self, whole: impl FnOnce() -> u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => {
                (u128::from(whole()) * u128::from(percent) / 100).try_into().unwrap_or(u64::MAX)
            }
        }
    }
}

/// Memory that the process may use: what its control group allows, or else what the machine has.
/// Read once.
pub fn allowed_bytes() -> u64 {
    static ALLOWED: OnceLock<u64> = OnceLock::new();
    *ALLOWED.get_or_init(|| {
        let machine = machine_bytes(&fs::read_to_string("/proc/meminfo").unwrap_or_default());
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        group_bytes(&groups, Path::new("/sys/fs/cgroup")).unwrap_or(u64::MAX).min(machine)
    })
}

/// `MemTotal` of `/proc/meminfo` (man 5 proc_meminfo); all that a number can say if it is not
/// there, so that a percentage is no limit rather than one of nothing.
fn machine_bytes(meminfo: &str) -> u64 {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib.saturating_mul(1024))
}

/// The lowest limit of the control groups of `/proc/self/cgroup` and of those above them (man 7
/// cgroups): `memory.max` of version 2, `memory.limit_in_bytes` of version 1.
fn group_bytes(groups: &str, root: &Path) -> Option<u64> {
    groups.lines().filter_map(|line| group_limit(line, root)).min()
}

/// The limit of one line, `0::/path` or `NUMBER:memory:/path`.
fn group_limit(line: &str, root: &Path) -> Option<u64> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let (root, file): (PathBuf, _) = match controllers {
        "" => (root.to_owned(), "memory.max"),
        names if names.split(',').any(|name| name == "memory") => {
            (root.join("memory"), "memory.limit_in_bytes")
        }
        _ => return None,
    };
    let limit = |folder: &Path| -> Option<u64> {
        fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()
    };
    // In a container the path is that of the host, whose folders are not there: the root is its
    // own group then.
    let group = root.join(path.trim_start_matches('/'));
    group.ancestors().take_while(|folder| folder.starts_with(&root)).filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_one_of_what_the_group_allows() {
        let root = std::env::temp_dir().join(format!("sheafdb-groups-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("in a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        };
        write("a/memory.max", "3000000\n");
        write("a/b/memory.max", "max\n");
        write("memory/c/memory.limit_in_bytes", "2000000\n");
        let limit = |groups: &str| group_bytes(groups, &root);
        assert_eq!(limit("0::/a/b\n"), Some(3_000_000), "the one above it has a limit");
        assert_eq!(limit("0::/d\n"), None);
        assert_eq!(limit("4:cpu,memory:/c\n0::/a\n"), Some(2_000_000));
        assert_eq!(limit("4:cpu:/c\n"), None);
        assert_eq!(limit("\n:\nx::\n"), None);
        write("memory.max", "1000000\n");
        assert_eq!(limit("0::/host/only\n"), Some(1_000_000), "the root of a container");
        fs::remove_dir_all(&root).expect("the folder");
    }

    #[test]
    fn amounts_do_not_overflow() {
        assert_eq!(machine_bytes("MemTotal:       16 kB\nMemFree: 1 kB\n"), 16_384);
        assert_eq!(machine_bytes("MemTotal: many\n"), u64::MAX);
        assert_eq!(MemoryShare::Percent(100).of(|| u64::MAX), u64::MAX);
        assert_eq!(MemoryShare::Percent(50).of(|| 1001), 500);
        assert_eq!(MemoryShare::Bytes(7).of(|| unreachable!("not asked")), 7);
        assert!(allowed_bytes() > 0);
    }
}
