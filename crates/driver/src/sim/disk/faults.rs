//! The faults of a simulated disk, and how often each of them happened.

/// The faults of a simulated disk. `*_one_in: n` means with probability 1/n; 0 means never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskFaults {
    /// A read fails with EIO.
    pub read_error_one_in: u64,
    /// A write, truncation or reservation fails with EIO; a part of a write may have happened.
    pub write_error_one_in: u64,
    /// An operation on names fails with EIO and changes nothing.
    pub name_error_one_in: u64,
    /// A sync of a file or of a folder fails with EIO.
    pub sync_error_one_in: u64,
    /// A read returns fewer bytes than it could.
    pub short_read_one_in: u64,
    /// A write accepts fewer bytes than there is room for.
    pub short_write_one_in: u64,
    /// An operation takes up to `slow_ns_max` longer.
    pub slow_one_in: u64,
    /// An operation makes the disk hang: nothing completes for up to `hang_ns_max`.
    pub hang_one_in: u64,
    /// Every operation takes up to this long; so operations overtake each other.
    pub delay_ns_max: u64,
    /// The most that a slow operation takes in addition.
    pub slow_ns_max: u64,
    /// The longest hang.
    pub hang_ns_max: u64,
    /// Capacity in bytes, in whole blocks of 4096 bytes.
    pub capacity_bytes: u64,
    /// Writes of one file reach the disk in order, and before the length that includes them, as
    /// those of ext4 (`data=ordered`) and xfs do: what grows and is not synced loses its end alone.
    pub in_order: bool,
}

impl DiskFaults {
    /// A disk without faults and without delays. (A crash of its machine still loses what is not
    /// durable.)
    pub const NONE: Self = Self {
        read_error_one_in: 0,
        write_error_one_in: 0,
        name_error_one_in: 0,
        sync_error_one_in: 0,
        short_read_one_in: 0,
        short_write_one_in: 0,
        slow_one_in: 0,
        hang_one_in: 0,
        delay_ns_max: 0,
        slow_ns_max: 0,
        hang_ns_max: 0,
        capacity_bytes: u64::MAX,
        in_order: false,
    };

    /// Short reads and writes, delays and hangs; no operation fails.
    pub const ROUGH: Self = Self {
        short_read_one_in: 3,
        short_write_one_in: 3,
        slow_one_in: 16,
        hang_one_in: 256,
        delay_ns_max: 2_000_000,
        slow_ns_max: 100_000_000,
        hang_ns_max: 5_000_000_000,
        ..Self::NONE
    };

    /// As `ROUGH`, and any operation may fail.
    pub const HARSH: Self = Self {
        read_error_one_in: 32,
        write_error_one_in: 32,
        name_error_one_in: 32,
        sync_error_one_in: 16,
        ..Self::ROUGH
    };
}

macro_rules! counts {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// How often each fault happened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct DiskFaultCounts {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl DiskFaultCounts {
            /// Every kind and its count, in the order of the fields.
            pub fn by_kind(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)+]
            }
        }
    };
}

counts! {
    /// Reads that failed.
    read_errors,
    /// Writes, truncations and reservations that failed.
    write_errors,
    /// Operations on names that failed.
    name_errors,
    /// Syncs of a file that failed and left its changes to the next sync.
    syncs_kept,
    /// Syncs of a file that failed and marked its changes as written, which were not.
    syncs_lost,
    /// As `syncs_lost`, and later reads see what is on the disk.
    syncs_evicted,
    /// Syncs of a folder that failed.
    folder_syncs_failed,
    /// Reads that returned a part.
    short_reads,
    /// Writes that accepted a part, for want of space or without a reason.
    short_writes,
    /// Operations that failed for want of space.
    full,
    /// Operations that took longer than usual.
    slow,
    /// Hangs of the disk.
    hangs,
    /// Crashes of the machine.
    crashes,
    /// Operations in flight at a crash, or at the end of their process, that happened.
    in_flight_done,
    /// Operations in flight at a crash, or at the end of their process, that did not happen.
    in_flight_dropped,
    /// Writes that were not durable and survived a crash or a failed sync.
    writes_kept,
    /// Writes of which some sectors survived.
    writes_torn,
    /// Writes that were lost.
    writes_dropped,
    /// Changes of a file's length that were lost.
    lengths_dropped,
    /// Sectors that the length of a file included and that were never written: zeros.
    sectors_zero,
    /// As `sectors_zero`, with garbage in them.
    sectors_garbage,
    /// Changes of names that were not durable and survived.
    names_kept,
    /// Changes of names that were lost.
    names_dropped,
}
