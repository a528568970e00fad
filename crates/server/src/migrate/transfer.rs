//! MIGRATE on its worker: packs the values under World, freezes their slots, starts the helper
//! thread which sends them, and removes the keys which the target has accepted.

use crate::execute::caller::Caller;
use crate::execute::locks::intent_of;
use crate::execute::outcome::Outcome;
use crate::execute::panics::Panicked;
use crate::migrate::conversation::{MIGRATIONS_MAX, Trip, send_values};
use crate::sessions::session::{Suspended, gate};
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use crate::worker::retry::Work;
use base::SeqNo;
use base::sync::atomic::Ordering::{AcqRel, Acquire};
use command::Error;
use command::generic::Parcel;
use command::ops::Migrate;
use command::spec::{CommandSpec, Traits};
use driver::Driver;
use keyspace::{Access, Event, Guard, Intent, Parked};
use resp::{Args, OutBuf};

impl Core {
    /// Whether a command which holds World may run. MIGRATE touches no keys but those which it
    /// names.
    pub(crate) fn may_run_in_world(
        &mut self,
        caller: &Caller,
        spec: &'static CommandSpec,
        args: Args<'_>,
    ) -> Result<(), Parked> {
        let (intent, freezes) = (intent_of(spec), spec.traits.contains(Traits::FREEZES));
        if freezes && caller.session(self).gates & gate::MAY_FREEZE == 0 {
            self.shared.keyspace.may_freeze()?;
        }
        if intent == Intent::Read || !self.shared.keyspace.is_restricted() {
            return Ok(());
        }
        if !freezes {
            return self.may_change_everything(caller);
        }
        if self.shared.migrations.load(Acquire) >= MIGRATIONS_MAX {
            return Err(Parked::Thaw);
        }
        self.locking.slots.clear();
        let (slots, keyspace) = (&mut self.locking.slots, &self.shared.keyspace);
        let _ = command::keys::for_each(spec, args, |key| {
            slots.push(keyspace.key(args.get(key.arg)).slot);
        });
        keyspace.may_all(slots, intent)
    }

    /// Whether a command may change any key. If not, no further slots are frozen until it has run.
    pub(crate) fn may_change_everything(&mut self, caller: &Caller) -> Result<(), Parked> {
        let keyspace = self.shared.keyspace.clone();
        keyspace
            .may_everything(Intent::Write)
            .inspect_err(|_| caller.session(self).await_thaw(&keyspace))
    }

    /// MIGRATE, under World.
    pub(crate) fn migrate(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        caller: &Caller,
        op: Migrate,
    ) -> Result<Outcome, Error> {
        let (conn, db) = (caller.conn(), caller.db);
        let parcels = Parcel::pack(guard, db, &op.keys, self.turn.unix_ms());
        if parcels.is_empty() {
            caller.reply(out).simple("NOKEY");
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
            let (taken, result) = send_values(&op, parcels);
            let gone = if op.copy { Vec::new() } else { taken };
            let trip = Trip { conn, started, db, slots: sent, gone, result, hold: SeqNo(0) };
            shared.post(worker, Message::Migrated(Box::new(trip)));
        };
        // Frozen first: the thread may be back before this command ends.
        guard.freeze(&slots);
        self.shared.migrations.fetch_add(1, AcqRel);
        if let Err(e) = driver::spawn_helper("migrator", run) {
            crate::log::warning(format_args!("Cannot start a thread for MIGRATE: {e}"));
            self.shared.migrations.fetch_sub(1, AcqRel);
            self.shared.keyspace.thaw(&slots);
            return Err(Error::MigrateConnecting);
        }
        self.suspend(caller, Suspended::Migrating);
        Ok(Outcome::Waiting)
    }

    /// Removes the keys which the target has accepted and thaws the slots. False if that must be
    /// retried: a slot is held for long, the gate is closed or writes are paused.
    fn finish_trip(&mut self, access: &mut Access, trip: &mut Trip) -> bool {
        if !access.enter() {
            return false;
        }
        self.follow();
        if self.are_writes_paused() {
            access.leave();
            return false;
        }
        let keyspace = self.shared.keyspace.clone();
        let removed = self.catch(|core| {
            let mut guard = access.lock_frozen(&trip.slots, core.turn.unix_ms())?;
            let caller = Caller::of_migrate(trip.db);
            caller.apply_to(&mut guard);
            core.arm(&mut guard, command::lookup(b"migrate"));
            core.running.fails = false; // there is no reply for an error: it panics
            for key in &trip.gone {
                if guard.remove(Event::DEL, caller.db, &keyspace.key(key)) {
                    guard.record(caller.db, &[b"DEL", key]);
                }
            }
            Ok(core.finish_noted(&mut guard))
        });
        let finished = match removed {
            Ok(Ok(hold)) => {
                trip.hold = hold;
                true
            }
            Ok(Err::<_, Parked>(_)) => false,
            Err(Panicked(_)) => {
                crate::log::warning(format_args!(
                    "Panic while MIGRATE removed keys which the target has accepted; the keys exist on both servers"
                ));
                trip.result = Err(Error::MigrateRemoving);
                true
            }
        };
        if finished {
            self.shared.migrations.fetch_sub(1, AcqRel);
            keyspace.thaw(&trip.slots);
        }
        access.leave();
        finished
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Ends the MIGRATEs whose threads are back.
    pub(crate) fn end_trips(&mut self) {
        for _ in 0..self.core.tasks.trips.len() {
            if self.core.shutdown.is_still {
                return;
            }
            let Some(mut trip) = self.core.tasks.trips.pop_front() else { return };
            if !self.core.finish_trip(&mut self.access, &mut trip) {
                self.core.tasks.retries.postpone(Work::Trips, self.core.turn.now());
                self.core.tasks.trips.push_back(trip);
                continue;
            }
            let conn = trip.conn;
            let session = self.core.session_mut(conn);
            let Some(s) = session.filter(|s| matches!(s.suspended, Suspended::Migrating)) else {
                continue; // the client was closed
            };
            let (caller, long) = (Caller::of_step(s), s.take_long());
            let id = command::lookup(b"migrate");
            if let Some(long) = long {
                let ns = self.core.clock.now().since(trip.started);
                self.core.record_command(&caller, id, long.request.args(), ns, long.sizes);
            }
            self.core.note_served(conn);
            self.answer(conn, |core, out| {
                core.turn.output.hold(trip.hold);
                match trip.result {
                    Ok(()) => caller.reply(out).ok(),
                    Err(e) => core.refuse(out, caller.proto, id, &e, true),
                }
            });
        }
    }
}
