//! Typed values without keys. This version knows strings, and bits and HyperLogLogs inside them.

pub mod bitmap;
pub mod hll;
pub mod string;

pub use string::{EMBSTR_MAX, Encoding, IntText, NewStr, Str, encode};
