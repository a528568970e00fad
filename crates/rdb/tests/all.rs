//! The tests of the codec, and of files that other programs wrote.
//! One program: each program builds what it calls anew.

mod support;

mod files;
mod live;
mod live_files;
mod values;
