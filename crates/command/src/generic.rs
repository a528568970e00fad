//! Keys of any type.

mod dump;
mod expire;
mod migrate;
mod object;
mod presence;
mod relocate;
pub(crate) mod sort;
mod wait;
pub(crate) mod walk;

pub use dump::{dump, restore};
pub use expire::{
    expire, expireat, expiretime, persist, pexpire, pexpireat, pexpiretime, pttl, ttl,
};
pub use migrate::{Parcel, migrate, migrate_getkeys, migrate_keys};
pub use object::{object_encoding, object_freq, object_idletime, object_refcount};
pub use presence::{del, exists, touch, type_of, unlink};
pub use relocate::{copy, copy_into, move_into, move_key, rename, renamenx};
pub use sort::{sort, sort_getkeys, sort_grows, sort_keys, sort_ro, sort_ro_keys};
pub use wait::{wait, wait_take, waitaof};
pub use walk::{keys, randomkey, randomkey_walk, scan, scan_walk};
