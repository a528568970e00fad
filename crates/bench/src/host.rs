//! The machine that measures: its fingerprint, who used its processors during a run, and which
//! local process listens at an address. Everything comes from `/proc` and `/sys`; what cannot be
//! read there is left empty, never guessed.

mod listener;
mod threads;

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::result::{Machine, ServerUse};

pub use listener::{is_local, listening_pid};
pub use threads::ThreadWatch;

/// Ticks of `/proc/stat` per second: `USER_HZ`, which is 100 on every architecture that Linux runs
/// on today.
const TICKS_PER_SECOND: f64 = 100.0;

/// The difference of two counts of ticks is wrong by less than this: user and system time are
/// rounded each.
const TICKS_ERROR_S: f64 = 2.0 / TICKS_PER_SECOND;

/// CPU time of others above which a run is not to be trusted, in CPUs.
pub const OTHER_CPUS_MAX: f64 = 0.15;

/// The fingerprint of this machine.
pub fn machine() -> Machine {
    let cpuinfo = read("/proc/cpuinfo");
    Machine {
        cpu: field(&cpuinfo, "model name").or_else(|| field(&cpuinfo, "Model")).unwrap_or_default(),
        cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        memory_bytes: field(&read("/proc/meminfo"), "MemTotal").map_or(0, |text| kib(&text)),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        virtualization: virtualization(&cpuinfo),
        clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .trim()
            .to_owned(),
    }
}

/// The 1-minute load average.
pub fn load_average() -> f64 {
    read("/proc/loadavg").split(' ').next().and_then(|one| one.parse().ok()).unwrap_or(0.0)
}

