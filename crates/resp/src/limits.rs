//! Every bound of the request parser, in one place.

/// Longest line without its line ending: an inline request, or the header of an array or a bulk.
pub const LINE_MAX: usize = 64 * 1024;

/// Most arguments of one request.
pub const MULTIBULK_MAX: u64 = i32::MAX as u64;

/// Most arguments of one request while the client has not authenticated itself and must.
pub const UNAUTHENTICATED_MULTIBULK_MAX: u64 = 10;

/// Longest argument while the client has not authenticated itself and must.
pub const UNAUTHENTICATED_BULK_MAX: u64 = 16 * 1024;

/// Longest argument unless configured otherwise (`proto-max-bulk-len`).
pub const BULK_MAX_DEFAULT: u64 = 512 * 1024 * 1024;

/// Lowest longest argument that can be configured.
pub const BULK_MAX_LEAST: u64 = 1024 * 1024;

/// From this length on an argument that is not complete is received into a buffer of its own, and
/// an incomplete request longer than this is not scanned again but assembled.
pub const BIG_BULK: usize = 32 * 1024;

/// Most bytes of arguments below [`BIG_BULK`] that share one buffer; past it each has its own.
pub const SMALL_BYTES_MAX: usize = 1 << 30;

/// What one client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    bulk_max: u64,
    authenticated: bool,
}

impl Limits {
    /// Limits with `proto-max-bulk-len` (at least [`BULK_MAX_LEAST`]) for a client that is
    /// authenticated, or need not be; or for one that must authenticate itself first.
    pub fn new(bulk_max: u64, authenticated: bool) -> Self {
        Self { bulk_max: bulk_max.max(BULK_MAX_LEAST), authenticated }
    }

    /// Longest argument, for a client that is authenticated.
    pub fn bulk_max(&self) -> u64 {
        self.bulk_max
    }

    /// True if the client is authenticated, or need not be.
    pub fn authenticated(&self) -> bool {
        self.authenticated
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::new(BULK_MAX_DEFAULT, true)
    }
}
