//! MIGRATE on its worker: packs the values under World, freezes their slots, lets a helper thread talk
//! to the target, and removes what that has taken.

use super::finish::Panicked;
use super::{Core, Outcome, Worker};
use crate::message::Message;
use crate::migrate::{MIGRATIONS_MAX, Trip, travel};
use crate::session::Suspended;
use base::SeqNo;
use base::sync::atomic::Ordering::{AcqRel, Acquire};
use command::generic::Parcel;
use command::ops::Migrate;
use command::spec::{CommandSpec, Flags, LockClass};
use command::{CommandId, Error};
use driver::{ConnId, Driver};
use keyspace::{Access, Guard, Parked};
use resp::{Args, OutBuf, Reply};

impl Core {
    /// What a command whose slots are in `self.slots` must wait for because it changes frozen ones. The
    /// caller is inside its section, or holds World: what is not frozen stays so until it leaves.
    #[inline]
    pub(super) fn met_frozen(&self, spec: &CommandSpec, class: LockClass) -> Option<Parked> {
        let keyspace = &self.shared.keyspace;
        if !keyspace.has_frozen() || !spec.flags.contains(Flags::WRITE) {
            return None;
        }
        let slot = keyspace.first_frozen(&self.slots);
        match class {
            LockClass::World if spec.full_name != "migrate" => Some(Parked::Thaw),
            LockClass::World if self.shared.migrations.load(Acquire) >= MIGRATIONS_MAX => {
                Some(Parked::Thaw)
            }
            _ => slot.map(Parked::Frozen),
        }
    }

    /// As [`Core::met_frozen`] for a command that holds World.
    pub(super) fn met_frozen_in_world(
        &mut self,
        spec: &'static CommandSpec,
        args: Args<'_>,
    ) -> Option<Parked> {
        if !self.shared.keyspace.has_frozen() {
            return None;
        }
        self.slots.clear();
        let (slots, keyspace) = (&mut self.slots, &self.shared.keyspace);
        let _ =
            command::keys::for_each(spec, args, |at| slots.push(keyspace.key(args.get(at)).slot));
        self.met_frozen(spec, LockClass::World)
    }

    /// MIGRATE, under World.
    pub(crate) fn migrate(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        conn: ConnId,
        op: Migrate,
    ) -> Result<Outcome, Error> {
        let Some((db, proto)) = self.session_mut(conn).map(|s| (s.db, s.proto)) else {
            return Ok(Outcome::Done);
        };
        let parcels = Parcel::pack(guard, db, &op.keys, self.unix_ms);
        if parcels.is_empty() {
            Reply::new(out, proto).simple("NOKEY");
            return Ok(Outcome::Done);
        }
        let shared = self.shared.clone();
        let mut slots: Vec<_> =
            parcels.iter().map(|parcel| shared.keyspace.key(&parcel.key).slot).collect();
        slots.sort_unstable();
        slots.dedup();
        let started = self.clock.now();
        let worker = self.id;
        let sent = slots.clone();
        let run = move || {
            let (taken, result) = travel(&op, parcels);
            let gone = if op.copy { Vec::new() } else { taken };
            let trip = Trip { conn, started, db, slots: sent, gone, result, hold: SeqNo(0) };
            shared.post(worker, Message::Migrated(Box::new(trip)));
        };
        // Frozen first: the thread may be back before this command ends.
        guard.freeze(&slots);
        self.shared.migrations.fetch_add(1, AcqRel);
        if let Err(e) = driver::spawn_helper("migrator", run) {
            crate::log::warning(format_args!("cannot start a thread for MIGRATE: {e}"));
            self.shared.migrations.fetch_sub(1, AcqRel);
            self.shared.keyspace.thaw(&slots);
            return Err(Error::MigrateIo("connecting to the client"));
        }
        self.suspend(conn, Suspended::Migrating);
        Ok(Outcome::Waiting)
    }

    /// Removes what the target has taken and thaws the slots; false if a slot is held for long or the
    /// gate is closed: then later.
    fn land(&mut self, access: &mut Access, trip: &mut Trip) -> bool {
        if !access.enter() {
            return false;
        }
        self.follow();
        let keyspace = self.shared.keyspace.clone();
        let removed = self.catch(|core| {
            let mut guard = access.lock(&trip.slots, core.unix_ms)?;
            core.arm(&mut guard, command::lookup(b"migrate"));
            for key in &trip.gone {
                guard.remove(trip.db, &keyspace.key(key));
            }
            Ok(core.finish_change(&mut guard))
        });
        let landed = match removed {
            Ok(Ok(hold)) => {
                trip.hold = hold;
                true
            }
            Ok(Err::<_, Parked>(_)) => false,
            Err(Panicked) => {
                crate::log::warning(format_args!(
                    "MIGRATE panicked while it removed what the target has taken; the keys stay"
                ));
                trip.result = Err(Error::MigrateIo("removing what it has taken"));
                true
            }
        };
        if landed {
            self.shared.migrations.fetch_sub(1, AcqRel);
            keyspace.thaw(&trip.slots);
        }
        access.leave();
        landed
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Ends the MIGRATEs whose threads are back.
    pub(super) fn end_trips(&mut self) {
        while let Some(mut trip) = self.core.trips.pop_front() {
            if !self.core.land(&mut self.access, &mut trip) {
                self.core.trips.push_front(trip);
                return;
            }
            let conn = trip.conn;
            let is_there =
                |s: &mut crate::session::Session| matches!(s.suspended, Suspended::Migrating);
            if !self.core.session_mut(conn).is_some_and(is_there) {
                continue; // the client is gone
            }
            let id = command::lookup(b"migrate");
            let long = self.core.session_mut(conn).and_then(|s| s.long.take());
            if let Some(long) = long {
                let ns = self.core.clock.now().since(trip.started);
                self.core.note_time(conn, id, long.args.args(), ns, long.sizes);
            }
            self.answer(conn, |core, out| {
                core.output.hold(trip.hold);
                reply(core, out, conn, id, trip.result);
            });
        }
    }
}

fn reply(
    core: &mut Core,
    out: &mut OutBuf,
    conn: ConnId,
    id: Option<CommandId>,
    result: Result<(), Error>,
) {
    match result {
        Ok(()) => {
            let Some(proto) = core.session_mut(conn).map(|s| s.proto) else { return };
            Reply::new(out, proto).ok();
        }
        Err(e) => core.refuse(out, conn.index, id, &e, true),
    }
}
