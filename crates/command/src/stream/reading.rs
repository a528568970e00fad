//! The arguments of XREAD and XREADGROUP.

use keyspace::Kind;
use resp::Args;
use value::StreamId;

use super::ids::strict_id;
use crate::error::Error;
use crate::parse::{integer, is, timeout_integer};
use crate::spec::{AtOnce, Wait};

/// What the options say.
pub(super) struct Reading {
    /// Entries of each stream, at most.
    pub count: u64,
    block: Option<u64>,
    /// The argument that names the group; the consumer is the next one.
    pub group: Option<usize>,
    pub no_ack: bool,
    /// The first key, and how many there are; the ids follow them.
    first: usize,
    keys: usize,
}

/// Where one stream is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// Behind this id: of XREAD the stream, of XREADGROUP what is pending for the consumer.
    Behind(StreamId),
    /// `$`: behind the last one.
    Last,
    /// `+`: the last one.
    Top,
    /// `>`: what the group has not read.
    New,
}

impl Reading {
    /// Reads them; `grouped` is for XREADGROUP.
    pub fn parse(args: Args<'_>, grouped: bool) -> Result<Self, Error> {
        let mut reading =
            Self { count: u64::MAX, block: None, group: None, no_ack: false, first: 0, keys: 0 };
        let mut at = 1;
        while at < args.len() {
            let (word, more) = (args.get(at), args.len() - 1 - at);
            if is(word, "BLOCK") && more > 0 {
                at += 1;
                reading.block = Some(timeout_integer(args.get(at))?);
            } else if is(word, "COUNT") && more > 0 {
                at += 1;
                let count = integer(args.get(at))?;
                reading.count = if count > 0 { count as u64 } else { u64::MAX };
            } else if is(word, "STREAMS") && more > 0 {
                if !more.is_multiple_of(2) {
                    return Err(if grouped {
                        Error::XreadgroupUnbalanced
                    } else {
                        Error::XreadUnbalanced
                    });
                }
                (reading.first, reading.keys) = (at + 1, more / 2);
                break;
            } else if is(word, "GROUP") && more > 1 {
                if !grouped {
                    return Err(Error::GroupInXread);
                }
                reading.group = Some(at + 1);
                at += 2;
            } else if is(word, "NOACK") {
                if !grouped {
                    return Err(Error::NoackInXread);
                }
                reading.no_ack = true;
            } else {
                return Err(Error::Syntax);
            }
            at += 1;
        }
        if reading.keys == 0 {
            return Err(Error::Syntax);
        }
        if grouped && reading.group.is_none() {
            return Err(Error::NoGroupOption);
        }
        Ok(reading)
    }

    /// Where the stream in argument `i` is read from.
    pub fn from(&self, args: Args<'_>, i: usize) -> Result<From, Error> {
        match (args.get(i + self.keys), self.group) {
            (b"$", None) => Ok(From::Last),
            (b"+", None) => Ok(From::Top),
            (b"$", Some(_)) => Err(Error::DollarInXreadgroup),
            (b">", None) => Err(Error::NewIdInXread),
            (b">", Some(_)) => Ok(From::New),
            (text, group) => {
                let id = strict_id(text, 0)?;
                // The highest id is another word for `>`: the oracle's answer.
                let is_new = group.is_some() && id == StreamId::MAX;
                Ok(if is_new { From::New } else { From::Behind(id) })
            }
        }
    }

    /// The arguments that are its keys.
    pub fn keys(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.keys
    }

    /// What it waits for.
    pub fn wait(&self) -> Wait {
        let timeout_ms = match self.block {
            None => Some(0),
            Some(0) => None,
            Some(ms) => Some(ms),
        };
        let (keys, kind, at_once) = (self.keys(), Kind::Stream, AtOnce::NullArray);
        let ends_without_key = self.group.is_some();
        Wait { keys, timeout_ms, kind, least: 1, further: None, ends_without_key, at_once }
    }
}
