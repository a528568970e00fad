//! A producer with a key of its own. Its messages follow from their numbers, so that it needs to
//! keep none.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use sheafdb_tests::producer::{Answer, Hello, Producer, data, flush, frame};
use sheafdb_tests::rng::Rng;
use sheafdb_tests::wire::{Value, Wire};

/// Messages which are not acknowledged, at most.
const AHEAD_MAX: u64 = 3_000;
/// The server gives no acknowledgements of this level.
const LEVEL: u16 = 7;

/// One producer.
pub struct Source {
    /// Its name; its key has the same.
    pub name: String,
    is_list: bool,
    /// Acknowledgements mean *fsynced*.
    pub is_fsynced: bool,
    /// The highest number that was ever sent.
    pub sent: u64,
    /// The highest number that was ever called fsynced.
    pub fsynced: u64,
    /// It was told that the level is not given.
    pub refused: u64,
}

impl Source {
    pub fn new(name: &str, is_list: bool, is_fsynced: bool) -> Self {
        Self { name: name.into(), is_list, is_fsynced, sent: 0, fsynced: 0, refused: 0 }
    }

    fn hello(&self) -> Hello {
        let mut hello = Hello::new(&format!("p \"{}\"\n", self.name), &self.name);
        hello.level = if self.is_fsynced { 2 } else { 1 };
        hello.sink = if self.is_list { 2 } else { 3 };
        hello.db = 3;
        hello
    }

    /// Mostly small; some are larger than what is read or written at a time.
    fn payload(&self, number: u64) -> Vec<u8> {
        let mut payload = format!("{} {number} ", self.name).into_bytes();
        if number.is_multiple_of(997) {
            payload.resize(150_000, b'x');
        }
        payload
    }

