//! WAIT and WAITAOF on a server without replicas: none ever acknowledges anything, so a client that
//! asks for one waits until its timeout. WAITAOF which asks for the append-only file alone ends
//! when what the client has written is synced.

use keyspace::Kind;
use resp::Args;

use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::parse::{integer, timeout_integer};
use crate::spec::{AtOnce, Wait};

/// `WAIT numreplicas timeout`.
pub fn wait(args: Args<'_>) -> Result<Wait, Error> {
    let replicas = integer(args.get(1))?;
    let timeout_ms = timeout(args.get(2))?;
    Ok(nobody(replicas > 0, timeout_ms, AtOnce::Zero))
}

/// `WAITAOF numlocal numreplicas timeout`.
pub fn waitaof(args: Args<'_>) -> Result<Wait, Error> {
    let local = integer(args.get(1))?;
    if !(0..=1).contains(&local) {
        return Err(Error::WaitLocalRange);
    }
    // What is no number is not positive, either.
    let replicas = integer(args.get(2)).ok().filter(|replicas| *replicas >= 0);
    let replicas = replicas.ok_or(Error::NotPositive)?;
    let timeout_ms = timeout(args.get(3))?;
    let at_once = AtOnce::Synced { asks: local > 0, ends: local > 0 && replicas == 0 };
    Ok(nobody(local > 0 || replicas > 0, timeout_ms, at_once))
}

/// Neither has a key that could be taken from.
pub fn wait_take(_: &mut Ctx<'_, '_>, _: &Wait, _: usize) -> Result<Done, Error> {
    Ok(Done::Nothing)
}

fn nobody(waits: bool, timeout_ms: Option<u64>, at_once: AtOnce) -> Wait {
    let timeout_ms = if waits { timeout_ms } else { Some(0) };
    Wait {
        keys: 0..0,
        timeout_ms,
        kind: Kind::String,
        least: 1,
        further: None,
        ends_without_key: false,
        at_once,
    }
}

/// Milliseconds; 0 is for ever.
fn timeout(arg: &[u8]) -> Result<Option<u64>, Error> {
    timeout_integer(arg).map(|ms| (ms > 0).then_some(ms))
}

#[cfg(test)]
mod tests {
    use super::{wait, waitaof};
    use crate::error::Error;
    use crate::spec::Wait;
    use resp::{Args, Span};

    /// The timeout which the handler returns for a request of these words.
    fn timeout_of(handler: fn(Args<'_>) -> Result<Wait, Error>, words: &[&str]) -> Option<u64> {
        let mut spans = Vec::new();
        let mut at = 0;
        for word in words {
            spans.push(Span { start: at, len: word.len() as u32 });
            at += word.len() as u32;
        }
        handler(Args::new(words.concat().as_bytes(), &spans, &[])).expect("it is right").timeout_ms
    }

    #[test]
    fn wait_blocks_only_if_replicas_are_requested() {
        for (replicas, timeout, expected) in
            [("0", "100", Some(0)), ("1", "100", Some(100)), ("1", "0", None), ("0", "0", Some(0))]
        {
            assert_eq!(timeout_of(wait, &["WAIT", replicas, timeout]), expected);
            assert_eq!(timeout_of(waitaof, &["WAITAOF", "0", replicas, timeout]), expected);
            let waits = timeout_of(waitaof, &["WAITAOF", "1", replicas, timeout]);
            assert_eq!(waits, if timeout == "0" { None } else { Some(100) });
        }
    }
}
