//! The way of a command, whoever runs it.
//!
//! | step | file |
//! |---|---|
//! | the commands of a window, on the short path | `framed`, `window`, `hot` |
//! | one request on the full path | `request` |
//! | on whose behalf it runs, and whether it may | `caller`, `gates` |
//! | its keys, its locks | `keys`, `locks`, `locked` |
//! | the call, and a panic in it | `call`, `running`, `panics` |
//! | the end of its changes | `finish`, `fence` |
//! | what is left for later | `outcome`, `steps` |
//! | waiting for keys, and serving those that wait | `waiting`, `blocked`, `serving` |
//! | waiting for a sync, and for a disk that fails | `synced`, `disk` |
//! | several as one | `transaction`, `queue`, `watching` |
//! | what is recorded of it | `record`, `sizes`, `redact`, `sampling`, `sampler` |

pub(crate) mod blocked;
pub(crate) mod budgets;
pub(crate) mod call;
pub mod caller;
pub(crate) mod disk;
pub(crate) mod eviction;
pub(crate) mod fence;
pub(crate) mod finish;
pub(crate) mod framed;
pub mod gates;
pub mod hot;
pub(crate) mod keys;
pub(crate) mod locked;
pub(crate) mod locks;
pub mod outcome;
pub(crate) mod panics;
pub(crate) mod queue;
pub(crate) mod record;
pub(crate) mod redact;
pub(crate) mod request;
pub mod running;
pub(crate) mod sampler;
pub(crate) mod sampling;
pub(crate) mod serving;
pub mod sizes;
pub(crate) mod steps;
pub(crate) mod synced;
pub(crate) mod transaction;
pub(crate) mod waiting;
mod watching;
pub(crate) mod window;
