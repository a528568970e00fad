//! What the server knows about itself: counters, histograms, the slow log and statistics per
//! command and per error. Nothing here does I/O or reads a clock.
