//! Servers, clients and a network in one process, driven from one seed, in which everything goes
//! wrong on purpose. `docs/simulation.md` describes it for those who run it. All of it exists only
//! under `--cfg sim`, because its servers run on the threads of a baton (`base::sync`).
//!
//! ```text
//! swarm      one child process per seed; totals                       (swarm.rs)
//!   run      one seed: plan, world, clients, judge                    (run.rs)
//!     plan   what is drawn: faults, features, counts                  (plan.rs, journal.rs)
//!     machine  the disk, and the configuration file on it             (machine.rs)
//!     host   the servers: start, kill, end                            (host.rs)
//!     link   a connection of a client, and what is done to it         (link.rs)
//!     session  requests and replies of a family of clients            (session.rs)
//!       clients/*  the families                                       (clients/)
//!     books  what was asked and answered, and whether it can be true  (books/)
//!     closings, panics  why the server may close a connection         (closings.rs, panics.rs)
//!     judge  what is asked of a run at its end                        (judge.rs)
//!     saved  what the next server loads, against all histories         (saved.rs)
//!     memory  the memory in use, recounted from the keys              (memory.rs)
//! ```

#![cfg(sim)]

pub mod books;
pub mod clients;
pub mod closings;
pub mod host;
pub mod journal;
pub mod judge;
pub mod link;
pub mod machine;
pub mod memory;
pub mod panics;
pub mod plan;
pub mod run;
pub mod saved;
pub mod session;
pub mod swarm;
pub mod trace;
pub mod wall;
pub mod world;
