//! What can go wrong.

use std::fmt;

use ingest::v2::Fault;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Not done in the time given. Nothing is lost: what was sent is kept, and the call may be
    /// repeated. The text says why the last connection ended, if one did.
    Timeout(String),
    /// Too much is unacknowledged; this message was not taken.
    WouldBlock,
    /// The message is larger than the server takes or the buffer can hold; it was not taken.
    TooLarge {
        /// Its bytes.
        size: usize,
        /// The most that is taken.
        max: usize,
    },
    /// The producer was closed.
    Closed,
    /// The options cannot be said in a Hello.
    Options(&'static str),
    /// The server sent what is none of this protocol.
    Protocol(&'static str),
    /// The server holds other messages than this producer sent: somebody else uses its name.
    NumbersDisagree {
        /// What the server holds.
        held: u64,
        /// What it had acknowledged.
        acknowledged: u64,
        /// What was sent last.
        last: u64,
    },
    /// All numbers are used up.
    NumbersEnd,
    /// No thread could be started.
    Thread(String),
    /// The server ended it.
    Server(ServerError),
}

/// An Error frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    /// Its code.
    pub code: u16,
    /// The highest number that the server holds.
    pub id: u64,
    /// For people.
    pub text: String,
}

impl Error {
    /// The server's reason, if it ended the producer for one of this version's. After
    /// [`Fault::UnknownProducer`] what it acknowledged may be gone: it was started anew, or forgot
    /// this producer.
    pub fn fault(&self) -> Option<Fault> {
        match self {
            Self::Server(error) => Fault::from_code(error.code),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout(why) if why.is_empty() => f.write_str("not done in time"),
            Self::Timeout(why) => write!(f, "not done in time; the last connection: {why}"),
            Self::WouldBlock => f.write_str("too much is unacknowledged"),
            Self::TooLarge { size, max } => write!(f, "{size} bytes, {max} are allowed"),
            Self::Closed => f.write_str("it is closed"),
            Self::Options(what) => write!(f, "options that cannot be: {what}"),
            Self::Protocol(what) => write!(f, "this is no server of ingest protocol 2: {what}"),
            Self::NumbersDisagree { held, acknowledged, last } => {
                write!(f, "the server holds {held}, here {acknowledged} to {last} are expected")
            }
            Self::NumbersEnd => f.write_str("all numbers are used up"),
            Self::Thread(why) => write!(f, "no thread: {why}"),
            Self::Server(error) => {
                let name = Fault::from_code(error.code).map_or("unknown error", Fault::name);
                write!(f, "{name} ({}): {}", error.code, error.text)
            }
        }
    }
}

impl std::error::Error for Error {}
