//! What can go wrong.

use std::fmt;

use ingest::v2::Fault;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The call did not finish in time. Nothing is lost: sent messages are kept, and the call may
    /// be repeated. The text says why the last connection ended, if one did.
    Timeout(String),
    /// Too many messages are unacknowledged; this one was not accepted.
    WouldBlock,
    /// The message is larger than the server or the buffer allows; it was not accepted.
    TooLarge {
        /// The bytes of the message.
        size: usize,
        /// The most that is allowed.
        max: usize,
    },
    /// The producer was closed.
    Closed,
    /// The options do not fit into a Hello.
    Options(&'static str),
    /// The server sent bytes that do not follow the protocol.
    Protocol(&'static str),
    /// The server holds messages that this producer did not send: another one uses its name. Or
    /// it holds fewer than it had acknowledged: it was started anew, and has lost what it had
    /// acknowledged below the level *fsynced*.
    NumbersDisagree {
        /// The highest number that the server holds.
        held: u64,
        /// The highest number that it had acknowledged.
        acknowledged: u64,
        /// The number of the last message.
        last: u64,
    },
    /// All numbers are used up.
    NumbersEnd,
    /// No thread could be started.
    Thread(String),
    /// The server ended the producer with an Error frame.
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
    /// The server's fault, if it ended the producer with one of this version. After
    /// [`Fault::UnknownProducer`] acknowledged messages may be lost: the server was restarted, or
    /// has forgotten this producer.
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
            Self::Timeout(why) if why.is_empty() => f.write_str("timed out"),
            Self::Timeout(why) => write!(f, "timed out; the last connection ended: {why}"),
            Self::WouldBlock => f.write_str("too many messages are unacknowledged"),
            Self::TooLarge { size, max } => {
                write!(f, "the message has {size} bytes, {max} are allowed")
            }
            Self::Closed => f.write_str("the producer is closed"),
            Self::Options(what) => write!(f, "invalid options: {what}"),
            Self::Protocol(what) => write!(f, "not a server of ingest protocol 2: {what}"),
            Self::NumbersDisagree { held, acknowledged, last } => {
                write!(f, "the server holds message {held}; expected is {acknowledged} to {last}")?;
                if held < acknowledged {
                    f.write_str(": acknowledged messages are lost")?;
                }
                Ok(())
            }
            Self::NumbersEnd => f.write_str("no message numbers are left"),
            Self::Thread(why) => write!(f, "cannot start a thread: {why}"),
            Self::Server(error) => {
                let name = Fault::from_code(error.code).map_or("unknown error", Fault::name);
                write!(f, "{name} ({}): {}", error.code, error.text)
            }
        }
    }
}

impl std::error::Error for Error {}
