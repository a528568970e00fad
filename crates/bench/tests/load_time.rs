//! The times reported by the load generator, with servers of known behaviour.

mod common;
mod support;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use bench::load::{Amount, Arrivals, Driver, Pacing, Spec, run};
use bench::result::Measurement;
use common::undisturbed;
use support::{Server, ok};

const STALL: Duration = Duration::from_millis(400);

/// Answers at once, but stalls once for [`STALL`], half a second after its first request.
fn stalling() -> Server {
    let begun: Mutex<Option<(Instant, bool)>> = Mutex::default();
    Server::start(move |_, _| {
        let mut begun = begun.lock().expect("nobody panicked");
        let (since, stalled) = begun.get_or_insert_with(|| (Instant::now(), false));
        if !*stalled && since.elapsed() > Duration::from_millis(500) {
            *stalled = true;
            std::thread::sleep(STALL);
        }
        ok()
    })
}

fn open(rate: f64, arrivals: Arrivals) -> Pacing {
    Pacing::Open { rate, arrivals }
}

/// The share of requests that took at least `us`.
fn share_above(measured: &Measurement, us: f64) -> f64 {
    let below = measured.latency.cumulative.iter().take_while(|(at, _)| *at < us).last();
    1.0 - below.map_or(0.0, |(_, share)| *share)
}

/// A stall of S in a run of T affects S/T of the requests, which wait for S/2 on average. The share
/// which waits longer than x is (S - x) / T.
#[test]
fn an_open_loop_shows_a_stall_in_full() {
    // Concurrently: each is little work and takes two seconds.
    undisturbed(|| {
        std::thread::scope(|scope| {
            for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
                for pipeline in [1, 64] {
                    scope.spawn(move || stall_of_an_open_loop(arrivals, pipeline));
                }
            }
        });
    });
}

fn stall_of_an_open_loop(arrivals: Arrivals, pipeline: usize) {
    let server = stalling();
    let spec = Spec {
        pacing: open(2000.0, arrivals),
        amount: Amount::Seconds(2.0),
        pipeline,
        ..server.spec()
    };
    let found = run(&spec).expect("the load runs");
    assert!(found.failures.is_empty(), "{:?}", found.failures);
    let max_ms = found.latency.max_us / 1e3;
    assert!(max_ms > 395.0, "{arrivals:?}: {max_ms} ms, whatever else happens");
    assert!(max_ms < 500.0, "{arrivals:?}: {max_ms} ms");
    for wait_ms in [100.0, 200.0, 300.0] {
        let expected = (STALL.as_secs_f64() - wait_ms / 1e3) / 2.0;
        let share = share_above(&found, wait_ms * 1e3);
        assert!(
            (share - expected).abs() < 0.03,
            "{arrivals:?}: {share} waited for {wait_ms} ms, {expected} should"
        );
    }
    assert_eq!(found.unsent, 0, "some were not sent");
    assert!((found.requests as f64 - 4000.0).abs() < 320.0, "{} requests", found.requests);
}

/// In a closed loop the same stall affects one request of thousands: coordinated omission.
#[test]
fn a_closed_loop_hides_the_same_stall() {
    undisturbed(|| {
        let server = stalling();
        let spec = Spec { amount: Amount::Seconds(2.0), ..server.spec() };
        let found = run(&spec).expect("the load runs");
        assert!(
            found.latency.max_us >= 395_000.0,
            "the one request that met it: {:?}",
            found.latency
        );
        assert!(found.requests > 1000, "{} requests", found.requests);
        assert!(
            share_above(&found, 100_000.0) < 0.01,
            "hidden: {}",
            share_above(&found, 100_000.0)
        );
    });
}

#[test]
fn the_series_shows_the_time_of_a_stall() {
    undisturbed(|| {
        let server = stalling();
        let spec = Spec {
            pacing: open(1000.0, Arrivals::Constant),
            amount: Amount::Seconds(1.5),
            sample_s: 0.1,
            ..server.spec()
        };
        let found = run(&spec).expect("the load runs");
        assert!(found.series.len() >= 8, "{:?}", found.series);
        let calm: Vec<_> = found.series.iter().filter(|sample| sample.at_s < 0.45).collect();
        assert!(calm.len() >= 3 && calm.iter().any(|s| (s.throughput - 1000.0).abs() < 150.0));
        let worst = found.series.iter().max_by(|a, b| a.p99_us.total_cmp(&b.p99_us)).expect("some");
        assert!((0.8..1.2).contains(&worst.at_s), "{worst:?}");
    });
}

