//! The five strategies by name.

use std::fmt;

/// Ports that the five take, from the first one on.
pub const PORTS: u16 = Strategy::ALL.len() as u16;

/// The order of a size field's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Most significant first.
    Big,
    /// Least significant first.
    Little,
}

/// When and how messages are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// The id of every message.
    RequestReply,
    /// One acknowledgement every 5 ms.
    Throttled,
    /// The same on large reads whose incomplete tail is kept.
    HeadRest,
    /// One acknowledgement for each read that completed a message.
    Sync,
    /// One acknowledgement for 22 reads, or after 5 ms without one.
    Async,
}

impl Strategy {
    /// All of them, in the order of their ports.
    pub const ALL: [Self; 5] =
        [Self::RequestReply, Self::Throttled, Self::HeadRest, Self::Sync, Self::Async];

    /// Its name in settings and INFO.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RequestReply => "request-reply",
            Self::Throttled => "throttled",
            Self::HeadRest => "head-rest",
            Self::Sync => "sync",
            Self::Async => "async",
        }
    }

    /// The strategy of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name() == name)
    }

    /// How its size fields are written.
    pub const fn order(self) -> Order {
        match self {
            Self::RequestReply => Order::Big,
            Self::Throttled | Self::HeadRest | Self::Sync | Self::Async => Order::Little,
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_round_trip_through_their_names() {
        for strategy in Strategy::ALL {
            assert_eq!(Strategy::from_name(strategy.name()), Some(strategy));
        }
        assert_eq!(Strategy::from_name("Sync"), None);
    }
}
