//! Which clients CLIENT LIST and CLIENT KILL mean.

use crate::admin::client::list::flags;
use crate::sessions::card::{ClientCard, flag};
use crate::worker::core::Core;
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;
use command::ops::{ClientFact, ClientFilters, ClientType};

impl Core {
    /// The clients that match all filters, in order of their ids, or in the order in which the
    /// request names ids. `me` is the client that asks.
    pub(crate) fn clients_of(&self, filters: &ClientFilters, me: u64) -> Vec<Arc<ClientCard>> {
        let registry = &self.shared.registry;
        let asked = filters.rules.iter().find_map(|rule| match &rule.fact {
            ClientFact::Ids(ids) if !rule.is_not => Some(ids),
            _ => None,
        });
        let mut cards = match asked {
            Some(ids) => {
                let ids = ids.iter().filter_map(|id| u64::try_from(*id).ok());
                ids.filter_map(|id| registry.get(id)).collect()
            }
            None => registry.all(),
        };
        let now_s = self.turn.unix_ms().0 / 1000;
        cards.retain(|card| {
            !(filters.skip_me && card.id == me)
                && filters.rules.iter().all(|rule| holds(&rule.fact, card, now_s) != rule.is_not)
        });
        cards
    }
}

fn holds(fact: &ClientFact, card: &ClientCard, now_s: i64) -> bool {
    match fact {
        ClientFact::Ids(ids) => ids.iter().any(|id| u64::try_from(*id) == Ok(card.id)),
        ClientFact::Type(ClientType::Normal) => !card.has_flag(flag::PUBSUB),
        ClientFact::Type(ClientType::PubSub) => card.has_flag(flag::PUBSUB),
        ClientFact::Type(_) => false, // there is no replication
        ClientFact::User(_) => true,  // there is only one user
        ClientFact::Address(addr) => card.addr.as_bytes() == &**addr,
        ClientFact::LocalAddress(addr) => card.laddr.as_bytes() == &**addr,
        // In whole seconds: a client of 3.5 s counts as 3 s old.
        ClientFact::Age { at_least_ms } => {
            (now_s - card.since_s).saturating_mul(1000) >= *at_least_ms
        }
        ClientFact::Idle { at_least_s } => now_s - card.last_s.load(Relaxed) >= *at_least_s,
        ClientFact::Flags(wanted) => {
            let has = flags(card);
            wanted.iter().all(|letter| has.as_bytes().contains(letter))
        }
        ClientFact::Name(name) => card.text().name.as_bytes() == &**name,
        ClientFact::LibraryName(name) => card.text().lib_name.as_bytes() == &**name,
        ClientFact::LibraryVersion(version) => card.text().lib_ver.as_bytes() == &**version,
        ClientFact::Database(db) => i64::from(card.db.load(Relaxed)) == *db,
        ClientFact::Ip(ip) => host(&card.addr).as_bytes() == &**ip,
        ClientFact::Capabilities(wanted) => {
            wanted.iter().all(|letter| *letter == b'r' && card.has_flag(flag::CAN_REDIRECT))
        }
    }
}

/// An address without its port, and without the brackets of IPv6.
fn host(addr: &str) -> &str {
    let host = addr.rsplit_once(':').map_or(addr, |(host, _)| host);
    host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn host_of_returns_the_host_part_of_an_address() {
        let hosts = ["127.0.0.1:7", "[::1]:7", "/tmp/a:b.sock:0"].map(host);
        assert_eq!(hosts, ["127.0.0.1", "::1", "/tmp/a:b.sock"]);
    }
}
