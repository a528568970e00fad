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
mod hanging;
mod held;
mod ingest;
mod ingest2;
mod load;
mod monitor;
mod moving;
mod rewrite;
mod save;
mod service;
mod stop;
mod turns;
mod waitaof;
mod worlds;
