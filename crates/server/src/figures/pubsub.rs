//! What is known of publish and subscribe.

use crate::shared::Shared;
use base::sync::atomic::Ordering::Relaxed;

/// INFO's and the metrics' figures of publish and subscribe.
#[derive(Clone, Copy, Debug, Default)]
pub struct PubSubFigures {
    /// Channels with subscribers.
    pub channels: u64,
    /// Shard channels with subscribers.
    pub shard_channels: u64,
    /// Different patterns.
    pub patterns: u64,
    /// Clients with subscriptions.
    pub clients: u64,
    /// Bytes of messages that are not delivered yet, each counted once, and of the names of
    /// channels and patterns.
    pub memory: u64,
}

impl PubSubFigures {
    /// The current figures.
    pub fn gather(shared: &Shared) -> Self {
        let totals = &shared.pubsub.totals;
        Self {
            channels: totals.channels.load(Relaxed),
            shard_channels: totals.shard_channels.load(Relaxed),
            patterns: totals.patterns.load(Relaxed),
            clients: totals.clients.load(Relaxed),
            memory: totals.bytes.load(Relaxed) + shared.pubsub.message_bytes(),
        }
    }
}
