//! CONFIG: reading, changing, writing back the configuration.

use crate::execute::caller::Caller;
use crate::execute::outcome::Outcome;
use crate::worker::core::Core;
use crate::worker::message::Message;
use command::Error;
use command::ops::ConfigOp;
use keyspace::Guard;
use resp::OutBuf;

/// A setting and its new value.
type Pair = (Box<[u8]>, Box<[u8]>);

impl Core {
    /// Carries out a CONFIG subcommand.
    pub(crate) fn config_op(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        caller: &Caller,
        op: ConfigOp,
    ) -> Result<Outcome, Error> {
        let at = out.position();
        let mut reply = caller.reply(out);
        match op {
            ConfigOp::Get(patterns) => {
                let config =
                    self.shared.config.lock().expect("no panic while the configuration is held");
                let found = config.get(patterns.iter().map(|p| &**p));
                reply.map(found.len());
                for (name, value) in found {
                    reply.bulk(name);
                    reply.bulk(value);
                }
            }
            ConfigOp::Set(pairs) => {
                let local = caller.session(self).is_local;
                self.config_set(&pairs, local)?;
                guard.follow_uses();
                reply.ok();
            }
            ConfigOp::Rewrite => return self.config_rewrite(caller, at),
            ConfigOp::ResetStat => {
                self.reset_statistics();
                reply.ok();
            }
        }
        Ok(Outcome::Done)
    }

    /// CONFIG RESETSTAT: every worker forgets its own counts, this one at once.
    fn reset_statistics(&mut self) {
        use base::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
        let expiry = self.shared.keyspace.expiry();
        *self.shared.stats_base.lock().expect("no panic while the base is held") =
            crate::shared::StatsBase {
                io: crate::figures::rates::totals(&self.shared),
                expired: expiry.expired,
                expired_fields: expiry.expired_fields,
                evicted: self.shared.keyspace.evicted(),
                evicted_from: (0..self.shared.keyspace.databases())
                    .map(|db| self.shared.keyspace.db_evicted(base::DbIndex::new(db)))
                    .collect(),
                evicted_clients: self.shared.limits.evicted_clients.load(Relaxed),
                exceeded_ms: self.shared.limits.exceeded.ms(self.turn.now()).1,
                lazyfreed: self.shared.keyspace.reclaimer().freed(),
                since_ms: self.turn.unix_ms().0,
            };
        self.shared.defrag.reset(self.turn.now());
        self.versions.stats = self.shared.stats_epoch.fetch_add(1, AcqRel) + 1;
        self.shared.ingest.reset(self.id);
        self.counters().reset();
        self.counters().epoch.store(self.versions.stats, Release);
        self.shared.connections_received.store(0, Relaxed);
        self.shared.connections_rejected.store(0, Relaxed);
    }

    /// All pairs or none. What was set is one version: every worker takes over all of it at once.
    fn config_set(&mut self, pairs: &[Pair], local: bool) -> Result<(), Error> {
        let pairs: Vec<(&[u8], &[u8])> = pairs.iter().map(|(n, v)| (&**n, &**v)).collect();
        let shared = self.shared.clone();
        shared
            .change_config(|config| crate::settings::live::set(config, &pairs, local, &shared))
            .map_err(|e| Error::made(e.to_string()))?;
        self.refresh_settings(&shared);
        self.publish_fence();
        if shared.are_replies_held() {
            shared.post(0, Message::Fence); // it may sleep, and has what they wait for to write
        }
        Ok(())
    }
}
