//! The messages of a producer: which are waiting, sent and acknowledged, and what may be sent now.
//! Does no I/O.
//!
//! ```text
//!  buffer  | acknowledged |  sent  |  waiting  |    messages as in a Data frame: size, payload
//!          0            head    framed        end
//! ```
//!
//! Acknowledged messages are removed when they are half of the buffer. So each byte is moved once
//! at most, and the buffer is at most twice as large as what may be unacknowledged.

use ingest::v2::{DATA_HEADER_BYTES, HEADER_BYTES, Welcome, data_header, write_message};
use ingest::{Layout, Messages};

use crate::Error;

/// Bytes of Data's body before the first message.
const FIRST_ID_BYTES: u64 = (DATA_HEADER_BYTES - HEADER_BYTES) as u64;
/// Bytes before a payload.
const SIZE_BYTES: u64 = 4;

/// How much may be kept, and how long frames get.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Unacknowledged bytes, sizes included.
    pub bytes: usize,
    /// Unacknowledged messages.
    pub messages: u64,
    /// A frame is closed when it is so long.
    pub frame_bytes: usize,
}

/// The messages of one producer, over all its connections.
#[derive(Debug)]
pub struct Ledger {
    bounds: Bounds,
    buffer: Vec<u8>,
    head: usize,
    framed: usize,
    /// The numbers before `head`, `framed` and the end.
    acknowledged: u64,
    framed_id: u64,
    last: u64,
    durable: u64,
    /// For this connection: the bytes of Data frames sent and allowed, and the server's limits.
    total: u64,
    credit: u64,
    max_message: usize,
    max_frame: u64,
}

impl Ledger {
    /// Nothing was sent yet.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            buffer: Vec::new(),
            head: 0,
            framed: 0,
            acknowledged: 0,
            framed_id: 0,
            last: 0,
            durable: 0,
            total: 0,
            credit: 0,
            max_message: 0,
            max_frame: 0,
        }
    }

    /// The number of the last message.
    pub const fn last(&self) -> u64 {
        self.last
    }

    /// Everything up to here is held by the server.
    pub const fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Everything up to here is fsynced.
    pub const fn durable(&self) -> u64 {
        self.durable
    }

    /// True if a message was sent and is not acknowledged.
    pub const fn is_owed(&self) -> bool {
        self.framed_id > self.acknowledged
    }

    /// True if every message was sent on this connection.
    pub const fn is_all_framed(&self) -> bool {
        self.framed_id == self.last
    }

    /// The largest payload that is accepted.
    pub fn message_max(&self) -> usize {
        self.max_message.min(self.bounds.bytes.saturating_sub(SIZE_BYTES as usize))
    }

    /// True if there is room for a payload of this size.
    pub fn has_room(&self, size: usize) -> bool {
        let bytes = self.buffer.len() - self.head + SIZE_BYTES as usize + size;
        self.last - self.acknowledged < self.bounds.messages && bytes <= self.bounds.bytes
    }

    /// Adds a message and returns its number.
    pub fn add(&mut self, payload: &[u8]) -> Result<u64, Error> {
        self.last = self.last.checked_add(1).ok_or(Error::NumbersEnd)?;
        write_message(&mut self.buffer, payload);
        Ok(self.last)
    }

    /// The messages that are not acknowledged.
    pub fn unacknowledged(&self) -> Messages<'_> {
        let first = self.acknowledged.wrapping_add(1);
        Messages::new(&self.buffer[self.head..], Layout::Numbered(first))
    }

    /// Begins a connection: messages that the server does not hold are to be sent, even if they
    /// were sent before. On the `first` connection numbers continue behind what the server holds.
    pub fn begin(&mut self, welcome: &Welcome, first: bool) -> Result<(), Error> {
        let held = welcome.last_id;
        if first {
            (self.acknowledged, self.last) = (held, held);
        }
        if !(self.acknowledged..=self.last).contains(&held) {
            let (acknowledged, last) = (self.acknowledged, self.last);
            return Err(Error::NumbersDisagree { held, acknowledged, last });
        }
        self.max_frame = u64::from(welcome.max_frame);
        let Some(most) = welcome.max_frame.checked_sub((FIRST_ID_BYTES + SIZE_BYTES) as u32) else {
            return Err(Error::Protocol("its Welcome allows no message"));
        };
        self.max_message = welcome.max_message.min(most) as usize;
        self.cover(held);
        (self.framed, self.framed_id) = (self.head, self.acknowledged);
        (self.total, self.credit, self.durable) = (0, welcome.credit, welcome.durable);
        let max = self.message_max();
        match self.unacknowledged().map(|(_, payload)| payload.len()).find(|size| *size > max) {
            Some(size) => Err(Error::TooLarge { size, max }),
            None => Ok(()),
        }
    }

    /// Removes the messages that an acknowledgement covers.
    pub fn ack(&mut self, id: u64, durable: u64) -> Result<(), Error> {
        if !(self.acknowledged..=self.framed_id).contains(&id) {
            return Err(Error::Protocol("it acknowledges a message that was not sent"));
        }
        self.cover(id);
        self.durable = durable;
        Ok(())
    }

    /// Allows so many bytes of Data frames in all.
    pub fn grant(&mut self, limit: u64) {
        self.credit = self.credit.max(limit);
    }

    /// Appends a Data frame with as many waiting messages as credit and limits allow. False if none
    /// may be sent.
    pub fn next_frame(&mut self, out: &mut Vec<u8>) -> bool {
        let left = self.credit.saturating_sub(self.total).saturating_sub(HEADER_BYTES as u64);
        let most = self.max_frame.min(left);
        let (mut length, mut count) = (FIRST_ID_BYTES, 0);
        let waiting = &self.buffer[self.framed..];
        for (_, payload) in Messages::new(waiting, Layout::Numbered(1)) {
            let longer = length + SIZE_BYTES + payload.len() as u64;
            if longer > most || (count > 0 && length >= self.bounds.frame_bytes as u64) {
                break;
            }
            length = longer;
            count += 1;
        }
        if count == 0 {
            return false;
        }
        let messages = &waiting[..(length - FIRST_ID_BYTES) as usize];
        out.extend_from_slice(&data_header(self.framed_id + 1, messages.len()));
        out.extend_from_slice(messages);
        self.framed += messages.len();
        self.framed_id += count;
        self.total += HEADER_BYTES as u64 + length;
        true
    }

    /// Bytes in memory.
    #[cfg(test)]
    pub fn buffer_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Removes the messages up to `id`, which is at most the last one.
    fn cover(&mut self, id: u64) {
        let mut messages = self.unacknowledged();
        let before = messages.remaining().len();
        if let Some(skipped) = (id - self.acknowledged).checked_sub(1) {
            messages.nth(skipped as usize).expect("the buffer holds all that is not acknowledged");
        }
        self.head += before - messages.remaining().len();
        self.acknowledged = id;
        if self.head >= self.buffer.len() - self.head {
            self.buffer.drain(..self.head);
            self.framed = self.framed.saturating_sub(self.head);
            self.head = 0;
        }
    }
}
