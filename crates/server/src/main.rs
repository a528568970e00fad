//! The `sheafdb` server binary.

use server::config::docs;
use server::config::load::{Start, start};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

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

fn main() -> ExitCode {
    let arguments: Vec<Vec<u8>> = std::env::args_os().skip(1).map(OsStringExt::into_vec).collect();
    let config = match start(&arguments, &mut std::io::stdin()) {
        Ok(Start::Run(config)) => config,
        Ok(Start::Version) => {
            println!("SheafDB v{}", server::boot::VERSION);
            return ExitCode::SUCCESS;
        }
        Ok(Start::Help) => {
            print!("{}", docs::help());
            return ExitCode::SUCCESS;
        }
        Err(line) => {
            eprintln!("sheafdb: {line}");
            return ExitCode::FAILURE;
        }
    };
    match server::boot::run(*config, memory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(line) => {
            eprintln!("sheafdb: {line}");
            ExitCode::FAILURE
        }
    }
}
