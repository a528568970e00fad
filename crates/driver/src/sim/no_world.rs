//! Without `--cfg sim` there is no world of the baton.
#![allow(clippy::unused_self)] // the functions of `world.rs`, without effect

use super::SimNet;
use super::net::State;
use crate::poller::{Ready, Wait};
use base::MonoNs;

/// What a world adds to the network: nothing.
#[derive(Debug, Default)]
pub struct World {}

impl World {
    pub fn now_ns() -> Option<u64> {
        None
    }

    pub fn add_worker(&mut self) {}

    pub fn add_listener(&mut self) {}

    pub fn add_stream(&mut self, _listener: usize) {}

    pub fn wake(&mut self, _worker: usize, _now: MonoNs) {}

    pub fn clock_step_ns(&self, _worker: usize) -> i64 {
        0
    }
}

impl State {
    pub fn wake_watchers(&mut self, _stream: usize) {}

    pub fn wake_acceptor(&mut self, _listener: usize) {}
}

pub fn is_active() -> bool {
    false
}

pub fn call() {}

pub fn close_with_groups(_: &SimNet) {}

pub fn poll(_: &SimNet, _: usize, _: &mut Vec<Ready>, _: Wait) {}
