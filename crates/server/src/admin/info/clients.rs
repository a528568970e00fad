//! The clients section of INFO.

use crate::admin::info::text::{field, line};
use crate::figures::Clients;
use crate::settings::WorkerSettings;
use crate::shared::Shared;
use base::UnixMs;
use base::sync::atomic::Ordering::Relaxed;

/// Who is connected.
pub fn clients_section(
    t: &mut String,
    shared: &Shared,
    settings: &WorkerSettings,
    unix_ms: UnixMs,
) {
    let f = Clients::gather(shared);
    let pause = PauseFacts::gather(shared, unix_ms);
    line(t, "# Clients", "");
    field(t, "connected_clients", f.connected);
    field(t, "cluster_connections", 0);
    field(t, "maxclients", settings.maxclients);
    field(t, "client_recent_max_input_buffer", f.input_max);
    field(t, "client_recent_max_output_buffer", f.output_max);
    field(t, "blocked_clients", f.blocked);
    field(t, "tracking_clients", shared.tracking.client_count.load(Relaxed));
    field(t, "pubsub_clients", shared.pubsub.totals.clients.load(Relaxed));
    field(t, "watching_clients", f.watching);
    field(t, "clients_in_timeout_table", f.in_timeout_table);
    field(t, "total_watched_keys", f.watched_keys);
    field(t, "total_blocking_keys", f.blocking_keys);
    field(t, "total_blocking_keys_on_nokey", f.blocking_keys_ending);
    field(t, "paused_reason", if pause.left_ms > 0 { "client_pause" } else { "none" });
    field(t, "paused_actions", pause.actions);
    field(t, "paused_timeout_milliseconds", pause.left_ms);
}

/// CLIENT PAUSE as INFO tells it.
struct PauseFacts {
    actions: &'static str,
    left_ms: i64,
}

impl PauseFacts {
    fn gather(shared: &Shared, now: UnixMs) -> Self {
        let left_ms = shared.pause.until_ms.load(Relaxed).saturating_sub(now.0).max(0);
        let actions = match shared.pause.all.load(Relaxed) {
            _ if left_ms == 0 => "none",
            true => "all",
            false => "write",
        };
        Self { actions, left_ms }
    }
}
