//! Which back end the workers' drivers use: the setting `io-backend`, and what the system allows.
//!
//! io_uring is unavailable in many places: seccomp filters of container run-times and
//! `kernel.io_uring_disabled` forbid it (EPERM), old kernels lack it (ENOSYS, EINVAL), limits are
//! too low (ENOMEM). The server then runs on epoll, which does the same work, and logs why: as a
//! warning if the setting asks for io_uring. `auto` uses io_uring wherever it is available, because
//! it is as fast or faster in every measurement (docs/design/0008-io-uring.md). INFO and the banner
//! name the back end in use.

use crate::log;
use crate::worker::message::Message;
use config::{Config, IoBackend};
use driver::epoll::{EpollDriver, EpollOptions};
use driver::uring::UringDriver;
use std::io::Error;

/// One driver per worker, all of one kind.
pub enum Drivers {
    /// On io_uring.
    IoUring(Vec<UringDriver<Message>>),
    /// On epoll.
    Epoll(Vec<EpollDriver<Message>>),
}

/// Opens the drivers of all workers. The error is one line for the user.
pub fn open(config: &Config, threads: usize) -> Result<Drivers, String> {
    let options = (0..threads).map(|id| EpollOptions {
        busy_poll_us: config.busy_poll_us,
        workers: threads,
        signals: id == 0,
    });
    if config.io_backend != IoBackend::Epoll {
        let drivers: Result<Vec<_>, Error> =
            options.clone().map(|o| UringDriver::new(&o)).collect();
        match drivers {
            Ok(drivers) => {
                if let Some(first) = drivers.first() {
                    log::verbose(format_args!("Using io_uring with {}", first.poller().mode()));
                }
                return Ok(Drivers::IoUring(drivers));
            }
            Err(why) => log_fallback(&why, config.io_backend == IoBackend::IoUring),
        }
    }
    let drivers: Result<Vec<_>, Error> = options.map(|o| EpollDriver::new(&o)).collect();
    drivers.map(Drivers::Epoll).map_err(|e| format!("cannot start an event loop: {e}"))
}

/// Logs why io_uring is not used: as a warning if the setting asks for it, else as a detail.
fn log_fallback(why: &Error, asked_for: bool) {
    let hint = match why.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "; a container's seccomp profile or kernel.io_uring_disabled forbids it"
        }
        Some(libc::ENOSYS | libc::EINVAL) => "; it needs Linux 6.0 or later",
        Some(libc::ENOMEM) => "; raise the limit with 'ulimit -l'",
        _ => "",
    };
    if asked_for {
        log::warning(format_args!(
            "io-backend io_uring: not available ({why}{hint}): using epoll instead"
        ));
    } else {
        log::verbose(format_args!("io_uring is not available ({why}{hint}): using epoll"));
    }
}
