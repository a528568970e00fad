//! One load with what a finding needs beside it: the server's threads, idle CPUs, the client's
//! share.

use std::ops::ControlFlow;
use std::time::Duration;

use super::subject;
use super::target::Started;
use crate::analysis::findings::Client;
use crate::host::{self, ThreadWatch};
use crate::load::{self, Driver, Progress, Spec};
use crate::result::{Measurement, Sample};

/// Pause between two samples of the server's threads.
const SAMPLE_PAUSE: Duration = Duration::from_millis(50);
/// With more connections a sample could take longer than that: there may be a thread for each.
const SAMPLED_CONNECTIONS_MAX: usize = 1000;
/// A thread that used less of a CPU was not at work.
const ACTIVE: f64 = 0.05;

/// What was seen of one load.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The measurement.
    pub measurement: Measurement,
    /// The server's threads, where they can be seen.
    pub threads: Option<Threads>,
    /// CPUs of the machine that nobody used.
    pub idle_cpus: f64,
    /// CPU share of the client's sending threads on average, where it can be separated from the
    /// server's.
    pub client_busy: Option<f64>,
    /// Threads that sent.
    pub client_threads: usize,
}

/// The server's threads under a load.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    /// CPU share of the busiest.
    pub busiest: f64,
    /// How many were at work.
    pub active: usize,
}

/// Where a load runs and what can be seen there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sight {
    /// The server's process, if its threads can be seen apart from ours.
    pub pid: Option<u32>,
    /// The server runs in this process, or there is none: its CPU cannot be separated from that of
    /// the client.
    pub mixed: bool,
}

/// Runs a load until it ends or `settled` says that its samples so far are enough.
pub fn run(
    spec: &Spec,
    sight: Sight,
    settled: &mut dyn FnMut(&[Sample]) -> bool,
) -> Result<Seen, load::Error> {
    let pid = sight.pid.filter(|_| spec.connections <= SAMPLED_CONNECTIONS_MAX);
    let (mut watch, mut samples) = (None::<ThreadWatch>, Vec::<Sample>::new());
    let mut measurement = load::run_until(spec, &mut |progress| {
        match progress {
            Progress::Connected(_) => watch = pid.and_then(ThreadWatch::begin),
            Progress::Running(_, sample) => {
                if let Some(watch) = &mut watch {
                    watch.sample(SAMPLE_PAUSE);
                }
                if samples.last().is_none_or(|before| before.at_s < sample.at_s) {
                    samples.push(sample);
                }
                if settled(&samples) {
                    return ControlFlow::Break(());
                }
            }
            Progress::Populated(..) => {}
        }
        ControlFlow::Continue(())
    })?;
    let local_table = spec.driver == Driver::InProcess;
    if sight.mixed {
        measurement.server = None;
    }
    let shares = watch.map(|watch| watch.shares()).filter(|shares| !shares.is_empty());
    let active = |shares: &[f64]| shares.iter().filter(|share| **share >= ACTIVE).count().max(1);
    let threads = shares.map(|shares| Threads { busiest: shares[0], active: active(&shares) });
    let client_threads =
        if local_table { spec.connections } else { spec.threads.min(spec.connections) };
    let seen = Seen::of(measurement, client_threads, host::machine().cores);
    let alone = !sight.mixed && !local_table;
    let client_busy = alone.then(|| seen.client_share().clamp(0.0, 1.0));
    Ok(Seen { threads, client_busy, ..seen })
}

impl Sight {
    /// What can be seen of a target.
    pub fn of(started: &Started) -> Self {
        Self { pid: subject::process(started), mixed: subject::is_own_process(started) }
    }
}

impl Seen {
    /// A load that so many threads sent on a machine with so many cores.
    pub fn of(measurement: Measurement, client_threads: usize, cores: usize) -> Self {
        let server_s = measurement.server.map_or(0.0, |server| server.cpu_s);
        let ours = (measurement.client_cpu_s + server_s) / measurement.seconds;
        let idle_cpus = (cores as f64 - ours - measurement.other_cpus).max(0.0);
        Self { measurement, threads: None, idle_cpus, client_busy: None, client_threads }
    }

    /// CPUs that the client used.
    pub fn client_cpus(&self) -> f64 {
        self.measurement.client_cpu_s / self.measurement.seconds
    }

    /// CPU share of each of its threads, which share the connections evenly.
    pub fn client_share(&self) -> f64 {
        self.client_cpus() / self.client_threads.max(1) as f64
    }

    /// The client's CPU as evidence, where it is known.
    pub fn client(&self) -> Option<Client> {
        Some(Client {
            threads: self.client_threads,
            busiest_thread: self.client_busy?,
            server_busiest_thread: self.threads.map(|threads| threads.busiest),
        })
    }
}

/// The failures of a measurement, in words.
pub fn fault(measurement: &Measurement) -> Option<String> {
    let failures = &measurement.failures;
    if failures.is_empty() {
        return None;
    }
    let kinds = [
        (failures.errors, "error replies"),
        (failures.lost, "lost"),
        (failures.nil, "nil"),
        (failures.wrong, "wrong values"),
    ];
    let counts: Vec<String> =
        kinds.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    Some(match failures.first_error.as_str() {
        "" => counts.join(", "),
        text => format!("{} ({text})", counts.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Address, Amount};
    use crate::models::{Model, Options, serve};

    /// At the end of a load the client's threads have been joined, and a server's threads per
    /// connection have ended with their connections: a sample taken only then would miss all of
    /// them.
    #[test]
    fn threads_are_sampled_while_they_run() {
        crate::undisturbed::undisturbed(try_threads_are_sampled_while_they_run);
    }

    fn try_threads_are_sampled_while_they_run() {
        let running = serve(Model::ThreadPerConnection, &Options::default()).expect("a free port");
        let spec = Spec {
            address: Address::Tcp(running.address),
            connections: 1,
            amount: Amount::Seconds(0.4),
            sample_s: 0.05,
            ..Spec::default()
        };
        let sight = Sight { pid: Some(std::process::id()), mixed: true };
        let seen = run(&spec, sight, &mut |_| false).expect("it is served");
        let busiest = seen.threads.expect("this process can be seen").busiest;
        // However busy the machine is, the client's thread or the server's used its share of the
        // time.
        let cpus = seen.measurement.client_cpu_s / seen.measurement.seconds;
        assert!(busiest >= 0.1 * cpus, "the busiest {busiest}, all {cpus} CPUs");
        assert!(seen.measurement.server.is_none(), "its CPU cannot be separated from the client's");
        assert!(seen.client().is_none());
    }
}
