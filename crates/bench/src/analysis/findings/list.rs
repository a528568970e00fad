//! The closed list, told to people: what each finding means, what is measured, from when on it is
//! found, what usually causes it and what to do. `docs/laboratory.md` holds the same; a test
//! compares.

use super::{admission, evidence, io, load, time};
use crate::analysis::figure::{count, percent};
use crate::analysis::{little, retrograde};
use crate::result::FindingKind;

/// Whose trait a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// A defect of the server.
    Server,
    /// The load generator or how it was used: the figures say little about the server.
    Client,
    /// An explanation: neither is at fault.
    Nobody,
}

impl Blame {
    /// The word in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Server => "defect of the server",
            Self::Client => "the client",
            Self::Nobody => "an explanation",
        }
    }
}

/// One finding of the list.
pub struct Entry {
    /// Which.
    pub kind: FindingKind,
    /// Its name in JSON and in documents.
    pub name: &'static str,
    /// Its name in a headline.
    pub title: &'static str,
    /// Whose trait it is.
    pub blame: Blame,
    /// What is measured.
    pub measured: &'static str,
    /// From when on it is found.
    pub threshold: fn() -> String,
    /// What usually causes it.
    pub cause: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

/// The entry of a kind.
pub fn entry(kind: FindingKind) -> &'static Entry {
    LIST.iter().find(|entry| entry.kind == kind).expect("a test sees that every kind has one")
}

