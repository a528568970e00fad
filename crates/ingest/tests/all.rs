//! The tests of the message protocols.
//! One program: each program builds what it calls anew.

mod adaptive;
#[path = "model/main.rs"]
mod model;
mod splits;
mod v2_intake;
mod v2_splits;
mod v2_vectors;
mod vectors;
