//! INFO ingest: what came in through the ingest listeners, in total and for each.

use crate::admin::info::text::{field, line};
use crate::figures::ingest::{IngestFigures, label};
use crate::shared::Shared;
use ingest::v2::Fault;

/// Totals, then one line for each listener in the order in which they were opened.
pub fn ingest_section(t: &mut String, shared: &Shared) {
    line(t, "# Ingest", "");
    field(t, "ingest_listeners", shared.ingest.open.len());
    let IngestFigures { total, each, producers } = IngestFigures::gather(shared);
    for (name, value) in total.fields() {
        field(t, &format!("ingest_{name}"), value);
    }
    field(t, "ingest_producers", producers);
    let codes = Fault::ALL.into_iter().zip(total.faults);
    let codes: Vec<String> = codes.map(|(f, n)| format!("{}={n}", label(f))).collect();
    field(t, "ingest_error_codes", codes.join(","));
    for (n, (port, f)) in shared.ingest.open.iter().zip(&each).enumerate() {
        let counts: Vec<String> = f.fields().iter().map(|(n, v)| format!("{n}={v}")).collect();
        let (protocol, addr, sink) = (port.terms.protocol, &port.addr, port.terms.sink_text());
        let text = format!("strategy={protocol},address={addr},sink={sink},{}", counts.join(","));
        field(t, &format!("ingest_listener{n}"), text);
    }
}
