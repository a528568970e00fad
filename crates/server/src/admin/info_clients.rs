//! The clients section of INFO.

use super::figures::Clients;
use super::info::{field, line};
use crate::settings::WorkerSettings;
use crate::shared::Shared;

/// Who is connected.
pub fn clients_section(t: &mut String, shared: &Shared, settings: &WorkerSettings) {
    let f = Clients::gather(shared);
    line(t, "# Clients", "");
    field(t, "connected_clients", f.connected);
    field(t, "cluster_connections", 0);
    field(t, "maxclients", settings.maxclients);
    field(t, "client_recent_max_input_buffer", f.input_max);
    field(t, "client_recent_max_output_buffer", f.output_max);
    field(t, "blocked_clients", f.blocked);
    field(t, "tracking_clients", 0);
    field(t, "clients_in_timeout_table", f.in_timeout_table);
    field(t, "total_blocking_keys", f.blocking_keys);
    field(t, "total_blocking_keys_on_nokey", 0);
}
