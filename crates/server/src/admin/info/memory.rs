//! The memory section of INFO.

use crate::admin::info::text::{field, line};
use crate::figures::Memory;
use crate::figures::pubsub::PubSubFigures;
use crate::shared::Shared;
use base::sync::atomic::Ordering::Relaxed;
use config::table::MAXMEMORY_POLICY;

/// What the process holds, where it went, and what it may hold.
pub fn memory_section(t: &mut String, shared: &Shared) {
    let f = Memory::gather(shared);
    let Memory { used, peak, startup, dataset, allocated, active, resident, rss, .. } = f;
    let percent =
        |part: u64, whole: u64| format!("{:.2}%", part as f64 * 100.0 / whole.max(1) as f64);
    let ratio = |a: u64, b: u64| format!("{:.2}", a as f64 / b.max(1) as f64);
    line(t, "# Memory", "");
    let sized = |t: &mut String, name: &str, bytes: u64| {
        field(t, name, bytes);
        field(t, &format!("{name}_human"), human(bytes));
    };
    sized(t, "used_memory", used);
    sized(t, "used_memory_rss", rss);
    sized(t, "used_memory_peak", peak);
    field(t, "used_memory_peak_perc", percent(used, peak));
    field(t, "used_memory_overhead", f.overhead);
    field(t, "used_memory_startup", startup);
    field(t, "used_memory_dataset", dataset);
    field(
        t,
        "used_memory_dataset_perc",
        percent(dataset, used.saturating_sub(startup).max(dataset)),
    );
    field(t, "allocator_allocated", allocated);
    field(t, "allocator_active", active);
    field(t, "allocator_resident", resident);
    sized(t, "total_system_memory", f.system);
    t.push_str(
        "used_memory_lua:0\nused_memory_vm_eval:0\nused_memory_lua_human:0B\nused_memory_scripts_eval:0\n\
         number_of_cached_scripts:0\nnumber_of_functions:0\nnumber_of_libraries:0\n\
         used_memory_vm_functions:0\nused_memory_vm_total:0\nused_memory_vm_total_human:0B\n\
         used_memory_functions:0\nused_memory_scripts:0\nused_memory_scripts_human:0B\n",
    );
    sized(t, "maxmemory", f.max);
    let config = shared.config.lock().expect("no panic while the configuration is held");
    field(t, "maxmemory_policy", String::from_utf8_lossy(config.text(MAXMEMORY_POLICY)));
    drop(config);
    field(t, "allocator_frag_ratio", ratio(active, allocated));
    field(t, "allocator_frag_bytes", active as i64 - allocated as i64);
    field(t, "allocator_rss_ratio", ratio(resident, active));
    field(t, "allocator_rss_bytes", resident as i64 - active as i64);
    field(t, "rss_overhead_ratio", ratio(rss, resident));
    field(t, "rss_overhead_bytes", rss as i64 - resident as i64);
    field(t, "mem_fragmentation_ratio", ratio(rss, used));
    field(t, "mem_fragmentation_bytes", rss as i64 - used as i64);
    field(t, "mem_not_counted_for_evict", f.not_counted);
    t.push_str(
        "mem_replication_backlog:0\nmem_total_replication_buffers:0\nmem_clients_slaves:0\n",
    );
    field(t, "mem_clients_normal", f.clients);
    field(t, "mem_producers", f.producers);
    field(t, "mem_pubsub", PubSubFigures::gather(shared).memory);
    field(t, "mem_tracking", shared.tracking.bytes());
    field(t, "mem_logs", f.logs);
    t.push_str("mem_cluster_links:0\n");
    field(t, "mem_aof_buffer", f.journal);
    t.push_str("mem_allocator:jemalloc\n");
    field(t, "active_defrag_running", shared.defrag.running.load(Relaxed));
    field(t, "lazyfree_pending_objects", f.lazyfree_pending);
    field(t, "lazyfreed_objects", f.lazyfreed);
}

/// Bytes as Redis prints them for people.
pub fn human(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    for (size, unit) in UNITS {
        if bytes >= size {
            return format!("{:.2}{unit}", bytes as f64 / size as f64);
        }
    }
    format!("{bytes}B")
}
