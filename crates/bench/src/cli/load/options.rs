//! From the options to the loads that they ask for.

use std::net::ToSocketAddrs;

use super::args::{Args, Driver};
use super::suite;
use super::values::KeyPattern;
use crate::load::{self, Address, Amount, Command, Keys, Nil, Pacing, Spec};

/// Callers per connection without `--callers`.
const CALLERS_PER_CONNECTION: usize = 16;

impl Args {
    /// The loads, in order.
    pub(super) fn specs(&self) -> Result<Vec<Spec>, String> {
        let base = self.base()?;
        let mut specs = if let Some((sets, gets)) = self.ratio {
            vec![self.mix(base, sets, gets)]
        } else if !self.command.is_empty() {
            vec![self.commands(base)?]
        } else if !self.words.is_empty() {
            let args = self.words.iter().map(|word| word.clone().into_bytes()).collect();
            let command = Command { args, pattern: self.keys, ..Command::new(&[]) };
            vec![Spec { commands: vec![command], ..base }]
        } else {
            let names: Vec<&str> = self.tests.iter().map(String::as_str).collect();
            let names = if names.is_empty() { &["set", "get"] } else { &names[..] };
            suite::specs(names, &base, self.keys)?
        };
        for spec in &mut specs {
            if let Some(pattern) = self.key_pattern
                && self.ratio.is_none()
            {
                for command in &mut spec.commands {
                    let is_set = command.args[0].eq_ignore_ascii_case(b"SET");
                    command.pattern = if is_set { pattern.set } else { pattern.get };
                }
            }
            spec.check().map_err(|error| error.to_string())?;
        }
        Ok(specs)
    }

    fn base(&self) -> Result<Spec, String> {
        let keys = match (self.key_minimum, self.key_maximum) {
            (None, None) if self.keyspace == 0 => return Err("-r: there must be a key".to_owned()),
            (None, None) => (0, self.keyspace - 1),
            (minimum, maximum) => (minimum.unwrap_or(0), maximum.unwrap_or(0)),
        };
        Ok(Spec {
            address: self.address()?,
            amount: match self.test_time {
                Some(seconds) => Amount::Seconds(seconds),
                None => Amount::Requests(self.requests.unwrap_or(100_000)),
            },
            keys: Keys { prefix: self.key_prefix.clone(), minimum: keys.0, maximum: keys.1 },
            data: self.data_size_range.unwrap_or((self.data_size, self.data_size)),
            pacing: match self.rate {
                None => Pacing::Closed,
                Some(rate) => Pacing::Open { rate, arrivals: self.arrivals },
            },
            driver: self.load_driver(),
            nil: if self.allow_nil { Nil::Allowed } else { Nil::ByCommand },
            no_delay: !self.nagle,
            ..self.spec.clone()
        })
    }

    fn address(&self) -> Result<Address, String> {
        if let Some(path) = &self.socket {
            return Ok(Address::Unix(path.clone()));
        }
        if self.driver == Driver::InProcess {
            return Ok(Spec::default().address);
        }
        let host = self.host.as_str();
        let mut found = (host, self.port)
            .to_socket_addrs()
            .map_err(|error| format!("cannot find the host {host}: {error}"))?;
        let first = found.next().ok_or_else(|| format!("the host {host} has no address"))?;
        Ok(Address::Tcp(first))
    }

    fn load_driver(&self) -> load::Driver {
        match self.driver {
            Driver::LockStep => load::Driver::LockStep,
            Driver::Window => load::Driver::Window,
            Driver::Multiplexed => load::Driver::Multiplexed {
                callers: self.callers.unwrap_or(self.spec.connections * CALLERS_PER_CONNECTION),
            },
            Driver::Unbounded => load::Driver::Unbounded,
            Driver::InProcess => load::Driver::InProcess,
        }
    }

    fn mix(&self, base: Spec, sets: u32, gets: u32) -> Spec {
        let pattern = self.key_pattern.unwrap_or(KeyPattern { set: self.keys, get: self.keys });
        let set = Command::new(&["SET", "__key__", "__data__"]);
        let get = Command::new(&["GET", "__key__"]);
        let mut commands = vec![
            Command { weight: sets, pattern: pattern.set, ..set },
            Command { weight: gets, pattern: pattern.get, ..get },
        ];
        commands.retain(|one| one.weight > 0);
        Spec { commands, name: format!("{sets}:{gets} set:get"), ..base }
    }

