//! The version of Redis whose commands these are.

/// Clients gate on it.
pub const REDIS_VERSION: &str = "7.2.4";
