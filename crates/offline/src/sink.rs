//! Takes a value apart and keeps only what it needs to find a member that comes twice.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};

use base::UnixMs;
use rdb::{Error, Kind, Sink};

/// Members of a collection which are compared with each other at most: 128 MiB of hashes.
const MEMBERS_MAX: usize = 1 << 24;

/// Checks values, one after the other.
pub struct Checker {
    random: RandomState,
    /// Hashes of the members or fields so far.
    hashes: Vec<u64>,
    kind: Kind,
    /// Elements, members, fields or entries.
    pub elements: u64,
}

impl Checker {
    /// Nothing checked yet.
    pub fn new() -> Self {
        let random = RandomState::new();
        Self { random, hashes: Vec::new(), kind: Kind::String, elements: 0 }
    }

    /// Begins a value.
    pub fn begin(&mut self) {
        self.hashes.clear();
        self.kind = Kind::String;
        self.elements = 0;
    }

    /// What the value is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    fn member(&mut self, member: &[u8]) {
        self.elements += 1;
        if self.kind != Kind::List && self.hashes.len() < MEMBERS_MAX {
            self.hashes.push(self.random.hash_one(member));
        }
    }
}

impl Sink for Checker {
    fn string(&mut self, _: Cow<'_, [u8]>) -> Result<(), Error> {
        self.elements = 1;
        Ok(())
    }

    fn start(&mut self, kind: Kind, _: u64) -> Result<(), Error> {
        self.kind = kind;
        Ok(())
    }

    fn element(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.member(bytes);
        Ok(())
    }

    fn member(&mut self, member: &[u8], _: f64) -> Result<(), Error> {
        self.member(member);
        Ok(())
    }

    fn field(&mut self, field: &[u8], _: &[u8], _: Option<UnixMs>) -> Result<(), Error> {
        self.member(field);
        Ok(())
    }

    fn stream(&mut self, stream: value::Stream) -> Result<(), Error> {
        self.kind = Kind::Stream;
        self.elements = stream.len();
        Ok(())
    }

    /// Two members with one hash are the same: by chance they are once in 2^64 pairs, so in one of
    /// 2^17 collections of `MEMBERS_MAX`.
    fn finish(&mut self) -> Result<(), Error> {
        self.hashes.sort_unstable();
        let twice = self.hashes.windows(2).any(|two| two[0] == two[1]);
        if twice { Err(Error::Refused) } else { Ok(()) }
    }
}
