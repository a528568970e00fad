//! The in-process driver: a table in this process instead of a server, a thread per connection.
//! What it reaches is what the table and the load generator cost without any network.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use resp::OutBuf;

use super::check::DATA_MAX;
use super::conn::{Shared, scan};
use super::error::Error;
use super::expect::Judge;
use super::plan::Plan;
use super::populate::batches;
use super::record::now_ns;
use super::scan::Scanner;
use super::source::Author;
use super::spec::{Amount, Spec};
use super::task::{Outcome, Task};
use crate::models::{Input, Local, RespSession, SHARED, Session, Step, Table};

/// The commands that the table understands, for the message that refuses others.
const KNOWN: &str = "PING, ECHO, SET, GET, MSET, MGET, STRLEN, EXISTS, DEL, UNLINK, INCR";

/// Refuses a load that the table cannot run.
pub fn check(spec: &Spec) -> Result<(), Error> {
    let is_known =
        |name: &[u8]| KNOWN.split(", ").any(|known| known.as_bytes().eq_ignore_ascii_case(name));
    match spec.commands.iter().map(|one| &one.args[0]).find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => {
            let name = name.escape_ascii();
            Err(Error::Options(format!("the in-process table knows {KNOWN}, not {name}")))
        }
    }
}

/// A table for all callers of a load, with its keys if the load reads them.
pub fn filled(plan: &Plan) -> Arc<Table> {
    let table = Arc::new(Table::new(SHARED));
    if plan.populate {
        let mut server = Server::new(&table);
        for (batch, _) in batches(plan) {
            server.execute(&batch);
        }
    }
    table
}

/// A caller's conversation with the table: the one of a model, without its socket.
pub struct Server {
    session: RespSession<Local>,
    input: Input,
    replies: OutBuf,
}

impl Server {
    /// A conversation about this table.
    pub fn new(table: &Arc<Table>) -> Self {
        let session = RespSession::within(Local::alone(table), DATA_MAX as u64, usize::MAX);
        Self { session, input: Input::default(), replies: OutBuf::new() }
    }

    /// Executes whole requests and returns their replies.
    fn execute(&mut self, requests: &[u8]) -> &[u8] {
        self.replies.clear();
        self.input.push(requests);
        let mut step = Step::Replied;
        while step == Step::Replied {
            step = self.session.step(&mut self.input, &mut self.replies);
        }
        assert_eq!(step, Step::Starved, "requests of a load are right and whole");
        &self.replies.bytes
    }
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
    pub server: Server,
}

impl Caller<'_> {
    /// Runs to the end.
    pub fn run(mut self) -> Outcome {
        let mut left = match self.task.amount {
            Amount::Requests(requests) => requests,
            Amount::Seconds(_) => u64::MAX,
        };
        let end = self.task.end().unwrap_or(u64::MAX);
        let (mut requests, mut judge) = (Vec::new(), Judge::default());
        let (mut area, mut now, mut measuring) = (0.0, now_ns(), false);
        while left > 0 && now < end && !self.task.stop.load(Ordering::Relaxed) {
            if !measuring && now >= self.task.measured_from {
                measuring = true;
                self.shared.tally.replies = 0;
                self.shared.recorder.restart(self.task.measured_from);
                area = 0.0;
            }
            let count = self.batch.min(left);
            let Some(at) = self.wait_for_turn(now, end) else { break };
            requests.clear();
            for _ in 0..count {
                let expects = if self.shared.plan.checked { Some(judge.expects()) } else { None };
                let (plan, source) = (self.shared.plan, &mut self.shared.source);
                self.author.write(plan, source, &mut requests, expects);
            }
            let replies = self.server.execute(&requests);
            let (plan, judges) = (self.shared.plan, (&mut judge, &mut self.shared.tally));
            let scanned = scan(plan, &mut Scanner::default(), judges, replies);
            assert_eq!(scanned, Ok(replies.len()), "the table writes whole replies");
            now = now_ns();
            self.shared.recorder.replies(count);
            self.shared.recorder.latency(now.saturating_sub(at), count);
            self.shared.recorder.turn(now, count);
            area += count as f64 * now.saturating_sub(at) as f64;
            if measuring {
                left -= count;
            }
        }
        let unsent = self.task.unsent(&VecDeque::new());
        self.shared.recorder.finish();
        let (tally, peak) = (self.shared.tally, self.batch);
        Outcome { tally, area, peak, last_reply: now, unsent, served: Vec::new() }
    }

    /// When this batch should run: now, or when the schedule says so; waits for that.
    fn wait_for_turn(&mut self, now: u64, end: u64) -> Option<u64> {
        let Some(schedule) = &mut self.task.schedule else { return Some(now) };
        let at = schedule.peek();
        if at >= end {
            std::thread::sleep(Duration::from_nanos(end.saturating_sub(now)));
            return None;
        }
        schedule.advance();
        if at > now && !self.task.spec.spin {
            std::thread::sleep(Duration::from_nanos(at - now));
        }
        while now_ns() < at {
            std::hint::spin_loop();
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Command;

    #[test]
    fn a_value_may_be_larger_than_in_a_model() {
        let value = vec![b'x'; 3 << 20];
        let mut server = Server::new(&Arc::new(Table::new(SHARED)));
        let set = client::encode(&[b"SET", b"k", &value]);
        assert_eq!(server.execute(&set), b"+OK\r\n");
        let get = client::encode(&[b"GET", b"k"]);
        assert_eq!(server.execute(&get).len(), value.len() + "$3145728\r\n\r\n".len());
    }

    #[test]
    fn unsupported_commands_are_refused() {
        let checked = |words: &[&str]| {
            let commands = vec![Command::new(&["set", "a", "b"]), Command::new(words)];
            check(&Spec { commands, ..Spec::default() }).map_err(|error| error.to_string())
        };
        assert_eq!(checked(&["GET", "a"]), Ok(()));
        let refused = checked(&["LPUSH", "a", "b"]).expect_err("it has no lists");
        assert!(refused.contains("not LPUSH"), "{refused}");
    }
}
