//! The limit on open files of this process and its children.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit on open files towards `wanted` as far as permitted; returns the new limit.
pub fn raise_open_files(wanted: u64) -> u64 {
    let now = getrlimit(Resource::Nofile);
    let hard = now.maximum.unwrap_or(u64::MAX);
    let try_set = |soft: u64, hard: u64| {
        let limit = Rlimit { current: Some(soft), maximum: Some(hard) };
        setrlimit(Resource::Nofile, limit).is_ok()
    };
    if now.current.is_none_or(|soft| soft >= wanted) {
        return now.current.unwrap_or(u64::MAX);
    }
    // Root may raise the hard limit too.
    if hard < wanted && try_set(wanted, wanted) {
        return wanted;
    }
    let soft = wanted.min(hard);
    if try_set(soft, hard) { soft } else { now.current.unwrap_or(u64::MAX) }
}
