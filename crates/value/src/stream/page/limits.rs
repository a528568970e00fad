//! When a page is full.

/// No node is larger, whatever the settings say.
pub const NODE_BYTES_MAX: u64 = 1 << 30;

/// When a page is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `stream-node-max-bytes`: bytes of Redis's node; 0 is no limit.
    pub bytes: u64,
    /// `stream-node-max-entries`: its entries; 0 is no limit.
    pub entries: u64,
}
