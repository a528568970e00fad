//! Limits of a load, and what is said of one that exceeds them.

use super::error::Error;
use super::spec::{Amount, CONNECTIONS_MAX, Driver, Pacing, Pattern, Spec};
use super::template::TEN_TO_TWELVE;

/// Most requests under way on one connection (not for [`Driver::Unbounded`], which has
/// [`UNBOUNDED_BYTES_MAX`]).
pub const PIPELINE_MAX: usize = 1 << 20;
/// Most threads of the load generator.
pub const THREADS_MAX: usize = 1024;
/// Largest value, bytes: the protocol's own limit.
pub const DATA_MAX: usize = 512 * 1024 * 1024;
/// Largest sum of the weights of a mix.
pub const WEIGHTS_MAX: u64 = 10_000;

impl Spec {
    /// Refuses what cannot be run, with the reason.
    pub fn check(&self) -> Result<(), Error> {
        self.check_sizes()?;
        self.check_times()?;
        self.check_patterns()?;
        if self.commands.is_empty() || self.commands.iter().any(|one| one.args.is_empty()) {
            return refuse("there is no command to send");
        }
        let weights: u64 = self.commands.iter().map(|one| u64::from(one.weight)).sum();
        if weights == 0 || weights > WEIGHTS_MAX {
            return refuse(format!("the weights of the commands add up to 1 to {WEIGHTS_MAX}"));
        }
        if self.verify && self.keys.count() < self.connections as u64 {
            return refuse(format!(
                "verification needs a key for each connection: {} keys, {} connections",
                self.keys.count(),
                self.connections
            ));
        }
        if self.driver == Driver::Unbounded && self.pacing != Pacing::Closed {
            return refuse("the unbounded driver has no rate");
        }
        if self.user.is_some() && self.password.is_none() {
            return refuse("a user needs a password");
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), Error> {
        within("connections", self.connections, 1, CONNECTIONS_MAX)?;
        within("threads", self.threads, 1, THREADS_MAX)?;
        within("the pipeline", self.pipeline, 1, PIPELINE_MAX)?;
        within("the data size", self.data.1, self.data.0, DATA_MAX)?;
        if let Driver::Multiplexed { callers } = self.driver {
            within("callers", callers, self.connections, PIPELINE_MAX)?;
        }
        if self.driver == Driver::InProcess {
            within("connections of the in-process driver", self.connections, 1, THREADS_MAX)?;
        }
        if self.keys.minimum > self.keys.maximum || self.keys.maximum >= TEN_TO_TWELVE / 2 {
            return refuse(format!(
                "keys are numbered from their minimum to their maximum, below {}",
                TEN_TO_TWELVE / 2
            ));
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), Error> {
        let amount_ok = match self.amount {
            Amount::Requests(requests) => requests > 0,
            Amount::Seconds(seconds) => is_time(seconds) && seconds > 0.0,
        };
        if !amount_ok {
            return refuse("the load must last for at least one request or some time");
        }
        if !is_time(self.warm_up_s) || !is_time(self.timeout_s) || self.timeout_s <= 0.0 {
            return refuse("warm-up and timeout are seconds, at most a year");
        }
        if !is_time(self.sample_s) || self.sample_s < 0.001 {
            return refuse("a sample lasts for at least a millisecond");
        }
        match self.pacing {
            Pacing::Open { rate, .. } if !(rate.is_finite() && (1e-3..=1e9).contains(&rate)) => {
                refuse("the rate is 0.001 to 1,000,000,000 requests per second")
            }
            _ => Ok(()),
        }
    }

    fn check_patterns(&self) -> Result<(), Error> {
        if !(0.0..=1.0).contains(&self.misses) {
            return refuse("the share of misses is 0 to 1");
        }
        for one in &self.commands {
            match one.pattern {
                Pattern::Zipf { exponent } if !(exponent > 0.0 && exponent <= 20.0) => {
                    return refuse("the exponent of a Zipf distribution is above 0, at most 20");
                }
                Pattern::HotSet { keys, requests }
                    if !(keys > 0.0 && keys <= 1.0 && (0.0..=1.0).contains(&requests)) =>
                {
                    return refuse("a hot set is a share of the keys and a share of the requests");
                }
                _ => {}
            }
        }
        Ok(())
    }
}

const YEAR_S: f64 = 366.0 * 86_400.0;

fn is_time(seconds: f64) -> bool {
    (0.0..=YEAR_S).contains(&seconds)
}

fn within(what: &str, value: usize, low: usize, high: usize) -> Result<(), Error> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    refuse(format!("{what}: {value} is not between {low} and {high}"))
}

fn refuse<T>(why: impl Into<String>) -> Result<T, Error> {
    Err(Error::Options(why.into()))
}

#[cfg(test)]
mod tests;
