//! Why a load could not be run at all. A load that ran and failed has its failures in the
//! measurement.

use std::fmt;
use std::io;

/// Why there is no measurement.
#[derive(Debug)]
pub enum Error {
    /// The options contradict each other or ask for something that cannot be done.
    Options(String),
    /// A connection could not be made: which one of how many, and why.
    Connect {
        /// Where to.
        address: String,
        /// Connections that had been made before.
        made: usize,
        /// Why this one failed.
        cause: io::Error,
    },
    /// The server did not accept the protocol version, the password or the database.
    Handshake(String),
    /// The keys that the load reads could not be written beforehand.
    Populate(String),
    /// The operating system refused something: what, and why.
    System(&'static str, io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(what) => f.write_str(what),
            Self::Connect { address, made: 0, cause } => {
                write!(f, "cannot connect to {address}: {cause}")
            }
            Self::Connect { address, made, cause } => {
                write!(f, "cannot connect to {address} after {made} connections: {cause}")
            }
            Self::Handshake(what) => write!(f, "the server refused the connection: {what}"),
            Self::Populate(what) => write!(f, "cannot write the keys that are to be read: {what}"),
            Self::System(what, cause) => write!(f, "cannot {what}: {cause}"),
        }
    }
}

impl std::error::Error for Error {}
