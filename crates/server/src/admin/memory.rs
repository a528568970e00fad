//! MEMORY: what the process holds and where it went.

use crate::admin::info::memory::human;
use crate::execute::caller::Caller;
use crate::execute::outcome::Outcome;
use crate::figures::Memory;
use crate::shared::Shared;
use crate::worker::core::Core;
use base::DbIndex;
use base::sync::atomic::Ordering::Relaxed;
use command::ops::MemoryOp;
use resp::{OutBuf, Reply};
use std::fmt::Write;

/// Below this much data MEMORY DOCTOR has nothing to examine, bytes.
const WORTH_LOOKING: u64 = 5 << 20;
/// Ratios above which the doctor reports a problem.
const HIGH_RATIO: f64 = 1.4;
/// And the bytes above which it does.
const HIGH_BYTES: u64 = 10 << 20;
/// The doctor reports a peak above this multiple of the memory in use.
const PEAK_RATIO: f64 = 1.5;
/// The doctor reports buffers above this many bytes per client.
const CLIENT_BYTES: u64 = 200 << 10;

/// One number as a ratio to another.
pub fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}

impl Core {
    /// Carries out a MEMORY subcommand.
    pub(crate) fn memory_op(&mut self, out: &mut OutBuf, caller: &Caller, op: MemoryOp) -> Outcome {
        let mut reply = caller.reply(out);
        let shared = &*self.shared;
        match op {
            MemoryOp::Doctor => {
                let facts = Memory::gather(shared);
                let text = diagnosis(&facts, &self.circumstances());
                reply.verbatim(*b"txt", text.as_bytes());
            }
            MemoryOp::Stats => {
                let databases = (0..self.settings.command.databases).map(DbIndex::new);
                reply_stats(&mut reply, shared, databases);
            }
            MemoryOp::Purge => {
                shared.keyspace.purge();
                if (shared.facts.tools.purge)() {
                    reply.ok();
                } else {
                    reply.error("ERR Error purging dirty pages");
                }
            }
            MemoryOp::MallocStats => {
                reply.verbatim(*b"txt", &(shared.facts.tools.report)());
            }
        }
        Outcome::Done
    }
}

/// The fields of Redis 7.2; those of parts that are not built are 0.
fn reply_stats(reply: &mut Reply<'_>, shared: &Shared, databases: impl Iterator<Item = DbIndex>) {
    let facts = Memory::gather(shared);
    let ks = &shared.keyspace;
    let used: Vec<(DbIndex, u64)> =
        databases.map(|db| (db, ks.db_len(db))).filter(|(_, keys)| *keys > 0).collect();
    let keys: u64 = used.iter().map(|(_, keys)| keys).sum();
    reply.map(27 + used.len());
    let mut number = |name: &str, value: i64| {
        reply.bulk(name.as_bytes());
        reply.integer(value);
    };
    number("peak.allocated", facts.peak as i64);
    number("total.allocated", facts.used as i64);
    number("startup.allocated", facts.startup as i64);
    number("replication.backlog", 0);
    number("clients.slaves", 0);
    number("clients.normal", facts.clients as i64);
    number("cluster.links", 0);
    number("aof.buffer", facts.journal as i64);
    number("lua.caches", 0);
    number("functions.caches", 0);
    for (db, of_db) in used {
        reply.bulk(format!("db.{}", db.0).as_bytes());
        reply.map(3);
        // The tables' pages are counted for all databases together.
        let main = (u128::from(facts.buckets) * u128::from(of_db) / u128::from(keys)) as i64;
        let expires = ks.db_expires(db) * keyspace::BYTES_PER_EXPIRY;
        for (name, value) in [
            ("overhead.hashtable.main", main),
            ("overhead.hashtable.expires", expires as i64),
            ("overhead.hashtable.slot-to-keys", 0),
        ] {
            reply.bulk(name.as_bytes());
            reply.integer(value);
        }
    }
    let mut number = |name: &str, value: i64| {
        reply.bulk(name.as_bytes());
        reply.integer(value);
    };
    number("overhead.total", facts.overhead as i64);
    number("keys.count", keys as i64);
    number("keys.bytes-per-key", facts.net().checked_div(keys).unwrap_or(0) as i64);
    number("dataset.bytes", facts.dataset as i64);
    reply.bulk(b"dataset.percentage");
    reply.double(ratio(facts.dataset * 100, facts.net().max(facts.dataset)));
    reply.bulk(b"peak.percentage");
    reply.double(ratio(facts.used * 100, facts.peak));
    for (name, value) in [
        ("allocator.allocated", facts.allocated),
        ("allocator.active", facts.active),
        ("allocator.resident", facts.resident),
    ] {
        reply.bulk(name.as_bytes());
        reply.integer(value as i64);
    }
    for (name, a, b) in [
        ("allocator-fragmentation", facts.active, facts.allocated),
        ("allocator-rss", facts.resident, facts.active),
        ("rss-overhead", facts.rss, facts.resident),
    ] {
        pair(reply, &format!("{name}.ratio"), &format!("{name}.bytes"), a, b);
    }
    pair(reply, "fragmentation", "fragmentation.bytes", facts.rss, facts.used);
}

