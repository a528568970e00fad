//! The keys of one request, as its handler reads them from its arguments.

use std::ops::Range;

use super::keys::{KeyFlags, KeySpec};

/// One key of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyAt {
    /// Which argument it is.
    pub arg: usize,
    /// What is done to it.
    pub flags: KeyFlags,
}

/// Up to two runs of arguments that are keys, as a handler reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRuns {
    runs: [KeyRun; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KeyRun {
    next: usize,
    end: usize,
    step: usize,
    /// The key spec whose flags apply.
    spec: usize,
}

impl KeyRuns {
    const NO_RUN: KeyRun = KeyRun { next: 0, end: 0, step: 1, spec: 0 };

    /// No keys.
    pub const NONE: KeyRuns = KeyRuns { runs: [Self::NO_RUN; 2] };

    /// These arguments; what is done to them is what the first key spec says.
    pub fn of(args: Range<usize>) -> Self {
        Self::every(args, 1)
    }

    /// Every `step`-th of these arguments.
    pub fn every(args: Range<usize>, step: usize) -> Self {
        let run = KeyRun { next: args.start, end: args.end, step, spec: 0 };
        KeyRuns { runs: [run, Self::NO_RUN] }
    }

    /// And these; what is done to them is what the key spec of this number says.
    #[must_use]
    pub fn and(mut self, args: Range<usize>, spec: usize) -> Self {
        self.runs[1] = KeyRun { next: args.start, end: args.end, step: 1, spec };
        self
    }

    /// And this one, if there is one.
    #[must_use]
    pub fn and_one(self, arg: Option<usize>, spec: usize) -> Self {
        arg.map_or(self, |arg| self.and(arg..arg + 1, spec))
    }

    /// Calls `f` with every key; `specs` are the key specs of the command.
    #[inline]
    pub(crate) fn for_each(&self, specs: &[KeySpec], mut f: impl FnMut(KeyAt)) {
        for run in &self.runs {
            for arg in (run.next..run.end).step_by(run.step) {
                f(KeyAt { arg, flags: specs[run.spec].flags });
            }
        }
    }
}
