//! Takes a value apart and keeps only what it needs to find a member that comes twice.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};

use base::UnixMs;
use rdb::{Error, Kind, Sink};

/// Checks values, one after the other.
pub struct Checker {
    random: RandomState,
    /// Hashes of the members or fields so far, if these are compared.
    hashes: Vec<u64>,
    compares: bool,
    kind: Kind,
    /// Elements, members, fields or entries.
    pub elements: u64,
}

impl Checker {
    /// Nothing checked yet.
    pub fn new() -> Self {
        let random = RandomState::new();
        Self { random, hashes: Vec::new(), compares: true, kind: Kind::String, elements: 0 }
    }

    /// Begins a value. Members of a long one are not compared: their hashes would take memory that
    /// grows with it.
    pub fn begin(&mut self, is_long: bool) {
        self.hashes.clear();
        self.compares = !is_long;
        self.kind = Kind::String;
        self.elements = 0;
    }

    /// What the value is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    fn member(&mut self, member: &[u8]) {
        self.elements += 1;
        if self.compares && self.kind != Kind::List {
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

    /// Two members with one hash are the same: by chance they are once in 2^64 pairs.
    fn finish(&mut self) -> Result<(), Error> {
        self.hashes.sort_unstable();
        let twice = self.hashes.windows(2).any(|two| two[0] == two[1]);
        if twice { Err(Error::Refused) } else { Ok(()) }
    }
}