/// The closed list.
pub const LIST: &[Entry] = &[
    Entry {
        kind: FindingKind::Sequential,
        name: "sequential",
        title: "One connection at a time",
        blame: Blame::Server,
        measured: "Connections are opened and kept; each is asked one PING.",
        threshold: || {
            "exactly one of several is answered, the others neither answered nor refused".into()
        },
        cause: "The loop that accepts also serves: it returns to `accept` when the connection ends.",
        remedy: "Serve each connection in a task, a thread or an event loop of its own.",
    },
    Entry {
        kind: FindingKind::PoolExhausted,
        name: "pool_exhausted",
        title: "The pool is smaller than the number of connections",
        blame: Blame::Server,
        measured: "The same; then one served connection is closed.",
        threshold: || {
            "more than one but not all are answered, the others not refused; closing one lets another in".into()
        },
        cause: "A fixed pool of threads in which a thread stays with its connection, idle or not.",
        remedy: "Let a thread serve whichever connection has work: event loops, or a pool of requests.",
    },
    Entry {
        kind: FindingKind::BacklogOverflow,
        name: "backlog_overflow",
        title: "The listen queue overflowed",
        blame: Blame::Server,
        measured: "Many connections at once; the kernel's `ListenOverflows` and `ListenDrops` before and after.",
        threshold: || {
            format!(
                "one overflow counted, or one connection that took {} s or never came",
                admission::SYN_RETRY_US / 1e6
            )
        },
        cause: "A short backlog with an acceptor that is slow or busy with something else.",
        remedy: "A longer backlog (`tcp-backlog`, `net.core.somaxconn`), and accept until nothing is left.",
    },
    Entry {
        kind: FindingKind::StrandedReply,
        name: "stranded_reply",
        title: "Replies stay behind until more requests come",
        blame: Blame::Server,
        measured: "One batch on one connection, then silence; later one more request.",
        threshold: || "a reply that came only after the next request".into(),
        cause: "Replies are flushed when a buffer or a count is full, not when there is nothing left to read.",
        remedy: "Flush before a read that would block.",
    },
    Entry {
        kind: FindingKind::NagleStall,
        name: "nagle_stall",
        title: "Batches wait for a delayed acknowledgement",
        blame: Blame::Server,
        measured: "Batches in lock-step: distribution of latency, Little's law, CPU of both, the same with TCP_QUICKACK.",
        threshold: || {
            format!(
                "{} of the requests take {:.0} to {:.0} ms with at most {} as many just below, or Little's law is \
                 missed by {}; and TCP_QUICKACK gains {} times (not measured: both sides at most {} busy)",
                percent(time::STALLED_SHARE),
                time::STALL_US.0 / 1e3,
                time::STALL_US.1 / 1e3,
                percent(time::GAP_SHARE),
                percent(little::TOLERANCE),
                time::QUICK_ACK_GAIN,
                percent(time::WAITING_BUSY_MAX)
            )
        },
        cause: "Several small sends per batch on a socket without TCP_NODELAY: the second waits for the \
                acknowledgement of the first, which the client delays by 40 ms.",
        remedy: "TCP_NODELAY, and one send per batch.",
    },
    Entry {
        kind: FindingKind::FlushPerReply,
        name: "flush_per_reply",
        title: "One send per reply",
        blame: Blame::Server,
        measured: "Sends per reply from `INFO io` or a trace, else data segments that arrive (TCP_INFO), in batches.",
        threshold: || {
            format!(
                "{} sends per reply or more at {} requests per batch or more and replies of at most {} bytes",
                io::SENDS_PER_REPLY,
                io::PIPELINE_MIN,
                count(io::REPLY_BYTES_MAX)
            )
        },
        cause: "The server writes to the socket after each command.",
        remedy: "Gather replies, send when there is nothing left to read or the buffer is full.",
    },
    Entry {
        kind: FindingKind::PollPerRequest,
        name: "poll_per_request",
        title: "A poll for every request",
        blame: Blame::Server,
        measured: "Polls, events and requests, from `INFO io` or a trace, with many connections in flight.",
        threshold: || {
            format!(
                "at most {} events per poll and at least {} polls per request at {} connections in flight or more",
                io::EVENTS_PER_POLL,
                io::POLLS_PER_REQUEST,
                io::IN_FLIGHT_MIN
            )
        },
        cause: "One poll per connection, or a poll that asks for one event.",
        remedy: "One poll for many connections, and take all that it brings.",
    },
    Entry {
        kind: FindingKind::EagerReads,
        name: "eager_reads",
        title: "Small writes are answered too eagerly",
        blame: Blame::Server,
        measured: "Reads per message of a client that sends small writes and waits for nothing, and its speed beside a reader \
                   that answers nothing.",
        threshold: || {
            format!(
                "writes of at most {} bytes, reads of at most {} bytes, and at most {} of the messages that a reader without \
                 answers gets",
                count(io::WRITE_BYTES_MAX as f64),
                count(io::READ_BYTES_MAX),
                percent(io::DISCARDED_SHARE)
            )
        },
        cause: "The server reads as soon as anything is there: each read brings one write, and each answer costs a send, a \
                wake-up and a receive.",
        remedy: "Let reads of a client that goes on without its answers wait for some tens of microseconds.",
    },
    Entry {
        kind: FindingKind::ClientSaturated,
        name: "client_saturated",
        title: "The load generator is the bottleneck",
        blame: Blame::Client,
        measured: "CPU of the busiest sending thread, and of the server's busiest.",
        threshold: || {
            format!(
                "the client's busiest thread works {} of the time, the server's {} less",
                percent(evidence::BUSY),
                percent(load::SERVER_MARGIN)
            )
        },
        cause: "Too few sending threads, verification, or a client on the server's cores.",
        remedy: "More threads or another machine; until then the figure is the client's.",
    },
    Entry {
        kind: FindingKind::UnboundedClient,
        name: "unbounded_client",
        title: "The client sends without a bound",
        blame: Blame::Client,
        measured: "Requests in flight over time.",
        threshold: || {
            format!(
                "the last quarter holds {} times what the first held, and it grows by {} of the throughput per second",
                load::QUEUE_GROWTH,
                percent(load::QUEUE_RATE)
            )
        },
        cause: "Asynchronous requests without back pressure, or an open loop above what the server can do.",
        remedy: "A bounded window per connection; latency then tells the truth again.",
    },
    Entry {
        kind: FindingKind::SingleWriterFlat,
        name: "single_writer_flat",
        title: "One thread owns the data",
        blame: Blame::Server,
        measured: "Throughput against load, one request at a time per connection; the same with PING; which threads one request wakes; CPU per thread.",
        threshold: || {
            format!(
                "at most {} times the throughput for {} times the load (from {} on), and PING {} times as fast \
                 (not measured: one of several threads {} busy with {} idle CPUs); never where one thread does all; or each \
                 request wakes two threads or more, one of them the same on both of two connections ({} of the \
                 requests), and throughput grows by at most {} of what the load grows",
                load::FLAT_GROWTH_MAX,
                load::FLAT_SPAN,
                load::FLAT_FROM,
                load::PING_RATIO,
                percent(load::WRITER_BUSY),
                load::IDLE_CPUS_MIN,
                percent(load::WAKE_SHARE),
                percent(load::FLAT_GROWTH_SHARE)
            )
        },
        cause: "Requests go as messages to the one thread that owns the map, and answers come back.",
        remedy: "Run the command on the thread that read it, with locks per part of the data.",
    },
    Entry {
        kind: FindingKind::Retrograde,
        name: "retrograde",
        title: "More load brings less throughput",
        blame: Blame::Nobody,
        measured: "Throughput against load, repeated; the Universal Scalability Law fitted to it.",
        threshold: || {
            format!(
                "the end of the ramp is {} below the peak, and their repetitions do not overlap",
                percent(retrograde::FALL_MIN)
            )
        },
        cause: "Every server has a peak; behind it threads, caches and locks cost more than parallel work brings.",
        remedy: "Run at the peak: bound connections, share them among callers.",
    },
    Entry {
        kind: FindingKind::WakeupBound,
        name: "wakeup_bound",
        title: "Wake-ups, not work, make the latency",
        blame: Blame::Nobody,
        measured: "One request at a time: latency, the same where one side or none sleeps, the cost of a wake-up \
                   on this machine, idle CPUs.",
        threshold: || {
            let share = percent(time::EXPLAINED_SHARE);
            format!(
                "{} idle CPUs, and without sleep it is {} times faster and saves {share} of a wake-up or more (not \
                 measured: two wake-ups make {share} of the latency or more, and no more than all of it)",
                time::IDLE_CPUS_MIN,
                time::SPIN_GAIN,
            )
        },
        cause: "Both sides sleep between requests; a virtual machine pays an exit for each wake-up.",
        remedy: "Pipelining or more callers per connection; busy polling where a core can be spared.",
    },
    Entry {
        kind: FindingKind::None,
        name: "none",
        title: "Nothing stands out",
        blame: Blame::Nobody,
        measured: "All of the above that the target lets itself be asked.",
        threshold: || "no other finding".into(),
        cause: "A healthy server, or evidence that could not be had (it says which was looked at).",
        remedy: "Nothing.",
    },
];

