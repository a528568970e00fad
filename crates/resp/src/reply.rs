//! Writing replies: one call for each value, in the client's protocol version.
//!
//! An aggregate is its header, then its members, written one after the other. RESP2 has fewer
//! types; what it lacks is written the way Redis does: a map is an array of twice the length, a
//! double is a bulk string, and so on.

use base::Blob;
use base::double;
use base::num::{I64_TEXT_MAX, format_i64, write_i64};

use crate::error::ProtocolError;
use base::out::{BlobPart, OutBuf, OutPos};
use std::ops::Range;

/// The protocol version that a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Proto {
    /// What every client speaks.
    #[default]
    Resp2,
    /// After `HELLO 3`: more types, and pushes.
    Resp3,
}

/// Where the header of an aggregate belongs, which is written once its length is known.
#[derive(Clone, Copy, Debug)]
#[must_use = "an aggregate without its header is no reply"]
pub struct Mark(OutPos);

/// Writer of replies.
#[derive(Debug)]
pub struct Reply<'a> {
    out: &'a mut OutBuf,
    proto: Proto,
}

/// Longest text of a 64-bit integer with a lead byte and a line ending.
const NUMBER_LINE_MAX: usize = 1 + I64_TEXT_MAX + 2;

impl<'a> Reply<'a> {
    /// A writer at the end of `out`.
    #[inline]
    pub fn new(out: &'a mut OutBuf, proto: Proto) -> Self {
        Self { out, proto }
    }

