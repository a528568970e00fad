//! The records of random requests, repeated hours later: both sessions hold the same data then.

use crate::common::pair::Pair;
use crate::common::requests::{Dice, database, populate, request};
use base::DbIndex;
use command::{CommandSpec, Handler, LockClass, registry};

/// Requests of each command.
const REQUESTS: usize = 100;
/// Requests between two comparisons.
const COMPARED_EVERY: usize = 25;

fn is_tested(spec: &CommandSpec) -> bool {
    let runs = matches!(spec.handler, Handler::Data(_) | Handler::Blocking(..));
    runs && matches!(spec.lock, LockClass::Keys | LockClass::Growing)
}

/// Random requests of each command, with time between them.
#[test]
fn repeating_all_records_leads_to_the_same_data() {
    let mut dice = Dice(23);
    let mut pair = Pair::new();
    let specs = registry::all().map(command::CommandId::spec).filter(|spec| is_tested(spec));
    let specs: Vec<&CommandSpec> = specs.collect();
    assert!(specs.len() > 150);
    for spec in &specs {
        populate(&mut pair.first);
        pair.repeat();
        for n in 0..REQUESTS {
            let request = request(spec, &mut dice);
            pair.first.db = DbIndex(database(spec, &mut dice));
            pair.first.whole = true;
            let words: Vec<&[u8]> = request.iter().map(String::as_bytes).collect();
            pair.run(&words);
            if dice.one_in(3) {
                pair.pass(dice.below(900));
            }
            if n % COMPARED_EVERY == COMPARED_EVERY - 1 {
                pair.compare();
            }
            if n == REQUESTS / 2 {
                populate(&mut pair.first);
                pair.repeat();
            }
        }
    }
    assert!(pair.records > 20_000, "{}", pair.records);
}
