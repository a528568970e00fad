//! Variants on one connection: who sleeps, and how many share it.

use std::time::{Duration, Instant};

use client::{Address, Client, Value};

use super::subject::{BOTH_AWAKE, CLIENT_AWAKE, SERVER_AWAKE, SERVER_SLEEPS, SHARED, Subject, way};
use crate::lab::io;
use crate::lab::record::middle;
use crate::lab::target::Started;
use crate::load::{Driver, Spec};
use crate::result::Sample;

/// Longest wait for a setting.
const WAIT: Duration = Duration::from_secs(2);
/// The setting, where a server has it: how long an idle worker polls before it sleeps.
const SETTING: &[u8] = b"busy-poll-us";
/// Busy polling that never gives up between two requests.
const ALWAYS_US: &str = "1000000";
/// A variant may take so many times as long as the load as it is,
const LONGER: f64 = 2.0;
/// and so many seconds in any case.
const SECONDS_MIN: f64 = 1.0;
/// Callers that share the connection.
const CALLERS: usize = 50;

/// A setting that is put back when this is dropped.
struct Setting {
    client: Client,
    before: Vec<u8>,
}

impl Setting {
    /// The setting of a server that has it.
    fn of(address: &Address) -> Option<Self> {
        let mut client = Client::connect(address, WAIT).ok()?;
        let before = match client.call(&[b"CONFIG", b"GET", SETTING]).ok()? {
            Value::Array(pair) => match &pair[..] {
                [_, value] => value.as_bytes()?.to_vec(),
                _ => return None,
            },
            _ => return None,
        };
        Some(Self { client, before })
    }

    /// Changes it; true if it was taken.
    fn set(&mut self, value: &[u8]) -> bool {
        self.client
            .call(&[b"CONFIG", b"SET", SETTING, value])
            .is_ok_and(|reply| reply == Value::ok())
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        let before = std::mem::take(&mut self.before);
        // If the server is gone there is nothing to be put back.
        let _ = self.set(&before);
    }
}

/// Measures all variants that a target lets itself be asked for.
pub fn measure(target: &Started, load: &Spec, subject: &mut Subject) {
    let Some(address) = io::ways(target).into_iter().next() else { return };
    let as_it_is = subject.record.at(way(&address), 1);
    let took = middle(&as_it_is, |seen| seen.measurement.seconds);
    // Not for much longer than the load as it is took: where client and server share a core,
    // a side that does not sleep keeps the other from it.
    let seconds = if took.is_nan() { f64::INFINITY } else { (LONGER * took).max(SECONDS_MIN) };
    let spec = subject.at(target, address, "", &Spec { connections: 1, ..load.clone() });
    let mut put_on = |variant: &str, spec: &Spec| {
        let spec = Spec { name: format!("set, {variant}"), ..spec.clone() };
        subject.record.run_until(variant, &spec, &mut lasts(seconds));
    };
    let spins = Spec { spin: true, ..spec.clone() };
    put_on(CLIENT_AWAKE, &spins);
    put_on(SHARED, &Spec { driver: Driver::Multiplexed { callers: CALLERS }, ..spec.clone() });
    let Some(mut setting) = Setting::of(&target.address()) else { return };
    if setting.set(b"0") {
        put_on(SERVER_SLEEPS, &spec);
    }
    if setting.set(ALWAYS_US.as_bytes()) {
        put_on(SERVER_AWAKE, &spec);
        put_on(BOTH_AWAKE, &spins);
    }
}

/// True once so many seconds have gone by.
pub fn lasts(seconds: f64) -> impl FnMut(&[Sample]) -> bool {
    let began = Instant::now();
    move |_| began.elapsed().as_secs_f64() >= seconds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::target::Target;
    use crate::load::{self, Amount};
    use crate::models::{Model, Options, serve};

    /// Regression: on one core, next to other programs, the spinning client kept the server from
    /// running, so that its 2,000 requests took minutes.
    #[test]
    fn a_load_ends_at_its_time_limit_and_is_counted() {
        let running = serve(Model::EventLoop, &Options::default()).expect("a free port");
        let target = Target::parse(&running.address.to_string());
        let target = target.expect("HOST:PORT").start().expect("it runs");
        let mut one = Subject::new(&target, 20.0);
        let address = load::Address::Tcp(running.address);
        let amount = Amount::Requests(u64::MAX);
        let spec = Spec { address, connections: 1, amount, sample_s: 0.05, ..Spec::default() };
        let seen = one.record.run_until("TCP", &spec, &mut lasts(0.2));
        let requests = seen.expect("no request fails").measurement.requests;
        assert!(requests > 0 && requests < u64::MAX, "{requests}");
        assert!(one.record.points.iter().all(|point| point.fault.is_none()));
    }
}
