//! How long a rewrite that is due waits behind those which have failed. Each of them leaves one
//! more segment and has written a part of a base: without a pause they would fill the disk.

use base::MonoNs;

/// The first pause; each further one is twice as long.
const FIRST_NS: u64 = 5_000_000_000;
const MAX_NS: u64 = 3_600_000_000_000;

/// The pause behind the last rewrite.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pause {
    /// Its length; 0 behind a success.
    ns: u64,
    since: MonoNs,
}

impl Pause {
    /// A rewrite has failed. Returns when the next one may begin.
    pub fn begin(&mut self, now: MonoNs) -> MonoNs {
        *self = Self { ns: (2 * self.ns).clamp(FIRST_NS, MAX_NS), since: now };
        now.plus(self.ns)
    }

    /// A rewrite has succeeded.
    pub fn end(&mut self) {
        self.ns = 0;
    }

    /// The next rewrite may begin by itself.
    pub fn is_over(self, now: MonoNs) -> bool {
        now.since(self.since) >= self.ns
    }

    /// The next rewrite may begin if writes are refused until one succeeds: none waits for long.
    pub fn is_over_soon(self, now: MonoNs) -> bool {
        now.since(self.since) >= self.ns.min(FIRST_NS)
    }
}
