//! *Nothing but reading.* A thread per connection reads what comes and throws it away, until the
//! client sends no more; then the connection is closed, which tells the client that all was read.
//! No message is looked at and none is acknowledged: what is faster than this is not measured
//! right.

use super::blocking::{read_each, serve_each};
use super::context::Context;

/// Room for one receive.
const ROOM_BYTES: usize = 256 << 10;

/// Runs until the model ends.
pub fn run(context: &Context) {
    serve_each(context, |fd| read_each(context, fd, ROOM_BYTES, |_, _, _| true));
}
