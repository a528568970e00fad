//! A producer of ingest protocol 2, written from docs/formats/ingest.md and sharing no code with
//! the server.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The fields of a Hello.
#[derive(Clone, Debug)]
pub struct Hello {
    /// The protocol version, 2.
    pub version: u16,
    /// 0 received, 1 in memory, 2 fsynced.
    pub level: u8,
    /// Bit 0: resume.
    pub flags: u16,
    /// 0 the listener's, 1 null, 2 list, 3 stream.
    pub sink: u8,
    /// The database.
    pub db: u32,
    /// The producer's name.
    pub producer: String,
    /// The key.
    pub key: String,
    /// The password.
    pub password: String,
}

impl Hello {
    /// A producer which writes to a stream; without a sink if the key is empty.
    pub fn new(producer: &str, key: &str) -> Self {
        Self {
            version: 2,
            level: 1,
            flags: 0,
            sink: if key.is_empty() { 1 } else { 3 },
            db: 0,
            producer: producer.into(),
            key: key.into(),
            password: String::new(),
        }
    }

    /// The frame of this Hello.
    pub fn frame(&self) -> Vec<u8> {
        let mut body = b"SHFI".to_vec();
        body.extend(self.version.to_le_bytes());
        body.extend([self.level, 0]);
        body.extend([0; 8]);
        body.extend(self.flags.to_le_bytes());
        body.extend([self.sink, 0]);
        body.extend(self.db.to_le_bytes());
        body.extend([0; 8]);
        for text in [&self.producer, &self.key, "", &self.password] {
            body.extend((text.len() as u16).to_le_bytes());
            body.extend(text.as_bytes());
        }
        frame(1, &body)
    }
}

/// A frame of this type.
pub fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..], &[kind, 0, 0, 0], body].concat()
}

/// A frame of Data.
pub fn data(first: u64, payloads: &[&[u8]]) -> Vec<u8> {
    let mut body = first.to_le_bytes().to_vec();
    for payload in payloads {
        body.extend((payload.len() as u32).to_le_bytes());
        body.extend_from_slice(payload);
    }
    frame(2, &body)
}

/// A frame of Flush: the server acknowledges at once.
pub fn flush() -> Vec<u8> {
    frame(3, &[])
}

/// A frame of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Welcome: the highest number held, and the initial credit.
    Welcome(u64, u64),
    /// Ack: all messages up to this number are held.
    Ack(u64),
    /// Credit: total bytes of Data which may be sent.
    Credit(u64),
    /// Error: its code, the highest number held, and its text.
    Error(u16, u64, String),
}

/// One connection.
pub struct Producer {
    /// The socket.
    pub stream: TcpStream,
    /// The highest number which the last Welcome or Ack has called fsynced.
    pub durable: u64,
    rest: Vec<u8>,
}

impl Producer {
    /// Connects.
    ///
    /// # Panics
    /// If no server listens.
    pub fn connect(addr: SocketAddr) -> Self {
        Self::try_connect(addr).expect("it listens")
    }

    /// Connects, if a server listens.
    ///
    /// # Errors
    /// None does.
    pub fn try_connect(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self { stream, durable: 0, rest: Vec::new() })
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// The connection is closed.
    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Reads the next frame, if one comes in time.
    ///
    /// # Errors
    /// The connection is closed.
    pub fn hear_within(&mut self, limit: Duration) -> io::Result<Option<Answer>> {
        if let Some(answer) = self.take() {
            return Ok(Some(answer));
        }
        self.stream.set_read_timeout(Some(limit))?;
        let read = self.read();
        self.stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        match read {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(self.take()),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// Connects and sends Hello; returns the server's first frame.
    pub fn greet(addr: SocketAddr, hello: &Hello) -> (Self, Answer) {
        let mut producer = Self::connect(addr);
        producer.send(&hello.frame());
        let answer = producer.hear().expect("an answer");
        (producer, answer)
    }

    /// Writes all of it.
    ///
    /// # Panics
    /// If the server takes no more.
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("it reads");
    }

    /// Reads the next frame; an error if the connection is closed.
    pub fn hear(&mut self) -> io::Result<Answer> {
        loop {
            if let Some(answer) = self.take() {
                return Ok(answer);
            }
            if self.read()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads the bytes which have arrived; waits for the first of them.
    pub fn read(&mut self) -> io::Result<usize> {
        let mut room = [0; 16 << 10];
        let n = self.stream.read(&mut room)?;
        self.rest.extend(&room[..n]);
        Ok(n)
    }

    /// Takes the next complete frame out of the bytes read; `None` if there is none.
    pub fn take(&mut self) -> Option<Answer> {
        let length = u32::from_le_bytes(*self.rest.first_chunk()?) as usize;
        if self.rest.len() < 8 + length {
            return None;
        }
        let frame: Vec<u8> = self.rest.drain(..8 + length).collect();
        let body = &frame[8..];
        let u64_at = |at: usize| u64::from_le_bytes(*body[at..].first_chunk().expect("a number"));
        if matches!(frame[4], 0x81 | 0x82) {
            self.durable = u64_at(24);
        }
        Some(match frame[4] {
            0x81 => Answer::Welcome(u64_at(16), u64_at(32)),
            0x82 => Answer::Ack(u64_at(0)),
            0x83 => Answer::Credit(u64_at(0)),
            0x84 => {
                let code = u16::from_le_bytes([body[0], body[1]]);
                Answer::Error(code, u64_at(8), String::from_utf8_lossy(&body[16..]).into())
            }
            other => panic!("unknown frame type: {other}"),
        })
    }

    /// Reads until everything up to `last` is acknowledged.
    ///
    /// # Panics
    /// If the connection ends before.
    pub fn until_acked(&mut self, last: u64) {
        loop {
            match self.hear().expect("the connection is open") {
                Answer::Ack(id) if id >= last => return,
                Answer::Error(code, id, text) => panic!("error {code} at {id}: {text}"),
                _ => {}
            }
        }
    }

    /// Reads the Error frame and checks that the server closes the connection after it.
    ///
    /// # Panics
    /// If there is none.
    pub fn error(&mut self) -> (u16, u64) {
        loop {
            if let Answer::Error(code, id, text) = self.hear().expect("an error comes first") {
                assert!(!text.is_empty());
                let mut room = [0; 1];
                assert_eq!(self.stream.read(&mut room).ok(), Some(0), "an orderly end");
                return (code, id);
            }
        }
    }
}
