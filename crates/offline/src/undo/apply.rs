//! One transaction which brings the keys back.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use client::Value;

use super::compare::{Action, decide, matching, parts, states, strange};
use crate::connection::{Asked, Failure, said};

/// The running server is asked something so often, while the other one is asked for names.
const SILENT_MAX: Duration = Duration::from_millis(300);
/// How often the transaction is tried while others change the keys.
const TRIES: usize = 5;
/// Keys that are watched by one request.
const WATCHED: usize = 1000;

/// The server with the old data, the running one, and what is wanted.
pub struct Undo<'a> {
    pub old: &'a mut Asked,
    pub now: &'a mut Asked,
    pub pattern: &'a [u8],
    pub is_dry: bool,
}

/// What is done with keys, and how many are left as they are.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub actions: Vec<(Vec<u8>, Action)>,
    pub unchanged: u64,
}

impl Undo<'_> {
    /// Compares the keys, and brings them back unless it is a dry run. Others may change keys
    /// meanwhile: then nothing is done, and all begins again, a few times.
    pub fn run(&mut self) -> Result<Plan, Failure> {
        for _ in 0..TRIES {
            let plan = self.plan()?;
            if self.is_dry || plan.actions.is_empty() {
                return Ok(plan); // (the connection ends, and with it what it watches)
            }
            if self.apply(&plan)? {
                return Ok(plan);
            }
        }
        Err(format!(
            "nothing was changed: others have changed the keys during each of {TRIES} attempts"
        ))
    }

    /// Watches the keys of both servers which match, unless it is a dry run, and then compares
    /// them.
    fn plan(&mut self) -> Result<Plan, Failure> {
        let mut keys = BTreeSet::new();
        // (The running server is not left without a request for long: it may have a `timeout`.)
        let mut asked = Instant::now();
        let now = &mut *self.now;
        matching(self.old, self.pattern, &mut keys, || {
            if asked.elapsed() > SILENT_MAX {
                now.call(&[b"PING"])?;
                asked = Instant::now();
            }
            Ok(())
        })?;
        matching(self.now, self.pattern, &mut keys, || Ok(()))?;
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let watched: &[&[u8]] = if self.is_dry { &[] } else { &keys };
        for some in watched.chunks(WATCHED) {
            let words: Vec<&[u8]> =
                [&b"WATCH"[..]].into_iter().chain(some.iter().copied()).collect();
            self.now.call(&words)?;
        }
        let mut plan = Plan::default();
        for part in parts(&mut [&mut *self.old, &mut *self.now], &keys)? {
            let (old, now) = (states(self.old, &part)?, states(self.now, &part)?);
            for ((key, old), now) in part.iter().zip(&old).zip(&now) {
                match decide(old.as_ref(), now.as_ref()) {
                    Some(action) => plan.actions.push((key.to_vec(), action)),
                    None => plan.unchanged += u64::from(old.is_some()),
                }
            }
        }
        Ok(plan)
    }

    /// Queues all actions, and runs them. False if a watched key was changed.
    fn apply(&mut self, plan: &Plan) -> Result<bool, Failure> {
        let keys: Vec<&[u8]> = plan.actions.iter().map(|(key, _)| key.as_slice()).collect();
        // Both are asked, so that none is silent for long.
        let parts = parts(&mut [&mut *self.old, &mut *self.now], &keys)?;
        self.now.call(&[b"MULTI"])?;
        for part in parts {
            self.queue(&part)?;
        }
        match self.now.try_call(&[b"EXEC"])? {
            Value::Null | Value::NullArray => Ok(false),
            Value::Error(text) => Err(format!("nothing was changed: {}", said(b"EXEC", &text))),
            reply => {
                let replies = reply.as_members().ok_or_else(|| strange("EXEC"))?;
                let mut failed = plan.actions.iter().zip(replies).filter(|(_, r)| r.is_error());
                match failed.next() {
                    None => Ok(true),
                    Some(((key, _), reply)) => Err(format!(
                        "the key '{}' could not be brought back, the others were: {}",
                        key.escape_ascii(),
                        String::from_utf8_lossy(reply.as_bytes().unwrap_or_default())
                    )),
                }
            }
        }
    }

    /// Queues what brings these keys back. (A key may have expired in the old data meanwhile.)
    fn queue(&mut self, keys: &[&[u8]]) -> Result<(), Failure> {
        let states = states(self.old, keys)?;
        let expiries: Vec<String> = states
            .iter()
            .map(|state| state.as_ref().map_or(0, |state| state.expires.max(0)).to_string())
            .collect();
        let mut requests = Vec::with_capacity(keys.len());
        for ((key, state), expires) in keys.iter().zip(&states).zip(&expiries) {
            let mut words: Vec<&[u8]> = match state {
                None => vec![b"DEL", key],
                Some(state) => vec![b"RESTORE", key, expires.as_bytes(), &state.payload],
            };
            match state {
                None => {}
                Some(state) if state.expires < 0 => words.push(b"REPLACE"),
                Some(_) => words.extend([&b"REPLACE"[..], b"ABSTTL"]),
            }
            requests.push(words);
        }
        self.now.pipeline(&requests).map(drop)
    }
}

#[cfg(test)]
mod tests;
