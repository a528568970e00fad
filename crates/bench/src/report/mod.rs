//! The report of an experiment: prose, plots, tables and findings, and the forms it takes. One
//! HTML file that opens offline, runs no script and loads nothing; every plot also as CSV.

mod csv;
mod document;
mod escape;
mod html;
mod plot;
mod table;

pub use csv::csv;
pub use document::{Column, Document, IN_PROCESS, Kind, Plot, Section, Series, Table};
pub use escape::slug;
pub use html::html;
pub use table::holds_figures;
