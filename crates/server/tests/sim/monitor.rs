//! MONITOR on a worker which is far behind: its queued lines are bounded, and a monitor which
//! missed lines is closed. A line is never sent in the middle of a reply written in steps.

use crate::sim_world::{Reply, Sim};
use base::sync::Arc;
use driver::sim::{Ending, Faults};
use server::config::{Access, Config};
use server::sessions::monitors::UNDERWAY_MAX;
use server::sessions::output::Hold;

/// Bytes of the line of a command with a large value.
const LINE: usize = 16 << 20;

/// A monitor which starts afterwards receives every line, and is closed in the same way.
#[test]
fn a_monitor_whose_worker_is_far_behind_is_closed() {
    let mut sim = Sim::new(1, Faults::NONE, Config::default());
    sim.connect(6);
    let line: Arc<[u8]> = [&vec![b'+'; LINE - 2][..], b"\r\n"].concat().into();
    // Two rounds on each of the two workers.
    let (last, bystander) = (4, 5);
    for monitor in 0..=last {
        assert_eq!(sim.ask(monitor, &["MONITOR"]), Reply::ok());
        assert_eq!(sim.ask(bystander, &["INCR", "n"]), Reply::Integer(monitor as i64 + 1));
        let Reply::Simple(told) = sim.reply(monitor) else { panic!("a line") };
        assert!(told.ends_with("\"INCR\" \"n\""), "{told}");
        // No worker runs meanwhile.
        for _ in 0..UNDERWAY_MAX as usize / LINE {
            sim.shared.post_to_monitors(&line, Hold::NONE);
        }
        if monitor == last {
            break; // the limit itself is allowed
        }
        sim.shared.post_to_monitors(&line, Hold::NONE);
        sim.run_until(|sim| sim.clients[monitor].ending.is_some());
        assert_eq!(sim.clients[monitor].ending, Some(Ending::Closed));
    }
    for _ in 0..100 {
        sim.step();
    }
    assert_eq!(sim.clients[last].ending, None);
    assert_eq!(sim.ask(bystander, &["INCR", "n"]), Reply::Integer(6));
}

/// A session in MONITOR receives lines only after a reply which is being sent in steps.
#[test]
fn a_line_is_sent_after_a_reply_in_steps() {
    let mut config = Config::default();
    config.enable_debug_command = Access::Yes;
    let mut sim = Sim::new(2, Faults::NONE, config);
    sim.connect(2);
    let (monitor, other) = (0, 1);
    assert_eq!(sim.ask(monitor, &["MONITOR"]), Reply::ok());
    assert_eq!(sim.ask(other, &["DEBUG", "POPULATE", "20000"]), Reply::ok());
    // Some hundred steps, one per turn.
    sim.clients[monitor].say(&["DEBUG", "POPULATE", "20000", "other"]);
    sim.run_until(|sim| sim.clients[monitor].has_said_all());
    (0..8).for_each(|_| sim.step());
    assert_eq!(sim.clients[monitor].take_reply(), None);
    let line: Arc<[u8]> = (*b"+a line\r\n").into();
    sim.shared.post_to_monitors(&line, Hold::NONE);
    (0..8).for_each(|_| sim.step());
    assert_eq!(sim.clients[monitor].take_reply(), None);
    assert_eq!(sim.reply(monitor), Reply::ok());
    assert_eq!(sim.reply(monitor), Reply::Simple("a line".into()));
}
