//! What is known of client-side caching.

use crate::shared::Shared;
use base::sync::atomic::Ordering::Relaxed;

/// INFO's and the metrics' figures of client-side caching.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrackingFigures {
    /// Clients that track keys.
    pub clients: u64,
    /// Keys that were read and are tracked.
    pub keys: u64,
    /// Pairs of such a key and a client that has read it.
    pub items: u64,
    /// Different prefixes.
    pub prefixes: u64,
    /// Bytes of keys and of who has read them, about.
    pub memory: u64,
}

impl TrackingFigures {
    /// The current figures.
    pub fn gather(shared: &Shared) -> Self {
        let tracking = &shared.tracking;
        Self {
            clients: tracking.client_count.load(Relaxed),
            keys: tracking.keys.len.load(Relaxed),
            items: tracking.keys.readers.load(Relaxed),
            prefixes: tracking.prefix_count.load(Relaxed),
            memory: tracking.bytes(),
        }
    }
}
