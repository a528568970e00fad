//! Reads what `strace -f -y -T -s 0` writes: which system calls, on what, with what result, for how
//! long.
//!
//! ```text
//! 4711 epoll_wait(5<anon_inode:[eventpoll]>, [{events=EPOLLIN, data={u32=8}}], 128, -1) = 1 <0.03>
//! 4712 read(8<socket:[99]>,  <unfinished ...>
//! 4711 sendto(9<socket:[98]>, ""..., 5, 0, NULL, 0) = 5 <0.000009>
//! 4712 <... read resumed>""..., 16384) = -1 EAGAIN (Resource temporarily unavailable) <0.000004>
//! ```

use std::collections::HashMap;

use super::account::{Account, histogram};

/// Calls that wait for any of many descriptors.
pub const POLLS: &[&str] = &[
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "io_uring_enter",
];
/// Calls that receive.
pub const RECEIVES: &[&str] = &["read", "readv", "recvfrom", "recvmsg", "recvmmsg"];
/// Calls that send.
pub const SENDS: &[&str] = &["write", "writev", "sendto", "sendmsg", "sendmmsg"];

/// Threads with an unfinished call that are remembered, at most.
const UNFINISHED_MAX: usize = 65_536;

/// A trace as far as it was read.
#[derive(Debug, Default)]
pub struct Trace {
    unfinished: HashMap<u32, String>,
    events: Vec<u64>,
    poll_ns: Vec<u64>,
    receives: u64,
    sends: u64,
    bytes_out: u64,
    calls: u64,
}

/// One finished call.
#[derive(Debug, PartialEq)]
struct Call<'a> {
    name: &'a str,
    arguments: &'a str,
    /// Its result; `None` for an error.
    result: Option<u64>,
    ns: Option<u64>,
}

impl Trace {
    /// Reads a whole trace.
    pub fn of(text: &str) -> Self {
        let mut trace = Self::default();
        for line in text.lines() {
            trace.line(line);
        }
        trace
    }

    /// Reads one line; what is no call (a signal, an exit) is passed over.
    pub fn line(&mut self, line: &str) {
        let (thread, text) = thread(line);
        if let Some(begin) = text.strip_suffix("<unfinished ...>") {
            if self.unfinished.len() < UNFINISHED_MAX {
                self.unfinished.insert(thread, begin.trim_end().to_owned());
            }
            return;
        }
        if let Some(rest) = text.strip_prefix("<... ") {
            let (Some(mut whole), Some((_, end))) =
                (self.unfinished.remove(&thread), rest.split_once(" resumed>"))
            else {
                return;
            };
            whole.push_str(end);
            if let Some(call) = call(&whole) {
                self.count(&call);
            }
        } else if let Some(call) = call(text) {
            self.count(&call);
        }
    }

    fn count(&mut self, call: &Call<'_>) {
        self.calls += 1;
        if POLLS.contains(&call.name) {
            self.events.push(call.result.unwrap_or(0));
            self.poll_ns.extend(call.ns);
        } else if is_on_socket(call.arguments) && RECEIVES.contains(&call.name) {
            self.receives += 1;
        } else if is_on_socket(call.arguments) && SENDS.contains(&call.name) {
            self.sends += 1;
            self.bytes_out += call.result.unwrap_or(0);
        }
    }

    /// The account of this trace over so many requests; `all`: every kind of call was traced.
    pub fn account(&self, requests: u64, all: bool) -> Account {
        Account {
            source: "strace".to_owned(),
            requests,
            polls: self.events.len() as u64,
            events: self.events.iter().sum(),
            events_per_poll: histogram(self.events.iter().copied()),
            receives: self.receives,
            sends: self.sends,
            bytes_out: self.bytes_out,
            poll_ns: histogram(self.poll_ns.iter().copied()),
            poll_total_ns: self.poll_ns.iter().sum(),
            all_calls: all.then_some(self.calls),
        }
    }
}

/// The thread in front, as `4711 ` or `[pid  4711] `; 0 if there is none.
fn thread(line: &str) -> (u32, &str) {
    let line = line.trim();
    let split = match line.strip_prefix("[pid") {
        Some(rest) => rest.split_once(']'),
        None => line.split_once(' '),
    };
    let numbered = split.and_then(|(id, rest)| Some((id.trim().parse().ok()?, rest.trim_start())));
    numbered.unwrap_or((0, line))
}

