//! Faults: why a connection ends, as its Error frame says.

use std::fmt;

/// A fault with its code in the error frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Fault {
    /// The first frame is not a Hello.
    NoHello = 1,
    /// An unsupported version.
    Version,
    /// Bytes that do not follow the protocol.
    Malformed,
    /// A frame or message above the limits.
    TooLarge,
    /// User and password are missing or wrong.
    Authentication,
    /// No such database.
    Database,
    /// An acknowledgement level that is not supported.
    Level,
    /// A sink or key that the listener does not accept.
    Sink,
    /// The producer wants to resume, and the server does not know it.
    UnknownProducer,
    /// A newer connection of this producer has replaced this one.
    TakenOver,
    /// The key holds another type.
    WrongType,
    /// More bytes of Data than allowed.
    Credit,
    /// Numbers are missing, or there are none left.
    Gap,
    /// The limit of connections or producers is reached.
    Limit,
    /// The server shuts down.
    Shutdown,
    /// The rest of a frame did not arrive in time.
    Idle,
    /// The stream has no further ids.
    Full,
}

impl Fault {
    /// All of them, by code.
    pub const ALL: [Self; 17] = [
        Self::NoHello,
        Self::Version,
        Self::Malformed,
        Self::TooLarge,
        Self::Authentication,
        Self::Database,
        Self::Level,
        Self::Sink,
        Self::UnknownProducer,
        Self::TakenOver,
        Self::WrongType,
        Self::Credit,
        Self::Gap,
        Self::Limit,
        Self::Shutdown,
        Self::Idle,
        Self::Full,
    ];

    /// Its number on the wire.
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// The fault of this number.
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// Its name in the document, INFO and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoHello => "no hello",
            Self::Version => "version",
            Self::Malformed => "malformed",
            Self::TooLarge => "too large",
            Self::Authentication => "authentication",
            Self::Database => "database",
            Self::Level => "level",
            Self::Sink => "sink",
            Self::UnknownProducer => "unknown producer",
            Self::TakenOver => "taken over",
            Self::WrongType => "wrong type",
            Self::Credit => "credit",
            Self::Gap => "gap",
            Self::Limit => "limit",
            Self::Shutdown => "shutdown",
            Self::Idle => "idle",
            Self::Full => "full",
        }
    }

    /// What the error frame tells people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::NoHello => "the first frame must be a Hello of ingest protocol 2",
            Self::Version => "this server speaks version 2",
            Self::Malformed => "the bytes are not those of ingest protocol 2",
            Self::TooLarge => "a frame or message is larger than the limits of Welcome",
            Self::Authentication => "user and password are required and missing, or wrong",
            Self::Database => "there is no such database",
            Self::Level => "acknowledgements of this level are not given here",
            Self::Sink => "this listener does not take this sink, or the key does not fit it",
            Self::UnknownProducer => "this producer is not known (any more)",
            Self::TakenOver => "a newer connection of this producer has taken over",
            Self::WrongType => "the key holds a value of another type",
            Self::Credit => "more bytes came than were granted",
            Self::Gap => "the first number must be at least 1 and not behind a gap",
            Self::Limit => "as many connections or producers as are allowed are there",
            Self::Shutdown => "the server ends",
            Self::Idle => "nothing came in the middle of a frame",
            Self::Full => "the ids of the stream are used up",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_round_trip_through_their_codes() {
        for (n, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(fault.code()), n + 1);
            assert_eq!(Fault::from_code(fault.code()), Some(fault));
        }
        assert_eq!(Fault::from_code(0), None);
        assert_eq!(Fault::from_code(18), None);
    }

    #[test]
    fn the_document_lists_the_same_faults() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/ingest.md");
        let text = std::fs::read_to_string(path).expect("the document is there");
        for fault in Fault::ALL {
            let row = format!("| {} | {} |", fault.code(), fault.name());
            assert!(text.contains(&row), "{row}");
        }
    }
}
