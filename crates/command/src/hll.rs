//! Commands on HyperLogLogs, which are strings.

mod add;
mod count;
mod debug;
mod merge;
mod sketch;

pub use add::pfadd;
pub use count::pfcount;
pub use debug::{pfdebug, pfselftest};
pub use merge::pfmerge;