    /// Connects and sends again and again, until the server is gone.
    pub fn work(&mut self, addr: SocketAddr, rng: &mut Rng, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            if let Some(Err(why)) = self.converse(addr, rng, is_over) {
                panic!("{}: {why}", self.name);
            }
            sleep(Duration::from_millis(rng.below(10) as u64));
        }
    }

    /// One connection. `None` if it broke, or its level is not given now.
    fn converse(
        &mut self,
        addr: SocketAddr,
        rng: &mut Rng,
        is_over: &AtomicBool,
    ) -> Option<Result<(), String>> {
        let (mut producer, mut last, mut credit) = match self.greet(addr)? {
            Ok(greeted) => greeted,
            Err(why) => return Some(Err(why)),
        };
        let (mut acked, mut used) = (last, 0);
        let most = 20 + rng.below(2_000) as u64;
        for _ in 0..most {
            if is_over.load(Ordering::Relaxed) {
                return None;
            }
            if last - acked < AHEAD_MAX {
                let frame = self.frame(last + 1, 1 + rng.below(30) as u64);
                if used + frame.1.len() as u64 <= credit {
                    used += frame.1.len() as u64;
                    last = frame.0;
                    self.sent = self.sent.max(last);
                    producer.try_send(&frame.1).ok()?;
                }
            }
            if rng.chance(10) {
                producer.try_send(&flush()).ok()?;
            }
            sleep(Duration::from_micros(rng.below(3_000) as u64));
            let waits = last - acked >= AHEAD_MAX;
            while let Some(answer) = producer.hear_within(wait_of(waits)).transpose() {
                match answer.ok()? {
                    Answer::Ack(id) if id < acked || id > last => {
                        return Some(Err(format!("{id} acknowledged, of {acked}..={last}")));
                    }
                    Answer::Ack(id) => {
                        acked = id;
                        let durable = producer.durable;
                        if durable > last || (self.is_fsynced && durable < id) {
                            return Some(Err(format!("{id} acknowledged, {durable} fsynced")));
                        }
                        self.note(durable);
                    }
                    Answer::Credit(limit) => credit = limit,
                    Answer::Error(LEVEL, ..) => {
                        self.refused += 1;
                        return None;
                    }
                    Answer::Error(code, id, text) => {
                        return Some(Err(format!("error {code} at {id}: {text}")));
                    }
                    other @ Answer::Welcome(..) => return Some(Err(format!("{other:?}"))),
                }
            }
        }
        if rng.chance(50) {
            return self.bye(producer);
        }
        None
    }

    /// A connection with its Welcome: the last number held, and credit.
    fn greet(&mut self, addr: SocketAddr) -> Option<Result<(Producer, u64, u64), String>> {
        let mut producer = Producer::try_connect(addr).ok()?;
        producer.try_send(&self.hello().frame()).ok()?;
        let (last, credit) = match producer.hear().ok()? {
            Answer::Welcome(last, credit) => (last, credit),
            Answer::Error(LEVEL, _, text) => {
                self.refused += 1;
                assert!(text.starts_with("fsynced: "), "{text}");
                return None;
            }
            other => return Some(Err(format!("{other:?} is no Welcome"))),
        };
        let durable = producer.durable;
        if last < self.fsynced || last > self.sent || durable > last {
            let (fsynced, sent) = (self.fsynced, self.sent);
            return Some(Err(format!("welcomed at {last}, {durable}: {fsynced} of {sent}")));
        }
        self.note(durable);
        Some(Ok((producer, last, credit)))
    }

    /// Everything is acknowledged before the connection is closed.
    fn bye(&mut self, mut producer: Producer) -> Option<Result<(), String>> {
        producer.try_send(&frame(4, &[])).ok()?;
        loop {
            match producer.hear() {
                Ok(Answer::Ack(_)) => self.note(producer.durable),
                Ok(Answer::Credit(_)) => {}
                Ok(Answer::Error(LEVEL, ..)) => return None,
                Ok(other) => return Some(Err(format!("{other:?} behind Bye"))),
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Some(Ok(())),
                Err(_) => return None,
            }
        }
    }

    fn note(&mut self, durable: u64) {
        self.fsynced = self.fsynced.max(durable);
    }

    /// Data with so many messages, or fewer if they are large. Returns the last number, too.
    fn frame(&self, first: u64, count: u64) -> (u64, Vec<u8>) {
        let mut payloads: Vec<Vec<u8>> = Vec::new();
        for number in first..first + count {
            payloads.push(self.payload(number));
            if payloads.last().is_some_and(|payload| payload.len() > 10_000) {
                break;
            }
        }
        let words: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
        (first + words.len() as u64 - 1, data(first, &words))
    }

    /// What the restored server holds: each message once, in order, up to the number that it tells
    /// this producer. Returns that.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&mut self, wire: &mut Wire, addr: SocketAddr) -> Result<u64, String> {
        let held = self.held(wire)?;
        let mut hello = self.hello();
        hello.level = 1;
        let (_, answer) = Producer::greet(addr, &hello);
        let Answer::Welcome(last, _) = answer else { return Err(format!("{answer:?}")) };
        let (name, sent, fsynced) = (&self.name, self.sent, self.fsynced);
        if held != last || held < fsynced || held > sent {
            return Err(format!(
                "{name}: {held} are there, welcomed at {last}: {fsynced} of {sent}"
            ));
        }
        Ok(held)
    }

    /// How many messages are in the key: 1, 2, 3 and so on.
    ///
    /// # Errors
    /// The first that is another one.
    pub fn held(&self, wire: &mut Wire) -> Result<u64, String> {
        let command: &[&str] = if self.is_list {
            &["LRANGE", &self.name, "0", "-1"]
        } else {
            &["XRANGE", &self.name, "-", "+"]
        };
        wire.command(&["SELECT", "3"]).expect("an answer");
        let Ok(Value::Array(all)) = wire.command(command) else { return Err("no array".into()) };
        for (number, found) in (1..).zip(&all) {
            let expected = self.payload(number);
            let (id, payload) = if self.is_list { (None, Some(found)) } else { of_entry(found) };
            let is_right = id.is_none_or(|id| id == number.to_string().as_bytes());
            let Some(Value::Bulk(payload)) = payload else { return Err(format!("{found:?}")) };
            if !is_right || *payload != expected {
                let shown = payload[..payload.len().min(40)].escape_ascii();
                return Err(format!("{}: {shown} in the place of {number}", self.name));
            }
        }
        Ok(all.len() as u64)
    }
}

/// How long to wait for an answer.
fn wait_of(waits: bool) -> Duration {
    if waits { Duration::from_millis(20) } else { Duration::from_micros(50) }
}

/// The number and the payload of an entry.
fn of_entry(entry: &Value) -> (Option<&[u8]>, Option<&Value>) {
    let Value::Array(entry) = entry else { return (None, None) };
    let Some(Value::Array(fields)) = entry.get(1) else { return (None, None) };
    match fields.as_slice() {
        [_, Value::Bulk(id), _, payload] => (Some(id), Some(payload)),
        _ => (None, None),
    }
}
