//! Values of any kind, part by part: [`Stored`] walks one, [`Built`] makes one. DUMP and RESTORE,
//! SORT, DEBUG OBJECT and DEBUG RELOAD stand on them.

mod built;
mod stored;

pub use built::{Built, is_packed};
pub use stored::Stored;
