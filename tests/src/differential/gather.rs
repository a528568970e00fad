//! Sequences with messages: after each step every connection is asked for what it has received so
//! far.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Instant;

use super::execute::Run;
use super::family::is;
use super::sequence::{Sequence, Step};
use crate::wire::{Value, Wire, encode};

/// What the connections have received, by their numbers.
type Received = BTreeMap<u8, Vec<Value>>;

impl Run<'_> {
    /// Waits until nobody subscribes at the server any more: a sequence that broke may have left
    /// subscribers behind.
    pub(super) fn await_no_subscribers(&mut self) -> io::Result<()> {
        let began = Instant::now();
        while began.elapsed() < self.patience {
            let list = self.judge.command(&["CLIENT", "LIST", "TYPE", "PUBSUB"])?;
            if matches!(&list, Value::Bulk(text) | Value::Verbatim(text) if text.is_empty()) {
                return Ok(());
            }
        }
        Err(io::Error::other("clients of an earlier sequence still subscribe"))
    }

    /// Runs the steps one by one. The reply of each is a map of what the connections received. A
    /// connection in a transaction is asked when that has ended: the question would be queued.
    pub(super) fn gathered(&mut self, sequence: &Sequence) -> io::Result<()> {
        // While some client tracks, both servers remember what others have read who do no more.
        self.judge.command(&["CLIENT", "TRACKING", "ON"])?;
        let mut in_multi = BTreeSet::new();
        for (at, step) in sequence.steps.iter().enumerate() {
            let mut received = Received::new();
            self.act(step, &mut in_multi, received.entry(step.conn).or_default())?;
            let mark = format!("<end of {at}>");
            let ask = encode(&["PING", &mark]);
            // First the client of the step, twice: Redis tells of the keys of prefixes when it has
            // executed all that it has received.
            for acting in [true, true, false] {
                let asked = |conn: u8| (conn == step.conn) == acting && !in_multi.contains(&conn);
                for (conn, peer) in self.peers.iter_mut().filter(|(conn, _)| asked(**conn)) {
                    peer.wire.send(&ask)?;
                    received.entry(*conn).or_default();
                }
                for (conn, peer) in self.peers.iter_mut().filter(|(conn, _)| asked(**conn)) {
                    let values = received.entry(*conn).or_default();
                    until_mark(&mut peer.wire, &mark, values)?;
                }
            }
            let told = received.into_iter().filter(|(_, values)| !values.is_empty());
            let told = told.map(|(conn, values)| (Value::Int(conn.into()), Value::Array(values)));
            self.trace.replies.push(Value::Map(told.collect()));
        }
        self.end_gathered()?;
        self.judge.command(&["CLIENT", "TRACKING", "OFF"]).map(drop)
    }

    /// Sends a step. In and around transactions its reply is read at once.
    fn act(
        &mut self,
        step: &Step,
        in_multi: &mut BTreeSet<u8>,
        values: &mut Vec<Value>,
    ) -> io::Result<()> {
        let Step { conn, args, .. } = step;
        let wire = &mut self.peers.get_mut(conn).expect("opened at the start").wire;
        wire.send(&encode(args))?;
        let was_open = in_multi.contains(conn);
        if !was_open && !is(args, "MULTI") {
            return Ok(());
        }
        loop {
            values.push(wire.receive()?);
            if !matches!(values.last(), Some(Value::Push(_))) {
                break;
            }
        }
        let ends = ["EXEC", "DISCARD", "RESET"].iter().any(|name| is(args, name));
        if was_open && ends && args.len() == 1 {
            in_multi.remove(conn);
        } else if values.last() == Some(&Value::Simple(b"OK".to_vec())) {
            in_multi.insert(*conn);
        }
        Ok(())
    }

    /// Ends all subscriptions and connections.
    fn end_gathered(&mut self) -> io::Result<()> {
        for peer in std::mem::take(&mut self.peers).values_mut() {
            peer.wire.send(&encode(&["RESET"]))?;
            while peer.wire.receive()? != Value::Simple(b"RESET".to_vec()) {}
        }
        Ok(())
    }
}

/// Reads up to the answer to PING, which a client that subscribes gets as an array in RESP2.
fn until_mark(wire: &mut Wire, mark: &str, values: &mut Vec<Value>) -> io::Result<()> {
    let text = Value::Bulk(mark.as_bytes().to_vec());
    loop {
        let value = wire.receive()?;
        let is_mark = match &value {
            Value::Array(pair) => pair.len() == 2 && pair[1] == text,
            other => *other == text,
        };
        if is_mark {
            return Ok(());
        }
        values.push(value);
    }
}
