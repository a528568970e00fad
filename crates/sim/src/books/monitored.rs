//! What clients have sent, and what MONITOR has shown of it: each command of a connection once, in
//! the order of the connection, and no command behind one that followed its reply.

use client::Value;
use server::config::parse::quoted;
use std::collections::BTreeMap;

/// Whether MONITOR shows a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Yes,
    /// It failed, or had no reply, or waits for EXEC.
    Maybe,
    Never,
}

/// A command of a connection.
#[derive(Debug)]
struct Sent {
    text: String,
    call: u64,
    /// `u64::MAX`: without a reply, or with no other one than that it is queued.
    ret: u64,
    shown: Shown,
}

/// The commands of a connection, in its order.
#[derive(Debug, Default)]
struct Connection {
    sent: Vec<Sent>,
    answered: usize,
    /// Commands in MULTI.
    queued: Vec<usize>,
}

/// What a monitor has seen.
#[derive(Debug, Default)]
pub struct Feed {
    /// The tick of MONITOR, and that of its reply.
    pub began: (u64, u64),
    /// Addresses and commands, in their order.
    pub lines: Vec<(String, String)>,
    /// It has stayed until all others had left.
    pub is_whole: bool,
}

/// All commands and all monitors.
#[derive(Debug, Default)]
pub struct Monitored {
    connections: BTreeMap<String, Connection>,
    feeds: Vec<Feed>,
}

/// The arguments as MONITOR shows them.
fn shown(args: &[Vec<u8>]) -> String {
    args.iter().map(|arg| quoted(arg)).collect::<Vec<_>>().join(" ")
}

/// Whether a command is shown that was answered so.
fn is_shown(text: &str, reply: &Value) -> Shown {
    let text = text.to_ascii_uppercase();
    let is = |name: &str| text.starts_with(&format!("\"{name}\""));
    let is_administration = ["CONFIG", "DEBUG", "LATENCY", "CLIENT"].into_iter().any(is);
    if is_administration && !text.starts_with("\"CLIENT\" \"ID\"") {
        Shown::Never
    } else if reply.is_error() || *reply == Value::simple("QUEUED") {
        Shown::Maybe
    } else {
        Shown::Yes
    }
}

impl Monitored {
    /// A connection has sent a command.
    pub fn sent(&mut self, addr: &str, args: &[Vec<u8>], call: u64) {
        let sent = Sent { text: shown(args), call, ret: u64::MAX, shown: Shown::Maybe };
        self.connections.entry(addr.to_owned()).or_default().sent.push(sent);
    }

    /// The next command of a connection was answered.
    pub fn answered(&mut self, addr: &str, ret: u64, reply: &Value) {
        let Some(connection) = self.connections.get_mut(addr) else { return };
        let at = connection.answered;
        connection.answered += 1;
        let Some(sent) = connection.sent.get_mut(at) else { return };
        (sent.ret, sent.shown) = (ret, is_shown(&sent.text, reply));
        let (ends, executes) = (sent.text == "\"DISCARD\"", sent.text == "\"EXEC\"");
        if *reply == Value::simple("QUEUED") {
            sent.ret = u64::MAX; // it runs later, if ever
            connection.queued.push(at);
        } else if ends || executes {
            let executed = executes && matches!(reply, Value::Array(_));
            for queued in std::mem::take(&mut connection.queued) {
                let sent = &mut connection.sent[queued];
                (sent.ret, sent.shown) = (ret, if executed { Shown::Yes } else { Shown::Never });
            }
        }
    }

    /// A monitor has ended.
    pub fn add(&mut self, feed: Feed) {
        self.feeds.push(feed);
    }

    /// Lines that monitors have seen.
    pub fn len(&self) -> usize {
        self.feeds.iter().map(|feed| feed.lines.len()).sum()
    }

