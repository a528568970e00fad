//! The `sheafdb` server binary.
#![allow(unsafe_code)] // the allocator's options: one exported symbol, controls, a report

use server::boot::allocator::{Allocator, AllocatorTools};
use server::config::docs;
use server::config::load::{Start, start};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The allocator's options, read by it before `main`. Huge pages: with 10 million keys a lookup
/// misses the translation buffers for the entry's page, and the prefetch that should hide the miss
/// stalls on it instead. There is no `fork` whose copies huge pages would make expensive. One arena
/// to begin with, so that an empty server touches few of them; every further worker gets one of its
/// own.
// SAFETY: jemalloc looks for a symbol of this name and type: a pointer to a string that ends in
// zero.
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static MALLOC_CONF: Option<&'static libc::c_char> = {
    const OPTIONS: &[u8] = b"thp:always,narenas:1\0";
    // SAFETY: the first byte of a static string, aligned to one byte, valid for ever.
    Some(unsafe { &*OPTIONS.as_ptr().cast::<libc::c_char>() })
};

/// Bytes allocated and bytes resident, as the allocator counts them.
fn memory() -> (u64, u64) {
    use tikv_jemalloc_ctl::{epoch, stats};
    // The statistics are a snapshot that advancing the epoch renews.
    if epoch::advance().is_err() {
        return (0, 0);
    }
    let read = |r: Result<usize, _>| r.map_or(0, |n: usize| n as u64);
    (read(stats::allocated::read()), read(stats::resident::read()))
}

/// Bytes of pages in which something is allocated.
fn active() -> u64 {
    use tikv_jemalloc_ctl::{epoch, stats};
    let _ = epoch::advance(); // without it the figure is older
    stats::active::read().map_or(0, |n| n as u64)
}

/// Uses a control that reads and writes nothing; false if the allocator would not.
fn control(name: &std::ffi::CStr) -> bool {
    use std::ptr::null_mut;
    // SAFETY: the name ends in zero; all pointers are null, as the manual says of controls without
    // values. Others refuse that.
    let result =
        unsafe { tikv_jemalloc_sys::mallctl(name.as_ptr(), null_mut(), null_mut(), null_mut(), 0) };
    result == 0
}

/// Gives the pages that are free in any arena back to the system; false if the allocator would not.
fn purge() -> bool {
    // 4096 stands for all arenas (MALLCTL_ARENAS_ALL in jemalloc's manual).
    control(c"arena.4096.purge")
}

/// The same, of pages that have been free for long enough (`dirty_decay_ms`).
fn decay() {
    let _ = control(c"arena.4096.decay"); // it is tried again
}

/// Empties the cache of this thread.
fn empty_thread_cache() {
    let _ = control(c"thread.tcache.flush"); // a thread without a cache has nothing to empty
}

/// The allocator's own report.
fn report() -> Vec<u8> {
    unsafe extern "C" fn take(text: *mut libc::c_void, part: *const libc::c_char) {
        // SAFETY: `text` is the vector below, which outlives the call and is used by nobody else
        // meanwhile; `part` ends in zero, as the manual says of what the callback gets.
        let (text, part) =
            unsafe { (&mut *text.cast::<Vec<u8>>(), std::ffi::CStr::from_ptr(part)) };
        text.extend_from_slice(part.to_bytes());
    }
    let mut text: Vec<u8> = Vec::new();
    // SAFETY: the callback takes what is passed here as its first argument; no options is a null
    // pointer. It does not unwind: an allocation that fails aborts.
    unsafe {
        let opaque = std::ptr::from_mut(&mut text).cast();
        tikv_jemalloc_sys::malloc_stats_print(Some(take), opaque, std::ptr::null());
    }
    text
}

/// Gives a worker's thread an arena of its own; the first one shares the process's.
fn worker_started(worker: usize) {
    use tikv_jemalloc_ctl::raw;
    if worker == 0 {
        return;
    }
    // SAFETY: both names end in zero and both controls hold an `unsigned`, as the manual says.
    let _ = unsafe {
        raw::read::<u32>(b"arenas.create\0").and_then(|arena| raw::write(b"thread.arena\0", arena))
    };
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = arguments.next();
    let arguments: Vec<Vec<u8>> = arguments.map(OsStringExt::into_vec).collect();
    if let Some(status) = offline::run(program.as_deref(), &arguments) {
        return status;
    }
    let config = match start(&arguments, &mut std::io::stdin()) {
        Ok(Start::Run(config)) => config,
        Ok(Start::Version) => {
            println!("SheafDB v{}", server::shared::VERSION);
            return ExitCode::SUCCESS;
        }
        Ok(Start::Help) => {
            print!("{}", docs::help());
            return ExitCode::SUCCESS;
        }
        Ok(Start::Check(check)) => {
            print!("{check}");
            return if check.errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Err(lines) => {
            for line in lines {
                eprintln!("sheafdb: {line}");
            }
            return ExitCode::FAILURE;
        }
    };
    let tools = AllocatorTools { active, purge, decay, empty_thread_cache, report };
    match server::boot::run(*config, Allocator { memory, worker_started, tools }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(line) => {
            eprintln!("sheafdb: {line}");
            ExitCode::FAILURE
        }
    }
}
