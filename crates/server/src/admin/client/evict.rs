//! `maxmemory-clients`: while more is held for clients than that, those for which the most is held
//! are closed.

use crate::log;
use crate::sessions::card::{ClientCard, flag};
use crate::sessions::session::CLIENT_BYTES;
use crate::worker::core::Core;
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;
use std::cmp::Reverse;

/// How long it takes until all clients are looked at again if none may be closed.
const RETRY_NS: u64 = 100_000_000;

impl Core {
    /// Closes clients if the limit for all of them is exceeded.
    #[cold]
    pub(crate) fn follow_clients_limit(&mut self) {
        let limit = self.settings.maxmemory_clients.of(|| self.settings.memory_limit);
        let now = self.turn.now();
        if limit == 0 || now < self.timers.clients_at || self.held_for_clients() <= limit {
            return;
        }
        let victims = victims(self.shared.registry.all(), limit);
        if victims.is_empty() {
            // What is held is not theirs, or they may not be closed.
            self.timers.clients_at = now.plus(RETRY_NS);
        }
        for card in &victims {
            let held = total_bytes(card);
            log::notice(format_args!(
                "Client {} from {} is closed, with {held} bytes held for it: maxmemory-clients",
                card.id, card.addr
            ));
        }
        self.shared.limits.evicted_clients.fetch_add(victims.len() as u64, Relaxed);
        self.kill(&victims);
    }

    fn held_for_clients(&self) -> u64 {
        self.shared.client_memory() + self.shared.registry.len() as u64 * CLIENT_BYTES
    }
}

/// Bytes held for a client, with those that each takes.
fn total_bytes(card: &Arc<ClientCard>) -> u64 {
    CLIENT_BYTES + card.held_bytes()
}

/// Those of all clients which are closed so that what is held for the others is within the limit:
/// the largest first, of equal ones the oldest. Each is returned to one caller.
fn victims(mut all: Vec<Arc<ClientCard>>, limit: u64) -> Vec<Arc<ClientCard>> {
    all.retain(|card| !card.has_flag(flag::CLOSE_ASAP));
    let mut held: u64 = all.iter().map(total_bytes).sum();
    all.retain(|card| !card.has_flag(flag::NO_EVICT));
    all.sort_by_cached_key(|card| Reverse(total_bytes(card)));
    let mut victims = Vec::new();
    for card in all {
        if held <= limit {
            break;
        }
        held = held.saturating_sub(total_bytes(&card));
        if card.claim_close() {
            victims.push(card);
        }
    }
    victims
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::ConnId;

    fn client(id: u64, output: u64, flags: u32) -> Arc<ClientCard> {
        let card = ClientCard::new(id, 0, ConnId { index: id as u32, generation: 0 }, 0);
        card.output_bytes.store(output, Relaxed);
        card.set_flag(flags, true);
        Arc::new(card)
    }

    #[test]
    fn the_largest_go_first_and_only_as_many_as_needed() {
        let all = || {
            vec![
                client(1, 1_000_000, 0),
                client(2, 9_000_000, flag::NO_EVICT),
                client(3, 5_000_000, 0),
                client(4, 8_000_000, flag::CLOSE_ASAP),
                client(5, 0, 0),
            ]
        };
        let ids = |limit| victims(all(), limit).iter().map(|card| card.id).collect::<Vec<_>>();
        // (15,000,000 bytes and four cards; the fourth is closed already.)
        assert!(ids(16_000_000).is_empty());
        assert_eq!(ids(14_000_000), [3]);
        assert_eq!(ids(9_900_000), [3, 1]);
        assert_eq!(ids(1), [3, 1, 5], "whoever may not be closed stays");
        let shared = all();
        assert_eq!(victims(shared.clone(), 14_000_000).len(), 1);
        assert_eq!(victims(shared, 14_000_000).len(), 0, "it is on its way");
    }
}
