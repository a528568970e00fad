//! CONFIG REWRITE on a simulated disk whose machine crashes: the file is the old one or the new one
//! at every moment, and the new one after the reply.

use crate::sim_world::{CUTTING, Reply, Sim};
use driver::sim::{DiskFaults, Faults};
use server::config::Config;
use std::path::Path;

const FILE: &str = "/etc/sheafdb/server.conf";
/// Steps after the reply in which the machine may still crash.
const STEPS_AFTER: u32 = 3;

/// A file of several sectors, of which a rewrite changes a line in the middle.
fn old_file() -> String {
    let comment = "# A comment which the rewrite keeps, so that the file has some length.\n";
    format!("{}timeout 10\n{}", comment.repeat(20), comment.repeat(20))
}

/// A server that was started with the file, and a client which has changed a setting and asks for
/// the rewrite.
fn begin(seed: u64, net: Faults, disk: DiskFaults) -> Sim {
    let mut config = Config::default();
    config.file = Some(FILE.into());
    let mut sim = Sim::new(seed, net, config);
    sim.net.disk().install(Path::new(FILE), old_file().as_bytes(), 0o640).expect("room");
    sim.net.disk().set_faults(disk);
    sim.connect(1);
    assert_eq!(sim.ask(0, &["CONFIG", "SET", "timeout", "77"]), Reply::ok());
    sim.clients[0].say(&["CONFIG", "REWRITE"]);
    sim.forget_steps();
    sim
}

fn file(sim: &Sim) -> String {
    let bytes = sim.net.disk().contents(Path::new(FILE)).expect("the file is always there");
    String::from_utf8_lossy(&bytes).into_owned() // a crash may leave garbage
}

/// Runs until the reply, or for so many steps, and returns the reply.
fn run(sim: &mut Sim, steps: u32) -> Option<Reply> {
    let mut reply = None;
    while sim.steps < steps && reply.is_none() {
        sim.step();
        reply = sim.clients[0].take_reply();
    }
    reply
}

/// Crashes after so many steps. Returns the reply until then, and what is left of the file.
fn crash_after(steps: u32, seed: u64, net: Faults, disk: DiskFaults) -> (Option<Reply>, String) {
    let mut sim = begin(seed, net, disk);
    let reply = run(&mut sim, steps);
    while sim.steps < steps {
        sim.step();
    }
    sim.net.disk().crash();
    (reply, file(&sim))
}

#[test]
fn a_crash_at_any_step_leaves_the_old_file_or_the_new_one() {
    let (mut old, mut new, mut replied) = (0, 0, 0);
    for seed in 0..20 {
        let disk = if seed % 2 == 0 { DiskFaults::NONE } else { DiskFaults::ROUGH };
        let mut whole = begin(seed, Faults::NONE, disk);
        assert_eq!(run(&mut whole, u32::MAX), Some(Reply::ok()), "seed {seed}");
        let rewritten = file(&whole);
        assert!(rewritten.contains("\ntimeout 77\n") && rewritten.len() == old_file().len());
        for steps in 0..=whole.steps + STEPS_AFTER {
            let (reply, left) = crash_after(steps, seed, Faults::NONE, disk);
            let is_new = left == rewritten;
            let why = format!("seed {seed}, step {steps}, {reply:?}: {} bytes", left.len());
            assert!(is_new || left == old_file(), "neither: {why}");
            assert!(is_new || reply.is_none(), "the old file after the reply: {why}");
            (old, new) = (old + u32::from(!is_new), new + u32::from(is_new));
            replied += u32::from(reply.is_some());
        }
    }
    println!("{old} crashes left the old file, {new} the new one, {replied} after the reply");
    assert!(old > 100 && new > replied + 20, "{old} {new} {replied}");
}

/// The same on a disk that fails and a network that cuts: a rewrite may be refused then.
#[test]
fn a_failing_disk_never_leaves_half_a_file() {
    let (mut accepted, mut refused, mut unanswered) = (0, 0, 0);
    for seed in 1000..1150 {
        let mut whole = begin(seed, CUTTING, DiskFaults::NONE);
        assert_eq!(run(&mut whole, u32::MAX), Some(Reply::ok()), "seed {seed}");
        let rewritten = file(&whole);
        let (mut sim, steps) = (begin(seed, CUTTING, DiskFaults::HARSH), (seed % 50) as u32 * 3);
        let reply = run(&mut sim, steps);
        sim.net.disk().crash();
        let left = file(&sim);
        let why = format!("seed {seed}, {reply:?}: {} bytes", left.len());
        assert!(left == rewritten || left == old_file(), "neither: {why}");
        match reply {
            Some(Reply::Error(_)) => refused += 1,
            Some(_) => {
                assert!(left == rewritten, "the old file after the reply: {why}");
                accepted += 1;
            }
            None => unanswered += 1,
        }
    }
    println!("{accepted} accepted, {refused} refused, {unanswered} crashed before");
    assert!(accepted > 20 && refused > 20 && unanswered > 20, "{accepted} {refused} {unanswered}");
}
