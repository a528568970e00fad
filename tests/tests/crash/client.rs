//! A client which changes the keys of its own databases until the server is gone, and keeps what
//! it sent and what was answered.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use sheafdb_tests::rng::Rng;
use sheafdb_tests::wire::{Value, Wire, encode};

use super::ops::{Atom, Maker, Op, Repeat, words};

/// What was sent, in order. The atoms without a reply stand at the end.
#[derive(Default)]
pub struct History {
    pub atoms: Vec<(Atom, Option<Value>)>,
    /// When the last reply came.
    pub last: Option<Instant>,
    /// Changes which were refused because data was loaded.
    pub refused: usize,
}

/// The changes of one life of the server.
pub struct Client {
    pub db: u32,
    pub maker: Maker,
    pub history: History,
}

impl Client {
    pub fn new(db: u32, maker: Maker) -> Self {
        Self { db, maker, history: History::default() }
    }

    /// Works until the server is gone.
    pub fn work(&mut self, addr: SocketAddr, rng: &mut Rng) {
        let _ = self.try_work(addr, rng);
    }

    fn try_work(&mut self, addr: SocketAddr, rng: &mut Rng) -> io::Result<()> {
        let [mut wire, mut waiting] = [Wire::connect(addr)?, Wire::connect(addr)?];
        let select = words(&format!("SELECT {}", self.db));
        wire.command(&select)?;
        waiting.command(&select)?;
        // What a waiting client has not taken is in no one's way.
        loop {
            let refused = self.history.refused;
            let clear = Atom { commands: vec![words("DEL q zq")], repeat: Repeat::Same };
            self.run(&mut wire, &mut waiting, vec![Op { waiter: None, atoms: vec![clear] }])?;
            if self.history.refused == refused {
                break;
            }
        }
        loop {
            let count = if rng.chance(70) { 1 } else { 1 + rng.below(12) };
            let mut ops = Vec::new();
            while ops.len() < count {
                let op = self.maker.op();
                let waits = op.waiter.is_some();
                if waits && !ops.is_empty() {
                    self.run(&mut wire, &mut waiting, std::mem::take(&mut ops))?;
                }
                ops.push(op);
                if waits {
                    break;
                }
            }
            self.run(&mut wire, &mut waiting, ops)?;
        }
    }

    /// Sends changes together, and reads the replies.
    fn run(&mut self, wire: &mut Wire, waiting: &mut Wire, ops: Vec<Op>) -> io::Result<()> {
        for op in ops {
            let first = self.history.atoms.len();
            if let Some(waiter) = &op.waiter {
                let [push, take] = &op.atoms[..] else { unreachable!("an element, and its taker") };
                self.history.atoms.extend([(push.clone(), None), (take.clone(), None)]);
                waiting.send(&encode(waiter))?;
                // It waits by now, or at another time it comes too late, which is as good.
                wire.command(&["PING"])?;
                let mut reply = wire.command(&push.commands[0])?;
                while is_refused(&reply) {
                    reply = wire.command(&push.commands[0])?;
                }
                self.accept(first, reply);
                let mut reply = waiting.receive()?;
                while is_refused(&reply) {
                    reply = waiting.command(waiter)?;
                }
                self.accept(first + 1, reply);
                continue;
            }
            let mut bytes = Vec::new();
            for atom in op.atoms {
                atom.requests().iter().for_each(|one| bytes.extend(encode(one)));
                self.history.atoms.push((atom, None));
            }
            wire.send(&bytes)?;
        }
        self.receive(wire)
    }

    /// The replies to everything that has none.
    fn receive(&mut self, wire: &mut Wire) -> io::Result<()> {
        let answered = self.history.atoms.iter().rposition(|(_, reply)| reply.is_some());
        for at in answered.map_or(0, |at| at + 1)..self.history.atoms.len() {
            let requests = self.history.atoms[at].0.requests();
            for _ in 1..requests.len() {
                wire.receive()?;
            }
            let reply = wire.receive()?;
            self.accept(at, reply);
        }
        Ok(())
    }

    fn accept(&mut self, at: usize, reply: Value) {
        if is_refused(&reply) {
            self.history.refused += 1;
            self.history.atoms[at].0 = Atom { commands: vec![words("PING")], repeat: Repeat::Same };
            self.history.atoms[at].1 = Some(reply);
            return;
        }
        if let Value::Error(text) = &reply {
            let text = String::from_utf8_lossy(text);
            let is_expected = ["WRONGTYPE", "ERR", "BUSYGROUP", "NOGROUP"];
            assert!(is_expected.iter().any(|one| text.starts_with(one)), "{text}");
        }
        self.history.atoms[at].1 = Some(reply);
        self.history.last = Some(Instant::now());
    }
}

/// Data is loaded: the change, or the transaction, was not made.
fn is_refused(reply: &Value) -> bool {
    let Value::Error(text) = reply else { return false };
    text.starts_with(b"LOADING") || text.starts_with(b"EXECABORT")
}
