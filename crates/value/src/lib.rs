//! Typed values without keys: strings, and the collections behind [`Big`].

pub mod big;
pub mod kind;
pub mod string;

pub use big::{Big, Log, LogMark};
pub use kind::{Encoding, Kind};
pub use string::{EMBSTR_MAX, IntText, NewStr, Str, encode};
