//! Messages with numbers, written and compared as bytes, because there are millions of them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::Range;

use sheafdb_tests::server_process::ServerProcess;
use sheafdb_tests::wire::{PATIENCE, encode};

const DIGITS: usize = 8;

/// A request or a message that differs from the next one by its number alone.
pub struct Numbered {
    bytes: Vec<u8>,
    digits_at: usize,
}

impl Numbered {
    /// A message of so many bytes, its number included, in a frame that ends with it.
    fn new(head: &[u8], len: usize) -> Self {
        let mut bytes = head.to_vec();
        bytes.extend(format!("${len}\r\n").bytes());
        let digits_at = bytes.len();
        bytes.resize(digits_at + len, b'x');
        bytes.extend(b"\r\n");
        Self { bytes, digits_at }
    }

    /// PUBLISH.
    pub fn publish(channel: &str, len: usize) -> Self {
        let head = format!("*3\r\n$7\r\nPUBLISH\r\n${}\r\n{channel}\r\n", channel.len());
        Self::new(head.as_bytes(), len)
    }

    /// What a subscriber receives in the second protocol.
    pub fn message(channel: &str, len: usize) -> Self {
        let head = format!("*3\r\n$7\r\nmessage\r\n${}\r\n{channel}\r\n", channel.len());
        Self::new(head.as_bytes(), len)
    }

    pub fn numbered(&mut self, mut number: usize) -> &[u8] {
        for digit in self.bytes[self.digits_at..][..DIGITS].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
        &self.bytes
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// A connection that compares what it receives with what it expects.
pub struct Flow {
    reads: BufReader<TcpStream>,
    room: Vec<u8>,
}

impl Flow {
    pub fn connect(server: &ServerProcess) -> Self {
        let stream = TcpStream::connect(server.addr).expect("the server accepts connections");
        stream.set_nodelay(true).expect("TCP can");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        stream.set_write_timeout(Some(PATIENCE)).expect("a limit");
        Self { reads: BufReader::with_capacity(256 << 10, stream), room: Vec::new() }
    }

    /// One that subscribes.
    pub fn subscribed(server: &ServerProcess, channel: &str) -> Self {
        let mut flow = Self::connect(server);
        flow.send(&encode(&["SUBSCRIBE", channel]));
        let len = channel.len();
        flow.expect(format!("*3\r\n$9\r\nsubscribe\r\n${len}\r\n{channel}\r\n:1\r\n").as_bytes());
        flow
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.reads.get_mut().write_all(bytes).expect("the server reads");
    }

    pub fn expect(&mut self, bytes: &[u8]) {
        self.room.resize(bytes.len(), 0);
        self.reads.read_exact(&mut self.room).expect("the server sends");
        if self.room != bytes {
            let some = |bytes: &[u8]| bytes[..bytes.len().min(200)].escape_ascii().to_string();
            panic!("{} instead of {}", some(&self.room), some(bytes));
        }
    }

    /// Receives messages with these numbers, of so many bytes each.
    pub fn expect_all(&mut self, channel: &str, len: usize, numbers: Range<usize>) {
        let mut message = Numbered::message(channel, len);
        for number in numbers {
            self.expect(message.numbered(number));
        }
    }

    /// A reply that is an integer.
    pub fn integer(&mut self) -> i64 {
        self.room.clear();
        self.reads.read_until(b'\n', &mut self.room).expect("the server sends");
        let text = std::str::from_utf8(&self.room).ok().and_then(|text| text.strip_prefix(':'));
        let number = text.and_then(|text| text.trim_end().parse().ok());
        number.unwrap_or_else(|| panic!("{} is no integer", self.room.escape_ascii()))
    }

    /// Reads and forgets everything until the server closes the connection.
    pub fn drain(mut self) -> u64 {
        let mut all = 0;
        loop {
            // (A reset is an end, too.)
            match self.reads.fill_buf() {
                Ok([]) | Err(_) => return all,
                Ok(some) => {
                    let len = some.len();
                    all += len as u64;
                    self.reads.consume(len);
                }
            }
        }
    }
}
