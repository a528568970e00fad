//! Every target.

mod aof_manifest;
mod aof_reader;
mod config;
mod glob;
mod ingest2_intake;
mod ingest2_reader;
mod ingest_frames;
mod inline;
mod numbers;
mod rdb_file;
mod rdb_value;
mod resp_assembler;
mod resp_frame;

use crate::Target;

/// All targets.
pub const ALL: &[Target] = &[
    resp_frame::TARGET,
    resp_assembler::TARGET,
    inline::TARGET,
    config::TARGET,
    glob::TARGET,
    ingest_frames::TARGET,
    ingest2_intake::TARGET,
    ingest2_reader::TARGET,
    numbers::TARGET,
    rdb_file::TARGET,
    rdb_value::TARGET,
    aof_reader::TARGET,
    aof_manifest::TARGET,
];
