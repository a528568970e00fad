//! What is told of a world: the digest of its schedule, the trace, the state of its threads.

use super::Kind;
use super::state::{Life, State};
use std::fmt::Write as _;

impl State {
    pub(super) fn mix(&mut self, value: u64) {
        let digest = self.summary.digest ^ value;
        self.summary.digest = digest.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    pub(super) fn note(&mut self, from: usize, to: usize, kind: Kind) {
        self.summary.hand_overs += u64::from(from != to);
        self.mix(to as u64);
        self.mix(kind as u64);
        self.mix(self.now_ns);
        if let Some(trace) = &mut self.trace {
            let (from, to) = (&self.threads[from], &self.threads[to]);
            let at = from.at.map_or(String::new(), |at| format!("{}:{}", at.file(), at.line()));
            // Nobody may read it.
            let _ = writeln!(
                trace,
                "{} {} {kind:?} {:?} at {at} -> {} after {} points",
                self.now_ns, from.name, from.life, to.name, self.summary.points,
            );
        }
    }

    /// One line for each group and each thread which has not ended.
    pub(super) fn report(&self) -> String {
        let mut text = format!("at {} ns:\n", self.now_ns);
        for (number, group) in self.groups.iter().enumerate() {
            let paused = if group.paused { ", paused" } else { "" };
            // Writing to a string does not fail.
            let _ = writeln!(text, "{} ({:?}{paused})", group.name, group.status);
            for thread in &self.threads {
                if thread.group.0 as usize != number
                    || matches!(thread.life, Life::Finished | Life::Dead)
                {
                    continue;
                }
                let _ = write!(text, "  {}: {:?}", thread.name, thread.life);
                if let Some(at) = thread.at {
                    let _ = write!(text, " at {}:{}", at.file(), at.line());
                }
                if let Some(until) = thread.until {
                    let _ = write!(text, ", until {until} ns");
                }
                text.push('\n');
            }
        }
        text
    }
}
