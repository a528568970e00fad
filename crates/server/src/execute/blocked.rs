//! A blocked command as its ticket carries it, for the worker that serves it.

use crate::execute::caller::Caller;
use crate::sessions::session::HeldRequest;
use command::spec::{TakeFn, Wait};
use keyspace::{Kind, Ticket};
use resp::Args;

/// What a worker needs to serve a blocked command of any session.
pub(crate) struct BlockedRequest {
    /// The session that waits.
    pub(crate) caller: Caller,
    /// Its arguments.
    pub(crate) words: HeldRequest,
    /// What it waits for.
    pub(crate) wait: Wait,
    /// Runs the command on a key that has it.
    pub(crate) take: TakeFn,
}

pub(super) fn caller_of(ticket: &Ticket) -> &Caller {
    &request_of(ticket).caller
}

pub(crate) fn request_of(ticket: &Ticket) -> &BlockedRequest {
    ticket.request.downcast_ref().expect("tickets are made here")
}

/// The arguments of the command that waits with this ticket.
pub(crate) fn args_of(ticket: &Ticket) -> Args<'_> {
    request_of(ticket).words.args()
}

/// True if any value of the awaited kind satisfies the wait, whatever it contains.
pub(super) fn accepts_any_value(wait: &Wait) -> bool {
    wait.kind != Kind::Stream && wait.least == 1
}
