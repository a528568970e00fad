//! The short path's table: which commands touch one key and nothing else, in bounded time.

use command::ops::{SessionOp, Subject};
use command::spec::{CommandSpec, DataFn, Flags, Handler, LockClass, Traits};
use resp::Args;

/// The most arguments of a command on the short path; one with more is timed by itself.
const SHORT_ARGS_MAX: usize = 64;

/// What the short path needs of a command, packed: 16 bytes.
#[derive(Clone, Copy)]
pub struct Hot {
    /// Set if the command touches exactly one key and needs nothing but its slot.
    pub run: Option<DataFn>,
    /// Arity as in the table: negative means "at least".
    pub arity: i16,
    /// Position of the first key, 0 for none.
    pub first_key: u16,
    /// Position of a member of the collection in that key, 0 for none.
    pub member: u8,
    /// What it publishes to.
    pub publishes: Option<Subject>,
}

/// The short path's table, by command id.
pub fn hot_table() -> Vec<Hot> {
    command::all()
        .map(|id| {
            let spec = id.spec();
            let first_key = command::keys::first_key(spec);
            let single = spec.lock == LockClass::Keys && command::keys::has_single_key(spec);
            let run = match spec.handler {
                Handler::Data(f) if single && is_bounded(spec) => Some(f),
                _ => None,
            };
            let member = if run.is_some() { spec.member } else { 0 };
            let (arity, publishes) = (i16::from(spec.arity), published(spec));
            Hot { run, arity, first_key: first_key as u16, member, publishes }
        })
        .collect()
}

/// What a command publishes to.
fn published(spec: &CommandSpec) -> Option<Subject> {
    let Handler::Session(parse) = spec.handler else { return None };
    if !spec.traits.contains(Traits::PUBLISHES) {
        return None;
    }
    match parse(Args::default()) {
        Ok(SessionOp::Publish(subject)) => Some(subject),
        _ => None,
    }
}

/// True if the command takes bounded time whatever its few arguments and the value are: then it may
/// share its batch's clock.
pub(crate) fn is_bounded(spec: &CommandSpec) -> bool {
    spec.flags.contains(Flags::FAST) || spec.traits.contains(Traits::BOUNDED)
}

/// Arity as in the table; what takes longer with more arguments is not for the clock that a batch
/// shares.
#[inline]
pub(crate) fn accepts(arity: i16, n: usize) -> bool {
    if arity >= 0 { n == arity as usize } else { (-arity as usize..=SHORT_ARGS_MAX).contains(&n) }
}