    fn commands(&self, base: Spec) -> Result<Spec, String> {
        if !self.command_ratio.is_empty() && self.command_ratio.len() != self.command.len() {
            return Err(format!(
                "--command-ratio is given {} times for {} commands",
                self.command_ratio.len(),
                self.command.len()
            ));
        }
        let commands = self.command.iter().enumerate().map(|(at, text)| {
            let words: Vec<&str> = text.split_whitespace().collect();
            let weight = self.command_ratio.get(at).copied().unwrap_or(1);
            Command { weight, pattern: self.keys, ..Command::new(&words) }
        });
        Ok(Spec { commands: commands.collect(), ..base })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::load::Pattern;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn specs(line: &str) -> Result<Vec<Spec>, String> {
        let words = ["load"].into_iter().chain(line.split_whitespace());
        Line::try_parse_from(words).map_err(|error| error.to_string())?.args.specs()
    }

    fn one(line: &str) -> Spec {
        let mut all = specs(line).expect("these options are right");
        assert_eq!(all.len(), 1, "{line}");
        all.pop().expect("there is one")
    }

    #[test]
    fn options_of_redis_benchmark_are_parsed() {
        let spec = one("-h localhost -p 7000 -a secret -c 3 -n 10 -d 8 -P 4 -r 100 -t set -3");
        assert!(matches!(spec.address, Address::Tcp(at) if at.port() == 7000));
        assert_eq!((spec.connections, spec.pipeline, spec.data), (3, 4, (8, 8)));
        assert_eq!((spec.amount, spec.keys.maximum), (Amount::Requests(10), 99));
        assert!(spec.resp3 && spec.password.as_deref() == Some("secret"));
        let spec = one("-s /tmp/x.sock --user u -a p --dbnum 2 --threads 2 -q --csv PING -n 3");
        assert_eq!(spec.address, Address::Unix("/tmp/x.sock".into()));
        assert_eq!((spec.db, spec.threads, spec.user.as_deref()), (2, 2, Some("u")));
        assert_eq!(spec.commands[0].args, [&b"PING"[..], b"-n", b"3"]);
        assert_eq!(specs("").expect("the default can run").len(), 2);
        assert_eq!(one("-c 9 -t set -c 8").connections, 8, "the last one counts");
    }

    #[test]
    fn options_of_memtier_benchmark_are_parsed() {
        let spec = one("--ratio 1:10 --test-time 2 --key-pattern P:Z --distinct-client-seed \
             --data-size-range 10-20 --key-minimum 5 --key-maximum 9 --key-prefix m-");
        assert_eq!(spec.amount, Amount::Seconds(2.0));
        let patterns: Vec<_> = spec.commands.iter().map(|c| (c.weight, c.pattern)).collect();
        let zipf = Pattern::Zipf { exponent: 0.99 };
        assert_eq!(patterns, [(1, Pattern::Parallel), (10, zipf)]);
        assert!(spec.distinct_client_seed && spec.data == (10, 20));
        assert_eq!((spec.keys.minimum, spec.keys.maximum, &spec.keys.prefix[..]), (5, 9, "m-"));
        assert_eq!(one("--ratio 0:1").commands.len(), 1);
    }

    #[test]
    fn additional_options_are_parsed() {
        let spec = one("--rate 500 --arrivals constant -t get --keys hot-set:0.1,0.9 --misses 0.5");
        let arrivals = load::Arrivals::Constant;
        assert_eq!(spec.pacing, Pacing::Open { rate: 500.0, arrivals });
        let hot = Pattern::HotSet { keys: 0.1, requests: 0.9 };
        assert_eq!(spec.commands[0].pattern, hot);
        let spec = one("--driver multiplexed -c 2 --verify -r 9 -t set");
        assert_eq!(spec.driver, load::Driver::Multiplexed { callers: 32 });
        assert!(spec.verify);
    }

    #[test]
    fn invalid_options_are_reported() {
        let error = |line: &str| specs(line).expect_err("these are wrong");
        assert!(error("--ratio 0:0").contains("1:10"));
        assert!(error("--ratio 1:1 -t set").contains("cannot be used"));
        assert!(error("--data-size-range 9-3").contains("10-100"));
        assert!(error("--key-pattern X:R").contains("R:R"));
        assert!(error("--keys zipf:abc").contains("no numbers"));
        assert!(error("--keys nothing").contains("hot-set"));
        assert!(error("-t nothing").contains("nothing"));
        assert!(error("-c 0").contains("connections"));
        assert!(error("-r 0").contains("must be a key"));
        assert!(error("-n 1 --test-time 1").contains("cannot be used"));
        assert!(error("-h host.invalid").contains("host.invalid"));
    }
}