    /// The same writer for a shorter time.
    #[inline]
    pub fn reborrow(&mut self) -> Reply<'_> {
        Reply { out: self.out, proto: self.proto }
    }

    /// The protocol version it writes.
    #[inline]
    pub fn proto(&self) -> Proto {
        self.proto
    }

    /// The end of what is written.
    #[inline]
    pub fn position(&self) -> OutPos {
        self.out.position()
    }

    /// Drops what was written since `to`.
    #[inline]
    pub fn truncate(&mut self, to: OutPos) {
        self.out.truncate(to);
    }

    /// `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.raw(b"+OK\r\n");
    }

    /// A simple string; line endings in it become spaces.
    #[inline]
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// An error: its text without the `-`; line endings in it become spaces.
    pub fn error(&mut self, text: &str) {
        self.error_bytes(text.as_bytes());
    }

    /// An error whose text quotes what a client sent and so need not be UTF-8.
    pub fn error_bytes(&mut self, text: &[u8]) {
        self.line(b'-', text);
    }

    /// The error for bytes that are no request.
    pub fn protocol_error(&mut self, error: ProtocolError) {
        let mut text = Vec::new();
        error.write_text(&mut text);
        self.error_bytes(&text);
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        if let digit @ 0..=9 = value {
            self.raw(&[b':', b'0' + digit as u8, b'\r', b'\n']);
        } else {
            self.number_line(b':', value);
        }
    }

    /// A bulk string by copy.
    #[inline]
    pub fn bulk(&mut self, value: &[u8]) {
        self.out.bytes.reserve(value.len() + NUMBER_LINE_MAX + 2);
        self.header(b'$', value.len());
        self.raw(value);
        self.raw(b"\r\n");
    }

    /// The header of a bulk string: `len` bytes follow ([`Reply::raw`]), and a line ending.
    #[inline]
    pub fn bulk_header(&mut self, len: usize) {
        self.header(b'$', len);
    }

    /// A part of a bulk string behind [`Reply::bulk_header`], by reference.
    pub fn raw_blob(&mut self, value: &Blob) {
        let position = self.out.bytes.len();
        self.out.blobs.push(BlobPart::whole(position, value.clone()));
    }

    /// A bulk string by reference. Not inlined: it would make the code for small ones longer.
    #[inline(never)]
    pub fn bulk_blob(&mut self, value: &Blob) {
        self.bulk_part(value, 0..value.len());
    }

    /// A part of a big buffer as a bulk string by reference. The range lies within the length.
    pub fn bulk_part(&mut self, value: &Blob, range: Range<usize>) {
        assert!(range.start <= range.end && range.end <= value.len(), "it is a part");
        self.header(b'$', range.len());
        let position = self.out.bytes.len();
        self.out.blobs.push(BlobPart { position, blob: value.clone(), range });
        self.raw(b"\r\n");
    }

    /// An integer as a bulk string.
    #[inline]
    pub fn bulk_int(&mut self, value: i64) {
        self.bulk(format_i64(&mut [0; I64_TEXT_MAX], value));
    }

    /// Nothing, where a value could be.
    #[inline]
    pub fn null(&mut self) {
        match self.proto {
            Proto::Resp2 => self.raw(b"$-1\r\n"),
            Proto::Resp3 => self.raw(b"_\r\n"),
        }
    }

    /// Nothing, where an array could be.
    #[inline]
    pub fn null_array(&mut self) {
        match self.proto {
            Proto::Resp2 => self.raw(b"*-1\r\n"),
            Proto::Resp3 => self.raw(b"_\r\n"),
        }
    }

    /// The header of an array: `len` values follow.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.header(b'*', len);
    }

    /// The header of a map: `pairs` times a key and a value follow.
    #[inline]
    pub fn map(&mut self, pairs: usize) {
        match self.proto {
            Proto::Resp2 => self.header(b'*', pairs * 2),
            Proto::Resp3 => self.header(b'%', pairs),
        }
    }

    /// The header of a set: `len` values follow.
    #[inline]
    pub fn set(&mut self, len: usize) {
        self.header(self.lead(b'~'), len);
    }

    /// The header of a push: `len` values follow that answer no request.
    #[inline]
    pub fn push(&mut self, len: usize) {
        self.header(self.lead(b'>'), len);
    }

    /// The header of an attribute of the value after it: `pairs` times a key and a value follow, if
    /// and only if this says true. RESP2 has no attributes.
    #[inline]
    pub fn attribute(&mut self, pairs: usize) -> bool {
        let known = self.proto == Proto::Resp3;
        if known {
            self.header(b'|', pairs);
        }
        known
    }

    /// A double.
    pub fn double(&mut self, value: f64) {
        let mut text = Vec::with_capacity(double::TEXT_MAX);
        double::write(&mut text, value);
        self.double_text(&text);
    }

    /// A double that is text already.
    pub fn double_text(&mut self, text: &[u8]) {
        match self.proto {
            Proto::Resp2 => self.bulk(text),
            Proto::Resp3 => self.line(b',', text),
        }
    }

    /// True or false.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.raw(match (self.proto, value) {
            (Proto::Resp2, false) => b":0\r\n",
            (Proto::Resp2, true) => b":1\r\n",
            (Proto::Resp3, false) => b"#f\r\n",
            (Proto::Resp3, true) => b"#t\r\n",
        });
    }

    /// Text for people, in a `format` of three letters: `txt` or `mkd`.
    pub fn verbatim(&mut self, format: [u8; 3], text: &[u8]) {
        match self.proto {
            Proto::Resp2 => self.bulk(text),
            Proto::Resp3 => {
                self.header(b'=', text.len() + 4);
                self.raw(&format);
                self.raw(b":");
                self.raw(text);
                self.raw(b"\r\n");
            }
        }
    }

    /// An integer of any size, given as its digits.
    pub fn big_number(&mut self, digits: &[u8]) {
        match self.proto {
            Proto::Resp2 => self.bulk(digits),
            Proto::Resp3 => self.line(b'(', digits),
        }
    }

    /// Bytes that are a reply, or a part of one, already.
    #[inline(always)]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.bytes.extend_from_slice(bytes);
    }

    /// A part of a reply that was written elsewhere, blobs included.
    pub fn append(&mut self, part: &OutBuf) {
        let start = self.out.bytes.len();
        self.raw(&part.bytes);
        let moved = part.blobs.iter().map(|blob| blob.moved_to(start + blob.position));
        self.out.blobs.extend(moved);
    }

    /// Bytes written since a position, those of blobs not counted.
    pub fn written_since(&self, from: OutPos) -> usize {
        self.out.bytes.len() - from.bytes
    }

    /// Starts an array whose length is given to [`Reply::close_array`].
    pub fn array_deferred(&mut self) -> Mark {
        Mark(self.out.position())
    }

    /// Ends an array of `len` values. Arrays inside of it were ended before.
    pub fn close_array(&mut self, mark: Mark, len: usize) {
        self.close(mark, b'*', len);
    }

    /// Ends as a set what was started by [`Reply::array_deferred`].
    pub fn close_set(&mut self, mark: Mark, len: usize) {
        self.close(mark, self.lead(b'~'), len);
    }

    /// Ends as a map of `pairs` what was started by [`Reply::array_deferred`].
    pub fn close_map(&mut self, mark: Mark, pairs: usize) {
        match self.proto {
            Proto::Resp2 => self.close(mark, b'*', pairs * 2),
            Proto::Resp3 => self.close(mark, b'%', pairs),
        }
    }

    /// Puts a header in front of what was written since `mark`.
    fn close(&mut self, mark: Mark, lead: u8, len: usize) {
        let Mark(at) = mark;
        let body = self.out.bytes.len();
        self.header(lead, len);
        let header_len = self.out.bytes.len() - body;
        self.out.bytes[at.bytes..].rotate_right(header_len);
        for BlobPart { position, .. } in &mut self.out.blobs[at.blobs..] {
            *position += header_len;
        }
    }

    /// `resp3`, or what an array starts with in RESP2.
    #[inline]
    fn lead(&self, resp3: u8) -> u8 {
        match self.proto {
            Proto::Resp2 => b'*',
            Proto::Resp3 => resp3,
        }
    }

    /// A lead byte, a length and a line ending.
    #[inline(always)]
    fn header(&mut self, lead: u8, len: usize) {
        if len < 10 {
            self.raw(&[lead, b'0' + len as u8, b'\r', b'\n']);
        } else if len < 100 {
            let (tens, ones) = (len as u8 / 10, len as u8 % 10);
            self.raw(&[lead, b'0' + tens, b'0' + ones, b'\r', b'\n']);
        } else {
            self.number_line(lead, len as i64);
        }
    }

    #[inline(never)]
    fn number_line(&mut self, lead: u8, value: i64) {
        let bytes = &mut self.out.bytes;
        bytes.reserve(NUMBER_LINE_MAX);
        bytes.push(lead);
        write_i64(bytes, value);
        bytes.extend_from_slice(b"\r\n");
    }

    /// A lead byte, a text without line endings, and a line ending.
    fn line(&mut self, lead: u8, text: &[u8]) {
        let bytes = &mut self.out.bytes;
        bytes.reserve(text.len() + 3);
        bytes.push(lead);
        let start = bytes.len();
        bytes.extend_from_slice(text);
        for byte in &mut bytes[start..] {
            if matches!(*byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        bytes.extend_from_slice(b"\r\n");
    }
}
