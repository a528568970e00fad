//! The in-process driver: a table in this process instead of a server, a thread per connection.
//! What it reaches is what the table and the load generator cost without any network.

use std::sync::atomic::Ordering;
use std::time::Duration;

use base::prng::Prng;
use hdrhistogram::Histogram;

use super::conn::Shared;
use super::error::Error;
use super::expect::{Check, Count, Judge, Tally};
use super::plan::Plan;
use super::record::{histogram, now_ns};
use super::scan::Scanner;
use super::source::Author;
use super::spec::{Amount, Spec};
use super::template::draw_len;
use super::values;
use super::worker::{Outcome, Task};
use crate::models::table::{SHARED, Table as Keys};

/// A table of strings that many threads share: the one of the models.
#[derive(Debug)]
pub struct Table(Keys);

/// The commands that the table understands, for the message that refuses others.
const KNOWN: &str = "PING, ECHO, SET, GET, MSET, MGET, STRLEN, EXISTS, DEL, UNLINK, INCR";

impl Table {
    /// An empty table.
    pub fn new() -> Self {
        Self(Keys::new(SHARED))
    }

    /// Refuses a load that the table cannot run.
    pub fn check(commands: &[&[u8]]) -> Result<(), Error> {
        let unknown = commands.iter().find(|name| {
            !KNOWN.split(", ").any(|known| known.as_bytes().eq_ignore_ascii_case(name))
        });
        match unknown {
            None => Ok(()),
            Some(name) => Err(Error::Options(format!(
                "the in-process table knows {KNOWN}, not {}",
                name.escape_ascii()
            ))),
        }
    }

    /// Writes every key of the range once, in its first version.
    pub fn populate(&self, spec: &Spec, plan: &Plan) {
        let mut prng = Prng::new(spec.seed);
        for number in plan.minimum..plan.minimum + plan.keys {
            let len = if plan.verify {
                values::len(number, 1, plan.data)
            } else {
                draw_len(&mut prng, plan.data)
            };
            let mut value = vec![values::FILLER; len];
            if plan.verify {
                values::fill(number, 1, &mut value);
            }
            self.0.set(format!("{}{number:012}", spec.keys.prefix).as_bytes(), &value);
        }
    }

    /// Runs a request and appends its reply.
    fn execute(&self, args: &[&[u8]], out: &mut Vec<u8>) {
        let Some((name, rest)) = args.split_first() else { return };
        let integer = |out: &mut Vec<u8>, n: i64| out.extend(format!(":{n}\r\n").into_bytes());
        match (name.to_ascii_uppercase().as_slice(), rest) {
            (b"PING", []) => out.extend_from_slice(b"+PONG\r\n"),
            (b"ECHO", [text]) => bulk(out, text),
            (b"GET", [key]) => self.get(key, out),
            (b"MGET", keys) => {
                out.extend(format!("*{}\r\n", keys.len()).into_bytes());
                for key in keys {
                    self.get(key, out);
                }
            }
            (b"SET" | b"MSET", pairs) if !pairs.is_empty() && pairs.len().is_multiple_of(2) => {
                pairs.chunks_exact(2).for_each(|pair| self.0.set(pair[0], pair[1]));
                out.extend_from_slice(b"+OK\r\n");
            }
            (b"STRLEN", [key]) => {
                integer(out, self.0.get(key, |value| value.map_or(0, <[u8]>::len)) as i64);
            }
            (b"EXISTS", keys) => integer(out, self.0.count(keys.iter().copied()) as i64),
            (b"DEL" | b"UNLINK", keys) => {
                integer(out, self.0.remove_all(keys.iter().copied()) as i64);
            }
            (b"INCR", [key]) => match self.0.increment(key) {
                Ok(next) => integer(out, next),
                Err(_) => {
                    out.extend_from_slice(b"-ERR value is not an integer or out of range\r\n");
                }
            },
            _ => out.extend_from_slice(b"-ERR the table does not know this command\r\n"),
        }
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) {
        self.0.get(key, |value| match value {
            Some(value) => bulk(out, value),
            None => out.extend_from_slice(b"$-1\r\n"),
        });
    }
}

fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'$');
    base::num::write_u64(out, bytes.len() as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Splits requests as the load generator makes them, so without any doubt about their form.
fn each_request<'b>(mut bytes: &'b [u8], mut run: impl FnMut(&[&'b [u8]])) {
    let mut args: Vec<&[u8]> = Vec::new();
    while !bytes.is_empty() {
        args.clear();
        for _ in 0..take_number(&mut bytes) {
            let len = take_number(&mut bytes);
            args.push(&bytes[..len]);
            bytes = &bytes[len + 2..];
        }
        run(&args);
    }
}

/// Takes a kind, a number and the end of its line.
fn take_number(bytes: &mut &[u8]) -> usize {
    let (mut number, mut at) = (0, 1);
    while bytes[at] != b'\r' {
        number = number * 10 + usize::from(bytes[at] - b'0');
        at += 1;
    }
    *bytes = &bytes[at + 2..];
    number
}

/// A caller of the table: a connection without a network.
pub struct Caller<'a> {
    /// What it is to do.
    pub task: Task<'a>,
    /// Its draws and records.
    pub shared: Shared<'a>,
    /// Makes its requests.
    pub author: Author,
    /// Requests per look at the clock.
    pub batch: u64,
    /// The table.
    pub table: &'a Table,
}

impl Caller<'_> {
    /// Runs to the end.
    pub fn run(mut self) -> Outcome {
        let mut left = match self.task.amount {
            Amount::Requests(requests) => requests,
            Amount::Seconds(_) => u64::MAX,
        };
        let end = match self.task.amount {
            Amount::Seconds(s) => self.task.measured_from + (s * 1e9) as u64,
            Amount::Requests(_) => u64::MAX,
        };
        let (mut requests, mut replies, mut judge) = (Vec::new(), Vec::new(), Judge::default());
        let (mut area, mut now, mut measuring) = (0.0, now_ns(), false);
        while left > 0 && now < end && !self.task.stop.load(Ordering::Relaxed) {
            if !measuring && now >= self.task.measured_from {
                measuring = true;
                self.shared.tally.replies = 0;
                self.shared.recorder.restart(self.task.measured_from);
                area = 0.0;
            }
            let count = self.batch.min(left);
            let Some(at) = self.turn_comes(now, end) else { break };
            requests.clear();
            replies.clear();
            for _ in 0..count {
                let expects = if self.shared.plan.checked { Some(judge.expects()) } else { None };
                let (plan, source) = (self.shared.plan, &mut self.shared.source);
                self.author.write(plan, source, &mut requests, expects);
            }
            each_request(&requests, |args| self.table.execute(args, &mut replies));
            scan(self.shared.plan, &replies, &mut judge, &mut self.shared.tally);
            now = now_ns();
            self.shared.recorder.replies(count);
            self.shared.recorder.latency(now.saturating_sub(at), count);
            self.shared.recorder.turn(now, count);
            area += count as f64 * now.saturating_sub(at) as f64;
            if measuring {
                left -= count;
            }
        }
        let unsent = self.unsent(end);
        self.shared.recorder.finish();
        let (tally, peak) = (self.shared.tally, self.batch);
        Outcome { tally, area, peak, last_reply: now, unsent, served: Vec::new() }
    }

    /// When this batch should run: now, or when the schedule says so; waits for that.
    fn turn_comes(&mut self, now: u64, end: u64) -> Option<u64> {
        let Some(schedule) = &mut self.task.schedule else { return Some(now) };
        let at = schedule.peek();
        if at >= end {
            std::thread::sleep(Duration::from_nanos(end.saturating_sub(now)));
            return None;
        }
        schedule.take();
        if at > now && !self.task.spin {
            std::thread::sleep(Duration::from_nanos(at - now));
        }
        while now_ns() < at {
            std::hint::spin_loop();
        }
        Some(at)
    }

    fn unsent(&mut self, end: u64) -> Option<Histogram<u64>> {
        let schedule = self.task.schedule.as_mut().filter(|_| end != u64::MAX)?;
        let mut waited = histogram();
        while schedule.peek() < end {
            waited.saturating_record(end - schedule.take());
        }
        Some(waited)
    }
}

fn scan(plan: &Plan, replies: &[u8], judge: &mut Judge, tally: &mut Tally) {
    let mut scanner = Scanner::default();
    let scanned = if plan.checked {
        scanner.scan(replies, &mut Check { judge, tally, data: plan.data })
    } else {
        scanner.scan(replies, &mut Count { judge, tally, nil_fails: plan.nil_fails })
    };
    assert_eq!(scanned, Ok(replies.len()), "the table writes whole replies");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(commands: &[&[&str]]) -> String {
        let table = Table::new();
        let mut out = Vec::new();
        for command in commands {
            let args: Vec<&[u8]> = command.iter().map(|arg| arg.as_bytes()).collect();
            let request = client::encode(&args);
            each_request(&request, |args| table.execute(args, &mut out));
        }
        String::from_utf8(out).expect("these are ASCII").replace("\r\n", "|")
    }

    #[test]
    fn the_table_answers_like_a_server() {
        assert_eq!(
            answers(&[&["SET", "a", "1"], &["GET", "a"], &["get", "b"], &["INCR", "a"]]),
            "+OK|$1|1|$-1|:2|"
        );
        assert_eq!(
            answers(&[&["MSET", "a", "x", "b", "yy"], &["MGET", "a", "c"], &["STRLEN", "b"]]),
            "+OK|*2|$1|x|$-1|:2|"
        );
        assert_eq!(
            answers(&[&["SET", "a", "x"], &["EXISTS", "a", "a"], &["DEL", "a", "a"], &["PING"]]),
            "+OK|:2|:1|+PONG|"
        );
        assert!(answers(&[&["SET", "a", "x"], &["INCR", "a"]]).contains("-ERR value"));
        assert!(Table::check(&[b"set", b"GET"]).is_ok());
        let told = Table::check(&[b"LPUSH"]).expect_err("it has no lists").to_string();
        assert!(told.contains("not LPUSH"), "{told}");
    }
}
