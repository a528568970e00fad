//! What CLIENT TRACKING asks for.

use super::bytes::Bytes;
use crate::error::Error;

/// `CLIENT TRACKING`: of which keys a client that caches values is told when they change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tracking {
    /// On, off; `None`: the word is neither.
    pub on: Option<bool>,
    /// `REDIRECT`: the id of the client that is told instead.
    pub redirect: Option<i64>,
    /// `BCAST`: it is told of all keys that begin with one of its prefixes.
    pub broadcast: bool,
    /// `PREFIX`: these.
    pub prefixes: Vec<Bytes>,
    /// `OPTIN`: only of keys that are read behind `CLIENT CACHING YES`.
    pub opt_in: bool,
    /// `OPTOUT`: not of keys that are read behind `CLIENT CACHING NO`.
    pub opt_out: bool,
    /// `NOLOOP`: not of what it changes itself.
    pub no_loop: bool,
    /// What is wrong with the words behind `REDIRECT`; that there is no such client comes first.
    pub wrong: Option<Box<Error>>,
}
