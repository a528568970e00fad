//! The arguments of `HOTKEYS`. Syntax and names are those of Redis 8.6:
//! <https://redis.io/docs/latest/commands/hotkeys-start/>.

use resp::Args;

use crate::error::Error;
use crate::ops::{HOTKEYS_COUNT_DEFAULT, HOTKEYS_COUNT_MAX, HotKeysOp, HotKeysSession, ServerOp};
use crate::parse::{self, is};

/// `HOTKEYS GET`.
pub fn get(_: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::HotKeys(HotKeysOp::Get))
}

/// `HOTKEYS STOP`.
pub fn stop(_: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::HotKeys(HotKeysOp::Stop))
}

/// `HOTKEYS RESET`.
pub fn reset(_: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::HotKeys(HotKeysOp::Reset))
}

/// `HOTKEYS START METRICS count [CPU] [NET] [COUNT k] [DURATION seconds] [SAMPLE ratio]`.
pub fn start(args: Args<'_>) -> Result<ServerOp, Error> {
    let mut session = HotKeysSession {
        cpu: false,
        net: false,
        count: HOTKEYS_COUNT_DEFAULT,
        seconds: 0,
        ratio: 1,
    };
    let mut at = metrics(args, &mut session)?;
    while at < args.len() {
        let word = args.get(at);
        if is(word, "SLOTS") {
            return Err(Error::HotKeysSlots);
        }
        let value = args.try_get(at + 1).ok_or(Error::Syntax)?;
        if is(word, "COUNT") {
            session.count = number(value, HOTKEYS_COUNT_MAX).ok_or(Error::HotKeysCount)?;
        } else if is(word, "DURATION") {
            session.seconds = number(value, u32::MAX).ok_or(Error::HotKeysDuration)?;
        } else if is(word, "SAMPLE") {
            session.ratio = number(value, u32::MAX).ok_or(Error::HotKeysSample)?;
        } else {
            return Err(Error::Syntax);
        }
        at += 2;
    }
    Ok(ServerOp::HotKeys(HotKeysOp::Start(session)))
}

/// Reads the metrics, which come first. Returns where they end.
fn metrics(args: Args<'_>, session: &mut HotKeysSession) -> Result<usize, Error> {
    if !args.try_get(2).is_some_and(|word| is(word, "METRICS")) {
        return Err(Error::HotKeysMetrics);
    }
    let count = args.try_get(3).and_then(|count| number(count, 2u8));
    let end = 4 + usize::from(count.ok_or(Error::HotKeysMetrics)?);
    for at in 4..end {
        let metric = match args.try_get(at) {
            Some(word) if is(word, "CPU") => &mut session.cpu,
            Some(word) if is(word, "NET") => &mut session.net,
            _ => return Err(Error::HotKeysMetrics),
        };
        if std::mem::replace(metric, true) {
            return Err(Error::HotKeysMetrics);
        }
    }
    Ok(end)
}

/// A number from 1 to `most`.
fn number<N: TryFrom<i64> + Into<i64>>(text: &[u8], most: N) -> Option<N> {
    let value = parse::integer(text).ok()?;
    (1..=most.into()).contains(&value).then(|| N::try_from(value).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use resp::OwnedRequest;

    fn parsed(line: &str) -> Result<HotKeysSession, Error> {
        let request = OwnedRequest::of(line.split(' ').map(str::as_bytes));
        match start(request.args())? {
            ServerOp::HotKeys(HotKeysOp::Start(session)) => Ok(session),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn start_takes_its_options_in_any_order() {
        let plain = HotKeysSession { cpu: true, net: false, count: 10, seconds: 0, ratio: 1 };
        assert_eq!(parsed("hotkeys start metrics 1 cpu"), Ok(plain));
        let all = HotKeysSession { cpu: true, net: true, count: 64, seconds: 5, ratio: 100 };
        let line = "HOTKEYS START METRICS 2 NET CPU SAMPLE 100 COUNT 64 DURATION 5";
        assert_eq!(parsed(line), Ok(all));
    }

    #[test]
    fn bad_options_of_start_are_named() {
        for (options, error) in [
            ("", Error::HotKeysMetrics),
            (" COUNT 5", Error::HotKeysMetrics),
            (" METRICS", Error::HotKeysMetrics),
            (" METRICS 0", Error::HotKeysMetrics),
            (" METRICS 3 CPU NET CPU", Error::HotKeysMetrics),
            (" METRICS 2 CPU", Error::HotKeysMetrics),
            (" METRICS 2 CPU CPU", Error::HotKeysMetrics),
            (" METRICS 1 DISK", Error::HotKeysMetrics),
            (" METRICS 1 CPU NET", Error::Syntax),
            (" METRICS 1 CPU COUNT", Error::Syntax),
            (" METRICS 1 CPU COUNT 0", Error::HotKeysCount),
            (" METRICS 1 CPU COUNT 65", Error::HotKeysCount),
            (" METRICS 1 CPU DURATION -1", Error::HotKeysDuration),
            (" METRICS 1 CPU DURATION 99999999999", Error::HotKeysDuration),
            (" METRICS 1 CPU SAMPLE x", Error::HotKeysSample),
            (" METRICS 1 CPU SLOTS 1 5", Error::HotKeysSlots),
        ] {
            assert_eq!(parsed(&format!("HOTKEYS START{options}")), Err(error), "{options}");
        }
    }
}
