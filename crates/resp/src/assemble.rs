//! A request that arrives in pieces: each byte is parsed once, as it arrives.
//!
//! The grammar is that of [`frame`](crate::frame); the property tests hold the two together. A big
//! argument is received into the buffer in which it is stored later, page by page if it is long.
//! That buffer grows with the bytes that have arrived, not with the announced length.

use base::blob::Builder;

use crate::args::Args;
use crate::error::ProtocolError;
use crate::inline;
use crate::limits::{BIG_BULK, LINE_MAX, Limits, SMALL_BYTES_MAX};
use crate::number;
use crate::owned::OwnedRequest;

/// Parser of one request that owns what has arrived of it.
#[derive(Debug)]
pub struct Assembler {
    limits: Limits,
    step: Step,
    /// The unfinished header or inline line.
    line: Vec<u8>,
    /// The unfinished big argument.
    big: Builder,
    /// The finished arguments, and the bytes of an unfinished small one.
    request: OwnedRequest,
    /// Arguments that are not complete yet.
    missing: usize,
    small_bytes_max: usize,
}

/// What the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    First,
    Inline,
    /// Inside of a header line.
    Header(Header),
    /// The byte behind a header's carriage return.
    HeaderEnd(Header),
    /// `left` bytes are missing of an argument of `len`.
    Small {
        len: usize,
        left: usize,
    },
    Big {
        len: usize,
    },
    /// The two bytes behind an argument, of which the `first` may have arrived.
    Ending {
        first: Option<u8>,
    },
    Complete,
    Failed(ProtocolError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    Count,
    Bulk,
}

impl Assembler {
    /// An assembler for the request that starts with the next byte fed to it.
    pub fn new(limits: Limits) -> Self {
        Self::with_small_bytes_max(limits, SMALL_BYTES_MAX)
    }

    fn with_small_bytes_max(limits: Limits, small_bytes_max: usize) -> Self {
        Self {
            limits,
            step: Step::First,
            line: Vec::new(),
            big: Builder::default(),
            request: OwnedRequest::default(),
            missing: 0,
            small_bytes_max,
        }
    }

