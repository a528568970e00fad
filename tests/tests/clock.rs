//! Short commands of a batch share a clock reading. A command with many arguments is timed
//! separately, in the statistics, in SLOWLOG and in LATENCY.

use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

/// Members of the long command: it just fits into one read of the server.
const MEMBERS: usize = 3_200;
/// Short commands in the same batch.
const SHORT: usize = 30;
/// Attempts: a process may be preempted in the middle of a short command.
const TRIES: usize = 20;

/// Microseconds of a call of a command, on average.
fn usec_per_call(wire: &mut Wire, command: &str) -> f64 {
    let Value::Bulk(text) = wire.command(&["INFO", "commandstats"]).expect("a reply") else {
        panic!("INFO is text")
    };
    let text = String::from_utf8(text).expect("text");
    let line = text.lines().find(|line| line.starts_with(&format!("cmdstat_{command}:")));
    let line = line.unwrap_or_else(|| panic!("{command} in {text}"));
    let figure = line.split(',').find_map(|part| part.strip_prefix("usec_per_call="));
    figure.and_then(|figure| figure.parse().ok()).expect("a number")
}

fn many(command: &str, key: &str, round: usize) -> Vec<u8> {
    let mut args = vec![command.to_owned(), format!("{key}:{round}")];
    for n in 0..MEMBERS {
        args.extend(["1".into(), format!("{}", n * 7919 % 100_003)]);
    }
    encode(&args)
}

#[test]
fn a_command_with_many_arguments_has_a_time_of_its_own() {
    let server = ServerProcess::start(&Binary::under_test(), &["--threads", "1"]);
    let mut wire = Wire::connect(server.addr).expect("the server accepts connections");
    let mut ratios = Vec::new();
    for round in 0..TRIES {
        wire.command(&["CONFIG", "RESETSTAT"]).expect("a reply");
        let mut batch = many("ZADD", "z", round);
        (0..SHORT).for_each(|_| batch.extend(encode(&["GET", "k"])));
        wire.send(&batch).expect("a server that reads");
        (0..=SHORT).for_each(|_| _ = wire.receive().expect("a reply"));
        let [long, short] = ["zadd", "get"].map(|command| usec_per_call(&mut wire, command));
        ratios.push(long / short.max(0.01));
        // With a shared clock reading both are equal.
        if long > 10.0 * short {
            return;
        }
    }
    panic!("a call of ZADD takes so many times as long as one of GET: {ratios:?}");
}
