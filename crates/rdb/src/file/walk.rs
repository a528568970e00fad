//! Finds the end of a value without reading it.