/// The list as a Markdown table, as it stands in `docs/laboratory.md`.
pub fn markdown() -> String {
    let head =
        "| finding | whose | what is measured | found from when on | usual cause | what to do |";
    let line = |entry: &Entry| {
        let Entry { name, title, measured, cause, remedy, .. } = entry;
        let (blame, threshold) = (entry.blame.word(), (entry.threshold)());
        format!("| `{name}`: {title} | {blame} | {measured} | {threshold} | {cause} | {remedy} |\n")
    };
    format!("{head}\n|---|---|---|---|---|---|\n{}", LIST.iter().map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/laboratory.md");
    const BEGIN: &str = "<!-- findings: written by a test, UPDATE=1 renews it -->\n";
    const END: &str = "<!-- end of findings -->";

    #[test]
    fn names_are_those_of_json_and_none_is_missing() {
        for entry in LIST {
            let json = serde_json::to_string(&entry.kind).expect("a kind is a word");
            assert_eq!(json, format!("\"{}\"", entry.name));
        }
        // Kinds are numbered in order, and the last is None.
        let kinds = FindingKind::None as usize + 1;
        assert_eq!(LIST.len(), kinds, "every kind of src/result.rs has its entry");
        let mut numbers: Vec<usize> = LIST.iter().map(|entry| entry.kind as usize).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..kinds).collect::<Vec<usize>>());
    }

    #[test]
    fn the_document_holds_the_list() {
        let text = std::fs::read_to_string(DOCUMENT).expect("docs/laboratory.md is there");
        let (before, rest) = text.split_once(BEGIN).expect("the list begins");
        let (held, after) = rest.split_once(END).expect("the list ends");
        if std::env::var_os("UPDATE").is_some() {
            let renewed = format!("{before}{BEGIN}\n{}\n{END}{after}", markdown());
            std::fs::write(DOCUMENT, renewed).expect("the document can be written");
        } else {
            assert_eq!(held.trim(), markdown().trim(), "run this test with UPDATE=1");
        }
    }
}