    /// Consumes bytes up to the end of the request. Returns how many, and whether the request is
    /// complete. An empty request is complete without arguments. After an error every call returns
    /// that error.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(usize, bool), ProtocolError> {
        let mut at = 0;
        while at < bytes.len() && self.step != Step::Complete {
            match self.advance(&bytes[at..]) {
                Ok(taken) => at += taken,
                Err(error) => {
                    self.step = Step::Failed(error);
                    return Err(error);
                }
            }
        }
        Ok((at, self.step == Step::Complete))
    }

    /// True once the request has arrived whole.
    pub fn is_complete(&self) -> bool {
        self.step == Step::Complete
    }

    /// The arguments that have arrived; all of them once the request is complete.
    pub fn args(&self) -> Args<'_> {
        self.request.args()
    }

    /// The complete request, without copying it.
    pub fn into_request(self) -> OwnedRequest {
        self.request
    }

    /// Bytes that are missing of the big argument which is arriving; 0 if none is.
    pub fn big_missing(&self) -> usize {
        if let Step::Big { len } = self.step { len - self.big.len() } else { 0 }
    }

    /// Bytes that have arrived of the big argument which is arriving.
    pub fn big_arrived(&self) -> usize {
        self.big.len()
    }

    /// Lets `receive` append the next bytes of the big argument which is arriving, in place of
    /// [`Assembler::feed`]: see [`Builder::fill`]. Some of it must be missing.
    pub fn fill_big<R>(&mut self, receive: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let result = self.big.fill(receive);
        self.end_big();
        result
    }

    /// Bytes that are held, spare room included.
    pub fn memory(&self) -> usize {
        size_of::<Self>() - size_of::<OwnedRequest>()
            + self.request.memory()
            + self.big.capacity()
            + self.line.capacity()
    }

    /// Consumes some of `rest`, which is not empty, or only moves to the next step.
    fn advance(&mut self, rest: &[u8]) -> Result<usize, ProtocolError> {
        match self.step {
            Step::First => {
                let array = rest[0] == b'*';
                self.step = if array { Step::Header(Header::Count) } else { Step::Inline };
                Ok(0)
            }
            Step::Inline => self.inline(rest),
            Step::Header(header) => self.header(rest, header),
            Step::HeaderEnd(header) => self.header_end(rest[0], header).map(|()| 1),
            Step::Small { len, left } => Ok(self.small(rest, len, left)),
            Step::Big { len } => Ok(self.big(rest, len)),
            Step::Ending { first } => self.ending(rest[0], first).map(|()| 1),
            Step::Complete => Ok(0),
            Step::Failed(error) => Err(error),
        }
    }

    /// Takes bytes of a line; also says whether its `ending` was among them.
    fn line(
        &mut self,
        rest: &[u8],
        ending: u8,
        too_big: ProtocolError,
    ) -> Result<(usize, bool), ProtocolError> {
        let room = LINE_MAX + 1 - self.line.len();
        let window = &rest[..rest.len().min(room)];
        if let Some(len) = memchr::memchr(ending, window) {
            self.line.extend_from_slice(&window[..len]);
            return Ok((len + 1, true));
        }
        self.line.extend_from_slice(window);
        if self.line.len() > LINE_MAX { Err(too_big) } else { Ok((window.len(), false)) }
    }

    fn inline(&mut self, rest: &[u8]) -> Result<usize, ProtocolError> {
        let (taken, ended) = self.line(rest, b'\n', ProtocolError::TooBigInline)?;
        if ended {
            let (base, spans, blobs) = self.request.parts_mut();
            *base = std::mem::take(&mut self.line);
            inline::split(base, 0, base.len(), spans, blobs)?;
            self.step = Step::Complete;
        }
        Ok(taken)
    }

    fn header(&mut self, rest: &[u8], header: Header) -> Result<usize, ProtocolError> {
        let too_big = match header {
            Header::Count => ProtocolError::TooBigMultibulkCount,
            Header::Bulk => ProtocolError::TooBigBulkCount,
        };
        let (taken, ended) = self.line(rest, b'\r', too_big)?;
        if ended {
            self.step = Step::HeaderEnd(header);
        }
        Ok(taken)
    }

    fn header_end(&mut self, byte: u8, header: Header) -> Result<(), ProtocolError> {
        self.line.extend([b'\r', byte]);
        match header {
            Header::Count => {
                self.missing = number::count(&self.line[1..], &self.limits)?;
                self.next_argument();
            }
            Header::Bulk => {
                let len = number::bulk_length(&self.line, &self.limits)?;
                let small = len < BIG_BULK && self.request.has_room_for(len, self.small_bytes_max);
                self.step = if small { Step::Small { len, left: len } } else { Step::Big { len } };
                if !small {
                    self.big = Builder::with_len(len);
                }
            }
        }
        self.line.clear();
        Ok(())
    }

    fn next_argument(&mut self) {
        self.step = if self.missing == 0 { Step::Complete } else { Step::Header(Header::Bulk) };
    }

    fn small(&mut self, rest: &[u8], len: usize, left: usize) -> usize {
        let taken = left.min(rest.len());
        self.request.extend_small(&rest[..taken]);
        self.step = Step::Small { len, left: left - taken };
        if taken == left {
            self.request.end_small(len);
            self.step = Step::Ending { first: None };
        }
        taken
    }

    fn big(&mut self, rest: &[u8], len: usize) -> usize {
        let taken = (len - self.big.len()).min(rest.len());
        self.big.extend(&rest[..taken]);
        self.end_big();
        taken
    }

    /// Moves to the next step if the big argument is complete.
    fn end_big(&mut self) {
        if self.big_missing() == 0 {
            self.request.push_blob(std::mem::take(&mut self.big).finish());
            self.step = Step::Ending { first: None };
        }
    }

    fn ending(&mut self, byte: u8, first: Option<u8>) -> Result<(), ProtocolError> {
        match first {
            None => self.step = Step::Ending { first: Some(byte) },
            Some(b'\r') if byte == b'\n' => {
                self.missing -= 1;
                self.next_argument();
            }
            Some(_) => return Err(ProtocolError::InvalidLineEnd),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(small_bytes_max: usize, bytes: &[u8]) -> Assembler {
        let mut assembler = Assembler::with_small_bytes_max(Limits::default(), small_bytes_max);
        assert_eq!(assembler.feed(bytes).map(|(taken, _)| taken), Ok(bytes.len()));
        assembler
    }

    #[test]
    fn memory_follows_received_bytes_and_not_announced_lengths() {
        let mut assembler = fed(SMALL_BYTES_MAX, b"*2\r\n$3\r\nSET\r\n$536870912\r\n");
        assert!(assembler.memory() < 1024, "announced only: {}", assembler.memory());
        for round in 1..64 {
            assert_eq!(assembler.feed(&[0; 4096]), Ok((4096, false)));
            assert!(assembler.memory() < 1024 + 2 * 4096 * round, "twice what arrived at most");
        }
        let many = fed(SMALL_BYTES_MAX, b"*2147483647\r\n$1\r\na\r\n");
        assert!(many.memory() < 1024, "arguments announced only: {}", many.memory());
    }

    #[test]
    fn a_large_argument_has_no_spare_capacity() {
        let len = 5 * BIG_BULK / 2 + 1;
        let mut assembler = fed(SMALL_BYTES_MAX, format!("*1\r\n${len}\r\n").as_bytes());
        while assembler.feed(&[7; 1000]).is_ok_and(|(_, complete)| !complete) {}
        let blob = assembler.args().blob(0).expect("it is big");
        assert_eq!((blob.len(), blob.capacity()), (len, len));
    }

    #[test]
    fn a_large_argument_is_filled_in_place_up_to_its_end() {
        let len = 3 << 20;
        let mut assembler =
            fed(SMALL_BYTES_MAX, format!("*2\r\n$2\r\nab\r\n${len}\r\n").as_bytes());
        assert_eq!((assembler.big_missing(), assembler.big_arrived()), (len, 0));
        assert_eq!(assembler.feed(&[7].repeat(100_000)), Ok((100_000, false)));
        let mut left = len - 100_000;
        while left > 0 {
            assert_eq!((assembler.big_missing(), assembler.big_arrived()), (left, len - left));
            left -= assembler.fill_big(|page| {
                let room = (page.capacity() - page.len()).min(50_000);
                page.resize(page.len() + room, 7);
                room
            });
        }
        assert_eq!((assembler.big_missing(), assembler.is_complete()), (0, false));
        assert_eq!(assembler.feed(b"\r\nbehind"), Ok((2, true)));
        assert_eq!(assembler.args().blob(1).map(|blob| *blob == vec![7; len][..]), Some(true));
        assert_eq!(assembler.args().get(0), b"ab");
    }

    #[test]
    fn only_a_large_argument_is_a_blob() {
        for (len, big) in [(BIG_BULK - 1, false), (BIG_BULK, true)] {
            let request = format!("*1\r\n${len}\r\n{}\r\n", "v".repeat(len));
            let assembler = fed(SMALL_BYTES_MAX, request.as_bytes());
            assert_eq!(assembler.args().blob(0).is_some(), big);
        }
    }

    #[test]
    fn small_arguments_beyond_the_limit_have_their_own_buffers() {
        let assembler = fed(10, b"*4\r\n$5\r\nfirst\r\n$6\r\nsecond\r\n$5\r\nthird\r\n$0\r\n\r\n");
        let seen: Vec<_> = (0..4).map(|index| assembler.args().blob(index).is_some()).collect();
        assert_eq!(seen, [false, true, false, false]);
        let args: Vec<_> = assembler.args().iter().collect();
        assert_eq!(args, [&b"first"[..], b"second", b"third", b""]);
    }
}
