//! CONFIG SET: puts changed settings into effect in the running server. First the steps which may
//! fail; if one does, those before it are rolled back. Then the steps which cannot fail.

use crate::shared::Shared;
use crate::worker::message::Message;
use base::DbIndex;
use config::get_set::SetError;
use config::load::io_text;
use config::table::{Class, Effect, SETTINGS};
use config::{AppendFsync, Config};
use keyspace::{Evictable, Keyspace, Uses};

/// Names and values, as a client gave them.
pub type Pairs<'p> = [(&'p [u8], &'p [u8])];

/// Sets all of `pairs` and puts them into effect, or changes nothing and says why. `local` says
/// whether the client is on this machine.
pub fn set(
    config: &mut Config,
    pairs: &Pairs<'_>,
    local: bool,
    shared: &Shared,
) -> Result<(), SetError> {
    let (mut new, settings) = config.set(pairs, local)?;
    let effects: Vec<Effect> = settings.iter().map(|index| SETTINGS[*index].effect).collect();
    for (at, effect) in effects.iter().enumerate() {
        if let Err(why) = attempt(*effect, config, &mut new) {
            for done in effects[..at].iter().rev() {
                roll_back(*done, config);
            }
            return Err(SetError::failed(pairs[at].0, why));
        }
    }
    for effect in effects {
        apply(effect, &new, shared);
    }
    for setting in settings.iter().map(|index| &SETTINGS[*index]) {
        if setting.class == Class::Inert {
            let (name, about) = (setting.name, setting.about);
            crate::log::notice(format_args!(
                "CONFIG SET {name} has no effect in this version: {about}"
            ));
        }
    }
    *config = new;
    Ok(())
}

/// Which uses of keys are recorded: as `maxmemory-policy` or `db-limit` needs them.
pub fn uses(config: &Config) -> Uses {
    if config.counts_uses() {
        let (log_factor, decay_minutes) = (config.lfu_log_factor, config.lfu_decay_time);
        Uses::Counts { log_factor, decay_minutes }
    } else {
        Uses::Times
    }
}

/// Says what the keyspace records about uses, and which keys of each database may be evicted,
/// whoever needs room: those that the policy of its budget allows.
pub fn set_uses(keyspace: &Keyspace, config: &Config) {
    keyspace.set_uses(uses(config));
    let mut limits = config.db_limits.iter().peekable();
    for db in 0..keyspace.databases() {
        let policy = limits.next_if(|limit| limit.db == db).map(|limit| limit.policy);
        let evictable = match policy {
            Some(policy) if !policy.evicts => Evictable::Nothing,
            Some(policy) if policy.is_volatile => Evictable::Volatile,
            _ => Evictable::All,
        };
        keyspace.set_evictable(DbIndex::new(db), evictable);
    }
}

const ADDRESS_STAYS: &str =
    "the addresses of a running server cannot be changed, restart it with the new one";

/// The part of an effect that may fail.
fn attempt(effect: Effect, old: &Config, new: &mut Config) -> Result<(), String> {
    match effect {
        Effect::FileLimit if new.maxclients > old.maxclients => {
            let fits = driver::raise_file_limit(new.maxclients);
            if fits < new.maxclients {
                return Err(format!(
                    "The operating system is not able to handle the specified number of clients, \
                     try with {fits}"
                ));
            }
        }
        Effect::Folder => {
            std::env::set_current_dir(&new.dir).map_err(|e| io_text(&e))?;
            let absolute = std::env::current_dir().unwrap_or_else(|_| new.dir.clone());
            new.set_dir(absolute);
        }
        Effect::Port if new.port != old.port => return Err(ADDRESS_STAYS.to_owned()),
        Effect::Bind if new.bind != old.bind => return Err(ADDRESS_STAYS.to_owned()),
        _ => {}
    }
    Ok(())
}

/// Undoes [`attempt`]. A raised limit of open files stays: by itself it changes
/// nothing.
fn roll_back(effect: Effect, old: &Config) {
    if effect == Effect::Folder
        && let Err(e) = std::env::set_current_dir(&old.dir)
    {
        let (dir, why) = (old.dir.display(), io_text(&e));
        crate::log::warning(format_args!("Cannot return to the working folder {dir}: {why}"));
    }
}

/// The part of an effect that cannot fail.
fn apply(effect: Effect, new: &Config, shared: &Shared) {
    match effect {
        Effect::Logs => {
            for (log, len) in [
                (&shared.slowlog, new.slowlog_len_max),
                (&shared.large_requests, new.large_requests_len_max),
                (&shared.large_replies, new.large_replies_len_max),
            ] {
                log.set_len_max(len);
            }
        }
        Effect::Log => crate::log::follow(new),
        Effect::AppendOnly => shared.post(0, Message::AppendOnly),
        Effect::AppendFsync if new.appendfsync == AppendFsync::Always => shared.hold_replies(),
        Effect::Import => shared.keyspace.set_importing(new.import_mode),
        Effect::Uses => set_uses(&shared.keyspace, new),
        Effect::Events => shared.publish_events(new.notify_keyspace_events),
        Effect::AppendFsync // worker 0 releases them when it follows
        | Effect::None
        | Effect::FileLimit
        | Effect::Folder
        | Effect::Port
        | Effect::Bind => {}
    }
}
