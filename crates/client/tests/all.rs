//! The tests of the client.
//! One program: each program builds what it calls anew.

mod connection;
mod decode;
