//! `sheafdb-bench`: a load generator and a laboratory. It measures any RESP server, and shows why it is
//! fast or slow.

pub mod analysis;
pub mod report;
pub mod result;
