//! A producer of ingest protocol 2 on the simulated network, which checks what it receives.

use crate::sim_world::Sim;
use base::prng::Prng;
use driver::sim::{Ending, SimClient};
use ingest::v2::{
    Acking, Fault, Hello, Level, Reader, ServerFrame, SinkKind, Welcome, write_bye,
    write_data_header, write_flush, write_hello, write_message,
};

/// One connection of a producer.
pub struct Producer {
    pub conn: SimClient,
    pub unsent: Vec<u8>,
    reader: Reader,
    pub welcome: Option<Welcome>,
    /// The highest number acknowledged, and messages covered.
    pub acked: u64,
    pub covered: u64,
    pub nothing_new: u64,
    pub credit: u64,
    pub error: Option<(Fault, u64)>,
    pub reads: bool,
}

/// A Hello of a producer with this name, into a stream, a list or no sink.
pub fn hello<'a>(producer: &'a str, sink: SinkKind, key: &'a str) -> Hello<'a> {
    Hello {
        level: Level::InMemory,
        acking: Acking::Adaptive,
        ack_messages: 0,
        ack_micros: 0,
        resume: false,
        exact: false,
        sink,
        db: 0,
        maxlen: 0,
        producer: producer.as_bytes(),
        key: key.as_bytes(),
        user: b"",
        password: b"",
    }
}

/// Data with the payloads `m1`, `m2`, ... of these numbers.
pub fn write_data(out: &mut Vec<u8>, numbers: std::ops::RangeInclusive<u64>) {
    write_data_of(out, numbers, "");
}

/// Like `write_data`, with a prefix for each payload.
pub fn write_data_of(out: &mut Vec<u8>, numbers: std::ops::RangeInclusive<u64>, who: &str) {
    let mut body = Vec::new();
    let first = *numbers.start();
    numbers.for_each(|n| write_message(&mut body, format!("{who}m{n}").as_bytes()));
    write_data_header(out, first, body.len());
    out.extend(body);
}

impl Producer {
    pub fn connect(sim: &mut Sim, port: usize) -> Self {
        Self {
            conn: sim.join_ingest(port),
            unsent: Vec::new(),
            reader: Reader::new(),
            welcome: None,
            acked: 0,
            covered: 0,
            nothing_new: 0,
            credit: 0,
            error: None,
            reads: true,
        }
    }

    /// A producer which has received its Welcome.
    pub fn greeted(sim: &mut Sim, port: usize, hello: &Hello<'_>) -> Self {
        let mut producer = Self::connect(sim, port);
        write_hello(&mut producer.unsent, hello);
        producer.until(sim, |p| p.welcome.is_some());
        producer
    }

    pub fn data(&mut self, numbers: std::ops::RangeInclusive<u64>) {
        write_data(&mut self.unsent, numbers);
    }

    pub fn flush(&mut self) {
        write_flush(&mut self.unsent);
    }

    pub fn bye(&mut self) {
        write_bye(&mut self.unsent);
    }

    /// Writes and reads random parts.
    pub fn pump(&mut self, prng: &mut Prng) {
        let part = prng.below(self.unsent.len() as u64 + 1) as usize;
        let part = if prng.chance(1, 2) { self.unsent.len() } else { part };
        let written = self.conn.write(&self.unsent[..part]);
        self.unsent.drain(..written);
        if self.reads {
            let mut room = [0; 512];
            let most = 1 + prng.below(room.len() as u64) as usize;
            let read = self.conn.read(&mut room[..most]);
            self.take(&room[..read]);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(frame) = self.reader.next(&mut rest) {
            let frame = frame.expect("the server speaks the protocol");
            assert_eq!(self.error, None, "nothing comes after an error");
            match frame {
                ServerFrame::Welcome(welcome) => {
                    assert!(self.welcome.replace(welcome).is_none(), "once");
                    (self.acked, self.credit) = (welcome.last_id, welcome.credit);
                }
                ServerFrame::Ack(ack) => {
                    assert!(self.welcome.is_some() && ack.id >= self.acked && ack.memory == ack.id);
                    if ack.nothing_new {
                        assert_eq!(ack.id, self.acked);
                        self.nothing_new += 1;
                    }
                    (self.acked, self.covered) = (ack.id, self.covered + ack.covered());
                }
                ServerFrame::Credit(limit) => {
                    assert!(limit > self.credit);
                    self.credit = limit;
                }
                ServerFrame::Error { code, id, text } => {
                    assert!(!text.is_empty());
                    self.error = Some((Fault::from_code(code).expect("a known code"), id));
                }
            }
        }
    }

    pub fn step(&mut self, sim: &mut Sim) {
        let mut prng = Prng::new(sim.prng.draw());
        self.pump(&mut prng);
        sim.step();
    }

    pub fn until(&mut self, sim: &mut Sim, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            self.step(sim);
        }
    }

    /// Runs until the connection has ended, and returns its error.
    pub fn end(&mut self, sim: &mut Sim) -> Option<(Fault, u64)> {
        self.until(sim, |p| p.conn.ending().is_some());
        assert_eq!(self.conn.ending(), Some(Ending::Closed), "the error is read");
        self.error
    }
}

/// The numbers and payloads of a stream's entries.
pub fn entries(sim: &mut Sim, key: &str) -> Vec<(u64, String)> {
    use crate::sim_world::Reply;
    let Reply::Array(all) = sim.ask(0, &["XRANGE", key, "-", "+"]) else { panic!("a stream") };
    let entry = |entry: &Reply| {
        let Reply::Array(parts) = entry else { panic!("an entry") };
        let Reply::Array(fields) = &parts[1] else { panic!("fields") };
        let [Reply::Bulk(id), Reply::Bulk(number), Reply::Bulk(data), Reply::Bulk(payload)] =
            &fields[..]
        else {
            panic!("two fields: {fields:?}")
        };
        assert_eq!((&**id, &**data), ("id", "data"));
        (number.parse().expect("a number"), payload.clone())
    };
    all.iter().map(entry).collect()
}

/// The entries expected for `1..=last`.
pub fn all_up_to(last: u64) -> Vec<(u64, String)> {
    (1..=last).map(|n| (n, format!("m{n}"))).collect()
}
