//! The process around the workers: threads, limits, memory, processor time.

use base::sync::thread::{Builder, JoinHandle};
use base::sync::{OnceLock, is_simulated};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::{Path, PathBuf};

/// Descriptors needed besides clients: listeners, event loops, log, a few spare.
const RESERVED_FILES: u64 = 32;

/// Descriptors for connections beyond `maxclients`, if the limit may be raised that far. A ring
/// accepts connections ahead of the server: without this reserve a flood of connections briefly
/// takes every descriptor, and opening a file fails meanwhile.
const FILES_AHEAD: u64 = 1024;

/// Starts a worker's thread.
pub fn spawn_worker(
    id: usize,
    run: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    Builder::new().name(format!("worker-{id}")).spawn(run)
}

/// Starts a thread that serves no connections.
pub fn spawn_helper(
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(run)
}

/// How much the nice value of a thread that gives way is above that of the workers. By the weights
/// of Linux it gets a third of a processor for which a worker competes.
const GIVES_WAY: i32 = 3;

/// The calling thread gives way to others from now on, where processors are short. Without others
/// it is as fast as before. A system that refuses this leaves the thread as it is.
pub fn give_way() {
    // The simulator chooses who runs, and its threads are reused.
    if !is_simulated() {
        // On Linux a nice value belongs to a thread: sched(7).
        let _ = rustix::process::nice(GIVES_WAY);
    }
}

/// Processors this process may use: affinity, further bounded by a cgroup's quota.
pub fn cpus_allowed() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Raises the limit of open files for `maxclients`; returns how many clients fit.
pub fn raise_file_limit(maxclients: u32) -> u32 {
    let wanted = u64::from(maxclients) + RESERVED_FILES;
    let now = getrlimit(Resource::Nofile);
    let current = now.current.unwrap_or(u64::MAX);
    let with_room = wanted + FILES_AHEAD;
    if current >= with_room {
        return maxclients;
    }
    let ceiling = now.maximum.unwrap_or(u64::MAX);
    // Only root may raise the hard limit; other users get at most that.
    let attempts =
        [(with_room, ceiling.max(with_room)), (with_room.min(ceiling).max(current), ceiling)];
    let mut got = current;
    for (current, maximum) in attempts {
        if setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: Some(maximum) })
            .is_ok()
        {
            got = current;
            break;
        }
    }
    u32::try_from(got.saturating_sub(RESERVED_FILES)).unwrap_or(u32::MAX).clamp(1, maxclients)
}

/// A seed for pseudo-random choices, and an independent secret.
pub(crate) fn draw_seeds() -> std::io::Result<(u64, u128)> {
    let (mut seed, mut secret) = ([0; 8], [0; 16]);
    // The system never returns fewer bytes than requested, up to 256 bytes.
    rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty())?;
    rustix::rand::getrandom(&mut secret, rustix::rand::GetRandomFlags::empty())?;
    Ok((u64::from_ne_bytes(seed), u128::from_ne_bytes(secret)))
}

/// Number of this process.
pub fn process_id() -> u32 {
    if is_simulated() { 1 } else { std::process::id() }
}

/// Resident memory of this process, bytes.
pub fn resident_bytes() -> u64 {
    if is_simulated() {
        return 0;
    }
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split(' ').nth(1).and_then(|p| p.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// Memory of the machine, bytes.
pub fn physical_memory_bytes() -> u64 {
    if is_simulated() {
        return 16 << 30;
    }
    let info = rustix::system::sysinfo();
    info.totalram as u64 * u64::from(info.mem_unit.max(1))
}

/// Memory that the process may use: what its control group allows, or else what the machine has.
/// Read once.
pub fn allowed_memory_bytes() -> u64 {
    if is_simulated() {
        return physical_memory_bytes();
    }
    static ALLOWED: OnceLock<u64> = OnceLock::new();
    *ALLOWED.get_or_init(|| {
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        group_bytes(&groups, Path::new("/sys/fs/cgroup"))
            .unwrap_or(u64::MAX)
            .min(physical_memory_bytes())
    })
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
        std::fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()
    };
    // In a container the path is that of the host, whose folders are not there: the root is its
    // own group then.
    let group = root.join(path.trim_start_matches('/'));
    group.ancestors().take_while(|folder| folder.starts_with(&root)).filter_map(limit).min()
}

/// Processor time used so far, seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessTimes {
    /// In user code, all threads.
    pub user_s: f64,
    /// In the kernel, all threads.
    pub system_s: f64,
    /// In user code, the main thread, in steps of the kernel's tick.
    pub main_user_s: f64,
    /// In the kernel, the main thread, in the same steps.
    pub main_system_s: f64,
}

/// Processor time used so far.
#[allow(unsafe_code)]
pub fn process_times() -> ProcessTimes {
    if is_simulated() {
        return ProcessTimes::default();
    }
    // SAFETY: `rusage` is plain numbers, for which zero is valid; getrusage fills the struct it is
    // given.
    let all = unsafe {
        let mut u: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut u);
        u
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    let (main_user_s, main_system_s) = main_thread_times();
    ProcessTimes {
        user_s: seconds(all.ru_utime),
        system_s: seconds(all.ru_stime),
        main_user_s,
        main_system_s,
    }
}

/// The main thread's times in user code and in the kernel: fields 14 and 15 of its `stat` (man 5
/// proc_pid_stat). Any thread may call it.
fn main_thread_times() -> (f64, f64) {
    let pid = std::process::id();
    let text = std::fs::read_to_string(format!("/proc/self/task/{pid}/stat")).unwrap_or_default();
    // The second field, the name, is in brackets and may hold anything.
    let mut rest = text.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11);
    let tick = rustix::param::clock_ticks_per_second() as f64;
    let mut next = || rest.next().and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) / tick;
    (next(), next())
}

/// Times the scheduler took the processor from this thread.
#[allow(unsafe_code)]
pub fn involuntary_switches() -> u64 {
    // SAFETY: `rusage` is plain numbers, for which zero is valid; getrusage fills the struct it is
    // given.
    unsafe {
        let mut u: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut u);
        u.ru_nivcsw as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::time::{ClockId, clock_gettime};

    #[test]
    fn a_percentage_is_one_of_what_the_group_allows() {
        let root = std::env::temp_dir().join(format!("sheafdb-groups-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("in a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
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
        std::fs::remove_dir_all(&root).expect("the folder");
    }

    #[test]
    fn the_process_time_includes_the_main_thread() {
        let (user_s, system_s) = main_thread_times();
        let all = process_times();
        let tick = 1.0 / rustix::param::clock_ticks_per_second() as f64;
        assert!(user_s + system_s <= all.user_s + all.system_s + 2.0 * tick);
        // Work of another thread does not count for the main thread.
        let spun = std::thread::spawn(|| {
            let used = || clock_gettime(ClockId::ThreadCPUTime);
            while (used().tv_sec, used().tv_nsec) < (0, 200_000_000) {
                (0..100_000).for_each(|_| std::hint::spin_loop());
            }
        });
        spun.join().expect("it only spins");
        let (after, _) = main_thread_times();
        assert!(process_times().user_s >= all.user_s + 0.05 && after < all.user_s + 0.05);
    }
}
