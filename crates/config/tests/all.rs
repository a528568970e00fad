//! The tests of all settings.
//! One program: each program builds what it calls anew.

mod differential;
mod start;
mod table;
