//! What figures mean: models of scaling, checks of consistency, statistics that tell a difference
//! from noise, and the rules that turn evidence into findings. Pure functions; nothing here
//! measures.

pub mod figure;
pub mod findings;
mod least_squares;
pub mod little;
pub mod retrograde;
pub mod spread;
pub mod steady;
pub mod texts;
pub mod usl;

pub use little::littles_law;
