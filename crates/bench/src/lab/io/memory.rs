//! A server's memory, as it tells it and as the system does.

use client::Address;

use crate::host;
use crate::lab::subject;

/// A server's memory at one time, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Allocated, by its own account (`used_memory` of INFO memory).
    pub used: Option<u64>,
    /// Resident, where it is a local process.
    pub resident: Option<u64>,
}

/// Looks at the memory of a server.
pub fn memory(address: &Address, pid: Option<u32>) -> Memory {
    let used = subject::info_field(address, "memory", "used_memory");
    Memory { used, resident: pid.map(host::resident_bytes).filter(|bytes| *bytes > 0) }
}

impl Memory {
    /// Bytes that came since, per request: the server's own figure if there is one, else resident
    /// ones.
    pub fn growth_per_request(&self, before: &Self, requests: u64) -> Option<f64> {
        let between = |now: Option<u64>, then: Option<u64>| Some(now? as f64 - then? as f64);
        let grown = between(self.used, before.used).or(between(self.resident, before.resident))?;
        Some(grown / requests.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_prefers_the_figure_of_the_server() {
        let before = Memory { used: Some(1000), resident: Some(5000) };
        let after = Memory { used: Some(3000), resident: Some(9000) };
        assert_eq!(after.growth_per_request(&before, 100), Some(20.0));
        let silent = Memory { used: None, ..before };
        assert_eq!(after.growth_per_request(&silent, 100), Some(40.0));
        assert_eq!(Memory::default().growth_per_request(&before, 1), None);
    }
}
