//! A server of protocol 2 which follows or violates it. Credit is counted to the byte.

#![allow(dead_code)] // each test file uses a part of it

#[path = "acceptor.rs"]
pub mod acceptor;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use acceptor::Acceptor;
use ingest::v2::{
    Ack, Acking, Event, Hello, Intake, Limits, Welcome, write_ack, write_credit, write_error,
    write_welcome,
};

/// How the server violates the protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lie {
    /// Not at all.
    No,
    /// `skipped` is one too high.
    Skipped,
    /// The id is that of a later message.
    Ahead,
    /// From the second acknowledgement on, it covers one message fewer than it says: the first one
    /// is left out.
    Forgets,
    /// Every acknowledgement is sent twice.
    Twice,
    /// It acknowledges nothing.
    Silent,
    /// Fewer messages are readable than acknowledged.
    Hidden,
    /// More messages are readable than sent.
    Foreseen,
    /// More messages are fsynced than sent.
    Fsynced,
    /// Credit decreases.
    Falls,
    /// The connection is closed after the first acknowledgement.
    Closes,
    /// An error frame is sent instead of the acknowledgement.
    Errs,
    /// Bytes which are no frame are sent.
    Babbles,
    /// It reports stored messages of a new producer.
    Knows,
    /// It acknowledges by another strategy than requested.
    Other,
}

/// A server with a thread per connection. Credit is counted to the byte.
pub struct Two {
    pub address: SocketAddr,
    /// Messages received, and connections which exceeded their credit or sent an invalid message.
    pub took: Arc<AtomicU64>,
    pub faults: Arc<AtomicU64>,
    _acceptor: Acceptor,
}

impl Two {
    pub fn start(lie: Lie, window: u64) -> Self {
        let (took, faults) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let counts = (Arc::clone(&took), Arc::clone(&faults));
        let acceptor = Acceptor::start(move |stream| {
            converse(stream, lie, window, &counts.0, &counts.1);
        });
        Self { address: acceptor.address, took, faults, _acceptor: acceptor }
    }
}

const LIMITS: Limits = Limits { max_message: 1 << 16, max_frame: 1 << 17 };

fn converse(mut stream: TcpStream, lie: Lie, window: u64, took: &AtomicU64, faults: &AtomicU64) {
    let mut intake = Intake::new(LIMITS);
    let (mut limit, mut last, mut acks) = (window, 0, 0u64);
    intake.grant(limit);
    let mut room = vec![0; 8 << 10];
    while let Ok(n @ 1..) = stream.read(&mut room) {
        let (mut input, mut out, mut covered) = (&room[..n], Vec::new(), 0u64);
        while let Some(event) = intake.next(&mut input) {
            match event {
                Event::Hello(hello) => write_welcome(&mut out, &welcome(lie, &hello, window)),
                Event::Messages { first, count, .. } => {
                    assert_eq!(first, last + 1, "numbers follow each other");
                    (last, covered) = (last + count, covered + count);
                    took.fetch_add(count, Ordering::Relaxed);
                }
                Event::Flush | Event::Bye => {}
                Event::Fault(_) => {
                    faults.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            }
        }
        if covered > 0 {
            acks += 1;
            answer(lie, last, covered, acks, &mut out);
        }
        if limit - intake.received() < window / 2 {
            limit = intake.received() + window;
            intake.grant(limit);
            write_credit(&mut out, if lie == Lie::Falls { 1 } else { limit });
        }
        let over = acks > 0 && matches!(lie, Lie::Closes | Lie::Errs);
        if stream.write_all(&out).is_err() || over {
            return;
        }
    }
}

fn welcome(lie: Lie, hello: &Hello<'_>, window: u64) -> Welcome {
    let acking = if lie == Lie::Other { Acking::Batched } else { hello.acking };
    Welcome {
        level: hello.level,
        acking,
        max_message: LIMITS.max_message,
        max_frame: LIMITS.max_frame,
        last_id: if lie == Lie::Knows { 7 } else { 0 },
        credit: window,
        ..Welcome::default()
    }
}

fn answer(lie: Lie, last: u64, covered: u64, acks: u64, out: &mut Vec<u8>) {
    const FAR: u64 = 1_000_000;
    let skipped = (covered - 1) as u32;
    let mut ack = Ack { nothing_new: false, id: last, skipped, memory: last, durable: 0 };
    match lie {
        Lie::Skipped => ack.skipped += 1,
        Lie::Ahead => {
            ack.id += FAR;
            ack.memory += FAR;
            ack.skipped += FAR as u32;
        }
        Lie::Hidden => ack.memory -= 1,
        Lie::Foreseen => ack.memory += FAR,
        Lie::Fsynced => ack.durable = last + FAR,
        Lie::Silent => return,
        Lie::Forgets if acks == 1 => return,
        Lie::Errs => return write_error(out, 8, last, b"not here"),
        Lie::Babbles => return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n\r\n"),
        _ => {}
    }
    write_ack(out, &ack);
    if lie == Lie::Twice {
        write_ack(out, &ack);
    }
}
