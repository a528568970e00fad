//! MONITOR where a worker is far behind: what waits for it is bounded, and a monitor that missed lines is closed.

#[allow(dead_code)] // the other stories of the simulated world have their own test
mod sim_world;

use base::sync::Arc;
use driver::sim::{Ending, Faults};
use server::config::Config;
use server::monitors::UNDERWAY_MAX;
use sim_world::{Reply, Sim};

/// Bytes of a command with a large value, as it is told.
const LINE: usize = 16 << 20;

/// Not only once: who watches afterwards sees everything again, and is closed again.
#[test]
fn a_monitor_whose_worker_is_far_behind_is_closed() {
    let mut sim = Sim::new(1, Faults::NONE, Config::default());
    sim.connect(6);
    let line: Arc<[u8]> = [&vec![b'+'; LINE - 2][..], b"\r\n"].concat().into();
    // Twice on each of the two workers.
    let (last, bystander) = (4, 5);
    for monitor in 0..=last {
        assert_eq!(sim.ask(monitor, &["MONITOR"]), Reply::ok());
        assert_eq!(sim.ask(bystander, &["INCR", "n"]), Reply::Integer(monitor as i64 + 1));
        let Reply::Simple(told) = sim.reply(monitor) else { panic!("a line") };
        assert!(told.ends_with("\"INCR\" \"n\""), "{told}");
        // Nobody has a turn meanwhile.
        for _ in 0..UNDERWAY_MAX as usize / LINE {
            sim.shared.monitors.tell(&sim.shared, &line);
        }
        if monitor == last {
            break; // just so much is no reason to close it
        }
        sim.shared.monitors.tell(&sim.shared, &line);
        sim.run_until(|sim| sim.clients[monitor].ending.is_some());
        assert_eq!(sim.clients[monitor].ending, Some(Ending::Closed));
    }
    for _ in 0..100 {
        sim.step();
    }
    assert_eq!(sim.clients[last].ending, None);
    assert_eq!(sim.ask(bystander, &["INCR", "n"]), Reply::Integer(6));
}
