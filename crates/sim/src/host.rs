//! The servers: each incarnation is a set of workers on drivers of the simulated network, with the
//! settings and listeners that `boot` would give them.
//!
//! All workers run in the thread of the world, one turn at a time, in an order that the seed draws.

use crate::plan::Plan;
use base::prng::Prng;
use base::sync::Arc;
use driver::sim::{SimDriver, SimNet};
use driver::{ConnId, Driver, ListenAddr, ListenOptions, MailboxSender, PeerAddr};
use server::boot;
use server::config::ingest::IngestListen;
use server::config::{Access, Config};
use server::ingest::ports::IngestPort;
use server::shared::Shared;
use server::worker::Worker;
use server::worker::message::Message;

/// Where clients connect, in every incarnation.
const SERVER: &str = "127.0.0.1:6379";
/// Where producers connect.
const INGEST: &str = "127.0.0.1:6380";

struct WakeByMail(Vec<MailboxSender<Message>>);

impl keyspace::Waker for WakeByMail {
    fn wake(&self, worker: usize, token: u64) {
        self.0[worker].post(Message::Retry(ConnId::from_token(token)));
    }
}

/// A running server.
pub struct Host {
    shared: Arc<Shared>,
    workers: Vec<Held>,
}

/// A worker, and for how many rounds it is not given its turn.
struct Held {
    worker: Worker<SimDriver<Message>>,
    rounds: u64,
}

/// The address of a listener.
pub fn server_addr() -> PeerAddr {
    PeerAddr::Tcp(SERVER.parse().expect("an address"))
}

/// The address of the ingest listener.
pub fn ingest_addr() -> PeerAddr {
    PeerAddr::Tcp(INGEST.parse().expect("an address"))
}

impl Host {
    /// Starts a server with the settings of this plan.
    pub fn start(net: &SimNet, plan: &Plan) -> Self {
        let count = plan.workers;
        let mut drivers: Vec<SimDriver<Message>> = (0..count).map(|_| net.driver()).collect();
        let options = ListenOptions { backlog: 64 };
        let at = |text: &str| ListenAddr::Tcp(text.parse().expect("an address"));
        let listener = drivers[0].listen(&at(SERVER), &options).expect("nobody else has it");
        let ingest = drivers[0].listen(&at(INGEST), &options).expect("nobody else has it");
        let senders: Vec<_> = drivers.iter().map(Driver::mailbox).collect();
        let mut shared = boot::make_shared(config(plan), &mut drivers[0], count, || (0, 0));
        let words: Vec<Vec<u8>> = "h:0 protocol=2".split(' ').map(Vec::from).collect();
        for listen in IngestListen::parse_all(&words).expect("well formed") {
            shared.ingest.open.push(IngestPort::new(ingest, INGEST.into(), listen.terms, count));
        }
        shared.keyspace.set_waker(Box::new(WakeByMail(senders.clone())));
        assert!(shared.mailboxes.set(senders).is_ok(), "set once");
        let shared = Arc::new(shared);
        let workers = drivers.into_iter().enumerate().map(|(id, driver)| {
            let listeners = if id == 0 { vec![listener, ingest] } else { Vec::new() };
            Held { worker: Worker::new(driver, shared.clone(), id, listeners), rounds: 0 }
        });
        let workers = workers.collect();
        Self { shared, workers }
    }

    /// Gives each worker at most one turn, in a random order. Returns how many were held back.
    pub fn turn(&mut self, prng: &mut Prng, hold_one_in: u64) -> u64 {
        let first = prng.below(self.workers.len() as u64) as usize;
        let (mut held, count) = (0, self.workers.len());
        for at in 0..count {
            let one = &mut self.workers[(first + at) % count];
            if one.worker.is_done() {
                continue;
            }
            if one.rounds > 0 {
                one.rounds -= 1;
                continue;
            }
            if hold_one_in > 0 && prng.chance(1, hold_one_in) {
                one.rounds = 1 + prng.below(30);
                held += 1;
                continue;
            }
            one.worker.turn();
        }
        held
    }

    /// What all workers share.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Begins an end in order: every worker sends what it has executed, and ends.
    pub fn begin_end(&self) {
        self.shared.begin_shutdown();
    }

    /// True from the beginning of an end in order.
    pub fn is_ending(&self) -> bool {
        self.shared.shutting_down.load(base::sync::atomic::Ordering::Relaxed)
    }

    /// True once all workers have ended.
    pub fn has_ended(&self) -> bool {
        self.workers.iter().all(|one| one.worker.is_done())
    }
}

/// The settings of a plan.
fn config(plan: &Plan) -> Config {
    let mut config = Config::default();
    config.enable_debug_command = Access::Yes;
    if !plan.small_limits {
        return config;
    }
    let small: &[(&[u8], &[u8])] = &[
        (b"hash-max-listpack-entries", b"4"),
        (b"set-max-listpack-entries", b"4"),
        (b"set-max-intset-entries", b"4"),
        (b"zset-max-listpack-entries", b"4"),
        (b"list-max-listpack-size", b"4"),
    ];
    config.set(small, true).expect("they are settings").0
}
