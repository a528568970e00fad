//! The five clients as they were published.

use super::spec::Spec;
use ingest::Strategy;
use std::net::SocketAddr;

/// One published client.
#[derive(Clone, Copy, Debug)]
pub struct Classic {
    /// The strategy that it spoke.
    pub strategy: Strategy,
    /// Connections.
    pub clients: usize,
    /// Messages on each.
    pub messages: u64,
    /// Messages per `writev`.
    pub batch: usize,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// Messages per second as published.
    pub published: u64,
}

/// All five, in the order of their ports.
pub const CLASSIC: [Classic; 5] = [
    classic(Strategy::RequestReply, 100, 10_000, 1, true, 22_000),
    classic(Strategy::Throttled, 20, 100_000, 1, true, 100_000),
    classic(Strategy::HeadRest, 20, 200_000, 50, true, 250_000),
    classic(Strategy::Sync, 50, 1_000_000, 50, false, 2_500_000),
    classic(Strategy::Async, 20, 2_000_000, 150, false, 3_360_000),
];

const fn classic(
    strategy: Strategy,
    clients: usize,
    messages: u64,
    batch: usize,
    nodelay: bool,
    published: u64,
) -> Classic {
    Classic { strategy, clients, messages, batch, nodelay, published }
}

impl Classic {
    /// This client against a listener.
    pub fn spec(&self, address: SocketAddr) -> Spec {
        Spec {
            clients: self.clients,
            messages: self.messages,
            batch: self.batch,
            nodelay: self.nodelay,
            ..Spec::new(address, self.strategy)
        }
    }
}
