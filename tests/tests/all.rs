//! The suites. One program, because each links the same again; each step of `cargo xtask ci` runs
//! one suite of it, in a process of its own.

/// The tests of a suite are `suite::NAME::`, so that a filter means one suite.
#[path = "."]
mod suite {
    mod admin;
    mod aof_history;
    mod aof_load;
    mod aof_offset;
    mod aof_reload;
    mod aof_settings;
    mod backup;
    mod backup_schedule;
    mod blocking;
    mod captured;
    mod check_aof;
    mod cli;
    mod client_memory;
    mod clients;
    mod clock;
    mod command_table;
    mod crash;
    mod db_limit;
    mod debug;
    mod defrag;
    mod differential;
    mod due;
    mod eviction;
    mod examples;
    mod fence;
    mod figures;
    mod flooding;
    mod golden;
    mod gone;
    mod harness;
    mod holders;
    mod holds;
    mod hotkeys;
    mod info;
    mod ingest;
    mod ingest2;
    mod ingest_crash;
    mod ingest_sinks;
    mod intset;
    mod io_backend;
    mod key_events;
    mod limits;
    mod loading;
    mod memory;
    mod migrate;
    mod moment;
    mod monitor;
    mod moving;
    mod nets;
    mod point_in_time;
    mod producers;
    mod pubsub;
    mod rdb_files;
    mod robust;
    mod saving;
    mod scale;
    mod serializable;
    mod server;
    mod serving;
    mod sizes;
    mod slow_reader;
    mod snapshots;
    mod stalls;
    mod start;
    mod streams;
    mod stress;
    mod supervisor;
    mod tracking;
    mod traffic;
    mod trouble;
    mod waitaof;
}
