//! *Protocol 2 with nothing behind it.* A thread per connection reads, takes the frames apart as
//! the server does, counts the messages and acknowledges each read that completed one, whatever
//! acknowledging was asked for. Credit is given as it is used; producers are not remembered. What
//! is faster than this is not measured right, and what is slower pays for its sink, its timers or
//! its event loop.

use ingest::v2::{
    Ack, Acking, Event, Fault, Held, Intake, Level, Limits, Welcome, write_ack, write_credit,
    write_error, write_welcome,
};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use super::blocking::{read_each, serve_each};
use super::context::Context;
use super::counters::Counts;

/// Room for one receive: what the server has.
const ROOM_BYTES: usize = 64 << 10;
/// Bytes that a producer may have under way.
const WINDOW: u64 = 4 << 20;
/// What a frame may hold.
const LIMITS: Limits = Limits { max_message: 1 << 20, max_frame: 2 << 20 };

/// Runs until the model ends.
pub fn run(context: &Context) {
    serve_each(context, |fd| {
        let (mut producer, mut out) = (Producer::new(), Vec::new());
        read_each(context, fd, ROOM_BYTES, |bytes, fd, counts| {
            let continues = producer.receive(bytes, &mut out);
            counts.request(std::mem::take(&mut producer.counted));
            // An error is the end of this connection and of nothing else.
            let is_sent = send_all(fd, &out, counts).is_ok();
            out.clear();
            is_sent && continues
        });
    });
}

fn send_all(fd: BorrowedFd<'_>, mut out: &[u8], counts: &Counts) -> Result<(), Errno> {
    while !out.is_empty() {
        match send(fd, out, SendFlags::NOSIGNAL) {
            Ok(n) => {
                counts.write(n);
                out = &out[n..];
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// One connection, without its socket.
struct Producer {
    intake: Intake,
    held: Held,
    /// Bytes of Data that were granted in all.
    limit: u64,
    /// Messages since the last acknowledgement, and new ones that are not in the counters yet.
    covered: u64,
    counted: u64,
}

impl Producer {
    fn new() -> Self {
        let mut intake = Intake::new(LIMITS);
        intake.grant(WINDOW);
        Self { intake, held: Held::default(), limit: WINDOW, covered: 0, counted: 0 }
    }

    /// What one read brought; answers into `out`. False if the connection is over.
    fn receive(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> bool {
        while let Some(event) = self.intake.next(&mut bytes) {
            let fault = match event {
                Event::Hello(hello) => {
                    write_welcome(out, &welcome(hello.level, hello.acking));
                    continue;
                }
                Event::Messages { first, count, .. } => match self.held.admit(first, count) {
                    Ok(admit) => {
                        self.held.hold(first + (count - 1));
                        self.covered += count;
                        self.counted += count - admit.duplicates;
                        continue;
                    }
                    Err(fault) => fault,
                },
                Event::Flush => {
                    self.acknowledge(true, out);
                    continue;
                }
                Event::Bye => {
                    self.acknowledge(false, out);
                    return false;
                }
                Event::Fault(fault) => fault,
            };
            self.acknowledge(false, out);
            self.refuse(fault, out);
            return false;
        }
        self.acknowledge(false, out);
        if self.limit - self.intake.received() < WINDOW / 2 {
            self.limit = self.intake.received() + WINDOW;
            self.intake.grant(self.limit);
            write_credit(out, self.limit);
        }
        true
    }

    fn acknowledge(&mut self, always: bool, out: &mut Vec<u8>) {
        let covered = std::mem::take(&mut self.covered);
        if covered == 0 && !always {
            return;
        }
        let id = self.held.last_id();
        // One read brings fewer than 2^32 messages.
        let skipped = covered.saturating_sub(1) as u32;
        write_ack(out, &Ack { nothing_new: covered == 0, id, skipped, memory: id, durable: 0 });
    }

    fn refuse(&self, fault: Fault, out: &mut Vec<u8>) {
        write_error(out, fault.code(), self.held.last_id(), fault.text().as_bytes());
    }
}

fn welcome(level: Level, acking: Acking) -> Welcome {
    Welcome {
        level,
        acking,
        max_message: LIMITS.max_message,
        max_frame: LIMITS.max_frame,
        credit: WINDOW,
        ..Welcome::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ingest::v2::{
        Hello, Reader, ServerFrame, write_bye, write_data_header, write_flush, write_hello,
        write_message,
    };

    fn conversation() -> Vec<u8> {
        let mut bytes = Vec::new();
        write_hello(&mut bytes, &Hello { producer: b"p", ..Hello::default() });
        for (first, payloads) in [(1, [&b"a"[..], b"", b"ccc"]), (4, [b"d", b"e", b"f"])] {
            let mut body = Vec::new();
            for payload in payloads {
                write_message(&mut body, payload);
            }
            write_data_header(&mut bytes, first, body.len());
            bytes.extend(body);
        }
        bytes
    }

    /// The frames in `out`, acknowledgements as (id, covered).
    fn acks(out: &[u8]) -> Vec<(u64, u64)> {
        let (mut reader, mut rest, mut acks) = (Reader::new(), out, Vec::new());
        while let Some(frame) = reader.next(&mut rest) {
            match frame.expect("a frame") {
                ServerFrame::Ack(ack) => acks.push((ack.id, ack.covered())),
                ServerFrame::Welcome(welcome) => assert_eq!(welcome.credit, WINDOW),
                other => panic!("{other:?}"),
            }
        }
        acks
    }

    #[test]
    fn each_read_with_a_complete_message_is_acknowledged_once() {
        let bytes = conversation();
        for at in 1..bytes.len() {
            let (mut producer, mut out) = (Producer::new(), Vec::new());
            let (left, right) = bytes.split_at(at);
            assert!(producer.receive(left, &mut out) && producer.receive(right, &mut out));
            let acks = acks(&out);
            assert!((1..=2).contains(&acks.len()), "cut at {at}: {acks:?}");
            assert_eq!(acks.last().map(|(id, _)| *id), Some(6));
            assert_eq!(acks.iter().map(|(_, covered)| covered).sum::<u64>(), 6);
            assert_eq!(producer.counted, 6);
        }
    }

    #[test]
    fn flush_and_bye_are_answered_and_a_gap_ends_the_connection() {
        let (mut producer, mut out) = (Producer::new(), Vec::new());
        let mut bytes = conversation();
        write_flush(&mut bytes);
        write_flush(&mut bytes);
        assert!(producer.receive(&bytes, &mut out));
        assert_eq!(acks(&out), [(6, 6), (6, 0)]);
        let mut bye = Vec::new();
        write_bye(&mut bye);
        assert!(!producer.receive(&bye, &mut Vec::new()));

        let mut gap = conversation();
        write_data_header(&mut gap, 9, 5);
        write_message(&mut gap, b"x");
        out.clear();
        assert!(!Producer::new().receive(&gap, &mut out));
        let text = Fault::Gap.text().as_bytes();
        assert!(out.ends_with(text), "{out:?}");
    }
}
