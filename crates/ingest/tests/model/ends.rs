//! The two ends of a connection, the state of a producer, and its stored messages.

use ingest::v2::{Ack, Acking, Acks, Event, Fault, Held, Hello, Intake, Limits, Reader};
use std::collections::VecDeque;

pub const LIMITS: Limits = Limits { max_message: 60, max_frame: 200 };
pub const WINDOW: u64 = 500;
pub const READ_BYTES: usize = 150;
pub const MESSAGES: u64 = 300;

pub fn payload(producer: usize, id: u64) -> Vec<u8> {
    let seed = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    let size = if id % 16 < 12 { 9 } else { seed % (u64::from(LIMITS.max_message) + 1) };
    (0..size).map(|n| (seed + n * 7 + producer as u64) as u8).collect()
}

/// Both directions of a connection, and the state of each end.
pub struct Connection {
    pub producer: usize,
    pub up: VecDeque<u8>,
    pub down: VecDeque<u8>,
    /// The server's end. `None` once it closed.
    pub server: Option<ServerEnd>,
    /// The producer's end. `None` once it closed.
    pub client: Option<ClientEnd>,
}

pub struct ServerEnd {
    pub intake: Intake,
    pub acks: Option<Acks>,
    /// What the sink has not accepted yet: the first number and the messages, then bytes which are
    /// not parsed yet.
    pub offered: Option<(u64, Vec<u8>)>,
    pub unread: Vec<u8>,
    pub granted: u64,
    pub ack_messages: u32,
}

pub struct ClientEnd {
    pub reader: Reader,
    /// The next number to send. `None` before the Welcome.
    pub next: Option<u64>,
    pub limit: u64,
    pub sent_bytes: u64,
    pub sent: u64,
    pub covered: u64,
    pub acked: u64,
    pub said_bye: bool,
}

/// The messages of one producer which the key holds, and the server's state of it.
pub struct Producer {
    pub base: u64,
    pub held: Held,
    pub kept: u64,
    /// What the producer itself knows to be stored.
    pub safe: Option<u64>,
    pub known: bool,
    pub acking: Acking,
    pub ack_messages: u32,
    pub ack_micros: u32,
}

impl Producer {
    pub fn end(&self) -> u64 {
        self.base + (MESSAGES - 1)
    }

    pub fn is_done(&self) -> bool {
        self.safe == Some(self.end())
    }
}

impl Connection {
    /// True if the sink has accepted everything offered.
    pub fn is_taking(&self) -> bool {
        self.server.as_ref().is_some_and(|server| server.offered.is_none())
    }
}

impl ClientEnd {
    pub fn check(&mut self, ack: &Ack, producer: &Producer) {
        assert!(ack.id >= self.acked, "acknowledgements do not fall");
        assert!(!ack.nothing_new || ack.id == self.acked, "nothing new");
        assert_eq!((ack.memory, ack.durable), (ack.id, 0));
        let kept = if producer.kept == 0 { 0 } else { producer.base + (producer.kept - 1) };
        assert!(ack.id <= kept, "what is acknowledged is kept");
        self.acked = ack.id;
        self.covered += ack.covered();
        assert!(self.covered <= self.sent, "more covered than sent");
    }
}

/// The reason why the server closes.
#[derive(Clone, Copy)]
pub enum End {
    Bye,
    Fault(Fault),
}

/// An owned copy of an event.
pub enum Owned {
    Hello { acking: Acking, ack_messages: u32, ack_micros: u32, resume: bool },
    Messages(u64, Vec<u8>),
    Flush,
    Bye,
    Fault(Fault),
}

impl From<Event<'_>> for Owned {
    fn from(event: Event<'_>) -> Self {
        match event {
            Event::Hello(Hello { acking, ack_messages, ack_micros, resume, .. }) => {
                Self::Hello { acking, ack_messages, ack_micros, resume }
            }
            Event::Messages { first, bytes, .. } => Self::Messages(first, bytes.to_vec()),
            Event::Flush => Self::Flush,
            Event::Bye => Self::Bye,
            Event::Fault(fault) => Self::Fault(fault),
        }
    }
}
