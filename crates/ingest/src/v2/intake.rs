//! Takes apart what a producer sends, cut anywhere.
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
//! Whole messages that lie in the input are yielded where they lie. One that the input cuts is
//! completed in a buffer, which grows with the bytes that come, never beyond the message, and is
//! freed when it was large.
//!
//! What is yielded depends on the bytes alone, not on where they were cut: a fault shows as soon as
//! the byte that proves it is there, and not before the messages in front of it.

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
        /// How many they are, at least one; the last number is at most the largest.
        count: u64,
        /// Sizes and payloads.
        bytes: &'a [u8],
    },
    /// Acknowledge now.
    Flush,
    /// Acknowledge everything, then close.
    Bye,
    /// Something is wrong; nothing comes after it.
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
    /// Bytes that the frame's body still misses.
    left: u32,
    /// Bytes of Data frames that came, and that may come.
    received: u64,
    granted: u64,
    /// What is kept of a unit that the input cut: a header, a first number, a message or a Hello.
    kept: Vec<u8>,
    /// The kept bytes were yielded: they go before anything else happens.
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
    /// In a message, whose beginning is kept.
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
            kept: Vec::new(),
            yielded: false,
        }
    }

    /// Takes one event from the front of `input`; `None`: all of it is taken, or a fault was found
    /// before. Call it until then: large buffers are freed by the call after the one that yielded
    /// them.
    #[inline]
    pub fn next<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8]) -> Option<Event<'a>> {
        if self.yielded {
            self.forget();
        }
        match self.step(input) {
            Ok(Next::Messages(first, count, bytes)) => {
                Some(Event::Messages { first, count, bytes })
            }
            Ok(Next::KeptMessage(first)) => {
                self.yielded = true;
                Some(Event::Messages { first, count: 1, bytes: &self.kept })
            }
            Ok(Next::Again | Next::Wait) => None,
            Ok(Next::Flush) => Some(Event::Flush),
            Ok(Next::Bye) => Some(Event::Bye),
            Ok(Next::Hello(body)) => Some(greeting(&mut self.state, body)),
            Ok(Next::KeptHello) => {
                self.yielded = true;
                Some(greeting(&mut self.state, &self.kept))
            }
            Err(fault) => {
                self.state = State::Over;
                Some(Event::Fault(fault))
            }
        }
    }

    /// True if nothing of a next frame has come.
    pub fn is_between(&self) -> bool {
        self.state == State::Header && (self.kept.is_empty() || self.yielded)
    }

    /// Allows so many bytes of Data frames in all; what was allowed before stays allowed.
    pub fn grant(&mut self, limit: u64) {
        self.granted = self.granted.max(limit);
    }

    /// Bytes of Data frames that were taken, headers included.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Bytes of memory that are held for a unit under way.
    pub fn buffered(&self) -> usize {
        self.kept.capacity()
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
            if !matches!(next, Next::Again) {
                return Ok(next);
            }
        }
    }

    /// Collects the header of a frame and judges it.
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
                Ok(Next::Again)
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
        if self.kept.is_empty()
            && let Some((body, rest)) = input.split_at_checked(length)
        {
            *input = rest;
            return Next::Hello(body);
        }
        self.keep(input, length, usize::MAX);
        if self.kept.len() == length { Next::KeptHello } else { Next::Wait }
    }

    #[inline(always)]
    fn first<'a>(&mut self, input: &mut &'a [u8]) -> Result<Next<'a>, Fault> {
        let before = input.len();
        let first = self.fixed(input, self.room());
        self.took(before - input.len());
        let Some(first) = first else { return wait(input) };
        self.next_id = u64::from_le_bytes(first);
        if self.next_id == 0 {
            return Err(Fault::Gap);
        }
        self.state = State::Messages;
        self.messages(input)
    }

    /// Yields the whole messages in front; keeps the beginning of the one behind them.
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
        self.took(end);
        self.between(first.wrapping_add(count));
        Ok(Next::Messages(first, count, bytes))
    }

    /// Behind a message, or at the end of the frame.
    fn between(&mut self, next_id: u64) {
        self.next_id = next_id;
        self.state = if self.left == 0 { State::Header } else { State::Messages };
    }

    /// Completes the message that is kept.
    #[inline(never)]
    fn part<'a>(&mut self, input: &mut &'a [u8]) -> Result<Next<'a>, Fault> {
        if self.kept.len() < SIZE_BYTES {
            self.keep_data(input, SIZE_BYTES);
            if self.kept.len() < SIZE_BYTES {
                return wait(input);
            }
        }
        let size = self.kept.first_chunk().map_or(0, |size| u32::from_le_bytes(*size));
        if size > self.limits.max_message {
            return Err(Fault::TooLarge);
        }
        let came = self.kept.len() - SIZE_BYTES;
        if size as usize - came > self.left as usize {
            return Err(Fault::Malformed);
        }
        let whole = SIZE_BYTES + size as usize;
        self.keep_data(input, whole);
        if self.kept.len() < whole {
            return wait(input);
        }
        let id = self.next_id;
        self.between(id.wrapping_add(1));
        Ok(Next::KeptMessage(id))
    }

    /// Bytes of Data that are still granted.
    fn room(&self) -> usize {
        usize::try_from(self.granted - self.received).unwrap_or(usize::MAX)
    }

    /// Notes bytes of a Data body.
    fn took(&mut self, bytes: usize) {
        self.left -= bytes as u32;
        self.received += bytes as u64;
    }

    /// Eight bytes, at most `room` of them from the input, once all are there.
    #[inline(always)]
    fn fixed(&mut self, input: &mut &[u8], room: usize) -> Option<[u8; 8]> {
        if self.kept.is_empty()
            && room >= 8
            && let Some((bytes, rest)) = input.split_first_chunk::<8>()
        {
            *input = rest;
            return Some(*bytes);
        }
        self.keep(input, 8, room);
        let bytes = *self.kept.first_chunk::<8>()?;
        self.kept.clear();
        Some(bytes)
    }

    /// Keeps bytes of a Data body until `whole` are kept.
    fn keep_data(&mut self, input: &mut &[u8], whole: usize) {
        let before = input.len();
        self.keep(input, whole, self.room());
        self.took(before - input.len());
    }

    /// Keeps bytes until `whole` are kept, at most `room`. The buffer doubles, but not beyond
    /// `whole`: a size that promises much costs nothing until it comes.
    fn keep(&mut self, input: &mut &[u8], whole: usize, room: usize) {
        let len = self.kept.len();
        let taken = (whole - len).min(input.len()).min(room);
        if self.kept.capacity() < len + taken {
            let capacity = (len + taken).max(2 * len).min(whole);
            self.kept.reserve_exact(capacity - len);
        }
        let (bytes, rest) = input.split_at(taken);
        self.kept.extend_from_slice(bytes);
        *input = rest;
    }

    #[cold]
    fn forget(&mut self) {
        self.yielded = false;
        if self.kept.capacity() > KEPT_BYTES {
            self.kept = Vec::new();
        } else {
            self.kept.clear();
        }
    }
}

/// What a state says. Small: it is handed on for each frame.
enum Next<'a> {
    /// Another state has its turn.
    Again,
    /// More bytes are needed.
    Wait,
    /// The number of the first, how many, their bytes.
    Messages(u64, u64, &'a [u8]),
    /// A message is whole in the buffer.
    KeptMessage(u64),
    /// The body of a Hello.
    Hello(&'a [u8]),
    /// The same in the buffer.
    KeptHello,
    Flush,
    Bye,
}

/// What to do when the input is used up, or what is left of it was not granted.
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
