//! Every limit of a load, and what is said about it.

use super::*;
use crate::load::Arrivals;

fn told(change: impl FnOnce(&mut Spec)) -> String {
    let mut spec = Spec::default();
    change(&mut spec);
    spec.check().expect_err("it is refused").to_string()
}

#[test]
fn every_limit_holds_and_is_told() {
    Spec::default().check().expect("the default can run");
    assert!(told(|s| s.connections = 0).contains("connections: 0"));
    assert!(told(|s| s.connections = CONNECTIONS_MAX + 1).contains("connections"));
    assert!(told(|s| s.threads = THREADS_MAX + 1).contains("threads"));
    assert!(told(|s| s.pipeline = 0).contains("pipeline"));
    assert!(told(|s| s.data = (5, 4)).contains("data size"));
    assert!(told(|s| s.keys.minimum = 1).contains("keys"));
    assert!(told(|s| s.keys.maximum = TEN_TO_TWELVE / 2).contains("keys"));
    assert!(told(|s| s.amount = Amount::Requests(0)).contains("at least one request"));
    assert!(told(|s| s.amount = Amount::Seconds(f64::NAN)).contains("some time"));
    assert!(told(|s| s.misses = 1.5).contains("misses"));
    assert!(told(|s| s.commands.clear()).contains("no command"));
    assert!(told(|s| s.commands[0].weight = 0).contains("weights"));
    assert!(told(|s| s.commands[0].weight = 10_001).contains("weights"));
    assert!(told(|s| s.verify = true).contains("50 connections"));
    assert!(told(|s| s.user = Some("u".to_owned())).contains("password"));
    let rate = |rate| Pacing::Open { rate, arrivals: Arrivals::Constant };
    assert!(told(|s| s.pacing = rate(0.0)).contains("rate"));
    assert!(told(|s| s.driver = Driver::Multiplexed { callers: 49 }).contains("callers: 49"));
    let zipf = Pattern::Zipf { exponent: 0.0 };
    assert!(told(|s| s.commands[0].pattern = zipf).contains("Zipf"));
    let hot = Pattern::HotSet { keys: 0.0, requests: 0.5 };
    assert!(told(|s| s.commands[0].pattern = hot).contains("hot set"));
    let unbounded = |s: &mut Spec| {
        s.driver = Driver::Unbounded;
        s.pacing = rate(1.0);
    };
    assert!(told(unbounded).contains("no rate"));
}
