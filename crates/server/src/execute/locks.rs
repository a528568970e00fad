//! The locks that a command's row asks for.

use base::{SlotId, UnixMs};
use command::spec::{CommandSpec, Flags, LockClass};
use keyspace::{Access, Guard, Intent, Parked};
use resp::Args;

/// Locks the slots of a command's keys, and those which serving waiting clients may need.
pub(crate) fn lock_keys<'a>(
    access: &'a mut Access,
    spec: &'static CommandSpec,
    class: LockClass,
    args: Args<'_>,
    slots: &[SlotId],
    now: UnixMs,
) -> Result<Guard<'a>, Parked> {
    let (grows, intent) = (class == LockClass::Growing, intent_of(spec));
    if command::keys::may_fill(spec) {
        access.lock_to_fill(slots, grows, now, || command::keys::filled(spec, args))
    } else if grows {
        access.grow(slots, now, intent)
    } else {
        access.lock(slots, now, intent)
    }
}

/// Whether a command reads or writes its keys.
pub(crate) fn intent_of(spec: &CommandSpec) -> Intent {
    if spec.flags.contains(Flags::WRITE) { Intent::Write } else { Intent::Read }
}
