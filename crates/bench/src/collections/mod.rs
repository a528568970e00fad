//! `sheafdb-bench collections`: what reading big collections costs a server, and what their
//! elements take, beside another server.
//!
//! [`reads`] loads the same data into all targets, compares their replies to the same requests, and
//! only then measures. [`memory`] fills a fresh server with collections of one size and looks at
//! what it took.

mod data;
mod figures;
pub mod memory;
pub mod reads;

use std::time::Duration;

use client::{Client, Value};

use crate::lab::target::Started;

/// Longest wait for a reply: an element of the load, or the reply to a check.
const REPLY: Duration = Duration::from_secs(60);

/// A connection to a target.
fn connect(target: &Started) -> Result<Client, String> {
    Client::connect(&target.address(), REPLY)
        .map_err(|error| format!("{}: cannot connect: {error}", target.name))
}

/// The reply to a request, or what the server says against it.
fn call(target: &Started, client: &mut Client, words: &[&[u8]]) -> Result<Value, String> {
    match client.call(words) {
        Ok(Value::Error(text)) => Err(format!("{}: {}", target.name, text.escape_ascii())),
        Ok(value) => Ok(value),
        Err(error) => Err(format!("{}: {error}", target.name)),
    }
}
