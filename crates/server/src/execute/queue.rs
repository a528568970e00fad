//! What must be locked for the queue of a transaction before its first command.

use crate::execute::hot::is_bounded;
use crate::execute::locks::intent_of;
use crate::sessions::session::Multi;
use command::spec::LockClass;
use command::{CommandId, Handler, SessionOp};
use keyspace::{Intent, Walk};
use resp::OwnedRequest;

/// An EXEC of at least this many commands declares itself long: others suspend instead of waiting.
const LONG_EXEC: usize = 256;

/// What a queue needs locked beside the slots of its keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// Nothing.
    Nothing,
    /// The slots that its walks visit.
    Walks,
    /// The whole keyspace.
    World,
}

impl Multi {
    /// The keys that the queued commands may fill.
    pub(super) fn filled(&self) -> Vec<&[u8]> {
        let each = self.queue.iter();
        each.flat_map(|(id, request)| command::keys::filled(id.spec(), request.args())).collect()
    }

    /// True if it has many commands.
    pub(super) fn is_long(&self) -> bool {
        self.queue.len() >= LONG_EXEC
    }

    /// True if it may hold its slots for long.
    pub(super) fn may_be_long(&self) -> bool {
        self.is_long() || !self.queue.iter().all(|(id, _)| is_bounded(id.spec()))
    }

    /// Whether the queue writes keys or only reads them.
    pub(super) fn intent(&self) -> Intent {
        let writes = self.queue.iter().any(|(id, _)| intent_of(id.spec()) == Intent::Write);
        if writes { Intent::Write } else { Intent::Read }
    }

    /// What must be locked beside the slots of its keys.
    pub(super) fn needs(&self) -> Needs {
        let mut needs = Needs::Nothing;
        for (id, request) in &self.queue {
            if command::keys::begins_tracking(id.spec(), request.args()) {
                return Needs::World;
            }
            match command::keys::lock_class(id.spec(), request.args()) {
                LockClass::None | LockClass::Keys => {}
                LockClass::Each if id.spec().walk.is_some() => needs = Needs::Walks,
                LockClass::World | LockClass::Each | LockClass::Growing => return Needs::World,
            }
        }
        // The slots of a walk are known in advance unless a command of the queue changes the
        // database or which keys are visible.
        let moves = |(id, request): &(CommandId, OwnedRequest)| moves_walks(*id, request);
        if needs == Needs::Walks && self.queue.iter().any(moves) {
            needs = Needs::World;
        }
        needs
    }

    /// The walks of its commands.
    pub(super) fn walks(&self) -> Vec<Walk> {
        let walk = |(id, request): &(CommandId, OwnedRequest)| id.spec().walk?(request.args());
        self.queue.iter().filter_map(walk).collect()
    }
}

/// True if later commands may run in another database, or see keys that are past their time.
fn moves_walks(id: CommandId, request: &OwnedRequest) -> bool {
    let Handler::Session(parse) = id.spec().handler else { return false };
    let op = parse(request.args());
    matches!(
        op,
        Ok(SessionOp::Select(_) | SessionOp::Client(command::ops::ClientOp::ImportSource(_)))
    )
}
