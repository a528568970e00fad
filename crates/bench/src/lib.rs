//! `sheafdb-bench`: a load generator and a laboratory. It measures any RESP server, and shows why
//! it is fast or slow.

pub mod acks;
pub mod analysis;
pub mod bars;
pub mod cli;
pub mod collections;
pub mod compare;
pub mod host;
pub mod lab;
pub mod load;
pub mod models;
pub mod report;
pub mod result;

#[cfg(test)]
#[path = "../tests/common/undisturbed.rs"]
mod undisturbed;
