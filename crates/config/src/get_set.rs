//! CONFIG GET and CONFIG SET as functions over a [`Config`].

use super::table::{Change, DB_LIMIT, Index, MAXMEMORY_POLICY, SETTINGS};
use super::value::Kind;
use super::{Config, find, parse::printable, refusal, refusal_text};
use base::glob::{Case, matches};
use std::fmt;

/// Why CONFIG SET changed nothing. `Display` writes the error reply without the leading `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetError {
    /// There is no such setting.
    Unknown(String),
    /// This setting could not be changed.
    Failed {
        /// The setting as the client named it.
        name: String,
        /// The reason.
        why: String,
    },
}

impl SetError {
    /// The error for a setting that the server could not put into effect.
    pub fn failed(name: &[u8], why: impl Into<String>) -> Self {
        SetError::Failed { name: printable(name), why: why.into() }
    }
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetError::Unknown(name) => {
                write!(f, "ERR Unknown option or number of arguments for CONFIG SET - '{name}'")
            }
            SetError::Failed { name, why } => {
                write!(f, "ERR CONFIG SET failed (possibly related to argument '{name}') - {why}")
            }
        }
    }
}

impl std::error::Error for SetError {}

impl Config {
    /// The settings that the patterns name or match, each name once, ordered by pattern and then by
    /// table row. Case does not matter. A setting asked for by name is returned under the name as
    /// the client wrote it.
    pub fn get<'c, 'p: 'c>(
        &'c self,
        patterns: impl Iterator<Item = &'p [u8]>,
    ) -> Vec<(&'c [u8], &'c [u8])> {
        let names: Vec<(Index, &[u8])> = all_names().collect();
        let mut taken = vec![false; names.len()];
        let mut found: Vec<(&[u8], &[u8])> = Vec::new();
        for pattern in patterns {
            let glob = pattern.iter().any(|b| matches!(b, b'*' | b'?' | b'['));
            if !glob && find(pattern).is_none() {
                continue;
            }
            for (taken, (index, name)) in taken.iter_mut().zip(&names) {
                let asked = if glob { *name } else { pattern };
                let wanted = if glob {
                    matches(pattern, name, Case::Insensitive)
                } else {
                    pattern.eq_ignore_ascii_case(name)
                };
                if wanted && !std::mem::replace(taken, true) {
                    found.push((asked, self.text(*index)));
                }
            }
        }
        found
    }

    /// Returns a copy of this configuration with all of `pairs` set, and the index of each pair's
    /// setting. Errors are found in the order of Redis: names and permissions of all pairs first,
    /// then the values. `local` says whether the client is on this machine.
    pub fn set(
        &self,
        pairs: &[(&[u8], &[u8])],
        local: bool,
    ) -> Result<(Config, Vec<Index>), SetError> {
        let mut indices = Vec::with_capacity(pairs.len());
        for (at, (name, _)) in pairs.iter().enumerate() {
            let Some((index, setting)) = find(name) else {
                return Err(SetError::Unknown(printable(name)));
            };
            let why = match setting.change {
                Change::Start => Some("can't set immutable config"),
                Change::Protected if !self.enable_protected_configs.allows(local) => {
                    Some("can't set protected config")
                }
                _ if pairs[..at].iter().any(|(n, _)| n.eq_ignore_ascii_case(name)) => {
                    Some("duplicate parameter")
                }
                _ => None,
            };
            if let Some(why) = why {
                return Err(SetError::failed(name, why));
            }
            indices.push(index);
        }
        let mut changed = self.clone();
        for (index, (name, text)) in indices.iter().zip(pairs) {
            let setting = &SETTINGS[*index];
            let value = setting.kind.parse(text).map_err(|why| {
                let why = match setting.kind {
                    Kind::FileName | Kind::NameOf(_) => format!("{} {why}", setting.name),
                    _ => why,
                };
                SetError::failed(name, refusal_text(setting, text).unwrap_or(why))
            })?;
            if let Some(why) = refusal(setting, &value) {
                return Err(SetError::failed(name, why));
            }
            changed.store(*index, &value);
        }
        let depends = |index: &Index| matches!(*index, DB_LIMIT | MAXMEMORY_POLICY);
        if let Some(at) = indices.iter().position(depends) {
            changed.check_db_limits().map_err(|why| SetError::failed(pairs[at].0, why))?;
        }
        Ok((changed, indices))
    }
}

/// Every name and alias with its setting.
fn all_names() -> impl Iterator<Item = (Index, &'static [u8])> {
    let settings = SETTINGS.iter().enumerate();
    settings.flat_map(|(index, s)| s.names().map(move |name| (index, name.as_bytes())))
}
