//! The arguments of `LATENCY`.

use resp::Args;

use crate::error::Error;
use crate::ops::{Bytes, LatencyOp, ServerOp};

fn names(args: Args<'_>) -> Vec<Bytes> {
    args.from(2).iter().map(Bytes::from).collect()
}

/// `LATENCY LATEST`.
pub fn latest(_: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::Latency(LatencyOp::Latest))
}

/// `LATENCY HISTORY event`.
pub fn history(args: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::Latency(LatencyOp::History(args.get(2).into())))
}

/// `LATENCY GRAPH event`.
pub fn graph(args: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::Latency(LatencyOp::Graph(args.get(2).into())))
}

/// `LATENCY RESET [event ...]`.
pub fn reset(args: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::Latency(LatencyOp::Reset(names(args))))
}

/// `LATENCY DOCTOR`.
pub fn doctor(_: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::Latency(LatencyOp::Doctor))
}

/// `LATENCY HISTOGRAM [command ...]`.
pub fn histogram(args: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::Latency(LatencyOp::Histogram(names(args))))
}
