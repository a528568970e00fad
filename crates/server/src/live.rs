//! CONFIG SET: what the running server must do before a changed setting holds.

use crate::config::Config;
use crate::config::get_set::SetError;
use crate::shared::Shared;

/// Puts the difference between two configurations into effect, or says why it cannot.
pub fn apply(old: &Config, mut new: Config, shared: &Shared) -> Result<Config, SetError> {
    for (name, moved) in [("port", new.port != old.port), ("bind", new.bind != old.bind)] {
        if moved {
            let why =
                "the addresses of a running server cannot be changed, restart it with the new one";
            return Err(SetError::failed(name.as_bytes(), why));
        }
    }
    let lens = [
        (&shared.slowlog, old.slowlog_max_len, new.slowlog_max_len),
        (&shared.large_requests, old.large_requests.len_max, new.large_requests.len_max),
        (&shared.large_replies, old.large_replies.len_max, new.large_replies.len_max),
    ];
    for (log, _, len) in lens.into_iter().filter(|(_, old, new)| old != new) {
        log.set_len_max(usize::try_from(len).unwrap_or(usize::MAX));
    }
    shared.keyspace.set_uses(new.uses());
    if new.maxclients != old.maxclients {
        let fits = driver::raise_file_limit(new.maxclients);
        if fits < new.maxclients {
            return Err(SetError::failed(
                b"maxclients",
                format!(
                    "The operating system is not able to handle the specified number of clients, try with {fits}"
                ),
            ));
        }
    }
    if new.dir != old.dir {
        std::env::set_current_dir(&new.dir)
            .map_err(|e| SetError::failed(b"dir", crate::config::load::io_text(&e)))?;
        let absolute = std::env::current_dir().unwrap_or_else(|_| new.dir.clone());
        new.set_dir(absolute);
    }
    crate::log::set_level(new.loglevel);
    Ok(new)
}
