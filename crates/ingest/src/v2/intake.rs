//! Parses the frames of a producer, which arrive in arbitrary blocks.
//!
//! ```text
//!              +-------- Hello --------+
//!  Header -----+                       +--> Header ...
//!     ^        +-- First -- Messages --+
//!     |                      |   ^
//!     +--- Flush, Bye        v   |
//!                            Part
//! ```
//!
//! Whole messages in the input are yielded in place. A message that the input cuts is assembled in
//! a buffer, which grows with the bytes that arrive, never beyond the message, and is freed after
//! use if it is large.
//!
//! The events depend on the bytes alone, not on where the blocks end: a fault is reported as soon
//! as the byte that proves it has arrived, after the messages before it.

use crate::v2::frame::{Header, kind};
use crate::v2::whole::{SIZE_BYTES, end_of, whole};
use crate::v2::{Fault, HEADER_BYTES, HELLO_MAX, Hello};

/// The shortest body of Data: a number and an empty message.
const DATA_MIN: u32 = 12;
/// A buffer above so many bytes is freed after use.
const KEPT_BYTES: usize = 4096;

/// What a listener allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest payload.
    pub max_message: u32,
    /// The largest length field of Data.
    pub max_frame: u32,
}

/// What a producer sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The first frame; syntax, level and key are right.
    Hello(Hello<'a>),
    /// Whole messages, as [`crate::Layout::Numbered`] lays them out.
    Messages {
        /// The number of the first.
        first: u64,
        /// How many, at least one; the last number does not overflow.
        count: u64,
        /// Sizes and payloads.
        bytes: &'a [u8],
    },
    /// Acknowledge now.
    Flush,
    /// Acknowledge everything, then close.
    Bye,
    /// The bytes are wrong; no event follows.
    Fault(Fault),
}

/// One connection's incoming frames.
#[derive(Clone, Debug)]
pub struct Intake {
    limits: Limits,
    state: State,
    /// A Hello has begun.
    greeted: bool,
    /// The number of the next message; 0 behind the largest.
    next_id: u64,
    /// Bytes of the frame's body that are still missing.
    left: u32,
    /// Bytes of Data frames that have arrived, and that are allowed.
    received: u64,
    granted: u64,
    /// The beginning of a unit that the input cut: a header, a first number, a message or a Hello.
    partial: Vec<u8>,
    /// The unit in `partial` was yielded; the next call clears it.
    yielded: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before a frame or in its header.
    Header,
    /// In the body of a Hello.
    Hello,
    /// In the first number of Data.
    First,
    /// Between two messages of Data.
    Messages,
    /// In a message, whose beginning is in `partial`.
    Part,
    /// Behind a fault.
    Over,
}