/// A call that has finished. One that had not when the trace ended (`= ?`) is none.
fn call(text: &str) -> Option<Call<'_>> {
    let (name, rest) = text.split_once('(')?;
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return None;
    }
    let (arguments, outcome) = rest.rsplit_once(" = ")?;
    let (value, tail) = outcome.split_once(' ').unwrap_or((outcome, ""));
    if value == "?" {
        return None;
    }
    let seconds = tail.rsplit_once('<').and_then(|(_, time)| time.strip_suffix('>'));
    let ns = seconds.and_then(|s| s.parse::<f64>().ok()).map(|s| (s * 1e9).round() as u64);
    let number = value.split('<').next().unwrap_or(value);
    let result = match number.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => number.parse().ok(),
    };
    Some(Call { name, arguments, result, ns })
}

/// Is its first argument a socket? Where the trace does not tell what a descriptor is, it may be.
fn is_on_socket(arguments: &str) -> bool {
    let digits = arguments.trim_start_matches(|c: char| c.is_ascii_digit());
    match digits.strip_prefix('<') {
        Some(what) => ["socket:", "TCP", "UNIX"].iter().any(|kind| what.starts_with(kind)),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded with `strace -f -y -T -s 0 -o FILE` from a server with one connection. A second
    /// connection, a log and a signal were added by hand.
    const RECORDED: &str = include_str!("recorded.strace");

    #[test]
    fn a_recorded_trace_is_counted() {
        let trace = Trace::of(RECORDED);
        let account = trace.account(2, false);
        assert_eq!((account.polls, account.events), (6, 6));
        assert_eq!(account.events_per_poll, [(0, 2), (1, 2), (2, 2)]);
        assert_eq!(account.receives, 4);
        assert_eq!((account.sends, account.bytes_out), (2, 10));
        let us = [33_157, 100_236, 65_264, 5_225, 30, 276];
        assert_eq!(account.poll_total_ns, us.iter().map(|us| us * 1000).sum::<u64>());
        assert_eq!(account.all_calls, None);
        assert_eq!(trace.account(2, true).all_calls, Some(19));
    }

    #[test]
    fn interleaved_calls_of_two_threads_are_joined() {
        let trace = Trace::of(
            "11 read(8<socket:[1]>,  <unfinished ...>\n\
             12 epoll_wait(5,  <unfinished ...>\n\
             11 <... read resumed>\"\"..., 16384) = 35 <0.000100>\n\
             12 <... epoll_wait resumed>[{events=EPOLLIN, data=1}], 9, -1) = 1 <0.000200>\n\
             13 <... read resumed>\"\"..., 16384) = 35 <0.000100>\n",
        );
        let account = trace.account(1, true);
        assert_eq!((account.receives, account.polls, account.all_calls), (1, 1, Some(2)));
        assert_eq!(account.poll_ns, [(131_072, 1)]);
    }

    #[test]
    fn all_forms_of_a_line_are_parsed() {
        let one = |text| call(thread(text).1).map(|call| (call.name, call.result, call.ns));
        assert_eq!(one("read(3, \"\", 1) = 0"), Some(("read", Some(0), None)));
        assert_eq!(
            one("[pid  77] close(3<socket:[5]>) = 0 <0.000001>"),
            Some(("close", Some(0), Some(1000)))
        );
        assert_eq!(
            one("77 accept4(6, NULL, NULL, 0) = 7<socket:[5]> <0.1>"),
            Some(("accept4", Some(7), Some(100_000_000)))
        );
        assert_eq!(
            one("mmap(NULL, 4096, 3, 4, -1, 0) = 0x7f00 <0.2>"),
            Some(("mmap", Some(0x7f00), Some(200_000_000)))
        );
        assert_eq!(
            one("read(3, 0x1, 9) = -1 EAGAIN (Resource temporarily unavailable) <0.000002>"),
            Some(("read", None, Some(2000)))
        );
        let no_calls = [
            "--- SIGURG {si_signo=SIGURG, si_code=SI_TKILL} ---",
            "77 +++ exited with 0 +++",
            "epoll_wait(5,  <detached ...>",
            "futex(0x1, FUTEX_WAIT) = ? ERESTARTSYS (To be restarted)",
            "",
            "= 5",
        ];
        for line in no_calls {
            assert_eq!(one(line), None, "{line}");
        }
    }

    #[test]
    fn files_and_events_are_not_counted_as_sockets() {
        let trace = Trace::of(
            "read(4<anon_inode:[eventfd]>, \"\"..., 8) = 8 <0.1>\n\
             write(1</tmp/log>, \"\"..., 8) = 8 <0.1>\n\
             write(9<TCP:[127.0.0.1:1->127.0.0.1:2]>, \"\"..., 8) = 8 <0.1>\n\
             write(9<UNIX-STREAM:[1->2]>, \"\"..., 8) = 8 <0.1>\n",
        );
        let account = trace.account(1, false);
        assert_eq!((account.receives, account.sends, account.bytes_out), (0, 2, 16));
    }
}
