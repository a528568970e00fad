//! A small blocking client, for tools and tests.
//!
//! ```no_run
//! use std::time::Duration;
//! use client::{Address, Client, Value};
//!
//! let address = Address::Tcp("127.0.0.1:6379".to_owned());
//! let mut client = Client::connect(&address, Duration::from_secs(1))?;
//! assert_eq!(client.call(&[b"SET", b"key", b"value"])?, Value::ok());
//! assert_eq!(client.call(&[b"GET", b"key"])?, Value::bulk("value"));
//! # Ok::<(), client::Error>(())
//! ```

mod connection;
mod decode;
mod reply;

pub use connection::{Address, Client, PUSHES_MAX, WINDOW_BYTES_MAX, encode};
pub use decode::{DEPTH_MAX, Decoder, Error, LINE_MAX};
pub use reply::Value;
