//! Loading a file of commands: each slot in the order of the file, different slots beside each
//! other.
//!
//! ```text
//! worker 0    reads blocks ahead                                        ../driving.rs
//! threads     one at a time reads and sorts a block                     dispatch.rs
//!             each runs the commands of its own slots                   lanes.rs, run.rs
//! ```

pub(crate) mod chunk;
pub(crate) mod dispatch;
pub(crate) mod lanes;
pub(crate) mod run;

use crate::persist::load::fault::LoadError;
use crate::persist::load::replay::dispatch::Dispatcher;
use crate::persist::load::replay::lanes::{Lanes, Work};
use crate::persist::load::replay::run::Runner;
use crate::persist::load::section::Section;
use crate::persist::load::threads::count;
use crate::shared::Shared;
use crate::worker::message::Message;
use base::sync::Arc;
use journal::{Numbering, Position};
use keyspace::Access;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Starts the threads that load a file of commands: from this byte on, and behind records with
/// these numbers, which end at this position. `access` is that of the calling worker.
pub(crate) fn start(
    access: &mut Access,
    shared: &Arc<Shared>,
    file: &Path,
    (from, numbering, position): (u64, Numbering, Option<Position>),
) -> Arc<Lanes> {
    let settings = {
        let config = shared.config.lock().expect("no panic while the configuration is held");
        config.command.clone()
    };
    let threads = count(shared.workers.len());
    let keyspace = Arc::clone(&shared.keyspace);
    let dispatcher = Dispatcher::new(from, keyspace, settings.databases, threads);
    let lanes = Arc::new(Lanes::new(threads, dispatcher.behind(numbering, position)));
    let name = file.display().to_string();
    for number in 0..threads {
        let (of_lanes, of_shared) = (lanes.clone(), shared.clone());
        let started = access.further().map_err(|e| e.to_string()).and_then(|access| {
            let section = Section::new(access, lanes.cancellation());
            // Nothing that a file repeats is drawn by chance.
            let random = number as u64;
            let runner = Runner::new(section, shared, name.clone(), &settings, random);
            let run = move || serve(number, runner, &of_lanes, &of_shared);
            driver::spawn_helper(&format!("loader-{number}"), run).map_err(|e| e.to_string())
        });
        match started {
            Ok(thread) => shared.load.add_thread(thread),
            Err(why) => {
                lanes.fail(LoadError::of_thread(&format!("cannot start a loader thread: {why}")));
                leave(&lanes, shared);
            }
        }
    }
    lanes
}

/// Works until there is nothing more to do.
fn serve(thread: usize, mut runner: Runner, lanes: &Lanes, shared: &Shared) {
    let run = AssertUnwindSafe(|| work(thread, &mut runner, lanes, shared));
    if catch_unwind(run).is_err() {
        lanes.fail(LoadError::of_thread("a loader thread has panicked"));
    }
    drop(runner); // its Access ends before loading does
    leave(lanes, shared);
}

fn leave(lanes: &Lanes, shared: &Shared) {
    if lanes.leave() {
        shared.post(0, Message::Loading);
    }
}

fn work(thread: usize, runner: &mut Runner, lanes: &Lanes, shared: &Shared) {
    loop {
        match lanes.take(thread) {
            Work::Read(mut dispatcher, block, spare) => {
                let end = match block {
                    Some(block) => {
                        dispatcher.block(&block, spare, || lanes.is_cancelled()).map(|()| None)
                    }
                    None => dispatcher.finish().map(Some),
                };
                if dispatcher.has_functions() {
                    shared.load.change_functions(|to| dispatcher.apply_functions(to));
                }
                shared.load.add_unread(dispatcher.take_unread());
                for (name, number) in dispatcher.take_producers() {
                    shared.load.add_producer(name, number);
                }
                lanes.sorted(dispatcher, end);
                shared.post(0, Message::Loading); // there is room for another block
            }
            Work::Run(chunk) => {
                runner.run(&chunk);
                lanes.ran(chunk);
            }
            Work::End => return,
        }
    }
}
