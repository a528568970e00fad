//! Why messages could not be sent at all.

use std::net::SocketAddr;
use std::{fmt, io};

/// Why there is no measurement.
#[derive(Debug)]
pub enum Error {
    /// The specification asks for what cannot be.
    Spec(String),
    /// No connection to the listener.
    Connect(SocketAddr, io::Error),
    /// The listener does not take such a producer.
    Refused(String),
    /// The client's own system calls failed.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Spec(what) => f.write_str(what),
            Error::Connect(addr, e) => write!(f, "cannot connect to {addr}: {e}"),
            Error::Refused(why) => write!(f, "the listener refuses: {why}"),
            Error::Io(e) => write!(f, "the client failed: {e}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(e: io::Error) -> Self {
        Error::Io(e)
    }
}
