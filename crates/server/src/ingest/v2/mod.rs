//! Ingest protocol 2 on a worker. A read's messages are written into their sink where they lie,
//! under the lock of their producer. The acknowledgements, the credit and the error which a read
//! makes due leave together in one send (`reads`).
//!
//! Messages which the sink does not accept now are kept, at most one read and one message, and the
//! connection is not read until they are written: the producer runs out of credit, and then TCP
//! stops it. `producing` is the state of a connection, `hello` its begin, `ends` its end.

pub(crate) mod ends;
mod hello;
pub(crate) mod producing;
mod reads;
