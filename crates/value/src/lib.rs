//! Typed values without keys. This version knows strings.

pub mod string;

pub use string::{EMBSTR_MAX, Encoding, IntText, NewStr, Str, encode};
