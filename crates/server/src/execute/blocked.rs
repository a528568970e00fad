//! A blocked command as its ticket carries it, for whoever serves it.

use crate::execute::caller::Caller;
use crate::sessions::session::HeldRequest;
use command::spec::{TakeFn, Wait};
use keyspace::{Kind, Ticket};
use resp::Args;

/// What a worker needs to serve somebody's blocked command.
pub(super) struct BlockedRequest {
    /// On whose behalf it runs.
    pub(super) caller: Caller,
    /// Its words.
    pub(super) words: HeldRequest,
    /// What it waits for.
    pub(super) wait: Wait,
    /// Takes that.
    pub(super) take: TakeFn,
}

pub(super) fn caller_of(ticket: &Ticket) -> &Caller {
    &request_of(ticket).caller
}

pub(super) fn request_of(ticket: &Ticket) -> &BlockedRequest {
    ticket.request.downcast_ref().expect("tickets are made here")
}

/// The arguments of the command that waits with this ticket.
pub(crate) fn args_of(ticket: &Ticket) -> Args<'_> {
    request_of(ticket).words.args()
}

/// True if who waits takes from any value of its kind that is there.
pub(super) fn is_enough(wait: &Wait) -> bool {
    wait.kind != Kind::Stream && wait.least == 1
}
