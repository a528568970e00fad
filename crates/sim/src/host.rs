//! The servers: each incarnation is a whole server in a group of its own, started as `boot` starts
//! one, on threads which pass the baton.

use crate::machine::{CONFIG_FILE, DATA_FOLDER, Machine, SAVED_SETTING};
use crate::plan::Plan;
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;
use base::sync::baton::{Baton, Group, Status};
use driver::PeerAddr;
use driver::sim::SimNet;
use server::boot::simulated::{self, Server};
use server::config::ingest::IngestListen;
use server::config::{Access, Bind, Config};
use server::shared::Shared;

/// Where clients connect, in every incarnation.
const SERVER: &str = "127.0.0.1:6379";
/// Where producers connect.
const INGEST: &str = "127.0.0.1:6380";

/// A server.
pub struct Host {
    server: Server,
}

/// The address of clients' listener.
pub fn server_addr() -> PeerAddr {
    PeerAddr::Tcp(SERVER.parse().expect("an address"))
}

/// The address of the ingest listener.
pub fn ingest_addr() -> PeerAddr {
    PeerAddr::Tcp(INGEST.parse().expect("an address"))
}

impl Host {
    /// Starts a server with the settings of this plan, and with the setting that the machine's
    /// configuration file saves.
    pub fn start(
        baton: &Baton,
        (net, machine): (&SimNet, &Machine),
        (plan, saved): (&Plan, u64),
        epoch: u32,
    ) -> Self {
        let name = format!("server {epoch}");
        let on = (net, &machine.disk);
        Self { server: simulated::start(baton, &name, on, config(plan, saved), plan.workers) }
    }

    /// What dies with this server.
    pub fn group(&self) -> Group {
        self.server.group
    }

    /// What its workers share; `None` until it listens. The error says why it did not start.
    pub fn shared(&self) -> Result<Option<Arc<Shared>>, String> {
        self.server.shared()
    }

    /// Begins an end in order: every worker sends what it has executed, and ends. False if the
    /// server has not started yet.
    pub fn begin_end(&self) -> bool {
        let Ok(Some(shared)) = self.server.shared() else { return false };
        shared.begin_shutdown();
        true
    }

    /// True from the beginning of an end in order.
    pub fn is_ending(&self) -> bool {
        let shared = self.server.shared().ok().flatten();
        shared.is_some_and(|shared| shared.shutting_down.load(Relaxed))
    }

    /// True once it has loaded what was saved, unless it ends behind a save.
    pub fn is_open(&self) -> bool {
        let shared = self.server.shared().ok().flatten();
        shared.is_some_and(|shared| !shared.load.is_on() && !shared.saves.is_final())
    }

    /// The state of its append-only file, for the report of a failure.
    pub fn journal(&self) -> String {
        let Ok(Some(shared)) = self.server.shared() else { return "not started".into() };
        let journal = &shared.journal;
        format!(
            "loading {}, appending {}, rewriting {}, scheduled {}, trouble {:?}, unwritten {}",
            shared.load.is_on(),
            journal.is_on(),
            journal.is_rewriting.load(Relaxed),
            journal.is_scheduled.load(Relaxed),
            journal.trouble(),
            journal.unwritten.load(Relaxed)
        )
    }

    /// True if it serves no connection.
    pub fn is_idle(&self) -> bool {
        let shared = self.server.shared().ok().flatten();
        shared.is_some_and(|shared| shared.connections() == 0)
    }

    /// Whether it lives, and how it ended.
    pub fn status(&self, baton: &Baton) -> Status {
        baton.status(self.server.group)
    }
}

/// The settings of a plan.
fn config(plan: &Plan, saved: u64) -> Config {
    let saved = saved.to_string();
    let points: &[u8] = if plan.saves.is_some_and(|s| s.points) { b"1 1" } else { b"" };
    let delay = plan.saves.map_or(0, |saves| saves.key_delay_us).to_string();
    let setting: &[(&[u8], &[u8])] = &[
        (SAVED_SETTING.as_bytes(), saved.as_bytes()),
        (b"save", points),
        (b"rdb-key-save-delay", delay.as_bytes()),
        // Every client would have to expect that its writes are refused.
        (b"stop-writes-on-bgsave-error", b"no"),
    ];
    let (mut config, _) = Config::default().set(setting, true).expect("it is a setting");
    if let Some(journal) = plan.journal {
        let settings = journal.settings();
        let settings: Vec<(&[u8], &[u8])> =
            settings.iter().map(|(name, value)| (*name, value.as_slice())).collect();
        config = config.set(&settings, true).expect("they are settings").0;
    }
    config.file = Some(CONFIG_FILE.into());
    config.dir = DATA_FOLDER.into();
    config.enable_debug_command = Access::Yes;
    config.enable_protected_configs = Access::Yes;
    config.bind = vec![Bind { host: "127.0.0.1".into(), optional: false }];
    let words: Vec<Vec<u8>> = format!("{INGEST} protocol=2").split(' ').map(Vec::from).collect();
    config.ingest_listen = IngestListen::parse_all(&words).expect("well formed");
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
