//! Variants on one connection: who sleeps, and how many share it.

use std::time::Duration;

use client::{Address, Client, Value};

use crate::lab::io;
use crate::lab::subject;
use crate::lab::target::Started;
use crate::load::{Driver, Spec};

use super::evidence::middle;
use super::measure::{Seen, Way};

/// Longest wait for a setting.
const WAIT: Duration = Duration::from_secs(2);
/// The setting, where a server has it: how long a worker looks for requests before it sleeps.
const SETTING: &[u8] = b"busy-poll-us";
/// Busy polling that never gives up between two requests.
const ALWAYS_US: &str = "1000000";
/// A variant may take so many times as long as the load as it is,
const LONGER: f64 = 2.0;
/// and so many seconds in any case.
const SECONDS_MIN: f64 = 1.0;
/// Callers that share the connection.
pub const CALLERS: usize = 50;

/// A variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// The client polls without sleeping; the server as it is.
    ClientSpins,
    /// The server sleeps at once.
    ServerSleeps,
    /// The server does not sleep.
    ServerSpins,
    /// Neither sleeps.
    BothSpin,
    /// Many callers share the connection.
    Multiplexed,
}

impl Variant {
    /// In tables and plots.
    pub fn words(self) -> &'static str {
        match self {
            Self::ClientSpins => "client never sleeps",
            Self::ServerSleeps => "server sleeps at once",
            Self::ServerSpins => "server never sleeps",
            Self::BothSpin => "neither sleeps",
            Self::Multiplexed => "50 callers share it",
        }
    }
}

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
pub fn measure(target: &Started, load: &Spec, seen: &mut Seen) {
    let Some(address) = io::ways(target).into_iter().next() else { return };
    let spec = Spec {
        target: seen.name.clone(),
        address,
        connections: 1,
        server_pid: subject::process(target),
        ..load.clone()
    };
    let spins = Spec { spin: true, ..spec.clone() };
    let shared = Spec { driver: Driver::Multiplexed { callers: CALLERS }, ..spec.clone() };
    put_on(Variant::ClientSpins, &spins, seen);
    put_on(Variant::Multiplexed, &shared, seen);
    let Some(mut setting) = Setting::of(&target.address()) else { return };
    if setting.set(b"0") {
        put_on(Variant::ServerSleeps, &spec, seen);
    }
    if setting.set(ALWAYS_US.as_bytes()) {
        put_on(Variant::ServerSpins, &spec, seen);
        put_on(Variant::BothSpin, &spins, seen);
    }
}

/// Puts a variant on, for not much longer than the load as it is took: where client and server
/// share a core, somebody who does not sleep keeps the other from it.
fn put_on(variant: Variant, spec: &Spec, seen: &mut Seen) {
    let spec = Spec { name: format!("set, {}", variant.words()), ..spec.clone() };
    let as_it_is = seen.points.get(&(Way::of(&spec.address), 1));
    let took = as_it_is.and_then(|point| middle(&point.loads, |load| load.seconds));
    let seconds = took.map_or(f64::INFINITY, |took| (LONGER * took).max(SECONDS_MIN));
    if let Some(one) = seen.run_for(&spec, seconds) {
        seen.variants.entry(variant).or_default().push(one);
    }
}
