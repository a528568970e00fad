//! A worker on a network that the test plays. One program, because each program that drives a
//! worker compiles the whole worker for it.

mod shares;
mod two_clients;

mod fair;
mod metrics_doc;
mod service;
mod stale;
mod steps;