impl Intake {
    /// The beginning of a connection. Without [`Intake::grant`] no Data is allowed.
    pub const fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: State::Header,
            greeted: false,
            next_id: 0,
            left: 0,
            received: 0,
            granted: 0,
            partial: Vec::new(),
            yielded: false,
        }
    }

    /// Takes one event off the front of `input`. `None`: all of it is used, or there was a fault.
    /// Call it until then: a large buffer is freed by the call after the one that yielded it.
    #[inline]
    pub fn next<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8]) -> Option<Event<'a>> {
        if self.yielded {
            self.clear_yielded();
        }
        match self.step(input) {
            Ok(Next::Messages(first, count, bytes)) => {
                Some(Event::Messages { first, count, bytes })
            }
            Ok(Next::BufferedMessage(first)) => {
                self.yielded = true;
                Some(Event::Messages { first, count: 1, bytes: &self.partial })
            }
            Ok(Next::Continue | Next::Wait) => None,
            Ok(Next::Flush) => Some(Event::Flush),
            Ok(Next::Bye) => Some(Event::Bye),
            Ok(Next::Hello(body)) => Some(greeting(&mut self.state, body)),
            Ok(Next::BufferedHello) => {
                self.yielded = true;
                Some(greeting(&mut self.state, &self.partial))
            }
            Err(fault) => {
                self.state = State::Over;
                Some(Event::Fault(fault))
            }
        }
    }

    /// True between two frames: no byte of a next one has arrived.
    pub fn is_between(&self) -> bool {
        self.state == State::Header && (self.partial.is_empty() || self.yielded)
    }

    /// Allows so many bytes of Data frames in all. Never reduces an earlier limit.
    pub fn grant(&mut self, limit: u64) {
        self.granted = self.granted.max(limit);
    }

    /// Bytes of Data frames that have arrived, headers included.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Bytes of memory for an incomplete unit.
    pub fn buffered(&self) -> usize {
        self.partial.capacity()
    }

    #[inline(always)]
    fn step<'a>(&mut self, input: &mut &'a [u8]) -> Result<Next<'a>, Fault> {
        loop {
            let next = match self.state {
                State::Header => self.header(input)?,
                State::Hello => self.hello(input),
                State::First => self.first(input)?,
                State::Messages => self.messages(input)?,
                State::Part => self.part(input)?,
                State::Over => Next::Wait,
            };
            if !matches!(next, Next::Continue) {
                return Ok(next);
            }
        }
    }

    /// Collects the header of a frame and checks it.
    #[inline(always)]
    fn header<'a>(&mut self, input: &mut &'a [u8]) -> Result<Next<'a>, Fault> {
        let Some(header) = self.fixed(input, usize::MAX) else { return Ok(Next::Wait) };
        let Header { length, kind, flags, reserved } = Header::parse(header);
        if !self.greeted && kind != kind::HELLO {
            return Err(Fault::NoHello);
        }
        if flags != 0 || reserved != 0 {
            return Err(Fault::Malformed);
        }
        self.left = length;
        match kind {
            kind::HELLO if self.greeted => Err(Fault::Malformed),
            kind::HELLO if length > HELLO_MAX => Err(Fault::TooLarge),
            kind::HELLO => {
                self.greeted = true;
                self.state = State::Hello;
                Ok(Next::Continue)
            }
            kind::DATA if length > self.limits.max_frame => Err(Fault::TooLarge),
            kind::DATA if length < DATA_MIN => Err(Fault::Malformed),
            kind::DATA => {
                if self.granted - self.received < HEADER_BYTES as u64 {
                    return Err(Fault::Credit);
                }
                self.received += HEADER_BYTES as u64;
                self.state = State::First;
                self.first(input)
            }
            kind::FLUSH if length == 0 => Ok(Next::Flush),
            kind::BYE if length == 0 => Ok(Next::Bye),
            _ => Err(Fault::Malformed),
        }
    }

    fn hello<'a>(&mut self, input: &mut &'a [u8]) -> Next<'a> {
        let length = self.left as usize;
        if self.partial.is_empty()
            && let Some((body, rest)) = input.split_at_checked(length)
        {
            *input = rest;
            return Next::Hello(body);
        }
        self.buffer(input, length, usize::MAX);
        if self.partial.len() == length { Next::BufferedHello } else { Next::Wait }
    }

    #[inline(always)]
    fn first<'a>(&mut self, input: &mut &'a [u8]) -> Result<Next<'a>, Fault> {
        let before = input.len();
        let first = self.fixed(input, self.room());
        self.count_used(before - input.len());
        let Some(first) = first else { return wait(input) };
        self.next_id = u64::from_le_bytes(first);
        if self.next_id == 0 {
            return Err(Fault::Gap);
        }
        self.state = State::Messages;
        self.messages(input)
    }

    /// Yields the whole messages at the front; buffers the beginning of the next one.
    #[inline(always)]
    fn messages<'a>(&mut self, input: &mut &'a [u8]) -> Result<Next<'a>, Fault> {
        if (self.left as usize) < SIZE_BYTES {
            return Err(Fault::Malformed);
        }
        if self.next_id == 0 {
            return Err(Fault::Gap);
        }
        let body = &input[..input.len().min(self.left as usize).min(self.room())];
        if body.is_empty() {
            return wait(input);
        }
        let (mut count, mut end) = whole(body, self.limits.max_message);
        if count == 0 {
            self.state = State::Part;
            return self.part(input);
        }
        let first = self.next_id;
        if u64::MAX - first < count - 1 {
            count = u64::MAX - first + 1; // no more numbers
            end = end_of(body, count);
        }
        let (bytes, rest) = input.split_at(end);
        *input = rest;
        self.count_used(end);
        self.after_message(first.wrapping_add(count));
        Ok(Next::Messages(first, count, bytes))
    }

    /// Sets the state after a message: within the frame, or at its end.
    fn after_message(&mut self, next_id: u64) {
        self.next_id = next_id;
        self.state = if self.left == 0 { State::Header } else { State::Messages };
    }

    /// Completes the message in `partial`.
    #[inline(never)]
    fn part<'a>(&mut self, input: &mut &'a [u8]) -> Result<Next<'a>, Fault> {
        if self.partial.len() < SIZE_BYTES {
            self.buffer_data(input, SIZE_BYTES);
            if self.partial.len() < SIZE_BYTES {
                return wait(input);
            }
        }
        let size = self.partial.first_chunk().map_or(0, |size| u32::from_le_bytes(*size));
        if size > self.limits.max_message {
            return Err(Fault::TooLarge);
        }
        let arrived = self.partial.len() - SIZE_BYTES;
        if size as usize - arrived > self.left as usize {
            return Err(Fault::Malformed);
        }
        let whole = SIZE_BYTES + size as usize;
        self.buffer_data(input, whole);
        if self.partial.len() < whole {
            return wait(input);
        }
        let id = self.next_id;
        self.after_message(id.wrapping_add(1));
        Ok(Next::BufferedMessage(id))
    }

    /// Bytes of Data that are still allowed.
    fn room(&self) -> usize {
        usize::try_from(self.granted - self.received).unwrap_or(usize::MAX)
    }

    /// Counts bytes of a Data body that were used.
    fn count_used(&mut self, bytes: usize) {
        self.left -= bytes as u32;
        self.received += bytes as u64;
    }

    /// Eight bytes, when all have arrived; uses at most `room` bytes of the input.
    #[inline(always)]
    fn fixed(&mut self, input: &mut &[u8], room: usize) -> Option<[u8; 8]> {
        if self.partial.is_empty()
            && room >= 8
            && let Some((bytes, rest)) = input.split_first_chunk::<8>()
        {
            *input = rest;
            return Some(*bytes);
        }
        self.buffer(input, 8, room);
        let bytes = *self.partial.first_chunk::<8>()?;
        self.partial.clear();
        Some(bytes)
    }

    /// Buffers bytes of a Data body until `partial` has `whole` bytes.
    fn buffer_data(&mut self, input: &mut &[u8], whole: usize) {
        let before = input.len();
        self.buffer(input, whole, self.room());
        self.count_used(before - input.len());
    }

    /// Buffers bytes until `partial` has `whole`, at most `room` of the input. The buffer doubles,
    /// but not beyond `whole`: a large announced size costs nothing before its bytes arrive.
    fn buffer(&mut self, input: &mut &[u8], whole: usize, room: usize) {
        let len = self.partial.len();
        let taken = (whole - len).min(input.len()).min(room);
        if self.partial.capacity() < len + taken {
            let capacity = (len + taken).max(2 * len).min(whole);
            self.partial.reserve_exact(capacity - len);
        }
        let (bytes, rest) = input.split_at(taken);
        self.partial.extend_from_slice(bytes);
        *input = rest;
    }

    #[cold]
    fn clear_yielded(&mut self) {
        self.yielded = false;
        if self.partial.capacity() > KEPT_BYTES {
            self.partial = Vec::new();
        } else {
            self.partial.clear();
        }
    }
}

/// The result of a state. Small, because it is returned for each frame.
enum Next<'a> {
    /// Continue with the new state.
    Continue,
    /// More bytes are needed.
    Wait,
    /// The number of the first, how many, their bytes.
    Messages(u64, u64, &'a [u8]),
    /// A message is complete in `partial`; its number.
    BufferedMessage(u64),
    /// The body of a Hello.
    Hello(&'a [u8]),
    /// The body of a Hello is complete in `partial`.
    BufferedHello,
    Flush,
    Bye,
}

/// The result when the input is used up, or the rest of it is not allowed.
fn wait<'a>(input: &[u8]) -> Result<Next<'a>, Fault> {
    if input.is_empty() { Ok(Next::Wait) } else { Err(Fault::Credit) }
}

/// The event of a whole Hello.
fn greeting<'a>(state: &mut State, body: &'a [u8]) -> Event<'a> {
    match Hello::parse(body).and_then(|hello| hello.check().map(|()| hello)) {
        Ok(hello) => {
            *state = State::Header;
            Event::Hello(hello)
        }
        Err(fault) => {
            *state = State::Over;
            Event::Fault(fault)
        }
    }
}
