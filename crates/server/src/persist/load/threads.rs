//! The threads that load a file: they scan and build, whatever is next.

use crate::ingest::kept::Unread;
use crate::ingest::producers::Name;
use crate::log;
use crate::persist::load::builder::{Builder, Rules};
use crate::persist::load::fault::LoadError;
use crate::persist::load::pipe::{Chunk, Pipe, Work};
use crate::persist::load::report;
use crate::persist::load::state::Load;
use crate::shared::Shared;
use crate::worker::message::Message;
use base::sync::Arc;
use journal::producer::{AUX_NAME, Field};
use keyspace::Access;
use rdb::file::{self, Scanned, Scanner, Shown, Summary};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Loader threads at most, whatever the number of workers: one thread alone scans.
const THREADS_MAX: usize = 16;

/// How many threads load for so many workers.
pub(crate) fn count(workers: usize) -> usize {
    workers.clamp(1, THREADS_MAX)
}

/// Starts the threads. `access` is that of the calling worker.
pub(crate) fn start(
    pipe: &Arc<Pipe>,
    threads: usize,
    access: &mut Access,
    shared: &Arc<Shared>,
    rules: Rules,
) {
    let settings = {
        let config = shared.config.lock().expect("no panic while the configuration is held");
        config.command.clone()
    };
    for number in 0..threads {
        let (of_pipe, of_shared) = (pipe.clone(), shared.clone());
        let started = access.further().map_err(|e| e.to_string()).and_then(|access| {
            let builder = Builder::new(access, shared, pipe.cancellation(), &settings, rules);
            let run = move || serve(builder, &of_pipe, &of_shared);
            driver::spawn_helper(&format!("loader-{number}"), run).map_err(|e| e.to_string())
        });
        match started {
            Ok(thread) => shared.load.add_thread(thread),
            Err(why) => {
                pipe.fail(LoadError::of_thread(&format!("cannot start a loader thread: {why}")));
                leave(pipe, shared);
            }
        }
    }
}

/// Works until there is nothing more to do.
fn serve(mut builder: Builder, pipe: &Arc<Pipe>, shared: &Arc<Shared>) {
    let run = AssertUnwindSafe(|| work(&mut builder, pipe, shared));
    if catch_unwind(run).is_err() {
        pipe.fail(LoadError::of_thread("a loader thread has panicked"));
    }
    drop(builder); // its Access ends before loading does
    leave(pipe, shared);
}

fn leave(pipe: &Pipe, shared: &Shared) {
    if pipe.leave() {
        shared.post(0, Message::Loading);
    }
}

fn work(builder: &mut Builder, pipe: &Pipe, shared: &Shared) {
    loop {
        let result = match pipe.take() {
            Work::Scan(scanner, block) => {
                scan(scanner, block, pipe, shared);
                shared.post(0, Message::Loading); // there is room for another block
                Ok(())
            }
            Work::Keys(keys) => builder.keys(&keys),
            Work::Long(long, part) => builder.long(long, part).map(|long| pipe.return_long(long)),
            Work::End => return,
        };
        if let Err(error) = result {
            pipe.fail(error);
        }
    }
}

/// Scans a block, or without one, what is left behind the last block. Ends at the next item if the
/// server ends.
fn scan(mut scanner: Box<Scanner>, block: Option<Vec<u8>>, pipe: &Pipe, shared: &Shared) {
    let is_last = block.is_none();
    match block {
        Some(block) => scanner.feed(&block),
        None => scanner.end_of_input(),
    }
    let mut chunks = Vec::new();
    let end = loop {
        // A block may have many items, each of which costs more than its bytes.
        if pipe.is_cancelled() {
            break None;
        }
        match scanner.next() {
            Ok(Scanned::Chunk(file::Chunk::Keys(keys))) => chunks.push(Chunk::Keys(keys)),
            Ok(Scanned::Chunk(file::Chunk::Long(part))) => chunks.push(Chunk::Long(part)),
            Ok(Scanned::Chunk(file::Chunk::Aux(name, text))) => {
                report::aux(&name, &text, &shared.load);
                add_producer(&name, &text, &shared.load);
            }
            Ok(Scanned::Chunk(file::Chunk::Function(library))) => {
                shared.load.add_function(library);
            }
            Ok(Scanned::Chunk(file::Chunk::Resize { .. })) => {} // a hint, which may be wrong
            Ok(Scanned::Complete(summary)) => break Some(Ok(summary)),
            Ok(Scanned::More) if is_last => break Some(Err(ended(&scanner))),
            Ok(Scanned::More) => break None,
            Err(e) => break Some(Err(e.into())),
        }
    };
    log_end(end.as_ref());
    pipe.scanned(scanner, chunks, end);
}

/// Keeps the number of a producer. DEBUG RELOAD changes the data alone, as FLUSHALL does.
fn add_producer(name: &[u8], text: &[u8], load: &Load) {
    if name != AUX_NAME.as_bytes() || load.planned().reload.is_some() {
        return;
    }
    match Field::parse(text) {
        Ok(field) => load.add_producer(Name::of_field(&field), field.number),
        Err(_) => load.add_unread(Unread::one(format!("'{}'", Shown(text)))),
    }
}

fn ended(scanner: &Scanner) -> LoadError {
    let offset = scanner.at();
    LoadError::at(offset, "the file ends here")
}

fn log_end(end: Option<&Result<Summary, LoadError>>) {
    if let Some(Ok(summary)) = end
        && summary.checked == file::Checked::Absent
    {
        log::notice(format_args!("The file has no checksum: it is not verified"));
    }
}

#[cfg(test)]
mod tests;
