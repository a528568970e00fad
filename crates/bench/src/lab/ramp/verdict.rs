//! Does a driver hold back when the server is slower than it?

use super::drivers::Driven;
use crate::analysis::figure::{count, time};

/// The verdict in a sentence.
pub fn verdict(driven: &Driven) -> String {
    let seen = match &driven.seen {
        Ok(seen) => &seen.measurement,
        Err(why) => return format!("not valid: {why}"),
    };
    let most = seen.in_flight_max;
    match (driven.allowed, driven.finding().is_some()) {
        (Some(allowed), false) if most <= allowed => {
            format!("holds back: never more than {} under way", count(most as f64))
        }
        (Some(allowed), false) => {
            format!("{} under way although {allowed} are allowed", count(most as f64))
        }
        (_, true) => {
            let waits = most as f64 / seen.throughput;
            format!(
                "does not hold back: {} under way, the last waits {}",
                count(most as f64),
                time(waits * 1e6)
            )
        }
        (None, false) => "no bound of its own: this server kept up".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::measure::Seen;
    use crate::result::{Measurement, Sample};

    fn driven(allowed: Option<u64>, flights: &[f64]) -> Driven {
        let sample = |(at, flight): (usize, &f64)| Sample {
            at_s: (at + 1) as f64 * 0.01,
            throughput: 1000.0,
            p99_us: 1.0,
            in_flight: *flight,
        };
        let measurement = Measurement {
            throughput: 1000.0,
            series: flights.iter().enumerate().map(sample).collect(),
            in_flight_max: flights.iter().copied().fold(0.0, f64::max) as u64,
            ..Measurement::default()
        };
        let seen = Seen {
            measurement,
            threads: None,
            idle_cpus: 0.0,
            client_busy: None,
            client_threads: 1,
        };
        Driven { target: "t".to_owned(), driver: "d", allowed, seen: Ok(seen) }
    }

    #[test]
    fn a_bound_is_a_bound_and_none_is_found() {
        let steady = [64.0; 12];
        assert!(verdict(&driven(Some(64), &steady)).contains("never more than 64"));
        assert!(verdict(&driven(Some(32), &steady)).contains("although 32"));
        let grows: Vec<f64> = (1..=12).map(|n| f64::from(n) * 500.0).chain([9.0, 1.0]).collect();
        let told = verdict(&driven(None, &grows));
        assert!(
            told.contains("does not hold back: 6,000 under way, the last waits 6.00 s"),
            "{told}"
        );
        assert!(verdict(&driven(None, &steady)).contains("kept up"));
        let mut broken = driven(None, &grows);
        broken.seen = Err("3 lost".to_owned());
        assert!(verdict(&broken).contains("3 lost"));
    }
}