/// A ratio and a difference of the same two numbers.
fn pair(reply: &mut Reply<'_>, ratio_name: &str, bytes_name: &str, a: u64, b: u64) {
    reply.bulk(ratio_name.as_bytes());
    reply.double(ratio(a, b));
    reply.bulk(bytes_name.as_bytes());
    reply.integer(a as i64 - b as i64);
}

/// What the doctor knows beside the figures of memory.
#[derive(Clone, Copy, Debug, Default)]
struct Circumstances {
    /// Connected clients.
    clients: u64,
    /// `activedefrag`.
    defrag: bool,
    /// Percent of a processor's time that defragmentation takes now.
    defrag_percent: u64,
    /// Bytes of values that wait to be freed.
    backlog: u64,
    /// Bytes of free pages of tables.
    free_tables: u64,
}

impl Core {
    fn circumstances(&self) -> Circumstances {
        let shared = &*self.shared;
        Circumstances {
            clients: shared.connections(),
            defrag: self.settings.activedefrag,
            defrag_percent: shared.defrag.running.load(Relaxed),
            backlog: shared.keyspace.freeing_bytes(),
            free_tables: shared.keyspace.free_bucket_bytes(),
        }
    }
}

impl Circumstances {
    /// What becomes of the gaps between entries.
    fn about_gaps(self) -> String {
        match (self.defrag_percent, self.defrag) {
            (1.., _) => format!(
                "Entries are being moved together, with {} % of a processor.",
                self.defrag_percent
            ),
            (0, true) => "Entries are moved together when the gaps exceed active-defrag-threshold-lower and \
                          active-defrag-ignore-bytes; what stands outside of entries (large collections, \
                          strings above 16 KiB) is not moved."
                .to_owned(),
            (0, false) => "\"activedefrag yes\" moves entries together.".to_owned(),
        }
    }
}

/// What is unusual about memory that is free, or will be.
fn waiting_to_be_freed(text: &mut String, facts: &Memory, around: &Circumstances) {
    if around.backlog > HIGH_BYTES {
        let _ = writeln!(
            text,
            "- Backlog: {} of removed values wait for the thread that frees them. They count as used until \
             then; INFO memory shows lazyfree_pending_objects.",
            human(around.backlog)
        );
    }
    if around.free_tables > HIGH_BYTES && around.free_tables > facts.buckets {
        let _ = writeln!(
            text,
            "- Tables: {} of free pages of tables are kept for keys that come. They go back by themselves, or \
             by MEMORY PURGE.",
            human(around.free_tables)
        );
    }
}