/// Lets this thread, and those that it starts from now on, run on one core.
pub fn run_on(core: usize) -> std::io::Result<()> {
    if core >= CpuSet::MAX_CPU {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

/// Accounting of processor time over a run.
#[derive(Debug)]
pub struct Usage {
    since: Instant,
    client_s: f64,
    machine_s: f64,
    server: Option<(u32, ProcessCpu)>,
}

impl Usage {
    /// Begins; `server` is the local process whose time is counted apart.
    pub fn start(server: Option<u32>) -> Self {
        let server = server.and_then(|pid| Some((pid, ProcessCpu::of(pid)?)));
        Self {
            since: Instant::now(),
            client_s: own_cpu_s(),
            machine_s: busy_seconds(&read("/proc/stat")),
            server,
        }
    }

    /// Ends: CPU seconds of this process, what the server used for `requests`, and CPUs that
    /// neither of the two used. A server that has ended meanwhile has no use to report.
    pub fn stop(self, requests: u64) -> (f64, Option<ServerUse>, f64) {
        let elapsed = self.since.elapsed().as_secs_f64();
        let client_s = own_cpu_s() - self.client_s;
        let machine_s = busy_seconds(&read("/proc/stat")) - self.machine_s;
        let server = self.server.and_then(|(pid, before)| {
            let cpu_s = ProcessCpu::of(pid)?.since(&before);
            Some(ServerUse {
                cpu_s,
                cpu_us_per_request: if requests == 0 { 0.0 } else { cpu_s * 1e6 / requests as f64 },
                resident_bytes: resident_bytes(pid),
            })
        });
        let ours = client_s + server.map_or(0.0, |server| server.cpu_s);
        let other = ((machine_s - ours) / elapsed.max(1e-9)).max(0.0);
        (client_s, server, other)
    }
}

/// CPU time of a process. The scheduler's own account per thread is exact to the nanosecond but
/// forgets threads that have ended, among them those that came after the first look; the process's
/// ticks remember them.
#[derive(Debug)]
struct ProcessCpu {
    threads_s: BTreeMap<u32, f64>,
    ticks_s: f64,
}

impl ProcessCpu {
    fn of(pid: u32) -> Option<Self> {
        let threads_s = threads::cpu_seconds(pid)?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some(Self { threads_s, ticks_s: ticks(&stat) })
    }

    fn since(&self, before: &Self) -> f64 {
        let exact: f64 = self
            .threads_s
            .iter()
            .map(|(thread, now)| now - before.threads_s.get(thread).unwrap_or(&0.0))
            .sum();
        let ticks = self.ticks_s - before.ticks_s;
        if ticks > exact + TICKS_ERROR_S { ticks } else { exact }
    }
}

/// User and system time of `/proc/PID/stat`, in seconds: fields 14 and 15, counted behind the name,
/// which may hold anything.
fn ticks(stat: &str) -> f64 {
    let behind = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    behind
        .split_ascii_whitespace()
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<f64>().unwrap_or(0.0) / TICKS_PER_SECOND)
        .sum()
}

/// CPU seconds that this process has used, ended threads included.
fn own_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Seconds that all CPUs together were not idle, from the first line of `/proc/stat`. Time stolen
/// by the hypervisor counts as busy: it was not ours to use. Guest time is part of user time there.
fn busy_seconds(stat: &str) -> f64 {
    let Some(line) = stat.lines().next() else { return 0.0 };
    let ticks: Vec<f64> =
        line.split_ascii_whitespace().skip(1).map(|n| n.parse().unwrap_or(0.0)).collect();
    // user nice system idle iowait irq softirq steal
    let idle: f64 = ticks.iter().skip(3).take(2).sum();
    (ticks.iter().take(8).sum::<f64>() - idle) / TICKS_PER_SECOND
}

/// Resident bytes of a process, 0 if it is not known.
pub fn resident_bytes(pid: u32) -> u64 {
    field(&read(&format!("/proc/{pid}/status")), "VmRSS").map_or(0, |text| kib(&text))
}

fn virtualization(cpuinfo: &str) -> String {
    let mut found = Vec::new();
    let product = read("/sys/class/dmi/id/product_name").trim().to_owned();
    if field(cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor")) {
        found.push(match product.as_str() {
            "" => "virtual machine".to_owned(),
            product => format!("virtual machine ({product})"),
        });
    }
    let contained =
        ["/.dockerenv", "/run/.containerenv"].iter().any(|p| fs::exists(p).is_ok_and(|x| x));
    if contained {
        found.push("container".to_owned());
    }
    found.join(", ")
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The value of the first line `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim().to_owned())
}

/// Bytes of a text like `1024 kB`.
fn kib(text: &str) -> u64 {
    text.split(' ').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_stat_is_split_into_busy_and_idle() {
        let stat = "cpu  100 10 50 1000 500 1 2 30 7 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert!((busy_seconds(stat) - 1.93).abs() < 1e-9);
        assert!(busy_seconds("").abs() < 1e-9);
    }

    #[test]
    fn a_name_with_spaces_and_brackets_does_not_shift_the_ticks() {
        let stat = "12 (a) b) S 1 12 12 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 1 0 5 1 1";
        assert!((ticks(stat) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn the_machine_reports_kernel_cores_and_memory() {
        let machine = machine();
        assert!(machine.cores >= 1 && machine.memory_bytes > 1 << 20);
        assert!(machine.kernel.starts_with(|c: char| c.is_ascii_digit()), "{machine:?}");
    }

    #[test]
    fn work_of_this_process_is_counted_for_the_client() {
        let usage = Usage::start(None);
        let until = own_cpu_s() + 0.03;
        let mut sum = 0u64;
        while own_cpu_s() < until {
            sum = sum.wrapping_mul(31).wrapping_add(7);
        }
        let (client_s, server, _) = usage.stop(1);
        assert!(client_s > 0.025 && server.is_none(), "{client_s} s, {sum}");
    }

    #[test]
    fn the_cpu_time_of_a_process_includes_all_its_threads() {
        let pid = std::process::id();
        let before = ProcessCpu::of(pid).expect("this process has an account");
        let worker = std::thread::spawn(|| {
            let until = Instant::now() + std::time::Duration::from_millis(50);
            let mut sum = 0u64;
            while Instant::now() < until {
                sum = sum.wrapping_mul(31).wrapping_add(7);
            }
            sum
        });
        worker.join().expect("it only counts");
        let after = ProcessCpu::of(pid).expect("this process has an account");
        assert!(after.since(&before) >= 0.0);
        assert!(ProcessCpu::of(u32::MAX).is_none());
        let gone = ProcessCpu { threads_s: BTreeMap::from([(1, 5.0), (2, 1.0)]), ticks_s: 6.0 };
        let now = ProcessCpu { threads_s: BTreeMap::from([(1, 5.5)]), ticks_s: 7.5 };
        assert!((now.since(&gone) - 1.5).abs() < 1e-9, "the ended thread's second is not lost");
        let between = ProcessCpu { threads_s: gone.threads_s.clone(), ticks_s: 9.0 };
        assert!((between.since(&gone) - 3.0).abs() < 1e-9, "nor is that of one that came and went");
        let rounded =
            ProcessCpu { threads_s: BTreeMap::from([(1, 5.005), (2, 1.0)]), ticks_s: 6.02 };
        assert!((rounded.since(&gone) - 0.005).abs() < 1e-9, "ticks are coarse");
    }
}