    /// True if there were none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether each monitor was shown what was executed.
    pub fn check(&self) -> Result<(), String> {
        self.feeds.iter().try_for_each(|feed| self.check_feed(feed))
    }

    fn check_feed(&self, feed: &Feed) -> Result<(), String> {
        let mut lines: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, (addr, text)) in feed.lines.iter().enumerate() {
            // Messages of producers have no connection of a client.
            if addr != "ingest" {
                if !self.connections.contains_key(addr) {
                    return Err(format!("MONITOR shows {text} of {addr}, which is nobody"));
                }
                lines.entry(addr).or_default().push(at);
            }
        }
        let mut commands: BTreeMap<usize, &Sent> = BTreeMap::new();
        for (addr, connection) in &self.connections {
            let of = lines.remove(&addr[..]).unwrap_or_default();
            let found = Self::aligned(feed, &connection.sent, &of);
            let found = found.map_err(|why| format!("MONITOR: {addr}: {why}"))?;
            commands.extend(of.into_iter().zip(found));
        }
        check_order(&commands)
    }

    /// The commands which these lines of a feed show. It begins with one that was under way when
    /// the monitor began, or with the first one after that. None, if the beginning is not certain,
    /// because commands are alike.
    fn aligned<'a>(
        feed: &Feed,
        sent: &'a [Sent],
        lines: &[usize],
    ) -> Result<Vec<&'a Sent>, String> {
        let (call, ret) = feed.began;
        let first = sent.iter().position(|sent| sent.ret > call).unwrap_or(sent.len());
        let last = sent.iter().position(|sent| sent.call > ret).unwrap_or(sent.len());
        let starts = first..=last.max(first);
        let mut tried: Vec<_> =
            starts.map(|start| Self::aligned_from(feed, &sent[start..], lines)).collect();
        match tried.iter().filter(|tried| tried.is_ok()).count() {
            0 => tried.pop().unwrap_or(Ok(Vec::new())),
            1 => tried.into_iter().find(Result::is_ok).unwrap_or(Ok(Vec::new())),
            _ => Ok(Vec::new()),
        }
    }

    fn aligned_from<'a>(
        feed: &Feed,
        sent: &'a [Sent],
        lines: &[usize],
    ) -> Result<Vec<&'a Sent>, String> {
        let (mut rest, mut found) = (sent.iter(), Vec::new());
        for line in lines {
            let text = &feed.lines[*line].1;
            loop {
                let Some(next) = rest.next() else {
                    return Err(format!("shows {text} once too often, or out of order"));
                };
                if next.text == *text && next.shown != Shown::Never {
                    found.push(next);
                    break;
                }
                if next.shown == Shown::Yes {
                    return Err(format!("does not show {}, but {text}", next.text));
                }
            }
        }
        match rest.find(|sent| sent.shown == Shown::Yes) {
            Some(missing) if feed.is_whole => Err(format!("does not show {}", missing.text)),
            _ => Ok(found),
        }
    }
}

