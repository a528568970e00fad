//! `sheafdb-bench`: a load generator and a laboratory. It measures any RESP server, and shows why it is
//! fast or slow.

pub mod acks;
pub mod result;
