//! Servers on a simulated network, clock and disk. One program, because each program that drives a
//! simulated worker compiles the whole worker for it.

#[path = "../producer/mod.rs"]
mod producer;
#[path = "../sim_world/mod.rs"]
#[allow(dead_code)] // other programs use the rest
mod sim_world;

mod appending;
mod bounds;
mod disk;
#[path = "../every_write.rs"]
mod every_write;
mod hanging;
mod held;
mod ingest;
mod ingest2;
#[path = "../ingest_sinks.rs"]
mod ingest_sinks;
mod load;
mod monitor;
mod moving;
mod pubsub;
mod rewrite;
mod save;
mod service;
mod stop;
#[path = "../stopped.rs"]
mod stopped;
mod turns;
mod waitaof;
mod worlds;
