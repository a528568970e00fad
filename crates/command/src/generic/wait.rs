//! WAIT and WAITAOF on a server without replicas and without an append-only file: nobody will ever
//! acknowledge anything, so whoever asks for it waits for its time.

use keyspace::Kind;
use resp::Args;

use crate::ctx::Ctx;
use crate::error::Error;
use crate::parse::integer;
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
    let replicas = integer(args.get(2))?;
    if replicas < 0 {
        return Err(Error::NotPositive);
    }
    let timeout_ms = timeout(args.get(3))?;
    if local > 0 {
        return Err(Error::WaitLocalOff);
    }
    Ok(nobody(replicas > 0, timeout_ms, AtOnce::Zeros))
}

/// Neither has a key that could be taken from.
pub fn wait_take(_: &mut Ctx<'_, '_>, _: &Wait, _: usize) -> Result<bool, Error> {
    Ok(false)
}

fn nobody(waits: bool, timeout_ms: Option<u64>, at_once: AtOnce) -> Wait {
    let timeout_ms = if waits { timeout_ms } else { Some(0) };
    Wait { keys: 0..0, timeout_ms, kind: Kind::String, further: None, at_once }
}

/// Milliseconds; 0 is for ever.
fn timeout(arg: &[u8]) -> Result<Option<u64>, Error> {
    let ms = integer(arg).map_err(|_| Error::TimeoutNotInteger)?;
    match u64::try_from(ms) {
        Ok(0) => Ok(None),
        Ok(ms) => Ok(Some(ms)),
        Err(_) => Err(Error::TimeoutNegative),
    }
}

#[cfg(test)]
mod tests {
    use super::wait;
    use resp::{Args, Span};

    #[test]
    fn who_asks_for_a_replica_waits() {
        for (request, expected) in
            [("W0100", Some(0)), ("W1100", Some(100)), ("W10", None), ("W00", Some(0))]
        {
            let timeout = request.len() as u32 - 2;
            let spans = [(0, 1), (1, 1), (2, timeout)].map(|(start, len)| Span { start, len });
            let waits = wait(Args::new(request.as_bytes(), &spans, &[])).expect("it is right");
            assert_eq!(waits.timeout_ms, expected, "{request}");
        }
    }
}