/// What is unusual about the memory, and what to do about it.
fn diagnosis(facts: &Memory, around: &Circumstances) -> String {
    let clients = around.clients;
    if facts.net() < WORTH_LOOKING {
        return format!(
            "There is little to look at: {} beyond what an empty server holds.\n",
            human(facts.net())
        );
    }
    let mut text = String::new();
    let high = |a: u64, b: u64| ratio(a, b) > HIGH_RATIO && a.saturating_sub(b) > HIGH_BYTES;
    if ratio(facts.peak, facts.used) > PEAK_RATIO {
        let _ = writeln!(
            text,
            "- Peak: {} were in use once, {} are now. The allocator gives pages back with time; MEMORY PURGE \
             asks for it now.",
            human(facts.peak),
            human(facts.used)
        );
    }
    if high(facts.active, facts.allocated) {
        let _ = writeln!(
            text,
            "- Fragmentation: {} are allocated in pages of {}. Values of many different sizes that come and go \
             leave gaps; new values fill them. {}",
            human(facts.allocated),
            human(facts.active),
            around.about_gaps()
        );
    }
    if high(facts.resident, facts.active) {
        let _ = writeln!(
            text,
            "- Free pages: the allocator keeps {} of free pages for what comes next. MEMORY PURGE gives them \
             back.",
            human(facts.resident - facts.active)
        );
    }
    waiting_to_be_freed(&mut text, facts, around);
    let outside = facts.resident + facts.buckets + around.free_tables;
    if high(facts.rss, outside) {
        let _ = writeln!(
            text,
            "- The process: {} are resident beside the allocator's pages and the tables: receive areas, \
             stacks of threads, the program itself, or free memory in huge pages: the system fills a huge page \
             of which a part was given back, as max_ptes_none in \
             /sys/kernel/mm/transparent_hugepage/khugepaged says.",
            human(facts.rss - outside)
        );
    }
    if clients > 0 && facts.clients / clients > CLIENT_BYTES {
        let _ = writeln!(
            text,
            "- Clients: {} clients hold {} of buffers. CLIENT LIST names those with large ones (qbuf, obl, omem); \
             client-output-buffer-limit and client-query-buffer-limit bound them.",
            clients,
            human(facts.clients)
        );
    }
    if text.is_empty() {
        return "Nothing unusual was found.\n".to_owned();
    }
    format!("What is unusual:\n\n{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    const AROUND: Circumstances =
        Circumstances { clients: 50, defrag: false, defrag_percent: 0, backlog: 0, free_tables: 0 };

    fn healthy() -> Memory {
        Memory {
            used: 110 * MB,
            peak: 110 * MB,
            startup: MB,
            dataset: 90 * MB,
            buckets: 10 * MB,
            allocated: 100 * MB,
            active: 105 * MB,
            resident: 110 * MB,
            rss: 125 * MB,
            overhead: 20 * MB,
            clients: MB,
            ..Memory::default()
        }
    }

    #[test]
    fn the_doctor_reports_each_unusual_figure_alone() {
        assert_eq!(diagnosis(&healthy(), &AROUND), "Nothing unusual was found.\n");
        let little = Memory { used: 3 * MB, ..healthy() };
        assert!(diagnosis(&little, &AROUND).starts_with("There is little to look at: 2.00M"));
        let findings = [
            ("- Peak:", Memory { peak: 200 * MB, ..healthy() }),
            ("- Fragmentation:", Memory { active: 150 * MB, resident: 150 * MB, ..healthy() }),
            ("- Free pages:", Memory { resident: 200 * MB, rss: 210 * MB, ..healthy() }),
            ("- The process:", Memory { rss: 190 * MB, ..healthy() }),
            ("- Clients:", Memory { clients: 50 * MB, ..healthy() }),
        ];
        for (finding, facts) in findings {
            let text = diagnosis(&facts, &AROUND);
            assert!(text.contains(finding), "{finding} {text}");
            assert_eq!(text.matches("\n- ").count(), 1, "{text}");
        }
    }

    #[test]
    fn the_doctor_says_what_becomes_of_gaps_and_of_what_waits() {
        let gaps = Memory { active: 150 * MB, resident: 150 * MB, rss: 165 * MB, ..healthy() };
        let says = |around: Circumstances, part: &str| {
            let text = diagnosis(&gaps, &around);
            assert!(text.contains(part), "{part}: {text}");
        };
        says(AROUND, "\"activedefrag yes\" moves entries together");
        says(Circumstances { defrag: true, ..AROUND }, "is not moved");
        says(
            Circumstances { defrag: true, defrag_percent: 7, ..AROUND },
            "with 7 % of a processor",
        );
        says(Circumstances { backlog: 20 * MB, ..AROUND }, "- Backlog: 20.00M");
        says(Circumstances { free_tables: 20 * MB, ..AROUND }, "- Tables: 20.00M");
    }

    #[test]
    fn net_memory_excludes_the_memory_used_at_boot() {
        assert_eq!(healthy().net(), 109 * MB);
        assert!((ratio(3, 2) - 1.5).abs() < f64::EPSILON && ratio(3, 0) > 2.0);
    }
}
