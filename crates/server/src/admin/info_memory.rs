//! The memory section of INFO.

use super::info::{field, line};
use crate::shared::Shared;
use base::sync::atomic::Ordering::Relaxed;

/// What the process holds, where it went, and what it may hold.
pub fn memory_section(t: &mut String, shared: &Shared) {
    let (allocated, allocator_resident) = (shared.facts.allocator)();
    let data = shared.keyspace.memory();
    let used = allocated + data.buckets;
    let rss = driver::resident_bytes();
    let peak = shared.memory_peak.fetch_max(used, Relaxed).max(used);
    let startup = shared.memory_startup.load(Relaxed);
    let dataset = data.entries + data.buckets;
    let overhead = used.saturating_sub(dataset);
    let total = driver::physical_memory_bytes();
    let maxmemory =
        shared.config.lock().expect("no panic while the configuration is held").maxmemory;
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
    field(t, "used_memory_overhead", overhead);
    field(t, "used_memory_startup", startup);
    field(t, "used_memory_dataset", dataset);
    field(
        t,
        "used_memory_dataset_perc",
        percent(dataset, used.saturating_sub(startup).max(dataset)),
    );
    field(t, "allocator_allocated", allocated);
    field(t, "allocator_active", allocator_resident.max(allocated));
    field(t, "allocator_resident", allocator_resident);
    sized(t, "total_system_memory", total);
    t.push_str(
        "used_memory_lua:0\nused_memory_vm_eval:0\nused_memory_lua_human:0B\nused_memory_scripts_eval:0\n\
         number_of_cached_scripts:0\nnumber_of_functions:0\nnumber_of_libraries:0\n\
         used_memory_vm_functions:0\nused_memory_vm_total:0\nused_memory_vm_total_human:0B\n\
         used_memory_functions:0\nused_memory_scripts:0\nused_memory_scripts_human:0B\n",
    );
    sized(t, "maxmemory", maxmemory);
    field(t, "maxmemory_policy", "noeviction");
    field(t, "allocator_frag_ratio", "1.00");
    field(t, "allocator_frag_bytes", 0);
    field(t, "allocator_rss_ratio", ratio(allocator_resident, allocated));
    field(t, "allocator_rss_bytes", allocator_resident as i64 - allocated as i64);
    field(t, "rss_overhead_ratio", ratio(rss, allocator_resident));
    field(t, "rss_overhead_bytes", rss as i64 - allocator_resident as i64);
    field(t, "mem_fragmentation_ratio", ratio(rss, used));
    field(t, "mem_fragmentation_bytes", rss as i64 - used as i64);
    t.push_str(
        "mem_not_counted_for_evict:0\nmem_replication_backlog:0\nmem_total_replication_buffers:0\n\
         mem_clients_slaves:0\n",
    );
    field(t, "mem_clients_normal", clients(shared));
    t.push_str(
        "mem_cluster_links:0\nmem_aof_buffer:0\nmem_allocator:jemalloc\nactive_defrag_running:0\n",
    );
    let reclaimer = shared.keyspace.reclaimer();
    field(t, "lazyfree_pending_objects", reclaimer.pending());
    field(t, "lazyfreed_objects", reclaimer.freed());
}

fn clients(shared: &Shared) -> u64 {
    let one = |c: &crate::client_card::ClientCard| {
        c.input_bytes.load(Relaxed)
            + c.output_bytes.load(Relaxed)
            + c.multi_bytes.load(Relaxed)
            + (size_of::<crate::session::Session>() + size_of::<crate::client_card::ClientCard>())
                as u64
    };
    shared.registry.all().iter().map(|c| one(c)).sum()
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
