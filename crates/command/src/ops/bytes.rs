//! Arguments that operations carry.

/// Bytes of a client's own making.
pub type Bytes = Box<[u8]>;
