//! The client side of protocol 2, with servers which follow it and servers which violate it.

#[path = "support/two.rs"]
mod two;

use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bench::acks::{Error, Outcome, Producers, Spec, run};
use bench::models::{Model, Options, serve};
use ingest::v2::Acking;
use two::{Lie, Two};

/// A client which sends 100 batches of 10.
fn spec(server: &Two, acking: Acking) -> Spec {
    Spec {
        messages: 1000,
        batch: 10,
        patience: Duration::from_secs(20),
        ..Spec::two(server.address, Producers::new(acking))
    }
}

fn sent(spec: &Spec) -> Outcome {
    run(spec).expect("it can be run")
}

#[test]
fn everything_is_acknowledged_within_any_window() {
    // The smallest window holds one frame: the next may be sent once credit for it was granted.
    for window in [2 * (16 + 210), 5000, 1 << 20] {
        let liar = Two::start(Lie::No, window);
        for (clients, waits, threads) in [(1, false, 1), (1, true, 1), (5, false, 2), (5, true, 1)]
        {
            let before = liar.took.load(Ordering::Relaxed);
            let spec = Spec { clients, waits, threads, ..spec(&liar, Acking::Synchronous) };
            let Outcome { measurement, acks } = sent(&spec);
            let total = 1000 * clients as u64;
            assert!(measurement.failures.is_empty(), "{window}: {:?}", measurement.failures);
            assert_eq!(measurement.requests, total);
            assert_eq!(liar.took.load(Ordering::Relaxed) - before, total, "each came once");
            // A waiting client needs an acknowledgement for each of 100 batches.
            assert!(acks >= if waits { 100 * clients as u64 } else { 1 }, "{acks}");
        }
        assert_eq!(liar.faults.load(Ordering::Relaxed), 0, "credit was kept to with {window}");
    }
}

#[test]
fn a_timed_run_ends_with_everything_acknowledged() {
    let liar = Two::start(Lie::No, 1 << 20);
    for waits in [false, true] {
        let before = liar.took.load(Ordering::Relaxed);
        let time = Some(Duration::from_millis(100));
        let spec = Spec { clients: 7, waits, time, ..spec(&liar, Acking::Batched) };
        let m = sent(&spec).measurement;
        assert!(m.failures.is_empty(), "{:?}", m.failures);
        assert!(m.requests > 0 && m.seconds >= 0.1, "{m:?}");
        assert_eq!(liar.took.load(Ordering::Relaxed) - before, m.requests);
        let served = m.per_connection;
        assert!(served.least <= served.most && served.most <= m.requests, "{served:?}");
    }
}

#[test]
fn violations_of_the_protocol_are_detected() {
    let wrong = [
        (Lie::Skipped, "skipped follows that of"),
        (Lie::Ahead, "which was not sent whole"),
        (Lie::Twice, "skipped follows that of"),
        (Lie::Hidden, "readers see up to"),
        (Lie::Foreseen, "readers see up to"),
        (Lie::Fsynced, "fsynced up to"),
        (Lie::Falls, "a credit of 1 bytes follows"),
        (Lie::Babbles, "bytes of no frame"),
    ];
    for (lie, why) in wrong {
        let liar = Two::start(lie, 5000);
        let failures = sent(&spec(&liar, Acking::Adaptive)).measurement.failures;
        assert_eq!(failures.wrong, 1, "{lie:?}: {failures:?}");
        assert!(failures.first_error.contains(why), "{lie:?}: {failures:?}");
        assert!(failures.lost > 0, "what came after is not counted: {failures:?}");
    }
}

#[test]
fn unacknowledged_messages_are_counted_as_lost() {
    for (lie, why) in [
        (Lie::Silent, "no progress for"),
        (Lie::Closes, ""), // closed or reset, seen by a read or a write
        (Lie::Errs, "error 8: not here"),
    ] {
        let liar = Two::start(lie, 1 << 20);
        let patience = Duration::from_millis(if lie == Lie::Silent { 200 } else { 20_000 });
        // A waiting client has sent one batch only.
        let spec = Spec { waits: true, patience, ..spec(&liar, Acking::Adaptive) };
        let failures = sent(&spec).measurement.failures;
        assert!(failures.first_error.contains(why), "{lie:?}: {failures:?}");
        assert!(!failures.first_error.is_empty(), "{lie:?}: {failures:?}");
        assert_eq!(failures.lost, if lie == Lie::Closes { 990 } else { 1000 }, "{lie:?}");
    }
    // A missing acknowledgement is detected by the next one, or by a timeout.
    for waits in [false, true] {
        let liar = Two::start(Lie::Forgets, 1 << 20);
        let patience = Duration::from_millis(200);
        let failures = sent(&Spec { waits, patience, ..spec(&liar, Acking::Batched) });
        assert!(!failures.measurement.failures.is_empty(), "waits: {waits}");
    }
}

#[test]
fn a_run_refused_by_the_listener_sends_nothing() {
    for (lie, why) in [(Lie::Knows, "7 messages are held"), (Lie::Other, "not what was asked")] {
        let liar = Two::start(lie, 5000);
        let error = run(&spec(&liar, Acking::Synchronous)).expect_err("it is refused");
        assert!(matches!(error, Error::Refused(_)) && error.to_string().contains(why), "{error}");
        assert_eq!(liar.took.load(Ordering::Relaxed), 0);
    }
    let liar = Two::start(Lie::No, 5000);
    for spec in [
        Spec { batch: 1000, ..spec(&liar, Acking::Batched) },
        Spec { message_size: (1 << 16) + 5, batch: 1, ..spec(&liar, Acking::Batched) },
        Spec { message_size: 3, ..spec(&liar, Acking::Batched) },
    ] {
        assert!(matches!(run(&spec), Err(Error::Spec(_))), "{spec:?}");
    }
}

/// `sheafdb-bench ingest send` with these words, at this address.
fn command(address: std::net::SocketAddr, words: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sheafdb-bench"));
    command.args(["ingest", "send", &address.to_string()]).args(words);
    command.output().expect("it starts")
}

#[test]
fn the_command_sends_and_fails_on_a_violation() {
    let model = serve(Model::AckEachRead, &Options::default()).expect("a free port");
    for words in [&["-n", "500"][..], &["-c", "3", "--seconds", "0.05", "--block", "4096"]] {
        let out = command(model.address, words);
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{text}{}", String::from_utf8_lossy(&out.stderr));
        assert!(text.contains("messages acknowledged") && text.contains("messages/s"), "{text}");
    }
    let liar = Two::start(Lie::Skipped, 1 << 20);
    let out = command(liar.address, &["-n", "500"]);
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && text.contains("skipped follows that of"), "{text}");
}

#[test]
fn the_model_accepts_everything() {
    let model = serve(Model::AckEachRead, &Options::default()).expect("a free port");
    for acking in Acking::ALL {
        for waits in [false, true] {
            let before = model.totals().requests;
            let spec = Spec {
                clients: 3,
                messages: 20_000,
                batch: 100,
                waits,
                ..Spec::two(model.address, Producers::new(acking))
            };
            let m = sent(&spec).measurement;
            assert!(m.failures.is_empty() && m.requests == 60_000, "{m:?}");
            assert_eq!(model.totals().requests - before, 60_000);
        }
    }
}
