//! The bytes of protocol 2: prepared Data frames, credit, and checks of acknowledgements.
//!
//! All messages of a run have the same payload, so a frame is a header with the number of its first
//! message, and the beginning of a body that all connections share: a frame costs 16 bytes and one
//! send.

use super::connection::{Account, Broken, Wire};
use super::error::Error;
use super::spec::{Producers, SIZE_BYTES, Spec};
use ingest::v2::{
    Ack, DATA_HEADER_BYTES, HEADER_BYTES, Hello, Level, Reader, ServerFrame, Welcome, data_header,
    write_bye, write_hello, write_message,
};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::io::{IoSlice, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::sync::Arc;

/// The messages of a full frame.
pub fn body(spec: &Spec) -> Arc<[u8]> {
    let payload = vec![b'x'; spec.message_size - SIZE_BYTES];
    let mut body = Vec::with_capacity(spec.batch_len() * spec.message_size);
    (0..spec.batch_len()).for_each(|_| write_message(&mut body, &payload));
    body.into()
}

/// One producer's connection.
pub struct Two {
    head: [u8; DATA_HEADER_BYTES],
    body: Arc<[u8]>,
    message_size: usize,
    /// The highest number that the server held when the connection began.
    base: u64,
    /// Bytes of Data frames that may be sent in all, and that were made.
    limit: u64,
    made: u64,
    /// The highest number that was said to be fsynced.
    durable: u64,
    reader: Reader,
}

impl Two {
    /// Says Hello and waits for Welcome. The name must be new to the server.
    pub fn greet(
        stream: &mut TcpStream,
        spec: &Spec,
        producers: &Producers,
        name: &str,
        body: &Arc<[u8]>,
    ) -> Result<Self, Error> {
        let hello = Hello {
            level: Level::InMemory,
            acking: producers.acking,
            sink: producers.sink,
            db: producers.db,
            maxlen: producers.maxlen,
            producer: name.as_bytes(),
            key: &producers.key,
            user: producers.user.as_bytes(),
            password: producers.password.as_bytes(),
            ..Hello::default()
        };
        let mut out = Vec::new();
        write_hello(&mut out, &hello);
        stream.set_read_timeout(Some(spec.patience))?;
        stream.write_all(&out)?;
        let mut reader = Reader::default();
        let welcome = welcome(stream, &mut reader)?;
        check_welcome(&welcome, producers, spec)?;
        Ok(Self {
            head: [0; DATA_HEADER_BYTES],
            body: Arc::clone(body),
            message_size: spec.message_size,
            base: welcome.last_id,
            limit: welcome.credit,
            made: 0,
            durable: welcome.durable,
            reader,
        })
    }

    fn bytes_of(&self, count: u64) -> usize {
        count as usize * self.message_size
    }

    fn check(&mut self, ack: &Ack, account: &mut Account) -> Result<(), Broken> {
        let previous = self.base + account.acknowledged;
        let Ack { id, skipped, memory, durable, .. } = *ack;
        let covered = ack.covered();
        if Some(id) != previous.checked_add(covered) || (ack.nothing_new && skipped != 0) {
            return wrong(format!(
                "acknowledgement of {id} with {skipped} skipped follows that of {previous}"
            ));
        }
        let written = self.base + account.written;
        if id > written {
            return wrong(format!(
                "acknowledgement of {id}, which was not sent whole: {written} were"
            ));
        }
        if !(id..=written).contains(&memory) {
            return wrong(format!(
                "acknowledgement of {id}: readers see up to {memory}, {written} were sent"
            ));
        }
        if !(self.durable..=written).contains(&durable) {
            let before = self.durable;
            return wrong(format!(
                "acknowledgement of {id}: fsynced up to {durable}, after {before}"
            ));
        }
        self.durable = durable;
        account.acknowledged += covered;
        account.acks += u64::from(!ack.nothing_new);
        Ok(())
    }

    fn frame(limit: &mut u64, frame: &ServerFrame<'_>) -> Result<Option<Ack>, Broken> {
        match frame {
            ServerFrame::Ack(ack) => return Ok(Some(*ack)),
            ServerFrame::Credit(new) if new < limit => {
                return wrong(format!("a credit of {new} bytes follows one of {limit}"));
            }
            ServerFrame::Credit(new) => *limit = *new,
            ServerFrame::Welcome(_) => return wrong("a second welcome".to_owned()),
            ServerFrame::Error { code, id, text } => {
                let text = String::from_utf8_lossy(text);
                return Err(Broken::Closed(format!("error {code}: {text} (it holds {id})")));
            }
        }
        Ok(None)
    }
}

impl Wire for Two {
    /// Whole frames only: what is under way never exceeds the limit.
    fn admits(&self, count: u64) -> bool {
        self.made + (DATA_HEADER_BYTES + self.bytes_of(count)) as u64 <= self.limit
    }

    fn fill(&mut self, before: u64, count: u64) -> usize {
        let bytes = self.bytes_of(count);
        self.head = data_header(self.base + before + 1, bytes);
        self.made += (DATA_HEADER_BYTES + bytes) as u64;
        DATA_HEADER_BYTES + bytes
    }

    fn send(&self, stream: &TcpStream, part: Range<usize>) -> Result<usize, Errno> {
        let end = part.end - DATA_HEADER_BYTES;
        if let Some(start) = part.start.checked_sub(DATA_HEADER_BYTES) {
            return send(stream, &self.body[start..end], SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
        let slices = [&self.head[part.start..], &self.body[..end]].map(IoSlice::new);
        rustix::io::writev(stream, &slices)
    }

    fn receive(&mut self, mut bytes: &[u8], account: &mut Account) -> Result<(), Broken> {
        loop {
            let ack = match self.reader.next(&mut bytes) {
                None => return Ok(()),
                Some(Err(fault)) => return wrong(format!("bytes of no frame: {fault}")),
                Some(Ok(frame)) => Self::frame(&mut self.limit, &frame)?,
            };
            if let Some(ack) = ack {
                self.check(&ack, account)?;
            }
        }
    }

    fn say_bye(&self, stream: &TcpStream) {
        let mut bye = Vec::with_capacity(HEADER_BYTES);
        write_bye(&mut bye);
        // The peer may have closed already.
        let _ = send(stream, &bye, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }
}

fn wrong<T>(text: String) -> Result<T, Broken> {
    Err(Broken::Wrong(text))
}

/// Reads the answer to Hello, byte by byte: what follows it belongs to the connection.
fn welcome(stream: &mut TcpStream, reader: &mut Reader) -> Result<Welcome, Error> {
    let refused = |text: String| Err(Error::Refused(text));
    loop {
        let mut byte = [0];
        if stream.read(&mut byte)? == 0 {
            return refused("the connection was closed without an answer to Hello".to_owned());
        }
        match reader.next(&mut &byte[..]) {
            None => {}
            Some(Ok(ServerFrame::Welcome(welcome))) => return Ok(welcome),
            Some(Ok(ServerFrame::Error { code, text, .. })) => {
                return refused(format!("error {code}: {}", String::from_utf8_lossy(text)));
            }
            Some(Ok(_)) => return refused("something other than Welcome answers Hello".to_owned()),
            Some(Err(fault)) => {
                return refused(format!("the answer to Hello is no frame: {fault}"));
            }
        }
    }
}

fn check_welcome(welcome: &Welcome, producers: &Producers, spec: &Spec) -> Result<(), Error> {
    let refused = |text: String| Err(Error::Refused(text));
    if welcome.last_id != 0 {
        return refused(format!("{} messages are held of a new producer", welcome.last_id));
    }
    if (welcome.level, welcome.acking) != (Level::InMemory, producers.acking) {
        return refused(format!("{:?}, {} is not what was asked", welcome.level, welcome.acking));
    }
    let frame = DATA_HEADER_BYTES + spec.batch_len() * spec.message_size;
    let payload = spec.message_size - SIZE_BYTES;
    let bounds = [
        (payload, u64::from(welcome.max_message), "a payload"),
        (frame - HEADER_BYTES, u64::from(welcome.max_frame), "a frame"),
        (frame, welcome.credit, "a frame with the window"),
    ];
    for (bytes, most, what) in bounds {
        if bytes as u64 > most {
            return Err(Error::Spec(format!("{what} has at most {most} bytes, not {bytes}")));
        }
    }
    Ok(())
}
