//! A value on its way into an entry.

use base::Blob;
use value::{Big, EMBSTR_MAX, Encoding, Kind, NewStr};

/// The longest value inside an entry; a longer one is a [`Blob`].
pub const INLINE_MAX: usize = 16 * 1024 - 1;

/// The kind and the encoding of a value, as eight bits of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form(u8);

impl Form {
    #[inline(always)]
    pub const fn new(kind: Kind, encoding: Encoding) -> Self {
        Self(kind as u8 | (encoding as u8) << 4)
    }

    #[inline(always)]
    pub const fn string(encoding: Encoding) -> Self {
        Self::new(Kind::String, encoding)
    }

    #[inline(always)]
    pub fn bits(self, shift: u32) -> u64 {
        u64::from(self.0) << shift
    }

    #[inline(always)]
    pub fn of_bits(bits: u8) -> Self {
        Self(bits)
    }
}

/// A value on its way into an entry.
#[derive(Clone)]
pub(crate) enum Payload<'a> {
    Int(i64),
    Inline(Form, &'a [u8]),
    Blob(Blob),
    Big(Encoding, Box<Big>),
}

/// A string which is too long for an entry.
#[cold]
fn blob_of(bytes: &[u8]) -> Blob {
    Blob::from(bytes)
}

impl<'a> Payload<'a> {
    #[inline(always)]
    pub fn of(value: NewStr<'a>) -> Self {
        match value {
            NewStr::Int(value) => Self::Int(value),
            NewStr::Embstr(bytes) => {
                assert!(bytes.len() <= EMBSTR_MAX, "embstr is at most {EMBSTR_MAX} bytes");
                Self::Inline(Form::string(Encoding::Embstr), bytes)
            }
            NewStr::Raw(bytes) if bytes.len() <= INLINE_MAX => {
                Self::Inline(Form::string(Encoding::Raw), bytes)
            }
            NewStr::Raw(bytes) => Self::Blob(blob_of(bytes)),
            NewStr::Blob(blob) => Self::Blob(blob),
        }
    }

    /// A collection inside its entry.
    pub fn packed(kind: Kind, encoding: Encoding, bytes: &'a [u8]) -> Self {
        assert!(kind != Kind::String, "a string is no collection");
        assert!(bytes.len() <= INLINE_MAX, "a packed value is at most {INLINE_MAX} bytes");
        Self::Inline(Form::new(kind, encoding), bytes)
    }
}
