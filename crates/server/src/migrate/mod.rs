//! MIGRATE: what happens to the keys on the worker (`transfer`), and the conversation with the
//! target on a thread of its own (`conversation`).

pub mod conversation;
pub(crate) mod transfer;
