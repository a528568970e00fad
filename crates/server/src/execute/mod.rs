//! The way of a command, whoever runs it: on whose behalf (`caller`), whether it may (`gates`),
//! which locks it takes (`locks`), the call (`command`), the end of its changes (`finish`), what is
//! left for later (`steps`, `waiting`), several as one (`transaction`), and what is recorded of it
//! (`record`).

pub mod caller;
pub mod command;
pub(crate) mod fence;
pub(crate) mod finish;
pub mod gates;
pub mod hot;
pub(crate) mod keys;
pub(crate) mod locks;
pub(crate) mod record;
pub(crate) mod redact;
pub mod running;
pub mod sizes;
pub(crate) mod steps;
pub(crate) mod transaction;
pub(crate) mod waiting;
pub(crate) mod window;
