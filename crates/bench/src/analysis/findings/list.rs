//! The closed list for readers: what each finding means, what is measured, from when on it is
//! found, what usually causes it and what to do. Its sentences are in `list.txt`, a paragraph for
//! each finding. `docs/laboratory.md` holds the same; a test compares.

use std::fmt::Display;
use std::sync::LazyLock;

use super::{admission, cache, evidence, io, load, time};
use crate::analysis::figure::{count, percent};
use crate::analysis::texts::Texts;
use crate::analysis::{little, retrograde};
use crate::result::FindingKind;

/// What is said of each finding.
const TEXTS: Texts = Texts(include_str!("list.txt"));

/// The thresholds, for their placeholders in the texts.
const THRESHOLDS: &[(&str, &(dyn Fn() -> String + Sync))] = &[
    ("syn_retry_s", &|| (admission::SYN_RETRY_US / 1e6).to_string()),
    ("stalled", &|| percent(time::STALLED_SHARE)),
    ("stall_from_ms", &|| (time::STALL_US.0 / 1e3).to_string()),
    ("stall_to_ms", &|| (time::STALL_US.1 / 1e3).to_string()),
    ("gap", &|| percent(time::GAP_SHARE)),
    ("little", &|| percent(little::TOLERANCE)),
    ("quick_ack", &|| time::QUICK_ACK_GAIN.to_string()),
    ("waiting_busy", &|| percent(time::WAITING_BUSY_MAX)),
    ("sends", &|| io::SENDS_PER_REPLY.to_string()),
    ("pipeline", &|| io::PIPELINE_MIN.to_string()),
    ("reply_bytes", &|| count(io::REPLY_BYTES_MAX)),
    ("events", &|| io::EVENTS_PER_POLL.to_string()),
    ("polls", &|| io::POLLS_PER_REQUEST.to_string()),
    ("in_flight", &|| io::IN_FLIGHT_MIN.to_string()),
    ("write_bytes", &|| count(io::WRITE_BYTES_MAX as f64)),
    ("read_bytes", &|| count(io::READ_BYTES_MAX)),
    ("discarded", &|| percent(io::DISCARDED_SHARE)),
    ("busy", &|| percent(evidence::BUSY)),
    ("server_margin", &|| percent(load::SERVER_MARGIN)),
    ("queue_growth", &|| load::QUEUE_GROWTH.to_string()),
    ("queue_rate", &|| percent(load::QUEUE_RATE)),
    ("flat_growth", &|| load::FLAT_GROWTH_MAX.to_string()),
    ("flat_span", &|| load::FLAT_SPAN.to_string()),
    ("flat_from", &|| load::FLAT_FROM.to_string()),
    ("ping", &|| load::PING_RATIO.to_string()),
    ("writer_busy", &|| percent(load::WRITER_BUSY)),
    ("writer_idle", &|| load::IDLE_CPUS_MIN.to_string()),
    ("wake_share", &|| percent(load::WAKE_SHARE)),
    ("growth_share", &|| percent(load::FLAT_GROWTH_SHARE)),
    ("fall", &|| percent(retrograde::FALL_MIN)),
    ("idle", &|| time::IDLE_CPUS_MIN.to_string()),
    ("spin", &|| time::SPIN_GAIN.to_string()),
    ("explained", &|| percent(time::EXPLAINED_SHARE)),
    ("lost", &|| (cache::LOST_SHARE * 100.0).to_string()),
    ("age", &|| cache::AGE_S.to_string()),
    ("resistant", &|| (cache::RESISTANT_SHARE * 100.0).to_string()),
    ("once", &|| percent(cache::READ_ONCE_SHARE)),
    ("over", &|| percent(cache::OVER_LIMIT_SHARE)),
];

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
    pub threshold: &'static str,
    /// What usually causes it.
    pub cause: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

/// The closed list, which lives as long as the program.
pub static LIST: LazyLock<Vec<Entry>> = LazyLock::new(|| TEXTS.names().map(read).collect());

fn read(name: &'static str) -> Entry {
    let kind = serde_json::from_str(&format!("\"{name}\"")).expect("the name of a kind");
    let values: Vec<(&str, String)> = THRESHOLDS.iter().map(|(key, of)| (*key, of())).collect();
    let values: Vec<(&str, &dyn Display)> =
        values.iter().map(|(key, value)| (*key, value as &dyn Display)).collect();
    let fields: Vec<&'static str> = TEXTS.sentence(name, &values).leak().split(" | ").collect();
    let [title, blame, measured, threshold, cause, remedy] = fields[..] else {
        panic!("a text of six parts: {fields:?}")
    };
    let blame =
        [Blame::Server, Blame::Client, Blame::Nobody].into_iter().find(|b| b.word() == blame);
    let blame = blame.unwrap_or_else(|| panic!("{name}: whose trait is it?"));
    Entry { kind, name, title, blame, measured, threshold, cause, remedy }
}

/// The entry of a kind.
pub fn entry(kind: FindingKind) -> &'static Entry {
    LIST.iter().find(|entry| entry.kind == kind).expect("a test sees that every kind has one")
}

/// The list as a Markdown table, as it stands in `docs/laboratory.md`.
pub fn markdown() -> String {
    let head =
        "| finding | whose | what is measured | found from when on | usual cause | what to do |";
    let line = |entry: &Entry| {
        let Entry { name, title, measured, cause, remedy, .. } = entry;
        let (blame, threshold) = (entry.blame.word(), entry.threshold);
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
    fn the_list_has_every_kind_under_its_json_name() {
        for entry in LIST.iter() {
            let json = serde_json::to_string(&entry.kind).expect("a kind is a word");
            assert_eq!(json, format!("\"{}\"", entry.name));
        }
        // Kinds are numbered in order, and None is the last.
        let kinds = FindingKind::None as usize + 1;
        assert_eq!(LIST.len(), kinds, "every kind of src/result.rs has its entry");
        let mut numbers: Vec<usize> = LIST.iter().map(|entry| entry.kind as usize).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..kinds).collect::<Vec<usize>>());
    }

    #[test]
    fn the_document_contains_the_list() {
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
