//! Operations on sessions and on the server, as plain data. The table sits below the server and
//! calls nothing upwards: a handler reads the arguments into one of these, and the server matches
//! it exhaustively.

mod bytes;
mod client_op;
mod debug_op;
mod server_op;
mod session_op;
mod tracking;

pub use bytes::Bytes;
pub use client_op::{
    ClientFact, ClientFilters, ClientKill, ClientOp, ClientRule, ClientType, LibraryFact, ReplyMode,
};
pub use debug_op::{DebugOp, Populate, ProtocolSample};
pub use server_op::{
    ConfigOp, FlushMode, HOTKEYS_COUNT_DEFAULT, HOTKEYS_COUNT_MAX, HotKeysOp, HotKeysSession,
    LatencyOp, LogKind, LogOp, MemoryOp, Migrate, SLOWLOG_GET_DEFAULT, SaveMode, ServerOp,
    ShutdownOp,
};
pub use session_op::{Credentials, Hello, PubSubOp, SessionOp, Subject};
pub use tracking::Tracking;
