//! Every limit of a load, and its error message.

use super::*;
use crate::load::Arrivals;

fn refusal(change: impl FnOnce(&mut Spec)) -> String {
    let mut spec = Spec::default();
    change(&mut spec);
    spec.check().expect_err("it is refused").to_string()
}

#[test]
fn every_limit_is_enforced_and_reported() {
    Spec::default().check().expect("the default can run");
    assert!(refusal(|s| s.connections = 0).contains("connections: 0"));
    assert!(refusal(|s| s.connections = CONNECTIONS_MAX + 1).contains("connections"));
    assert!(refusal(|s| s.threads = THREADS_MAX + 1).contains("threads"));
    assert!(refusal(|s| s.pipeline = 0).contains("pipeline"));
    assert!(refusal(|s| s.data = (5, 4)).contains("data size"));
    assert!(refusal(|s| s.keys.minimum = 1).contains("keys"));
    assert!(refusal(|s| s.keys.maximum = TEN_TO_TWELVE / 2).contains("keys"));
    assert!(refusal(|s| s.amount = Amount::Requests(0)).contains("at least one request"));
    assert!(refusal(|s| s.amount = Amount::Seconds(f64::NAN)).contains("some time"));
    assert!(refusal(|s| s.misses = 1.5).contains("misses"));
    assert!(refusal(|s| s.commands.clear()).contains("no command"));
    assert!(refusal(|s| s.commands[0].weight = 0).contains("weights"));
    assert!(refusal(|s| s.commands[0].weight = 10_001).contains("weights"));
    assert!(refusal(|s| s.verify = true).contains("50 connections"));
    assert!(refusal(|s| s.user = Some("u".to_owned())).contains("password"));
    let rate = |rate| Pacing::Open { rate, arrivals: Arrivals::Constant };
    assert!(refusal(|s| s.pacing = rate(0.0)).contains("rate"));
    assert!(refusal(|s| s.driver = Driver::Multiplexed { callers: 49 }).contains("callers: 49"));
    let zipf = Pattern::Zipf { exponent: 0.0 };
    assert!(refusal(|s| s.commands[0].pattern = zipf).contains("Zipf"));
    let hot = Pattern::HotSet { keys: 0.0, requests: 0.5 };
    assert!(refusal(|s| s.commands[0].pattern = hot).contains("hot set"));
    let unbounded = |s: &mut Spec| {
        s.driver = Driver::Unbounded;
        s.pacing = rate(1.0);
    };
    assert!(refusal(unbounded).contains("no rate"));
}
