//! The tests of requests and replies.
//! One program: each program builds what it calls anew.

mod support;

mod framing;
mod replies;
mod requests;
