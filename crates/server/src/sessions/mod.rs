//! Connections of clients: the session that its worker sees, the card that others see, their begin
//! and end (`lifecycle`), replies of a turn (`output`), held
//! replies (`outbox`) and when they leave (`release`), requests that are not answered yet
//! (`unanswered`), what is held for clients in memory, the keys that they watch, their shares of
//! the worker's time (`quota`), and MONITOR.

pub mod card;
pub mod client_memory;
pub(crate) mod lifecycle;
pub(crate) mod monitor_feed;
pub mod monitors;
pub mod outbox;
pub mod output;
pub(crate) mod password;
pub mod quota;
pub(crate) mod release;
pub mod session;
pub mod unanswered;
pub mod watches;
