//! Measures ingest listeners: `acks BASE_PORT PID [classic|block|single] [SECONDS_SCALE]`.
//!
//! `classic` runs the five published clients against the server and, in the same run, against a null reader; `block`
//! writes 64 KiB of 17-byte messages; `single` is one connection of request-reply. The server's CPU comes from
//! `/proc/PID/task/*/schedstat`.

use bench::acks::{CLASSIC, Spec, null::NullReader, run};
use ingest::Strategy;
use std::net::SocketAddr;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [base, pid, mode, rest @ ..] = args.as_slice() else {
        eprintln!("usage: acks BASE_PORT PID classic|block|single [RUNS]");
        std::process::exit(1);
    };
    let base: u16 = base.parse().expect("a port");
    let runs: usize = rest.first().map_or(3, |n| n.parse().expect("a number of runs"));
    let address = |n: u16| SocketAddr::from(([127, 0, 0, 1], base + n));
    for _ in 0..runs {
        for (n, classic) in (0..).zip(CLASSIC) {
            let strategy = classic.strategy;
            match mode.as_str() {
                "classic" => {
                    let spec = classic.spec(address(n));
                    let ours = measure(&spec, pid);
                    let null =
                        NullReader::start(strategy == Strategy::RequestReply).expect("a thread");
                    let acknowledged = strategy == Strategy::RequestReply;
                    let other =
                        measure(&Spec { address: null.address, acknowledged, ..spec }, "self");
                    println!("  ratio to the null reader {:.2}", ours / other);
                }
                "block" if strategy != Strategy::RequestReply => {
                    let spec = Spec {
                        messages: 60_000_000,
                        block: Some(64 << 10),
                        ..Spec::new(address(n), strategy)
                    };
                    measure(&spec, pid);
                    let null = NullReader::start(false).expect("a thread");
                    measure(&Spec { address: null.address, acknowledged: false, ..spec }, "self");
                }
                "single" if strategy == Strategy::RequestReply => {
                    let spec = Spec { messages: 100_000, ..Spec::new(address(n), strategy) };
                    let ours = measure(&spec, pid);
                    let null = NullReader::start(true).expect("a thread");
                    let other = measure(&Spec { address: null.address, ..spec }, "self");
                    println!("  ratio to an epoll server that sleeps {:.2}", ours / other);
                }
                _ => {}
            }
        }
    }
}

fn measure(spec: &Spec, pid: &str) -> f64 {
    let before = cpu_s(pid);
    let m = run(spec).expect("the listener is there");
    let cpu = cpu_s(pid) - before;
    assert!(m.failures.is_empty(), "{:?}", m.failures);
    println!(
        "{:<14} {:<6} {:>4} x {:>9}: {:>7.3} s {:>12.0}/s  client {:.4} us, server {:.4} us per message, p50 {:.0} p99 {:.0} us",
        spec.strategy.name(),
        if pid == "self" { "null" } else { "server" },
        spec.clients,
        spec.messages,
        m.seconds,
        m.throughput,
        m.client_cpu_s * 1e6 / m.requests as f64,
        if pid == "self" { (cpu - m.client_cpu_s) * 1e6 } else { cpu * 1e6 } / m.requests as f64,
        m.latency.p50_us,
        m.latency.p99_us,
    );
    m.throughput
}

fn cpu_s(pid: &str) -> f64 {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return 0.0 };
    let of = |task: std::fs::DirEntry| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).unwrap_or_default()
    };
    tasks.flatten().map(of).sum::<f64>() / 1e9
}