#[test]
fn a_rate_is_kept_and_its_delay_measured() {
    undisturbed(|| {
        let server = Server::start(|_, _| ok());
        for threads in [1, 2] {
            let spec = Spec {
                pacing: open(3000.0, Arrivals::Constant),
                amount: Amount::Requests(3000),
                connections: 4,
                threads,
                ..server.spec()
            };
            let found = run(&spec).expect("the load runs");
            assert_eq!(found.requests, 3000);
            assert!((0.9..1.4).contains(&found.seconds), "{} s", found.seconds);
            assert!((found.offered - 3000.0).abs() < 1e-9);
        }
    });
}

/// Ten times what the server can serve: one request per millisecond and connection.
#[test]
fn an_overloaded_open_loop_is_reported() {
    undisturbed(|| {
        let server = Server::start(|_, _| {
            std::thread::sleep(Duration::from_millis(1));
            ok()
        });
        let spec = Spec {
            pacing: open(10_000.0, Arrivals::Constant),
            amount: Amount::Seconds(1.0),
            ..server.spec()
        };
        let found = run(&spec).expect("the load runs");
        assert!(found.failures.is_empty(), "{:?}", found.failures);
        assert!(found.unsent > 8000, "{} of 10,000 were not sent", found.unsent);
        assert_eq!(found.requests + found.unsent, 10_000, "every arrival is accounted for");
        // The last requests waited for nearly the whole run, the average one for half of it.
        assert!(found.latency.p50_us > 300_000.0, "{:?}", found.latency.p50_us);
        assert!(
            found.in_flight > 3000.0,
            "those that are due count as under way: {}",
            found.in_flight
        );
    });
}

/// Little's law holds between three figures which are measured independently.
#[test]
fn in_flight_is_throughput_times_latency() {
    undisturbed(|| {
        let server = Server::start(|_, _| {
            std::thread::sleep(Duration::from_micros(300));
            ok()
        });
        let drivers = [Driver::LockStep, Driver::Window, Driver::Multiplexed { callers: 20 }];
        for driver in drivers {
            let spec = Spec {
                amount: Amount::Seconds(1.0),
                connections: 4,
                pipeline: 5,
                driver,
                ..server.spec()
            };
            let found = run(&spec).expect("the load runs");
            let ratio = found.in_flight / (found.throughput * found.latency.mean_us / 1e6);
            assert!((0.85..1.15).contains(&ratio), "{driver:?}: {ratio}");
            assert!(found.in_flight <= 20.0 + 1e-6 && found.in_flight_max <= 20, "{driver:?}");
        }
    });
}

#[test]
fn only_the_unbounded_driver_accumulates_requests() {
    undisturbed(|| {
        // 50 us each, slept in long intervals: on a busy machine every sleep takes milliseconds
        // longer.
        let server = Server::start(|number, _| {
            if number % 200 == 0 {
                std::thread::sleep(Duration::from_millis(10));
            }
            ok()
        });
        let amount = Amount::Requests(20_000);
        let spec = Spec { amount, timeout_s: 60.0, ..server.spec() };
        let held = run(&Spec { driver: Driver::Window, pipeline: 16, ..spec.clone() });
        let piled = run(&Spec { driver: Driver::Unbounded, ..spec });
        let (held, piled) = (held.expect("the load runs"), piled.expect("the load runs"));
        assert_eq!((held.requests, piled.requests), (20_000, 20_000));
        assert!(held.in_flight_max <= 16);
        assert!(piled.in_flight_max > 15_000, "{}", piled.in_flight_max);
        assert!(piled.latency.p50_us > 10.0 * held.latency.p50_us);
    });
}

#[test]
fn the_warm_up_is_not_measured() {
    undisturbed(|| {
        let begun = Mutex::new(None);
        let server = Server::start(move |_, _| {
            let since = *begun.lock().expect("nobody panicked").get_or_insert_with(Instant::now);
            if since.elapsed() < Duration::from_millis(250) {
                std::thread::sleep(Duration::from_millis(20));
            }
            ok()
        });
        let spec = Spec { amount: Amount::Seconds(0.5), warm_up_s: 0.4, ..server.spec() };
        let found = run(&spec).expect("the load runs");
        assert!(found.latency.p99_us < 15_000.0, "{:?}", found.latency.p99_us);
        assert!((0.49..0.8).contains(&found.seconds), "{}", found.seconds);
    });
}

#[test]
fn an_in_process_table_is_measured_like_a_server() {
    let mut spec = Spec {
        driver: Driver::InProcess,
        connections: 2,
        pipeline: 10,
        amount: Amount::Requests(20_005),
        verify: true,
        misses: 0.1,
        data: (1, 90),
        ..Spec::default()
    };
    spec.keys.maximum = 500;
    spec.commands.push(bench::load::Command::new(&["GET", "__key__"]));
    let found = run(&spec).expect("the load runs");
    assert!(found.failures.is_empty(), "{:?}", found.failures);
    assert_eq!((found.requests, &found.target[..]), (20_005, "in-process"));
    assert!(found.client_cpu_s > 0.0 && found.server.is_none());
}
