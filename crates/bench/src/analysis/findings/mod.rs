//! From evidence to findings of the closed list. Each rule is a pure function of what was measured
//! or seen. Rules use measurements only, never the server's name or version: an anonymous server
//! gets the same findings.
//!
//! A rule that lacks the evidence to be sure says nothing. Thresholds are constants with their
//! reason, in the file of their rule; [`list`] tells the whole list to people.

mod admission;
mod cache;
mod evidence;
mod io;
pub mod list;
mod load;
mod proof;
mod time;

pub use evidence::{
    Admission, Caching, Client, Connects, Evidence, Polls, Queue, Reading, Sends, Stall, Stranding,
    Trust, Wakes, Wakeups, Writer,
};
pub use list::{Blame, Entry, LIST, entry};
pub use proof::Proof;
pub use time::STALL_US;

use proof::Figures;

use crate::result::{Finding, FindingKind};

/// A rule and what it finds.
type Rule = (FindingKind, fn(&Evidence) -> Option<Proof>);

/// All rules, the most basic first.
const RULES: &[Rule] = &[
    (FindingKind::Sequential, |e| admission::sequential(e.admission.as_ref()?)),
    (FindingKind::PoolExhausted, |e| admission::pool_exhausted(e.admission.as_ref()?)),
    (FindingKind::BacklogOverflow, |e| admission::backlog_overflow(e.connects.as_ref()?)),
    (FindingKind::StrandedReply, |e| io::stranded_reply(e.stranding.as_ref()?)),
    (FindingKind::NagleStall, |e| time::nagle_stall(e.stall.as_ref()?)),
    (FindingKind::FlushPerReply, |e| io::flush_per_reply(e.sends.as_ref()?)),
    (FindingKind::PollPerRequest, |e| io::poll_per_request(e.polls.as_ref()?)),
    (FindingKind::EagerReads, |e| io::eager_reads(e.reading.as_ref()?)),
    (FindingKind::ClientSaturated, |e| load::client_saturated(e.client.as_ref()?)),
    (FindingKind::UnboundedClient, |e| load::unbounded_client(e.queue.as_ref()?)),
    (FindingKind::SingleWriterFlat, |e| {
        load::single_writer_flat(&e.levels, e.writer.as_ref()?, &e.trust)
    }),
    (FindingKind::Retrograde, |e| load::retrograde(&e.levels, &e.trust)),
    (FindingKind::WakeupBound, |e| time::wakeup_bound(e.wakeups.as_ref()?)),
    (FindingKind::SamplingLoses, |e| cache::sampling_loses(e.caching.as_ref()?)),
    (FindingKind::ScanPollution, |e| cache::scan_pollution(e.caching.as_ref()?)),
    (FindingKind::OverLimit, |e| cache::over_limit(e.caching.as_ref()?)),
];

/// The first finding explains the others, which are then suppressed.
const EXPLAINS: &[(FindingKind, &[FindingKind])] = &[
    (
        FindingKind::Sequential,
        &[FindingKind::PoolExhausted, FindingKind::Retrograde, FindingKind::SingleWriterFlat],
    ),
    (FindingKind::PoolExhausted, &[FindingKind::Retrograde, FindingKind::SingleWriterFlat]),
    (FindingKind::NagleStall, &[FindingKind::WakeupBound]),
    (FindingKind::StrandedReply, &[FindingKind::NagleStall]),
    (FindingKind::ClientSaturated, &[FindingKind::SingleWriterFlat, FindingKind::Retrograde]),
];

/// All findings that the evidence shows, or the one finding [`FindingKind::None`]. Every finding
/// carries the caveats that follow from how the run went.
pub fn judge(evidence: &Evidence) -> Vec<Finding> {
    let mut found: Vec<(FindingKind, Proof)> =
        RULES.iter().filter_map(|(kind, rule)| Some((*kind, rule(evidence)?))).collect();
    let fired: Vec<FindingKind> = found.iter().map(|(kind, _)| *kind).collect();
    found.retain(|(kind, _)| {
        !EXPLAINS.iter().any(|(by, what)| fired.contains(by) && what.contains(kind))
    });
    if found.is_empty() {
        found.push((FindingKind::None, nothing(evidence)));
    }
    let general = evidence.trust.caveats();
    let finding = |(kind, proof): (FindingKind, Proof)| Finding {
        kind,
        experiment: evidence.experiment.clone(),
        target: evidence.target.clone(),
        evidence: proof.evidence,
        caveats: proof.caveats.into_iter().chain(general.iter().cloned()).collect(),
    };
    found.into_iter().map(finding).collect()
}

/// What was looked at without result.
fn nothing(evidence: &Evidence) -> Proof {
    let looked = evidence.looked_at();
    let looked = (!looked.is_empty()).then(|| looked.join(", "));
    Figures::of("none").when("nothing", looked.is_none()).maybe("looked", looked).proof()
}

#[cfg(test)]
mod tests;
