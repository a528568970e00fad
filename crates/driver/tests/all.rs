//! The tests of the drivers, on real and simulated networks and disks.
//! One program: each program builds what it calls anew.

mod common;

mod bulks;
mod disk;
mod disk_agrees;
mod files;
mod inflight;
mod listening;
mod moving;
mod patience;
mod simulation;
mod streams;
mod turns;