/// No command is shown after one that was sent when its reply was there.
fn check_order(commands: &BTreeMap<usize, &Sent>) -> Result<(), String> {
    let mut latest: Option<&Sent> = None;
    for command in commands.values() {
        if let Some(latest) = latest
            && command.ret < latest.call
        {
            let (a, b) = (&command.text, &latest.text);
            return Err(format!("MONITOR shows {a} after {b}, which followed its reply"));
        }
        if latest.is_none_or(|latest| latest.call < command.call) {
            latest = Some(command);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Connection `a` sends one command after the other from tick 10 on, and has these replies.
    fn monitored(commands: &[(&str, Value)]) -> Monitored {
        let mut all = Monitored::default();
        for (at, (text, reply)) in commands.iter().enumerate() {
            let args: Vec<Vec<u8>> = text.split(' ').map(Vec::from).collect();
            all.sent("a", &args, 10 + 2 * at as u64);
            all.answered("a", 11 + 2 * at as u64, reply);
        }
        all
    }

    fn check(mut all: Monitored, lines: &[&str], is_whole: bool) -> bool {
        let line = |text: &&str| {
            let args: Vec<Vec<u8>> = text.split(' ').map(Vec::from).collect();
            ("a".to_owned(), shown(&args))
        };
        let lines = lines.iter().map(line).collect();
        all.add(Feed { began: (5, 6), lines, is_whole });
        all.check().is_ok()
    }

    #[test]
    fn a_line_which_is_missing_or_doubled_or_out_of_order_is_found() {
        let all = || {
            let [one, two] = ["GET 1", "GET 2"].map(|text| (text, Value::Null));
            monitored(&[one, ("CONFIG SET", Value::ok()), two])
        };
        assert!(check(all(), &["GET 1", "GET 2"], true));
        assert!(!check(all(), &["GET 2"], false) && !check(all(), &["GET 1"], true));
        assert!(check(all(), &["GET 1"], false), "the monitor left too early");
        assert!(!check(all(), &["GET 1", "GET 1", "GET 2"], false));
        assert!(!check(all(), &["GET 2", "GET 1"], false));
        assert!(!check(all(), &["GET 1", "CONFIG SET", "GET 2"], false));
    }

    #[test]
    fn what_is_queued_is_shown_if_it_was_executed() {
        let all = |ends: &'static str, reply| {
            let queued = ("GET 1", Value::simple("QUEUED"));
            monitored(&[("MULTI", Value::ok()), queued, (ends, reply)])
        };
        let executed = || all("EXEC", Value::Array(vec![Value::Null]));
        assert!(check(executed(), &["MULTI", "GET 1", "EXEC"], true));
        assert!(!check(executed(), &["MULTI", "EXEC"], true));
        let discarded = || all("DISCARD", Value::ok());
        assert!(check(discarded(), &["MULTI", "DISCARD"], true));
        assert!(!check(discarded(), &["MULTI", "GET 1", "DISCARD"], true));
        assert!(check(all("EXEC", Value::NullArray), &["MULTI", "EXEC"], true));
    }

    /// The client left before the reply to EXEC, which ran after a command of another client.
    #[test]
    fn what_is_queued_has_no_reply_before_that_to_exec() {
        let mut all = monitored(&[("MULTI", Value::ok()), ("GET 1", Value::simple("QUEUED"))]);
        all.sent("a", &[b"EXEC".to_vec()], 15);
        all.sent("b", &[b"GET".to_vec(), b"2".to_vec()], 20);
        all.answered("b", 21, &Value::Null);
        let args = |text: &str| text.split(' ').map(Vec::from).collect::<Vec<_>>();
        let lines = [("a", "MULTI"), ("b", "GET 2"), ("a", "GET 1"), ("a", "EXEC")];
        let lines = lines.map(|(addr, text)| (addr.to_owned(), shown(&args(text))));
        all.add(Feed { began: (5, 6), lines: lines.to_vec(), is_whole: true });
        assert_eq!(all.check(), Ok(()));
    }

    #[test]
    fn replies_order_the_lines_of_all() {
        let both = |lines: &[(&str, &str)]| {
            let mut all = monitored(&[("GET 1", Value::Null)]);
            all.sent("b", &[b"GET".to_vec(), b"2".to_vec()], 20);
            all.answered("b", 21, &Value::Null);
            let args = |text: &str| text.split(' ').map(Vec::from).collect::<Vec<_>>();
            let line = |(addr, text): &(&str, &str)| ((*addr).to_owned(), shown(&args(text)));
            let lines = lines.iter().map(line).collect();
            all.add(Feed { began: (5, 6), lines, is_whole: true });
            all.check().is_ok()
        };
        assert!(both(&[("a", "GET 1"), ("b", "GET 2")]));
        assert!(!both(&[("b", "GET 2"), ("a", "GET 1")]));
    }
}
