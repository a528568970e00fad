//! Service times on the simulated network, where sends are cut short and clients read slowly.

use crate::sim_world::{CUTTING, MS, Reply, Sim, encode};
use driver::sim::Faults;
use server::config::Config;
use server::figures::service::ServiceFigures;

/// Requests so far, and the sum of their times.
fn seen(sim: &Sim) -> (u64, u64) {
    let f = ServiceFigures::gather(&sim.shared);
    (f.times.count(), f.sum_ns)
}

/// A reply counts when its last byte has left, and everything that waits for the same client with
/// it.
#[test]
fn a_reply_that_is_read_slowly_counts_when_its_last_byte_has_left() {
    let faults = Faults { buffer_bytes: 1_000, ..Faults::NONE };
    let mut sim = Sim::new(1, faults, Config::default());
    sim.connect(1);
    assert_eq!(sim.ask(0, &["SET", "key", &"v".repeat(2_500)]), Reply::ok());
    let slow = sim.join();
    let before = seen(&sim);
    let received = sim.net.now();
    slow.write(&[encode(&["GET", "key"]), encode(&["PING"])].concat());
    sim.run_for(300 * MS);
    assert_eq!(seen(&sim).0, before.0, "1,000 bytes have left");
    let mut got = vec![0; 10_000];
    let mut len = slow.read(&mut got);
    sim.run_for(300 * MS);
    assert_eq!((seen(&sim).0, len), (before.0, 1_000), "2,000 bytes have left");
    len += slow.read(&mut got[len..]);
    let left = sim.net.now();
    sim.run_until(|sim| seen(sim).0 > before.0);
    let after = seen(&sim);
    assert_eq!(after.0 - before.0, 2);
    assert_eq!(sim.net.now(), left, "the socket took the rest at once");
    assert_eq!(after.1 - before.1, 2 * left.since(received));
    sim.run_for(MS);
    len += slow.read(&mut got[len..]);
    assert!(got[..len].ends_with(b"v\r\n+PONG\r\n"), "{len}");
    // It closes while a reply waits: nobody is told, nothing is counted.
    slow.write(&encode(&["GET", "key"]));
    sim.run_for(300 * MS);
    drop(slow);
    sim.run_until(|sim| sim.shared.registry.len() == 1);
    assert_eq!(seen(&sim).0, after.0);
    sim.end();
}

/// Every request with a reply is counted once, whatever the network cuts.
#[test]
fn every_request_is_counted_once() {
    for seed in 0..20 {
        let mut sim = Sim::new(seed, CUTTING, Config::default());
        sim.connect(3);
        let before = seen(&sim).0;
        for n in 0..40 {
            for client in 0..3 {
                let key = format!("key{}", n % 5);
                sim.clients[client].say(&["APPEND", &key, &"x".repeat(n * 7)]);
                sim.clients[client].say(&["GET", &key]);
            }
        }
        for client in 0..3 {
            (0..80).for_each(|_| _ = sim.reply(client));
        }
        sim.run_for(200 * MS);
        assert_eq!(seen(&sim).0 - before, 240, "seed {seed}");
        sim.end();
    }
}
